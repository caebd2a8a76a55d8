package org.fedcomuon.device;

import java.lang.foreign.MemorySegment;
import org.fedcomuon.internal.bindings.cublas.CublasNative;
import org.fedcomuon.internal.vendor.CublasBinding;
import org.fedcomuon.internal.vendor.CublasCall;

/**
 * {@link Blas} of a CUDA device: cuBLAS on the device's stream.
 *
 * <p>cuBLAS is column-major, and a row-major matrix read so is its transpose. {@code C^T = op(B)^T op(A)^T}, so the
 * operands change places and sides and triangles change their names, and nothing is copied.
 *
 * <p>The workspace is set once: by default the library allocates memory when it likes, and guarantees bit-identical
 * results from run to run only with a workspace of the user's.
 */
final class CublasBlas implements Blas, AutoCloseable {
    /** The size that NVIDIA recommends for devices before Hopper; on later devices a larger one is only faster. */
    private static final long WORKSPACE_BYTES = 8L << 20;

    private final NativeDevice device;
    private final CublasBinding cublas;
    private final CudaWorkspace workspace;

    CublasBlas(NativeDevice device, CublasBinding cublas) {
        this.device = device;
        this.cublas = cublas;
        this.workspace = new CudaWorkspace(device);
        try {
            MemorySegment bytes = workspace.of(WORKSPACE_BYTES);
            check(cublas.prepare(device.stream(), bytes), "preparing cuBLAS");
        } catch (RuntimeException e) {
            close();
            throw e;
        }
    }

    /** Returns the library and its version. */
    String title() {
        return cublas.title();
    }

    @Override
    public void gemm(Op opA, Op opB, double alpha, Matrix a, Matrix b, double beta, Matrix c) {
        int inner = opA == Op.NONE ? a.cols() : a.rows();
        MatrixOperands.require(
                (opA == Op.NONE ? a.rows() : a.cols()) == c.rows()
                        && (opB == Op.NONE ? b.cols() : b.rows()) == c.cols()
                        && (opB == Op.NONE ? b.rows() : b.cols()) == inner,
                "gemm",
                a,
                b,
                c);
        boolean wide = MatrixOperands.areDoubles(a, b, c);
        if (c.rows() > 0 && c.cols() > 0) {
            run(new CublasCall.Gemm(
                    wide,
                    code(opB),
                    code(opA),
                    c.cols(),
                    c.rows(),
                    inner,
                    alpha,
                    at(b),
                    b.stride(),
                    at(a),
                    a.stride(),
                    beta,
                    at(c),
                    c.stride()));
        }
    }

    @Override
    public void syrk(Triangle triangle, Op op, double alpha, Matrix a, double beta, Matrix c) {
        int side = op == Op.NONE ? a.rows() : a.cols();
        int inner = op == Op.NONE ? a.cols() : a.rows();
        MatrixOperands.require(c.rows() == side && c.cols() == side, "syrk", a, a, c);
        boolean wide = MatrixOperands.areDoubles(a, a, c);
        if (side > 0) {
            // Our A is A^T for cuBLAS, so A A^T is its A^T A.
            int flipped = op == Op.NONE ? CublasNative.CUBLAS_OP_T() : CublasNative.CUBLAS_OP_N();
            run(new CublasCall.Syrk(
                    wide, code(triangle), flipped, side, inner, alpha, at(a), a.stride(), beta, at(c), c.stride()));
        }
    }

    @Override
    public void symm(Side side, Triangle triangle, double alpha, Matrix a, Matrix b, double beta, Matrix c) {
        int order = side == Side.LEFT ? c.rows() : c.cols();
        MatrixOperands.require(
                a.rows() == order && a.cols() == order && b.rows() == c.rows() && b.cols() == c.cols(),
                "symm",
                a,
                b,
                c);
        boolean wide = MatrixOperands.areDoubles(a, b, c);
        if (c.rows() > 0 && c.cols() > 0) {
            int flipped = side == Side.LEFT ? CublasNative.CUBLAS_SIDE_RIGHT() : CublasNative.CUBLAS_SIDE_LEFT();
            run(new CublasCall.Symm(
                    wide,
                    flipped,
                    code(triangle),
                    c.cols(),
                    c.rows(),
                    alpha,
                    at(a),
                    a.stride(),
                    at(b),
                    b.stride(),
                    beta,
                    at(c),
                    c.stride()));
        }
    }

