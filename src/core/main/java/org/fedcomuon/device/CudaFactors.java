package org.fedcomuon.device;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import org.fedcomuon.internal.bindings.cusolver.CusolverNative;
import org.fedcomuon.internal.vendor.CusolverBinding;
import org.fedcomuon.internal.vendor.CusolverCall;

/**
 * Orthogonal factors on a GPU from the eigenvectors of Gram matrices: what {@link GramFactors} computes on a CPU, by
 * cuBLAS and cuSOLVER in double precision on the device's stream.
 *
 * <p>The host waits for nothing that is computed here. What did not converge is found by a kernel, which holds back
 * what follows, as NaN does, and the numbers of kept directions stay on the device. Every matrix goes the way of those
 * that are ill-conditioned, because which ones are is known to the device only.
 *
 * <p>Nothing says that cuSOLVER computes a matrix in the same way in a batch of any size. Batches therefore have a size
 * that depends on the side of the matrices alone, and are filled up with zero matrices, so that results do not depend
 * on how many clients share the device; {@code -Dfedcomuon.cuda.deterministic=false} gives that up for one batch of
 * all.
 *
 * <p>Not thread-safe; confined to the device thread.
 */
final class CudaFactors implements AutoCloseable {
    /** The elements of a batch: with fewer, most multiprocessors have nothing to do, and with more, zeros cost time. */
    private static final long BATCH_ELEMENTS = 1L << 18;

    /** The most matrices of a batch. */
    private static final int MOST = 16;

    private final NativeDevice device;
    private final CusolverBinding cusolver;
    private final boolean together;
    private final CudaWorkspace room;
    private final Map<Batched, long[]> needs = new HashMap<>();
    private MemorySegment hostRoom = MemorySegment.NULL;

    /** A batch of eigenvectors, on whose sizes alone its workspace depends. */
    private record Batched(int n, int size) {}

    CudaFactors(NativeDevice device, CusolverBinding cusolver) {
        this.device = device;
        this.cusolver = cusolver;
        this.together = CudaLibraries.together();
        this.room = new CudaWorkspace(device);
    }

    /** Returns why {@link #compute} cannot be called; empty when it can. */
    Optional<String> obstacle() {
        return cusolver.hasEigenvectors()
                ? Optional.empty()
                : Optional.of("%s has no batched eigenvectors, which CUDA 12.6 brings".formatted(cusolver.title()));
    }

    /** Where everything is in the workspace, in doubles. */
    private final class Places {
        final int rows;
        final int cols;
        final int n;
        final int batch;
        final int slots;
        final long gram;
        final long values;
        final long rotated;
        final long root;
        final long back;
        final long info;
        final long length;

        Places(int count, int rows, int cols) {
            this.rows = rows;
            this.cols = cols;
            n = Math.min(rows, cols);
            long square = (long) n * n;
            batch = together ? Math.max(1, count) : Math.clamp(BATCH_ELEMENTS / Math.max(1, square), 1, MOST);
            slots = Math.ceilDiv(count, batch) * batch;
            gram = count * size();
            values = gram + slots * square;
            rotated = values + (long) slots * n;
            root = rotated + size();
            back = root + square;
            info = back + square;
            length = info + (slots + 1) / 2;
        }

        long size() {
            return (long) rows * cols;
        }

        boolean wide() {
            return rows <= cols;
        }

        Matrix x(Buffer doubles, int k) {
            return Matrix.of(doubles, k * size(), rows, cols);
        }

        Matrix square(Buffer doubles, int k) {
            return Matrix.of(doubles, gram + k * (long) n * n, n, n);
        }
    }

    /** Returns the doubles that {@link #compute} needs as a workspace. */
    long workspace(int count, int rows, int cols) {
        return new Places(count, rows, cols).length;
    }

