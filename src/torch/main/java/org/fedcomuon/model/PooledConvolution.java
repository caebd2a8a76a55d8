package org.fedcomuon.model;

import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.global.torch;

/**
 * A convolution, max pooling over 2 x 2, and ReLU.
 *
 * <p>Where nothing is differentiated, as when a model is judged, the images between convolution and pooling stay in the
 * order that oneDNN computes them in: it pools them faster than {@link MaxPool}, and a quarter as much is brought back
 * to the order of libtorch. LeNet is judged in seven tenths of the time. oneDNN's pooling passes over NaN, so this way
 * is taken only where no sum of the convolution can leave the range of float.
 */
final class PooledConvolution {
    /** Half of the largest float: rounding on the way to a sum does not double it. */
    private static final double LARGEST_SUM = Float.MAX_VALUE / 2.0;

    private PooledConvolution() {}

    /**
     * Applies the convolution called {@code layer}, without padding, to images of examples x channels x rows x cols.
     */
    static Tensor of(Parameters p, String layer, Tensor x) {
        if (isOpaque(p, layer, x)) {
            return Torch.part(() -> opaque(p, layer, x));
        }
        Tensor convolved = Layers.convolution(p, layer, x, 1, 0);
        return torch.relu(MaxPool.of(convolved)); // ReLU after pooling: the same result with a quarter of the work
    }

    private static Tensor opaque(Parameters p, String layer, Tensor x) {
        Tensor convolved = Layers.convolution(p, layer, x.to_mkldnn(), 1, 0);
        Tensor pooled = torch.mkldnn_max_pool2d(
                convolved, new long[] {2, 2}, new long[] {2, 2}, new long[] {0, 0}, new long[] {1, 1}, false);
        return torch.relu(pooled.to_dense());
    }

    /** Returns whether the order is oneDNN's. */
    static boolean isOpaque(Parameters p, String layer, Tensor x) {
        if (p.clients().isPresent() || x.is_cuda() || x.scalar_type().intern() != torch.ScalarType.Float) {
            return false;
        }
        Tensor kernel = p.get(layer + ".weight");
        Tensor bias = p.get(layer + ".bias");
        boolean differentiated = x.requires_grad() || kernel.requires_grad() || bias.requires_grad();
        if (differentiated || !torch.hasMKLDNN() || !torch.globalContext().userEnabledMkldnn()) {
            return false;
        }
        double sum = norm(x) * kernel.abs().flatten(1, -1).sum(1).max().item_float() + norm(bias);
        return sum < LARGEST_SUM; // false for NaN
    }

    /** No element is larger; the largest one takes longer to find. */
    private static double norm(Tensor x) {
        Tensor all = x.flatten();
        return Math.sqrt(all.dot(all).item_float());
    }
}
