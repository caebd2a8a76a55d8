package org.fedcomuon.device;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import org.fedcomuon.internal.bindings.cusolver.CusolverNative;
import org.fedcomuon.internal.bindings.fedcomuon.FedComuonNative;
import org.fedcomuon.internal.vendor.CusolverBinding;
import org.fedcomuon.internal.vendor.CusolverCall;

/**
 * {@link Solver} of a CUDA device: cuSOLVER on the device's stream.
 *
 * <p>Of its ways to the singular values, {@link Method#AUTO} takes Jacobi's (gesvdj) up to a short side of
 * {@value #JACOBI_SIDE} and QR iteration (gesvd) beyond: on a GPU the rotations of many columns run side by side, while
 * QR iteration is a long chain, but Jacobi's work grows faster. Both are accurate to rounding and do without a random
 * start or atomics, so results are bit-identical. {@link Method#POLAR} (gesvdp) is the fastest for large matrices, but
 * shifts those that are near singular, which a momentum of low rank is; so it must be asked for.
 *
 * <p>cuSOLVER is column-major, and a row-major A read so is {@code A^T = V diag(s) U^T}: its U is our V^T as it stands,
 * and its V^T our U. gesvd takes no matrix with fewer rows than columns, so a tall A is transposed first, and its
 * factors after. gesvdj and gesvdp give V, not V^T, so our U is transposed once.
 *
 * <p>Whether it converged is known to the device only; each decomposition waits for it and asks.
 */
final class CusolverSolver implements Solver, AutoCloseable {
    private static final int JACOBI_SIDE = 512;

    /** The largest side that gesvdjBatched supports. */
    static final int BATCHED_SIDE = 32;

    /** How to get at singular values. */
    enum Method {
        AUTO,
        JACOBI,
        QR,
        POLAR
    }

    private final NativeDevice device;
    private final CusolverBinding cusolver;
    private Method method;
    private final NativeCalls calls = new NativeCalls(Arena.ofAuto());
    private final CudaWorkspace workspace;
    private final CudaFactors factors;
    private final Map<Shape, Need> needs = new HashMap<>();
    private MemorySegment hostRoom = MemorySegment.NULL;
    private MemorySegment answers = MemorySegment.NULL; // the ints that tell of convergence

    CusolverSolver(NativeDevice device, CusolverBinding cusolver, Method method) {
        this.device = device;
        this.cusolver = cusolver;
        this.method = method;
        this.workspace = new CudaWorkspace(device);
        this.factors = new CudaFactors(device, cusolver);
        try {
            check(cusolver.setStream(device.stream()), "preparing cuSOLVER");
        } catch (RuntimeException e) {
            cusolver.close();
            throw e;
        }
    }

    /** Returns the library and its version. */
    String title() {
        return cusolver.title();
    }

