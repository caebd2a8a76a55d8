package org.fedcomuon.device;

import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Optional;
import org.fedcomuon.internal.bindings.fedcomuon.FedComuonNative;

/**
 * A device that holds buffers and runs the update rules of the paper on them, all of its clients in one call.
 *
 * <p>For example: {@snippet file="org/fedcomuon/SnippetsIT.java" region="device"}
 *
 * <p>Every operation is deterministic: results are bit-identical whatever the number of threads. Operands that are
 * written must not overlap any other operand. An operation that refuses its operands has written nothing.
 *
 * <p>Not thread-safe; confined to the device thread, the platform thread that opened it ({@link Devices#open(String)}).
 * Only {@link #liveBytes}, {@link #peakBytes} and the names may be called by other threads. See the package for the
 * rules of lifetimes.
 */
public sealed interface Device extends AutoCloseable permits NativeDevice {
    /** Returns the name by which it was opened, such as {@code cpu:0}. */
    String name();

    /** Returns the manufacturer's name of the model. */
    String model();

    /** Returns the number of threads that work on an operation; not used by a GPU. */
    int threads();

    /** Returns the vector instructions in use; {@link InstructionSet#AUTO} on a GPU. */
    InstructionSet instructionSet();

    /**
     * Returns whether its memory is the host's, so that {@link Buffer#segment} can be read and written. On a GPU it is
     * not: values are copied, or pass through a {@link Buffer.Mirror}.
     */
    boolean isHost();

    /**
     * Waits until all operations of this device are done. On the CPU they always are.
     *
     * @throws DeviceException.Fault when one of them failed
     * @throws DeviceException.NotFinite when one of them found NaN or infinity
     */
    void synchronize();

    /**
     * Marks the operations from now on, such as by the number of a step. A GPU throws what an operation has found from
     * a later call; the mark says which step it belongs to.
     *
     * @param mark not negative
     */
    void mark(long mark);

    /**
     * Returns the CUDA stream that its operations run on, in the order they are given, for a library that computes in
     * its memory; the device becomes the calling thread's current one, as such libraries need it. Null's segment on the
     * CPU.
     */
    MemorySegment stream();

    /** Creates an event on the stream of this device. */
    StreamEvent event();

    /** Makes later operations of this device wait for the event, which may be of another device. */
    void await(StreamEvent event);

    /** Creates a stream for copies that run concurrently with the operations of this device. */
    CopyStream copyStream();

    /**
     * Allocates zeroed memory.
     *
     * @param label its name in messages
     * @throws DeviceException.OutOfMemory when there is not enough memory
     */
    Buffer allocate(String label, ElementType type, long length);

    /**
     * Returns a buffer over memory of the host, for a device whose memory is the host's: nothing is copied. Closing the
     * buffer leaves the memory as it is; the caller keeps it alive until then.
     *
     * @param label its name in messages
     * @param memory native, at an address that is a multiple of the size of an element
     */
    Buffer view(String label, ElementType type, MemorySegment memory);

    /** Returns the bytes of all open buffers. */
    long liveBytes();

    /**
     * Returns the most bytes it has held at once, including workspaces. What a library allocates by itself is not
     * counted.
     */
    long peakBytes();

    /**
     * Returns the matrix products of this device. *
     *
     * @throws DeviceException.Unsupported when the device has no library for them; the message has the reason
     */
    Blas blas();

    /**
     * Returns the matrix decompositions of this device. *
     *
     * @throws DeviceException.Unsupported when the device has no library for them; the message has the reason
     */
    Solver solver();

    /** Computes {@code y = a x + (1-a) y}; with a = 1, y is not read. */
    void ema(double a, Batch x, Batch y);

    /**
     * Computes {@code M = (1-b) M + b H (v kron I)} without forming the Kronecker product. H holds the d blocks of a
     * client one after the other, each as long as M; v holds d weights. With b = 1, M is not read.
     */
    void composeMomentum(double b, Batch h, Batch v, Batch m);

    /**
     * Computes {@code H = Gnew + (1-g)(H - Gold)}; {@code norms} (FLOAT64, one element per client) receives each
     * client's Frobenius norm of the result.
     */
    void storm(double g, Batch gNew, Batch gOld, Batch h, Batch norms);

    /**
     * Scales each client's H onto the ball of {@code radius}, given the norms from {@link #storm}, then does
     * {@link #composeMomentum}, in one pass over H.
     *
     * @param radius positive; infinity for no projection
     * @throws DeviceException.NotFinite when a norm is not finite
     */
    void projectComposeMomentum(double radius, Batch norms, double b, Batch h, Batch v, Batch m);