    /**
     * {@code out = factor A B + baseFactor out} for every client, of floats.
     *
     * @param together in one call: faster for many small ones, but the library chooses its way by the number of
     *     matrices too, so that a client's bits depend on how many share its device
     */
    void multiply(
            Precision precision,
            boolean together,
            double factor,
            MatrixBatch a,
            MatrixBatch b,
            double baseFactor,
            MatrixBatch out) {
        if (out.clients() == 0 || out.rows() == 0 || out.cols() == 0) {
            return;
        }
        var left = MatrixOperands.stored(a);
        var right = MatrixOperands.stored(b);
        int computeType = computeType(precision);
        if (together) {
            run(new CublasCall.GemmBatch(
                    computeType,
                    code(right.op()),
                    code(left.op()),
                    out.cols(),
                    out.rows(),
                    a.cols(),
                    (float) factor,
                    at(b, 0),
                    right.leading(),
                    b.stride(),
                    at(a, 0),
                    left.leading(),
                    a.stride(),
                    (float) baseFactor,
                    at(out, 0),
                    Math.max(1, out.cols()),
                    out.stride(),
                    Math.toIntExact(out.clients())));
            return;
        }
        for (long k = 0; k < out.clients(); k++) {
            run(new CublasCall.GemmEx(
                    computeType,
                    code(right.op()),
                    code(left.op()),
                    out.cols(),
                    out.rows(),
                    a.cols(),
                    (float) factor,
                    at(b, k),
                    right.leading(),
                    at(a, k),
                    left.leading(),
                    (float) baseFactor,
                    at(out, k),
                    Math.max(1, out.cols())));
        }
    }

    private void run(CublasCall call) {
        device.stream(); // makes the device current, as the handle needs it
        int status = cublas.run(call);
        if (status != CublasNative.CUBLAS_STATUS_SUCCESS()) {
            check(status, call.describe());
        }
    }

    private void check(int status, String what) {
        if (status != CublasNative.CUBLAS_STATUS_SUCCESS()) {
            throw CudaStatus.cublas(device.name(), what, status, cublas.words(status));
        }
    }

    private MemorySegment at(Matrix matrix) {
        return matrix.buffer().at(device, matrix.offset());
    }

    private MemorySegment at(MatrixBatch batch, long client) {
        batch.buffer().requireType(ElementType.FLOAT32);
        return batch.buffer().at(device, batch.offset() + client * batch.stride());
    }

    /** Returns the library's code for a precision. The matrices in memory are floats with each. */
    private static int computeType(Precision precision) {
        return switch (precision) {
            case FP32 -> CublasNative.CUBLAS_COMPUTE_32F();
            case TF32 -> CublasNative.CUBLAS_COMPUTE_32F_FAST_TF32();
            case BF16 -> CublasNative.CUBLAS_COMPUTE_32F_FAST_16BF();
        };
    }

    private static int code(Op op) {
        return op == Op.NONE ? CublasNative.CUBLAS_OP_N() : CublasNative.CUBLAS_OP_T();
    }

    /** Returns the other one: a row-major matrix read column-major is flipped. */
    private static int code(Triangle triangle) {
        return triangle == Triangle.UPPER
                ? CublasNative.CUBLAS_FILL_MODE_LOWER()
                : CublasNative.CUBLAS_FILL_MODE_UPPER();
    }

    @Override
    public void close() {
        device.stream();
        cublas.close();
        workspace.close();
    }
}
