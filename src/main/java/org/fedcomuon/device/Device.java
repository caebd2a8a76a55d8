package org.fedcomuon.device;

import java.util.Optional;

/**
 * Something that holds buffers and runs the update rules of the paper on them, all of its clients in one call.
 *
 * <p>For example: {@snippet file="org/fedcomuon/SnippetsIT.java" region="device"}
 *
 * <p>Every operation is deterministic: the same operands give the same bits, whatever the number of threads. Operands
 * that are written must not overlap any other operand. An operation that refuses its operands has written nothing.
 *
 * <p>Of the thread that opened it ({@link Devices#open(String)}), a platform thread; {@link #liveBytes},
 * {@link #peakBytes} and what it is called from any, for those who watch. See the package for the rules of lifetimes.
 */
public sealed interface Device extends AutoCloseable permits NativeDevice {
    /** What it was opened by, such as {@code cpu:0}. */
    String name();

    /** What it is called by its maker. */
    String model();

    /** How many threads work on an operation; a GPU has its own and ignores it. */
    int threads();

    /** The vector instructions in use; {@link InstructionSet#AUTO} on a GPU. */
    InstructionSet instructionSet();

    /**
     * Whether its memory is the host's, so that {@link Buffer#segment} is there to be read and written. On a GPU it is
     * not: values are copied, or pass through a {@link Mirror}.
     */
    boolean isHost();

    /**
     * Returns when everything that this device was given to do is done. On the CPU that is always so.
     *
     * @throws DeviceException.Fault when something of it failed
     */
    void synchronize();

    /** A new {@link Mark} in the work of this device. */
    Mark mark();

    /** What this device is given from now on runs after the mark, which may be another device's. */
    void await(Mark mark);

    /** A new line of copies beside the operations of this device. */
    CopyLane copyLane();

    /**
     * Allocates zeroed memory.
     *
     * @param label what it is called in messages
     * @throws DeviceException.OutOfMemory when there is no room
     */
    Buffer allocate(String label, ElementType type, long length);

    /** Bytes of buffers that are open. */
    long liveBytes();

    /**
     * The most bytes it has held at once, workspaces and the room of libraries among them: what a model needs. What a
     * library takes on its own is not in it.
     */
    long peakBytes();

    /**
     * Matrix products on this device.
     *
     * @throws DeviceException.Unsupported when the device has no library for them; the message says why
     */
    Blas blas();

    /**
     * Matrix decompositions on this device.
     *
     * @throws DeviceException.Unsupported when the device has no library for them; the message says why
     */
    Solver solver();

    /** {@code y = a x + (1-a) y}; with a = 1, y is not read. */
    void ema(double a, Batch x, Batch y);

    /**
     * {@code M = (1-b) M + b H (v kron I)}, the Kronecker product never formed. H holds the d blocks of a client one
     * after the other, each as long as M; v holds d weights. With b = 1, M is not read.
     */
    void composeMomentum(double b, Batch h, Batch v, Batch m);

    /**
     * {@code H = Gnew + (1-g)(H - Gold)}; {@code norms} (FLOAT64, one element a client) receives each client's
     * Frobenius norm of the result.
     */
    void storm(double g, Batch gNew, Batch gOld, Batch h, Batch norms);

    /**
     * Scales each client's H onto the ball of {@code radius}, given the norms that {@link #storm} left, then does
     * {@link #composeMomentum}, in one pass over H.
     *
     * @param radius positive; infinity for no projection
     * @throws DeviceException.NotFinite when a norm is not finite
     */
    void projectComposeMomentum(double radius, Batch norms, double b, Batch h, Batch v, Batch m);

    /**
     * {@code x = min(1, radius/norm) x}: scales each client's x onto the ball of {@code radius}, given the norms that
     * {@link #norm} or {@link #storm} left. A client inside the ball is not written.
     *
     * @param radius positive; infinity for no projection
     * @throws DeviceException.NotFinite when a norm is not finite; nothing is written then
     */
    void project(double radius, Batch norms, Batch x);

    /**
     * Orthogonalizes every small matrix of every client by Newton-Schulz; {@code o} may be {@code m} itself.
     *
     * @throws DeviceException.NotFinite when a matrix has NaN or infinity; nothing is written then
     */
    void newtonSchulz(SmallSchulz what, Batch m, Batch o);

