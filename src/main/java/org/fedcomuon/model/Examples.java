package org.fedcomuon.model;

import org.bytedeco.pytorch.Tensor;
import org.fedcomuon.data.ImageSet;

/**
 * Inputs and labels in memory, as tensors. Read by many threads at once.
 *
 * @param inputs the first dimension counts examples
 * @param labels one class number an example
 */
@SuppressWarnings("exports") // whoever uses tensors has libtorch; others must not need it
public record Examples(Tensor inputs, Tensor labels) {
    public Examples {
        if (inputs.size(0) != labels.size(0)) {
            throw new IllegalArgumentException("%d inputs and %d labels".formatted(inputs.size(0), labels.size(0)));
        }
    }

    /** Images as {@code count x channels x rows x cols}, pixels in [0, 1]. */
    public static Examples of(ImageSet images) {
        int size = images.imageSize();
        var pixels = new float[Math.multiplyExact(images.count(), size)];
        var labels = new long[images.count()];
        for (int i = 0; i < images.count(); i++) {
            images.copyTo(i, pixels, i * size);
            labels[i] = images.label(i);
        }
        return new Examples(
                Tensor.create(pixels).view(images.count(), images.channels(), images.rows(), images.cols()),
                Tensor.create(labels));
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
}
