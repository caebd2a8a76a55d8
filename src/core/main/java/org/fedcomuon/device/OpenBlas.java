package org.fedcomuon.device;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Optional;
import org.fedcomuon.internal.OpenBlasLibrary;
import org.fedcomuon.internal.bindings.openblas.OpenBlasNative;
import org.jspecify.annotations.Nullable;

/** {@link Blas} and {@link Solver} of a CPU device: OpenBLAS, called with one thread per matrix. */
final class OpenBlas implements Blas, Solver, AutoCloseable {
    private final NativeDevice device;
    private MemorySegment work = MemorySegment.NULL;
    private MemorySegment integers = MemorySegment.NULL;
    private @Nullable GramFactors factors; // with threads, which most devices never need

    OpenBlas(NativeDevice device) {
        String reason = OpenBlasLibrary.load().reason();
        if (!reason.isEmpty()) {
            throw new DeviceException.LibraryMissing(reason);
        }
        this.device = device;
    }

    @Override
    public void gemm(Op opA, Op opB, double alpha, Matrix a, Matrix b, double beta, Matrix c) {
        boolean plainA = opA == Op.NONE;
        boolean plainB = opB == Op.NONE;
        int inner = plainA ? a.cols() : a.rows();
        MatrixOperands.require(
                (plainA ? a.rows() : a.cols()) == c.rows()
                        && (plainB ? b.cols() : b.rows()) == c.cols()
                        && (plainB ? b.rows() : b.cols()) == inner,
                "gemm",
                a,
                b,
                c);
        int order = OpenBlasNative.CblasRowMajor();
        if (MatrixOperands.areDoubles(a, b, c)) {
            OpenBlasNative.cblas_dgemm(
                    order,
                    code(opA),
                    code(opB),
                    c.rows(),
                    c.cols(),
                    inner,
                    alpha,
                    at(a),
                    a.stride(),
                    at(b),
                    b.stride(),
                    beta,
                    at(c),
                    c.stride());
        } else {
            OpenBlasNative.cblas_sgemm(
                    order,
                    code(opA),
                    code(opB),
                    c.rows(),
                    c.cols(),
                    inner,
                    (float) alpha,
                    at(a),
                    a.stride(),
                    at(b),
                    b.stride(),
                    (float) beta,
                    at(c),
                    c.stride());
        }
    }

    @Override
    public void syrk(Triangle triangle, Op op, double alpha, Matrix a, double beta, Matrix c) {
        int side = op == Op.NONE ? a.rows() : a.cols();
        int inner = op == Op.NONE ? a.cols() : a.rows();
        MatrixOperands.require(c.rows() == side && c.cols() == side, "syrk", a, a, c);
        int order = OpenBlasNative.CblasRowMajor();
        if (MatrixOperands.areDoubles(a, a, c)) {
            OpenBlasNative.cblas_dsyrk(
                    order, code(triangle), code(op), side, inner, alpha, at(a), a.stride(), beta, at(c), c.stride());
        } else {
            OpenBlasNative.cblas_ssyrk(
                    order,
                    code(triangle),
                    code(op),
                    side,
                    inner,
                    (float) alpha,
                    at(a),
                    a.stride(),
                    (float) beta,
                    at(c),
                    c.stride());
        }
    }

    @Override
    public void symm(Side side, Triangle triangle, double alpha, Matrix a, Matrix b, double beta, Matrix c) {
        int inner = side == Side.LEFT ? c.rows() : c.cols();
        MatrixOperands.require(
                a.rows() == inner && a.cols() == inner && b.rows() == c.rows() && b.cols() == c.cols(),
                "symm",
                a,
                b,
                c);
        int order = OpenBlasNative.CblasRowMajor();
        int left = side == Side.LEFT ? OpenBlasNative.CblasLeft() : OpenBlasNative.CblasRight();
        if (MatrixOperands.areDoubles(a, b, c)) {
            OpenBlasNative.cblas_dsymm(
                    order,
                    left,
                    code(triangle),
                    c.rows(),
                    c.cols(),
                    alpha,
                    at(a),
                    a.stride(),
                    at(b),
                    b.stride(),
                    beta,
                    at(c),
                    c.stride());
        } else {
            OpenBlasNative.cblas_ssymm(
                    order,
                    left,
                    code(triangle),
                    c.rows(),
                    c.cols(),
                    (float) alpha,
                    at(a),
                    a.stride(),
                    at(b),
                    b.stride(),
                    (float) beta,
                    at(c),
                    c.stride());
        }
    }

    /**
     * LAPACK is column-major, and what we hold row-major is the transpose there: {@code A^T = V diag(s) U^T}. So its U
     * is our V^T and its V^T our U, each in the layout we want, without a transposition.
     */
    @Override
    public void svd(Matrix a, Buffer s, long sOffset, Matrix u, Matrix vt) {
        int rank = Math.min(a.rows(), a.cols());
        MatrixOperands.require(
                u.rows() == a.rows() && u.cols() == rank && vt.rows() == rank && vt.cols() == a.cols(),
                "svd",
                a,
                u,
                vt);
        MatrixOperands.areDoubles(a, u, vt);
        if (rank > 0) {
            decompose(
                    (byte) 'S',
                    a,
                    MatrixOperands.singularValues(device, s, sOffset, a),
                    at(vt),
                    vt.stride(),
                    at(u),
                    u.stride());
        }
    }