    /**
     * Computes {@code x = min(1, radius/norm) x}: scales each client's x onto the ball of {@code radius}, given the
     * norms from {@link #norm} or {@link #storm}. A client inside the ball is not written.
     *
     * @param radius positive; infinity for no projection
     * @throws DeviceException.NotFinite when a norm is not finite; nothing is written then
     */
    void project(double radius, Batch norms, Batch x);

    /**
     * Prepares Newton-Schulz for matrices of any sizes, which the caller closes before this device.
     *
     * @param clients the maximal number of clients in a call
     * @throws DeviceException.Unsupported when this device does not have the precision
     */
    NewtonSchulzSpec.Plan plan(NewtonSchulzSpec what, long clients);

    /**
     * Prepares the steps of vectors, which the caller closes before this device.
     *
     * @param clients the maximal number of clients in a call
     */
    VectorStepSpec.Plan plan(VectorStepSpec what, long clients);

    /**
     * Computes {@code y = x / (||x|| divisor)}, the start of Newton-Schulz; y may be x.
     *
     * @throws DeviceException.NotFinite when a client's x has NaN or infinity; nothing is written then
     */
    void normalize(double divisor, Batch x, Batch y);

    /**
     * Computes {@code out = factor A B}. *
     *
     * @param symmetric whether the result is symmetric, which halves the work: X X^T, or symmetric matrices that
     *     commute
     * @param out row-major without gaps, apart from the operands
     */
    default void multiply(double factor, MatrixBatch a, MatrixBatch b, boolean symmetric, MatrixBatch out) {
        multiply(Precision.FP32, factor, a, b, symmetric, out);
    }

    /**
     * Computes the same in at least the given precision: what is too small for tensor cores is computed in fp32.
     *
     * @throws DeviceException.Unsupported when that takes a {@linkplain #requireLibrary library} that is missing
     */
    void multiply(Precision precision, double factor, MatrixBatch a, MatrixBatch b, boolean symmetric, MatrixBatch out);

    /** Computes {@code out = factor A B + baseFactor base}; base has the shape of out, and may be A or B. */
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

