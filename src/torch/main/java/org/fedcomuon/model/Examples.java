package org.fedcomuon.model;

import java.util.stream.IntStream;
import org.bytedeco.javacpp.FloatPointer;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.global.torch;
import org.fedcomuon.data.ImageSet;
import org.fedcomuon.data.TextBlocks;
import org.fedcomuon.internal.NativeLimits;

/**
 * Inputs and labels in memory, as tensors. Immutable, provided that the tensors are not written to; many threads may
 * read them.
 *
 * @param inputs the first dimension counts examples
 * @param labels a class number for each prediction: one per example, or one per token
 */
@SuppressWarnings("exports") // users of tensors have libtorch; others must not need it
public record Examples(Tensor inputs, Tensor labels) {
    static {
        NativeLimits.lift();
    }

    public Examples {
        if (inputs.size(0) != labels.size(0)) {
            throw new IllegalArgumentException("%d inputs and %d labels".formatted(inputs.size(0), labels.size(0)));
        }
    }

    /** Returns all images, as {@link #of(ImageSet, int[])}. */
    public static Examples of(ImageSet images) {
        return of(images, IntStream.range(0, images.count()).toArray());
    }

    /** Returns some images as {@code count x channels x rows x cols}, pixels as the set gives them. */
    public static Examples of(ImageSet images, int[] which) {
        var labels = new long[which.length];
        // Image by image into torch's memory: an array of all of CIFAR-10 would take another 0.6 GB.
        Tensor inputs = torch.empty(which.length, images.channels(), images.rows(), images.cols());
        var image = new float[images.imageSize()];
        FloatPointer memory = inputs.data_ptr_float();
        for (int i = 0; i < which.length; i++) {
            images.copyTo(which[i], image, 0);
            memory.position((long) i * image.length).put(image);
            labels[i] = images.label(which[i]);
        }
        return new Examples(inputs, Tensor.create(labels));
    }

    /** Returns the blocks of a text; the label of a word is the word that follows it. */
    public static Examples of(TextBlocks text) {
        int length = text.length();
        var inputs = new long[Math.multiplyExact(text.count(), length)];
        var labels = new long[inputs.length];
        for (int i = 0; i < text.count(); i++) {
            text.copyTo(i, inputs, labels, i * length);
        }
        return new Examples(
                Tensor.create(inputs).view(text.count(), length),
                Tensor.create(labels).view(text.count(), length));
    }

    /** Returns the number of examples. */
    public int count() {
        return Math.toIntExact(inputs.size(0));
    }

    /** Returns a copy of some examples. */
    public Examples select(int... indices) {
        var long64 = new long[indices.length];
        for (int i = 0; i < indices.length; i++) {
            long64[i] = indices[i];
        }
        Tensor index = Tensor.create(long64);
        return new Examples(inputs.index_select(0, index), labels.index_select(0, index));
    }

    /** Returns a view of the examples from {@code start} (inclusive) to {@code end} (exclusive). */
    public Examples range(int start, int end) {
        return new Examples(inputs.narrow(0, start, end - start), labels.narrow(0, start, end - start));
    }
}
