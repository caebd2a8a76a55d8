package org.fedcomuon.model;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.util.List;
import org.bytedeco.javacpp.PointerScope;
import org.bytedeco.pytorch.Scalar;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.global.torch;
import org.fedcomuon.problem.Block;
import org.fedcomuon.problem.Layout;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Both ways give the same, and what cannot be differentiated or would hide NaN is not taken. */
class PooledConvolutionIT {
    private static final Layout LAYOUT =
            Layout.of(Block.kernel("conv.weight", 6, 2, 5, 5), Block.vector("conv.bias", 6));

    @BeforeEach
    void oneThread() {
        Torch.claim();
    }

    private static Parameters parameters(double scale) {
        torch.manual_seed(1);
        return new Parameters(
                LAYOUT,
                List.of(
                        torch.randn(6, 2, 5, 5).mul(new Scalar(scale)),
                        torch.randn(6).mul(new Scalar(scale))));
    }

    private static Tensor plain(Parameters p, Tensor x) {
        return torch.relu(MaxPool.of(Layers.convolution(p, "conv", x, 1, 0)));
    }

    private static float[] floats(Tensor tensor) {
        var values = new float[Math.toIntExact(tensor.numel())];
        tensor.contiguous().data_ptr_float().get(values);
        return values;
    }

    @Test
    void bothWaysGiveTheSame() {
        try (var _ = new PointerScope()) {
            Parameters p = parameters(1);
            Tensor images = torch.randn(7, 2, 29, 28);
            assertThat(PooledConvolution.isOpaque(p, "conv", images)).isTrue();
            Tensor result = PooledConvolution.of(p, "conv", images);
            assertThat(Torch.shape(result)).isEqualTo("7 x 6 x 12 x 12");
            float[] expected = floats(plain(p, images));
            float[] values = floats(result);
            for (int i = 0; i < values.length; i++) {
                assertThat(values[i]).isCloseTo(expected[i], within(1e-4f));
            }
        }
    }

    @Test
    void whatIsDifferentiatedIsInTheOrderOfLibtorch() {
        try (var _ = new PointerScope()) {
            Parameters p = parameters(1);
            Tensor images = torch.randn(3, 2, 12, 12);
            assertThat(PooledConvolution.isOpaque(p, "conv", images.set_requires_grad(true)))
                    .isFalse();
            assertThat(PooledConvolution.isOpaque(p.requireGradient(), "conv", images.detach()))
                    .isFalse();
            PooledConvolution.of(p, "conv", images).sum().backward();
            assertThat(floats(p.get("conv.weight").grad())).isNotEmpty();
            assertThat(floats(images.grad())).isNotEmpty();
        }
    }

    /** oneDNN's pooling takes the largest of what is not NaN. */
    @Test
    void whatMayNotBeFiniteIsPooledByUs() {
        try (var _ = new PointerScope()) {
            Tensor images = torch.randn(3, 2, 12, 12);
            Tensor broken = images.mul(new Scalar(1));
            broken.flatten().narrow(0, 100, 1).fill_(new Scalar(Double.NaN));
            assertThat(floats(PooledConvolution.of(parameters(1), "conv", broken)))
                    .contains(Float.NaN);
            for (Parameters p : List.of(parameters(1e37), parameters(Double.POSITIVE_INFINITY))) {
                assertThat(PooledConvolution.isOpaque(p, "conv", images)).isFalse();
                assertThat(floats(PooledConvolution.of(p, "conv", images))).isEqualTo(floats(plain(p, images)));
            }
        }
    }
}