    /** Selects the method of further calls. */
    CusolverSolver with(Method newMethod) {
        method = newMethod;
        return this;
    }

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
            decompose(a, MatrixOperands.singularValues(device, s, sOffset, a), Optional.of(new Factors(u, vt)));
        }
    }

    @Override
    public void singularValues(Matrix a, Buffer s, long sOffset) {
        if (a.rows() > 0 && a.cols() > 0) {
            decompose(a, MatrixOperands.singularValues(device, s, sOffset, a), Optional.empty());
        }
    }

    @Override
    public Optional<String> factorObstacle() {
        return factors.obstacle();
    }

    @Override
    public long factorWorkspace(int count, int rows, int cols) {
        return factors.workspace(count, rows, cols);
    }

    @Override
    public void orthogonalFactors(MatrixBatch a, double tolerance, MatrixBatch o, Buffer doubles, Buffer kept) {
        factors.compute(a, tolerance, o, doubles, kept);
    }

    private Method way(int rows, int cols) {
        if (method != Method.AUTO) {
            return method;
        }
        return Math.min(rows, cols) <= JACOBI_SIDE ? Method.JACOBI : Method.QR;
    }

    @Override
    public String routine(int rows, int cols) {
        return switch (way(rows, cols)) {
            case JACOBI -> "gesvdj";
            case POLAR -> "gesvdp";
            case QR, AUTO -> "gesvd";
        };
    }

    /** The destinations of the singular vectors. */
    private record Factors(Matrix u, Matrix vt) {}

    private void decompose(Matrix a, MemorySegment s, Optional<Factors> factors) {
        requireFinite(a);
        Method way = way(a.rows(), a.cols());
        if (way != Method.QR) {
            run(new AnyShape(a, s, factors, way == Method.POLAR));
        } else if (a.rows() <= a.cols()) {
            run(new WideByQr(a, s, factors));
        } else {
            run(new TallByQr(a, s, factors));
        }
    }

    /**
     * A decomposition and what belongs to it. It is given a workspace on the device, and asked for its call twice:
     * first with a dummy address, to query the workspace that the library needs.
     */
    private interface Task {
        long extraBytes();

        default int batch() {
            return 1;
        }

        default void prepare(MemorySegment extra) {}

        CusolverCall call(MemorySegment extra);

        default void finish(MemorySegment extra) {}
    }

    /** Decomposes A^T, as it lies in memory, by the methods that support any shape and return V. */
    private final class AnyShape implements Task {
        private final Matrix a;
        private final MemorySegment s;
        private final Optional<Factors> factors;
        private final boolean polar;
        private final int rank;
        private final long element;

        AnyShape(Matrix a, MemorySegment s, Optional<Factors> factors, boolean polar) {
            this.a = a;
            this.s = s;
            this.factors = factors;
            this.polar = polar;
            this.rank = Math.min(a.rows(), a.cols());
            this.element = a.buffer().type().bytes();
        }

        @Override
        public long extraBytes() {
            return factors.isPresent() ? (long) a.rows() * rank * element : 0;
        }

        @Override
        public CusolverCall call(MemorySegment extra) {
            boolean vectors = factors.isPresent();
            MemorySegment vt = factors.map(f -> at(f.vt())).orElse(MemorySegment.NULL);
            int ldVt = factors.map(f -> f.vt().stride()).orElse(a.cols());
            return polar
                    ? new CusolverCall.Gesvdp(
                            isWide(a), vectors, a.cols(), a.rows(), at(a), a.stride(), s, vt, ldVt, extra, a.rows())
                    : new CusolverCall.Gesvdj(
                            isWide(a), vectors, a.cols(), a.rows(), at(a), a.stride(), s, vt, ldVt, extra, a.rows());
        }

        @Override
        public void finish(MemorySegment extra) {
            factors.ifPresent(f -> fromColumns(a.rows(), rank, extra, f.u()));
        }
    }

    private final class WideByQr implements Task {
        private final Matrix a;
        private final MemorySegment s;
        private final Optional<Factors> factors;

        WideByQr(Matrix a, MemorySegment s, Optional<Factors> factors) {
            this.a = a;
            this.s = s;
            this.factors = factors;
        }

        @Override
        public long extraBytes() {
            return 0;
        }

        @Override
        public CusolverCall call(MemorySegment extra) {
            return new CusolverCall.Gesvd(
                    isWide(a),
                    factors.isPresent(),
                    a.cols(),
                    a.rows(),
                    at(a),
                    a.stride(),
                    s,
                    factors.map(f -> at(f.vt())).orElse(MemorySegment.NULL),
                    factors.map(f -> f.vt().stride()).orElse(a.cols()),
                    factors.map(f -> at(f.u())).orElse(MemorySegment.NULL),
                    factors.map(f -> f.u().stride()).orElse(a.rows()));
        }
    }

    private final class TallByQr implements Task {
        private final Matrix a;
        private final MemorySegment s;
        private final Optional<Factors> factors;
        private final long matrixBytes;

        TallByQr(Matrix a, MemorySegment s, Optional<Factors> factors) {
            this.a = a;
            this.s = s;
            this.factors = factors;
            this.matrixBytes = CudaWorkspace.padded(
                    (long) a.rows() * a.cols() * a.buffer().type().bytes());
        }

        @Override
        public long extraBytes() {
            // A by columns, U by columns, and V^T, which is no larger.
            return factors.isPresent() ? 3 * matrixBytes : matrixBytes;
        }

        @Override
        public void prepare(MemorySegment extra) {
            toColumns(a, extra);
        }

        @Override
        public CusolverCall call(MemorySegment extra) {
            boolean vectors = factors.isPresent();
            return new CusolverCall.Gesvd(
                    isWide(a),
                    vectors,
                    a.rows(),
                    a.cols(),
                    extra,
                    a.rows(),
                    s,
                    vectors ? extra.asSlice(matrixBytes) : MemorySegment.NULL,
                    a.rows(),
                    vectors ? extra.asSlice(2 * matrixBytes) : MemorySegment.NULL,
                    a.cols());
        }

        @Override
        public void finish(MemorySegment extra) {
            factors.ifPresent(f -> {
                fromColumns(a.rows(), a.cols(), extra.asSlice(matrixBytes), f.u());
                fromColumns(a.cols(), a.cols(), extra.asSlice(2 * matrixBytes), f.vt());
            });
        }
    }

    /**
     * The compact decompositions of many small matrices of floats in one call: none of them alone would keep a GPU
     * busy.
     *
     * @param a row-major, up to 32 x 32, and one directly after the other; destroyed
     * @param s receives min(rows, cols) singular values of each, largest first, without gaps
     * @param u receives rows x min of each
     * @param vt receives min x cols of each
     */
    void svd(MatrixBatch a, Batch s, MatrixBatch u, MatrixBatch vt) {
        int rank = Math.min(a.rows(), a.cols());
        long size = (long) a.rows() * a.cols();
        boolean fits = a.isPlain()
                && (a.stride() == size || a.clients() <= 1)
                && Math.max(a.rows(), a.cols()) <= BATCHED_SIDE
                && s.clients() == a.clients()
                && s.length() == rank
                && (s.stride() == rank || s.clients() <= 1)
                && u.clients() == a.clients()
                && u.rows() == a.rows()
                && u.cols() == rank
                && vt.clients() == a.clients()
                && vt.rows() == rank
                && vt.cols() == a.cols();
        if (!fits) {
            throw new DeviceException.InvalidOperand(
                    "svd: %d of %s (%d x %d) cannot be decomposed together into %s and %s"
                            .formatted(
                                    a.clients(),
                                    a.buffer().label(),
                                    a.rows(),
                                    a.cols(),
                                    u.buffer().label(),
                                    vt.buffer().label()));
        }
        s.buffer().requireType(ElementType.FLOAT32);
        if (a.clients() > 0 && rank > 0) {
            requireFinite(new Batch(a.buffer(), a.offset(), a.clients(), size, a.stride()));
            run(new Together(a, s, u, vt));
        }
    }

    private final class Together implements Task {
        private final MatrixBatch a;
        private final Batch s;
        private final MatrixBatch u;
        private final MatrixBatch vt;
        private final long leftBytes;

        Together(MatrixBatch a, Batch s, MatrixBatch u, MatrixBatch vt) {
            this.a = a;
            this.s = s;
            this.u = u;
            this.vt = vt;
            this.leftBytes = CudaWorkspace.padded(a.clients() * a.cols() * a.cols() * Float.BYTES);
        }

        @Override
        public int batch() {
            return Math.toIntExact(a.clients());
        }

        @Override
        public long extraBytes() {
            return leftBytes + a.clients() * a.rows() * a.rows() * Float.BYTES;
        }

        @Override
        public CusolverCall call(MemorySegment extra) {
            return new CusolverCall.GesvdjBatched(
                    a.cols(),
                    a.rows(),
                    a.buffer().at(device, a.offset()),
                    a.cols(),
                    s.buffer().at(device, s.offset()),
                    extra,
                    a.cols(),
                    extra.asSlice(leftBytes),
                    a.rows(),
                    batch());
        }

        /** Copies the first columns of the square factors. */
        @Override
        public void finish(MemorySegment extra) {
            int m = a.cols();
            int n = a.rows();
            rearrange(a.clients(), vt.rows(), m, extra, (long) m * m, m, 1, vt);
            rearrange(a.clients(), n, u.cols(), extra.asSlice(leftBytes), (long) n * n, 1, n, u);
        }
    }

    /** Returns whether {@link #polarFactor} can be called: from CUDA 13.2 on. */
    boolean hasPolarFactor() {
        return cusolver.hasPolar();
    }

    /**
     * Replaces A by the U V^T of its decomposition, without decomposing it. A matrix that lacks rank gets some
     * orthonormal directions in place of none.
     */
    void polarFactor(Matrix a) {
        if (!hasPolarFactor()) {
            throw new DeviceException.Unsupported(
                    "%s: %s has no polar decomposition; CUDA 13.2 brings it".formatted(device.name(), title()));
        }
        if (a.rows() > 0 && a.cols() > 0) {
            requireFinite(a);
            run(new Polar(a));
        }
    }

    /** A wide A is a tall one as it lies in memory, and its polar factor is transposed like itself. */
    private final class Polar implements Task {
        private final Matrix a;
        private final boolean tall;
        private final int m;
        private final int n;
        private final long squareBytes;

        Polar(Matrix a) {
            this.a = a;
            this.tall = a.rows() > a.cols();
            this.m = Math.max(a.rows(), a.cols());
            this.n = Math.min(a.rows(), a.cols());
            this.squareBytes =
                    CudaWorkspace.padded((long) n * n * a.buffer().type().bytes());
        }

        @Override
        public long extraBytes() {
            return squareBytes + (tall ? (long) m * n * a.buffer().type().bytes() : 0);
        }

        @Override
        public void prepare(MemorySegment extra) {
            if (tall) {
                toColumns(a, extra.asSlice(squareBytes));
            }
        }

        @Override
        public CusolverCall call(MemorySegment extra) {
            return tall
                    ? new CusolverCall.Polar(isWide(a), m, n, extra.asSlice(squareBytes), m, extra, n)
                    : new CusolverCall.Polar(isWide(a), m, n, at(a), a.stride(), extra, n);
        }

        @Override
        public void finish(MemorySegment extra) {
            if (tall) {
                fromColumns(m, n, extra.asSlice(squareBytes), a);
            }
        }
    }

    private void run(Task task) {
        device.stream(); // makes the device current, as the handle needs it
        long extraBytes = task.extraBytes();
        Need need = need(task, extraBytes);
        long infoBytes = CudaWorkspace.padded((long) task.batch() * Integer.BYTES);
        long workBytes = CudaWorkspace.padded(need.device());
        MemorySegment all = workspace.of(infoBytes + workBytes + extraBytes);
        MemorySegment info = all.asSlice(0, infoBytes);
        MemorySegment work = all.asSlice(infoBytes, need.device());
        MemorySegment extra = all.asSlice(infoBytes + workBytes, extraBytes);
        if (hostRoom.byteSize() < need.host()) {
            hostRoom = Arena.ofAuto().allocate(need.host(), CudaWorkspace.ALIGNMENT);
        }
        task.prepare(extra);
        CusolverCall call = task.call(extra);
        check(cusolver.run(call, work, hostRoom.asSlice(0, need.host()), info), call.describe());
        task.finish(extra);
        requireConverged(call, info, task.batch());
    }

    /** The parameters that determine the size of a workspace. */
    private record Shape(String function, boolean wide, boolean vectors, int m, int n, int batch) {}

    /** Bytes that a call wants. */
    private record Need(long device, long host) {}

    private Need need(Task task, long extraBytes) {
        CusolverCall call = task.call(MemorySegment.NULL.reinterpret(extraBytes));
        var shape = new Shape(call.function(), call.wide(), call.vectors(), call.m(), call.n(), task.batch());
        return needs.computeIfAbsent(shape, _ -> {
            var bytes = new long[2];
            check(cusolver.queryWorkspace(call, bytes), call.describe());
            return new Need(bytes[0], bytes[1]);
        });
    }

    /** Waits for the device. */
    private void requireConverged(CusolverCall call, MemorySegment info, int batch) {
        long bytes = (long) batch * Integer.BYTES;
        if (answers.byteSize() < bytes) {
            answers = Arena.ofAuto().allocate(ValueLayout.JAVA_INT, batch);
        }
        calls.check(
                FedComuonNative.fcm_copy_out(device.context(), answers, info, bytes, calls.error()), "fcm_copy_out");
        for (int i = 0; i < batch; i++) {
            int answer = answers.getAtIndex(ValueLayout.JAVA_INT, i);
            if (answer != 0) {
                throw new DeviceException.Fault("%s: %s: %s"
                        .formatted(
                                device.name(),
                                call.describe(),
                                answer < 0
                                        ? "argument %d was refused".formatted(-answer)
                                        : "matrix %d did not converge (info %d)".formatted(i, answer)));
            }
        }
    }

    /**
     * The library does not look; what it makes of NaN is anything. There is a kernel for floats. Doubles come through
     * the host: on the way of n^2 of them a GPU would do little of the n^3 operations to come, as slow as it is with
     * doubles.
     */
    private void requireFinite(Matrix a) {
        if (a.buffer().type() == ElementType.FLOAT32) {
            requireFinite(new Batch(a.buffer(), a.offset(), a.rows(), a.cols(), a.stride()));
            return;
        }
        for (int i = 0; i < a.rows(); i++) {
            double[] row = a.buffer().toDoubles(a.offset() + (long) i * a.stride(), a.cols());
            for (double value : row) {
                if (!Double.isFinite(value)) {
                    throw notFinite(a.buffer());
                }
            }
        }
    }

    private void requireFinite(Batch rows) {
        if (device.firstNotFinite(rows).isPresent()) {
            throw notFinite(rows.buffer());
        }
    }

    private static DeviceException notFinite(Buffer buffer) {
        return new DeviceException.NotFinite(
                "svd: NaN or infinity in %s".formatted(buffer.label()), new Device.Position(-1, -1, -1));
    }

    private static boolean isWide(Matrix a) {
        return a.buffer().type() == ElementType.FLOAT64;
    }

    private MemorySegment at(Matrix matrix) {
        return matrix.buffer().at(device, matrix.offset());
    }

    /** Copies a matrix to column after column. */
    private void toColumns(Matrix from, MemorySegment to) {
        rearrange(
                1,
                from.rows(),
                from.cols(),
                from.buffer().type(),
                at(from),
                0,
                from.stride(),
                1,
                to,
                0,
                1,
                from.rows());
    }

    /** Copies column after column of {@code rows} elements to a matrix. */
    private void fromColumns(int rows, int cols, MemorySegment from, Matrix to) {
        rearrange(1, rows, cols, to.buffer().type(), from, 0, 1, rows, at(to), 0, to.stride(), 1);
    }

    private void rearrange(
            long count, int rows, int cols, MemorySegment from, long stride, long row, long col, MatrixBatch to) {
        to.buffer().requireType(ElementType.FLOAT32);
        rearrange(
                count,
                rows,
                cols,
                ElementType.FLOAT32,
                from,
                stride,
                row,
                col,
                to.buffer().at(device, to.offset()),
                to.stride(),
                to.rowStride(),
                to.colStride());
    }

    private void rearrange(
            long count,
            int rows,
            int cols,
            ElementType type,
            MemorySegment from,
            long fromStride,
            long fromRow,
            long fromCol,
            MemorySegment to,
            long toStride,
            long toRow,
            long toCol) {
        calls.check(
                FedComuonNative.fcm_rearrange(
                        device.context(),
                        count,
                        rows,
                        cols,
                        type.bytes(),
                        from,
                        fromStride,
                        fromRow,
                        fromCol,
                        to,
                        toStride,
                        toRow,
                        toCol,
                        calls.error()),
                "fcm_rearrange");
    }

    private void check(int status, String what) {
        if (status != CusolverNative.CUSOLVER_STATUS_SUCCESS()) {
            throw CudaStatus.cusolver(device.name(), what, status);
        }
    }

    @Override
    public void close() {
        device.stream();
        factors.close();
        cusolver.close();
        workspace.close();
    }
}