    @Override
    public void singularValues(Matrix a, Buffer s, long sOffset) {
        if (a.rows() > 0 && a.cols() > 0) {
            decompose(
                    (byte) 'N',
                    a,
                    MatrixOperands.singularValues(device, s, sOffset, a),
                    MemorySegment.NULL,
                    1,
                    MemorySegment.NULL,
                    1);
        }
    }

    private void decompose(
            byte job, Matrix a, MemorySegment values, MemorySegment vt, int ldVt, MemorySegment u, int ldU) {
        boolean wide = a.buffer().type() == ElementType.FLOAT64;
        int rank = Math.min(a.rows(), a.cols());
        if (integers.byteSize() < 8L * rank * Integer.BYTES) {
            integers = Arena.ofAuto().allocate(ValueLayout.JAVA_INT, 8L * rank);
        }
        if (work.byteSize() < Double.BYTES) {
            work = Arena.ofAuto().allocate(ValueLayout.JAVA_DOUBLE);
        }
        gesdd(wide, job, a, values, vt, ldVt, u, ldU, -1); // asks how much it wants
        double wanted = wide ? work.get(ValueLayout.JAVA_DOUBLE, 0) : work.get(ValueLayout.JAVA_FLOAT, 0);
        // In single precision the answer may have been rounded down: one part in 2^23 more is always enough.
        int length = Math.toIntExact((long) Math.ceil(wanted * (1 + Math.ulp(1.0f))));
        long bytes = (long) length * (wide ? Double.BYTES : Float.BYTES);
        if (work.byteSize() < bytes) {
            work = Arena.ofAuto().allocate(bytes, Double.BYTES);
        }
        int info = gesdd(wide, job, a, values, vt, ldVt, u, ldU, length);
        if (info == -5) { // the fifth argument, the matrix, has a NaN
            throw new DeviceException.NotFinite(
                    "svd: NaN in %s".formatted(a.buffer().label()), new Device.Position(-1, -1, -1));
        }
        if (info != 0) {
            throw new DeviceException.Fault("svd of %s (%d x %d): gesdd answered %d"
                    .formatted(a.buffer().label(), a.rows(), a.cols(), info));
        }
    }

    private int gesdd(
            boolean wide,
            byte job,
            Matrix a,
            MemorySegment values,
            MemorySegment vt,
            int ldVt,
            MemorySegment u,
            int ldU,
            int length) {
        int order = OpenBlasNative.LAPACK_COL_MAJOR();
        return wide
                ? OpenBlasNative.LAPACKE_dgesdd_work(
                        order,
                        job,
                        a.cols(),
                        a.rows(),
                        at(a),
                        a.stride(),
                        values,
                        vt,
                        ldVt,
                        u,
                        ldU,
                        work,
                        length,
                        integers)
                : OpenBlasNative.LAPACKE_sgesdd_work(
                        order,
                        job,
                        a.cols(),
                        a.rows(),
                        at(a),
                        a.stride(),
                        values,
                        vt,
                        ldVt,
                        u,
                        ldU,
                        work,
                        length,
                        integers);
    }

    @Override
    public Optional<String> factorObstacle() {
        return Optional.empty();
    }

    @Override
    public long factorWorkspace(int count, int rows, int cols) {
        return GramFactors.workspace(device.threads(), count, rows, cols);
    }

    @Override
    public void orthogonalFactors(MatrixBatch a, double tolerance, MatrixBatch o, Buffer workspace, Buffer kept) {
        device.context(); // of the device's thread only
        MatrixOperands.requireFactors(a, o, workspace, factorWorkspace((int) a.clients(), a.rows(), a.cols()), kept);
        var counts = new long[(int) a.clients()];
        if (counts.length > 0 && a.rows() > 0 && a.cols() > 0) {
            if (factors == null) {
                factors = new GramFactors(device.threads());
            }
            var operands = new GramFactors.Operands(
                    a.buffer().at(device, a.offset()),
                    a.stride(),
                    o.buffer().at(device, o.offset()),
                    o.stride(),
                    counts.length,
                    a.rows(),
                    a.cols());
            factors.compute(operands, tolerance, workspace.at(device, 0), counts);
        }
        kept.copyIn(0, counts);
    }

    @Override
    public void close() {
        if (factors != null) {
            factors.close();
        }
    }

    private MemorySegment at(Matrix matrix) {
        device.context(); // of the device's thread only
        return matrix.buffer().at(device, matrix.offset());
    }

    private static int code(Op op) {
        return op == Op.NONE ? OpenBlasNative.CblasNoTrans() : OpenBlasNative.CblasTrans();
    }

    private static int code(Triangle triangle) {
        return triangle == Triangle.UPPER ? OpenBlasNative.CblasUpper() : OpenBlasNative.CblasLower();
    }

    @Override
    public String routine(int rows, int cols) {
        return "gesdd";
    }
}