    /** Computes the same in at least the given precision. */
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
     * Checks that {@link #multiply} uses a library of the device's vendor, cuBLAS, which has every {@link Precision};
     * our own kernel has fp32. A {@linkplain #plan(NewtonSchulzSpec, long) plan} of Newton-Schulz needs no library.
     *
     * @throws DeviceException.Unsupported when it does not
     */
    void requireLibrary();

    /** Returns the library by which {@link #multiply} computes large products, for logs and reports. */
    String multipliesBy();

    /**
     * Copies x to y, each with strides of its own: transposed, padded or cut out of a larger matrix. Elements of 4 or 8
     * bytes.
     */
    void rearrange(MatrixBatch x, MatrixBatch y);

    /**
     * Replaces every client's x by the mean of all, which is exact up to rounding: it depends neither on the order nor
     * on the grouping of the clients. NaN and infinity make their element NaN.
     */
    void average(Batch x);

    /**
     * Replaces every client's x by the weighted mean. A client of weight 0 receives it without contributing. The
     * weights are {@linkplain MeanWeights#scaled scaled} here.
     *
     * @param weights one per client, not negative, with a positive sum
     * @param terms at least the number of positive weights, at most {@value MeanWeights#MOST_TERMS}; means that are to
     *     have the same bits have the same terms
     */
    void average(Batch x, double[] weights, long terms);

    /**
     * Replaces every target by the weighted mean of the rows, as {@link #average(Batch, double[], long)} computes it.
     * Rows and targets are single vectors of one length, and may be on other devices that this one {@linkplain #reaches
     * reaches}; the caller orders this with their work by {@link StreamEvent}s. A target may be one of the rows.
     *
     * @param weights one per row, not negative, with a positive sum
     */
    void average(List<Batch> rows, double[] weights, long terms, List<Batch> targets);

    /**
     * Finds the largest exponent of each element's terms, the weighted values of the clients in x: the first step of a
     * mean whose clients are in several places. 255 says that a term is NaN or infinite.
     *
     * @param weights one per client, in [0, 1]: those of all clients of the mean, {@linkplain MeanWeights#scaled
     *     scaled} together; all may be 0
     * @param exponents UINT8, one client, as long as x
     */
    void meanExponents(Batch x, double[] weights, Batch exponents);

    /**
     * Adds up the terms of the clients in x as integers: the second step. Sums of several places are added modulo 2^64,
     * in any order.
     *
     * @param weights as in {@link #meanExponents}
     * @param terms at least the number of positive weights of the whole mean, the same everywhere
     * @param exponents of all clients of the mean
     * @param sums INT64, one client, as long as x
     */
    void meanSums(Batch x, double[] weights, long terms, Batch exponents, Batch sums);

    /**
     * Sets {@code to} to the largest of each element's exponents. The parts may be on other devices that this one
     * reaches, and {@code to} may be one of them.
     */
    void combineExponents(List<Batch> parts, Batch to);

    /**
     * Adds the sums of all parts and writes the mean to every target: the last step. Sums and targets may be on other
     * devices that this one reaches.
     *
     * @param total the {@linkplain MeanWeights#total sum of the weights} of all clients of the mean
     */
    void finishMean(List<Batch> sums, Batch exponents, long terms, double total, List<Batch> targets);

    /**
     * Returns whether operations of this device can read and write the memory of {@code other}: GPUs with peer access,
     * and all devices on the CPU. May be called while the thread of the other device uses it.
     */
    boolean reaches(Device other);

    /** Computes {@code w -= eta m}. */
    void vectorStep(double eta, Batch m, Batch w);

    /**
     * Does the server's step of FedAdam and FedYogi: {@code m = beta1 m + (1-beta1) delta}, then v by {@code rule},
     * then {@code w += eta m / (sqrt(v) + epsilon)}, in one pass. Does not check for NaN or infinity.
     *
     * @param beta1 in [0, 1)
     * @param beta2 in [0, 1)
     * @param epsilon positive
     * @param delta the clients' mean change
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
     * Sets {@code y} to the k elements of each client's x of largest magnitude, and zeros elsewhere; among equal
     * magnitudes the lower index wins. y may be x.
     *
     * @param k from 0 to the length of x
     * @throws DeviceException.NotFinite when x has NaN or infinity; nothing is written then
     */
    void topK(long k, Batch x, Batch y);

    /**
     * Makes a mask of dropout for each client: a byte per element, which is 1 with probability {@code left / 65536},
     * for an element that is left out, and 0 otherwise. Each element takes 16 bits of
     * {@link java.util.SplittableRandom#SplittableRandom(long) SplittableRandom(seed)}, four elements a number, the
     * lowest bits first, so that all devices make the same masks.
     *
     * @param left from 0 to 65536
     * @param seeds one per client
     * @param masks all masks, one after the other, in memory of this device that need not be a {@link Buffer}: such as
     *     a tensor of libtorch, whose address and size the segment has
     */
    void dropoutMask(int left, long[] seeds, MemorySegment masks);

    /**
     * Computes each client's Euclidean norm, accumulated in double precision, into {@code norms} (FLOAT64, one element
     * per client).
     */
    void norm(Batch x, Batch norms);

    /** Returns the position of the first NaN or infinity in client order. On a GPU this waits for the answer. */
    Optional<Position> firstNotFinite(Batch x);

    /**
     * Requires that x is finite. A GPU does not wait: it refuses operations from there on, and the next call that waits
     * throws.
     *
     * @throws DeviceException.NotFinite when it is not
     */
    void requireFinite(Batch x);

    /**
     * Requires that x is finite, and otherwise names the client of {@code of}, which x was computed from.
     *
     * @throws DeviceException.NotFinite when it is not
     */
    void requireFinite(Batch x, Batch of);

    /** Frees all memory. Buffers that are still open are reported and closed. Closing twice does nothing. */
    @Override
    void close();

    /**
     * Where in a batch something is: client, block (a matrix of the client) and element, each -1 where it does not
     * apply.
     */
    record Position(long client, long block, long index) {}

    /** How a vector moves along its momentum m. */
    enum StepRule {
        /** {@code w -= eta m}. */
        PLAIN(FedComuonNative.FCM_STEP_PLAIN()),
        /** {@code w -= eta m / ||m||}, the vector's counterpart of an orthogonalized step; zero m is no step. */
        NORMALIZED(FedComuonNative.FCM_STEP_NORMALIZED());

        private final int code;

        StepRule(int code) {
            this.code = code;
        }

        int code() {
            return code;
        }
    }

    /** How the server of FedOpt (Reddi et al., 2021) keeps the second moment v of the clients' mean change. */
    enum AdaptiveRule {
        /** {@code v = beta2 v + (1-beta2) delta^2}. */
        ADAM(FedComuonNative.FCM_ADAM()),
        /**
         * {@code v = v - (1-beta2) delta^2 sign(v - delta^2)}: moves by no more than the square of the change itself.
         */
        YOGI(FedComuonNative.FCM_YOGI());

        private final int code;

        AdaptiveRule(int code) {
            this.code = code;
        }

        int code() {
            return code;
        }
    }
}
