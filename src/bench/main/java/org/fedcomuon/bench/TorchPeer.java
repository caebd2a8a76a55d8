package org.fedcomuon.bench;

import java.util.List;
import org.bytedeco.javacpp.PointerScope;
import org.bytedeco.pytorch.Scalar;
import org.bytedeco.pytorch.StringViewOptional;
import org.bytedeco.pytorch.T_TensorTensorTensor_T;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.global.torch;
import org.fedcomuon.device.Buffer;
import org.fedcomuon.device.NewtonSchulzSpec;
import org.fedcomuon.internal.OpenBlasLibrary;

/**
 * The usual implementation: libtorch, one matrix at a time. Newton-Schulz is that of PyTorch's own Muon, with
 * {@code addmm} where a sum can be fused.
 */
final class TorchPeer {
    private TorchPeer() {}

    /** A setting of libtorch's two numbers of threads. */
    record Threads(int torch, int blas) {
        @Override
        public String toString() {
            return "%d + %d threads".formatted(torch, blas);
        }
    }

    /** Returns all settings worth trying on {@code cores}. */
    static List<Threads> settings(int cores) {
        return cores == 1
                ? List.of(new Threads(1, 1))
                : List.of(new Threads(1, 1), new Threads(1, cores), new Threads(cores, 1), new Threads(cores, cores));
    }

    static void use(Threads threads) {
        torch.set_num_threads(threads.torch());
        OpenBlasLibrary.setThreads(threads.blas()); // libtorch's own setting does not affect its BLAS
    }

    /** Returns a tensor with a copy of these values. */
    static Tensor tensor(Buffer buffer, long offset, int rows, int cols) {
        return Tensor.create(buffer.toFloats(offset, rows * cols)).reshape(rows, cols);
    }

    /** Takes the weight step of one matrix, w -= eta NewtonSchulz(m), iterated in single precision or in bfloat16. */
    static void step(Tensor m, boolean bfloat16, List<NewtonSchulzSpec.Step> steps, double eta, Tensor w) {
        try (var _ = new PointerScope()) {
            boolean tall = m.size(0) > m.size(1);
            Tensor x = tall ? m.t() : m;
            if (bfloat16) {
                x = x.to(torch.ScalarType.BFloat16);
            }
            x = x.div(x.norm());
            for (NewtonSchulzSpec.Step step : steps) {
                Tensor gram = torch.mm(x, x.t());
                Tensor poly = torch.addmm(gram, gram, gram, new Scalar(step.b()), new Scalar(step.c()));
                x = torch.addmm(x, poly, x, new Scalar(step.a()), new Scalar(1.0));
            }
            w.sub_((tall ? x.t() : x).to(torch.ScalarType.Float), new Scalar(eta));
        }
    }

    /** Takes the weight step of one matrix with the exact factor. */
    static void exactStep(Tensor m, double eta, Tensor w) {
        try (var _ = new PointerScope()) {
            T_TensorTensorTensor_T usv = torch.linalg_svd(m, false, new StringViewOptional());
            w.sub_(torch.mm(usv.get0(), usv.get2()), new Scalar(eta));
        }
    }
}
