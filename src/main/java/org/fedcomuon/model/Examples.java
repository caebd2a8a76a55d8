package org.fedcomuon.model;

import java.util.stream.IntStream;
import org.bytedeco.javacpp.FloatPointer;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.global.torch;
import org.fedcomuon.data.ImageSet;
import org.fedcomuon.data.TextBlocks;
import org.fedcomuon.internal.NativeLimits;

/**
 * Inputs and labels in memory, as tensors. Immutable, as long as nobody writes to the tensors; many threads read them.
 *
 * @param inputs the first dimension counts examples
 * @param labels a class number for each prediction: one an example, or one for each token of it
 */
@SuppressWarnings("exports") // whoever uses tensors has libtorch; others must not need it
public record Examples(Tensor inputs, Tensor labels) {
    static {
        NativeLimits.lift();
    }

    public Examples {
        if (inputs.size(0) != labels.size(0)) {
            throw new IllegalArgumentException("%d inputs and %d labels".formatted(inputs.size(0), labels.size(0)));
        }
    }

    /** All images, as {@link #of(ImageSet, int[])}. */
    public static Examples of(ImageSet images) {
        return of(images, IntStream.range(0, images.count()).toArray());
    }

    /** Some images as {@code count x channels x rows x cols}, pixels as the set gives them. */
    public static Examples of(ImageSet images, int[] which) {
        var labels = new long[which.length];
        // One by one into torch's memory: an array of all of CIFAR-10 would be another 0.6 GB.
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

    /** Blocks of a text; the label of a word is the one that follows it. */
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

    /** How many. */
    public int count() {
        return Math.toIntExact(inputs.size(0));
    }

    /** Some of them, copied. */
    public Examples select(int... indices) {
        var long64 = new long[indices.length];
        for (int i = 0; i < indices.length; i++) {
            long64[i] = indices[i];
        }
        Tensor index = Tensor.create(long64);
        return new Examples(inputs.index_select(0, index), labels.index_select(0, index));
    }

    /** Those from {@code start} to before {@code end}, as a view. */
    public Examples range(int start, int end) {
        return new Examples(inputs.narrow(0, start, end - start), labels.narrow(0, start, end - start));
    }
}