    /** As {@link Solver#orthogonalFactors}. */
    void compute(MatrixBatch a, double tolerance, MatrixBatch o, Buffer doubles, Buffer kept) {
        obstacle().ifPresent(reason -> {
            throw new DeviceException.Unsupported("%s: %s".formatted(device.name(), reason));
        });
        int count = Math.toIntExact(a.clients());
        var places = new Places(count, a.rows(), a.cols());
        MatrixOperands.requireFactors(a, o, doubles, places.length, kept);
        if (count == 0 || places.n == 0) {
            kept.zero();
            return;
        }
        device.widen(batch(a), doubles.at(device, 0));
        for (int k = 0; k < count; k++) {
            gram(places, places.x(doubles, k), places.square(doubles, k));
        }
        long padding = (places.slots - count) * (long) places.n * places.n * Double.BYTES;
        if (padding > 0) {
            device.zero(doubles.at(device, places.gram + count * (long) places.n * places.n)
                    .asSlice(0, padding));
        }
        for (int first = 0; first < places.slots; first += places.batch) {
            eigenvectors(places, doubles, first);
        }
        device.keepDirections(
                count,
                places.n,
                tolerance,
                doubles.at(device, places.info),
                doubles.at(device, places.values),
                doubles.at(device, places.gram),
                kept.at(device, 0));
        for (int k = 0; k < count; k++) {
            factor(places, doubles, k);
        }
        device.narrow(doubles.at(device, 0), batch(o));
    }

    /** Computes one triangle of X X^T, or of X^T X where X is tall. */
    private void gram(Places places, Matrix x, Matrix gram) {
        Blas.Op op = places.wide() ? Blas.Op.NONE : Blas.Op.TRANSPOSE;
        device.blas().syrk(Blas.Triangle.UPPER, op, 1, x, 0, gram);
    }

    /**
     * Replaces the Gram matrices of a batch by their eigenvectors, one in a row. The library is done with its workspace
     * on the host when it returns, so that the next call may have it.
     */
    private void eigenvectors(Places places, Buffer doubles, int first) {
        device.stream(); // makes the device current, as the handle needs it
        var call = new CusolverCall.SyevBatched(
                true,
                places.n,
                doubles.at(device, places.square(doubles, first).offset()),
                doubles.at(device, places.values + (long) first * places.n),
                places.batch);
        long[] need = needs.computeIfAbsent(new Batched(places.n, places.batch), _ -> {
            var bytes = new long[2];
            check(cusolver.queryWorkspace(call, bytes), call);
            return bytes;
        });
        if (hostRoom.byteSize() < need[1]) {
            hostRoom = Arena.ofAuto().allocate(need[1], CudaWorkspace.ALIGNMENT);
        }
        MemorySegment info = doubles.at(device, places.info).asSlice((long) first * Integer.BYTES);
        check(cusolver.run(call, room.of(need[0]), hostRoom.asSlice(0, need[1]), info), call);
    }

    /** Replaces X by its factor, as {@link GramFactors} does with ill-conditioned ones. */
    private void factor(Places places, Buffer doubles, int k) {
        int n = places.n;
        Matrix x = places.x(doubles, k);
        Matrix vectors = places.square(doubles, k);
        Matrix rotated = Matrix.of(doubles, places.rotated, places.rows, places.cols);
        Matrix root = Matrix.of(doubles, places.root, n, n);
        Matrix back = Matrix.of(doubles, places.back, n, n);
        Blas blas = device.blas();
        if (places.wide()) {
            blas.gemm(Blas.Op.NONE, Blas.Op.NONE, 1, vectors, x, 0, rotated);
        } else {
            blas.gemm(Blas.Op.NONE, Blas.Op.TRANSPOSE, 1, x, vectors, 0, rotated);
        }
        gram(places, rotated, root);
        device.inverseRoots(1, n, doubles.at(device, places.root));
        blas.symm(Blas.Side.LEFT, Blas.Triangle.UPPER, 1, root, vectors, 0, back);
        if (places.wide()) {
            blas.gemm(Blas.Op.TRANSPOSE, Blas.Op.NONE, 1, back, rotated, 0, x);
        } else {
            blas.gemm(Blas.Op.NONE, Blas.Op.NONE, 1, rotated, back, 0, x);
        }
    }

    private static Batch batch(MatrixBatch matrices) {
        return new Batch(
                matrices.buffer(),
                matrices.offset(),
                matrices.clients(),
                (long) matrices.rows() * matrices.cols(),
                matrices.stride());
    }

    private void check(int status, CusolverCall call) {
        if (status != CusolverNative.CUSOLVER_STATUS_SUCCESS()) {
            throw CudaStatus.cusolver(device.name(), call.describe(), status);
        }
    }

    @Override
    public void close() {
        room.close();
    }
}
