package org.fedcomuon.model;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.bytedeco.pytorch.MemoryFormatOptional;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.TensorOptions;
import org.bytedeco.pytorch.global.torch;

/**
 * Max pooling over 2 x 2 with results bit-identical to those of libtorch: it takes the first of equal elements, prefers
 * the last NaN, and leaves out a last odd row or column.
 *
 * <p>libtorch has an unpredictable branch per element, which took a fifth of the time of a gradient of LeNet. Here the
 * indices of the largest elements are computed without branches, and libtorch gathers the elements, with derivatives of
 * any order.
 */
final class MaxPool {
    private MaxPool() {}

    /** Pools images of {@code count x channels x rows x cols}. */
    static Tensor of(Tensor x) {
        // A GPU does not predict branches; double precision is used by tests only.
        if (x.is_cuda() || x.scalar_type().intern() != torch.ScalarType.Float) {
            return byLibtorch(x);
        }
        long count = x.size(0);
        long channels = x.size(1);
        int rows = Math.toIntExact(x.size(2));
        int cols = Math.toIntExact(x.size(3));
        Tensor images = x.contiguous();
        int windows = Math.toIntExact(x.numel()) / (rows * cols) * (rows / 2) * (cols / 2); // exact: places are int
        Tensor places =
                torch.empty(new long[] {windows}, new TensorOptions(torch.ScalarType.Int), new MemoryFormatOptional());
        find(memory(images), memory(places), Math.toIntExact(count * channels), rows, cols);
        return images.flatten().index_select(0, places).view(count, channels, rows / 2, cols / 2);
    }

    static Tensor byLibtorch(Tensor x) {
        return torch.max_pool2d(x, 2, 2);
    }

    private static MemorySegment memory(Tensor x) {
        return MemorySegment.ofAddress(x.data_ptr().address()).reinterpret(x.nbytes());
    }

    /** Where the largest element of each window is, counted from the first of all images. */
    private static void find(MemorySegment images, MemorySegment places, int count, int rows, int cols) {
        long at = 0;
        for (int i = 0; i < count; i++) {
            for (int row = 0; row + 1 < rows; row += 2) {
                int start = (i * rows + row) * cols;
                for (int col = 0; col + 1 < cols; col += 2) {
                    float a = images.getAtIndex(ValueLayout.JAVA_FLOAT, start + col);
                    float b = images.getAtIndex(ValueLayout.JAVA_FLOAT, start + col + 1);
                    float c = images.getAtIndex(ValueLayout.JAVA_FLOAT, start + col + cols);
                    float d = images.getAtIndex(ValueLayout.JAVA_FLOAT, start + col + cols + 1);
                    // Written so that all of it is selection: as booleans that are put together it comes out as
                    // branches.
                    int right = b > a ? 1 : 0;
                    int rightBelow = d > c ? 1 : 0;
                    float above = Math.max(a, b);
                    float below = Math.max(c, d);
                    int place = below > above ? cols + rightBelow : right;
                    if (Float.isNaN(Math.max(above, below))) {
                        place = Float.isNaN(d) ? cols + 1 : Float.isNaN(c) ? cols : Float.isNaN(b) ? 1 : 0;
                    }
                    places.setAtIndex(ValueLayout.JAVA_INT, at++, start + col + place);
                }
            }
        }
    }
}
