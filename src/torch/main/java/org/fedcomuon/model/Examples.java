package org.fedcomuon.model;

import java.util.Arrays;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.bytedeco.javacpp.FloatPointer;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.global.torch;
import org.fedcomuon.data.ExampleSet;
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

    /**
     * Returns examples from arrays.
     *
     * @param inputs one example after the other, each in row-major order
     * @param shape of an example, such as 1, 28, 28 for an image of one channel, or 30 for a row of a table
     * @param labels the class of each example
     */
    public static Examples of(float[] inputs, int[] labels, int... shape) {
        long size = 1;
        for (int side : shape) {
            size = Math.multiplyExact(size, side);
        }
        if (shape.length == 0 || size < 1 || inputs.length != Math.multiplyExact(size, labels.length)) {
            throw new IllegalArgumentException("%d inputs for %d labels and examples of the shape %s"
                    .formatted(inputs.length, labels.length, Arrays.toString(shape)));
        }
        var sizes = new long[shape.length + 1];
        sizes[0] = labels.length;
        for (int i = 0; i < shape.length; i++) {
            sizes[i + 1] = shape[i];
        }
        return new Examples(
                Tensor.create(inputs).view(sizes),
                Tensor.create(Arrays.stream(labels).asLongStream().toArray()));
    }

    /** Returns all examples of a set, as {@link #of(ExampleSet, int[])}. */
    public static Examples of(ExampleSet set) {
        return of(set, IntStream.range(0, set.count()).toArray());
    }

    /** Returns some examples of a set, with the values that it gives; the shape of an example follows their count. */
    public static Examples of(ExampleSet set, int[] which) {
        var labels = new long[which.length];
        long[] shape = LongStream.concat(
                        LongStream.of(which.length), set.shape().stream().mapToLong(Integer::longValue))
                .toArray();
        // One by one into torch's memory: an array of all of CIFAR-10 would take another 0.6 GB.
        Tensor inputs = torch.empty(shape);
        var example = new float[set.size()];
        FloatPointer memory = inputs.data_ptr_float();
        for (int i = 0; i < which.length; i++) {
            set.copyTo(which[i], example, 0);
            memory.position((long) i * example.length).put(example);
            labels[i] = set.label(which[i]);
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

    /** Returns the classes of the examples, one each. */
    public int[] classes() {
        var values = new long[Math.toIntExact(labels.numel())];
        labels.contiguous().data_ptr_long().get(values);
        return Arrays.stream(values).mapToInt(Math::toIntExact).toArray();
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