    /** {@code W -= eta scale O} with the O of {@link #newtonSchulz}, which is not stored. */
    void newtonSchulzStep(SmallSchulz what, Batch m, double eta, Batch w);

    /**
     * {@code y = x / (||x|| divisor)}, what Newton-Schulz starts from; y may be x.
     *
     * @throws DeviceException.NotFinite when a client's x has NaN or infinity; nothing is written then
     */
    void normalize(double divisor, Batch x, Batch y);

    /**
     * {@code out = factor A B}.
     *
     * @param symmetric says that the result is, which halves the work: X X^T, or symmetric matrices that commute
     * @param out row-major without gaps, apart from the operands
     */
    default void multiply(double factor, MatrixBatch a, MatrixBatch b, boolean symmetric, MatrixBatch out) {
        multiply(Precision.FP32, factor, a, b, symmetric, out);
    }

    /**
     * The same in a precision of the caller's choice. It is the least: what is too small for tensor cores is computed
     * in fp32.
     *
     * @throws DeviceException.Unsupported when this device does not {@linkplain #requirePrecision have} it
     */
    void multiply(Precision precision, double factor, MatrixBatch a, MatrixBatch b, boolean symmetric, MatrixBatch out);

    /** {@code out = factor A B + baseFactor base}; base like out, may be A or B. */
    default void multiply(
            double factor,
            MatrixBatch a,
            MatrixBatch b,
            double baseFactor,
            MatrixBatch base,
            boolean symmetric,
            MatrixBatch out) {
        multiply(Precision.FP32, factor, a, b, baseFactor, base, symmetric, out);
    }

    /** The same in a precision of the caller's choice, which is the least. */
    void multiply(
            Precision precision,
            double factor,
            MatrixBatch a,
            MatrixBatch b,
            double baseFactor,
            MatrixBatch base,
            boolean symmetric,
            MatrixBatch out);

    /**
     * Does nothing where {@link #multiply} takes this precision: {@link Precision#FP32} always, others on a GPU with
     * cuBLAS.
     *
     * @throws DeviceException.Unsupported elsewhere
     */
    void requirePrecision(Precision precision);

    /** What {@link #multiply} computes large products with, for logs and reports. */
    String multipliesBy();

    /**
     * {@code y = x}, each with strides of its own: transposed, padded or cut out of a larger matrix. In either
     * precision.
     */
    void rearrange(MatrixBatch x, MatrixBatch y);

    /** Every client's x becomes the mean of all, summed in double in client order. */
    void average(Batch x);

    /**
     * Every client's x becomes the weighted mean. A client of weight 0 receives it without contributing.
     *
     * @param weights one a client, not negative, with a positive sum
     */
    void average(Batch x, double[] weights);

    /** Moves parameters that are not matrices along their momentum. */
    void vectorStep(StepRule rule, double eta, Batch m, Batch w);

    /**
     * The server's step of FedAdam and FedYogi: {@code m = beta1 m + (1-beta1) delta}, then v by {@code rule}, then
     * {@code w += eta m / (sqrt(v) + epsilon)}, in one pass. What is not finite is carried on, not looked for.
     *
     * @param beta1 in [0, 1)
     * @param beta2 in [0, 1)
     * @param epsilon positive
     * @param delta where w is to go: the clients' mean change
     * @param v not negative
     */
    void adaptiveStep(
            AdaptiveRule rule,
            double beta1,
            double beta2,
            double epsilon,
            double eta,
            Batch delta,
            Batch m,
            Batch v,
            Batch w);

    /**
     * {@code y} receives the k elements of each client's x of largest magnitude, and zeros elsewhere; among equal
     * magnitudes the lower index wins. y may be x.
     *
     * @param k from 0 to the length of x
     * @throws DeviceException.NotFinite when x has NaN or infinity; nothing is written then
     */
    void topK(long k, Batch x, Batch y);

    /** {@code norms} (FLOAT64, one element a client) receives each client's Euclidean norm, accumulated in double. */
    void norm(Batch x, Batch norms);

    /** The first NaN or infinity in client order. */
    Optional<Place> firstNotFinite(Batch x);

    /** STREAM's triad {@code a = b + s c}: what this device's memory can do, as a yardstick for benchmarks. */
    void triad(float s, Batch b, Batch c, Batch a, boolean nonTemporal);

    /** Frees everything. Buffers that are still open are reported and closed. Closing twice does nothing. */
    @Override
    void close();
}
