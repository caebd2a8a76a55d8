package org.fedcomuon.linalg;

import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import org.fedcomuon.device.Batch;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.DeviceException;
import org.fedcomuon.device.ElementType;
import org.fedcomuon.device.MatrixBatch;
import org.fedcomuon.device.NewtonSchulzSpec;
import org.fedcomuon.device.Precision;

/**
 * Turns a matrix M into its orthogonal factor {@code U V^T}, the direction of a Muon step: {@link Exact} exactly,
 * {@link ExactSvd} by the SVD of a library, {@link NewtonSchulz} and {@link GramNewtonSchulz} by iteration,
 * {@link Auto} by whichever iteration suits the shape. Immutable and thread-safe: threads and devices may share one.
 *
 * <p>For example: {@snippet file="org/fedcomuon/SnippetsIT.java" region="orthogonalize"}
 */
public sealed interface Orthogonalizer permits Auto, Exact, ExactSvd, GramNewtonSchulz, NewtonSchulz {
    /** Returns its name in reports. */
    String name();

    /** Returns the precision of the products. */
    Precision precision();

    /** What multiplies matrices with a short side above {@link NewtonSchulzSpec#longestSide}. */
    enum Products {
        /** Our kernels: all matrices of all clients together, with symmetry, with the bits of a CPU in fp32. */
        KERNELS,
        /** cuBLAS on a GPU, matrix by matrix: to compare with. */
        CUBLAS;

        /**
         * Returns the one of a name, such as {@code cublas}.
         *
         * @throws IllegalArgumentException when there is none; the message lists the names
         */
        public static Products parse(String name) {
            return Arrays.stream(values())
                    .filter(products -> products.toString().equals(name))
                    .findFirst()
                    .orElseThrow(() -> new IllegalArgumentException(
                            "no products are called '%s'; there are kernels and cublas".formatted(name)));
        }

        @Override
        public String toString() {
            return name().toLowerCase(Locale.ROOT);
        }
    }

    /**
     * Prepares up to {@code count} matrices of one shape on one device: selects the code to run and allocates its
     * workspace.
     *
     * @param type FLOAT64 only on a CPU, for reference work
     * @throws IllegalArgumentException when this orthogonalizer does not support it; the message has the reason
     * @throws DeviceException.Unsupported when the device does not support it; the message has the reason
     */
    Plan plan(Device device, int count, int rows, int cols, ElementType type, ScaleRule scale);

    /**
     * An {@link Orthogonalizer} prepared for one shape on one device, with its workspace. Used in every step. Not
     * thread-safe; confined to the device thread. A batch has as many clients as the plan has matrices or fewer, each
     * row-major without gaps.
     *
     * <p>For example: {@snippet file="org/fedcomuon/SnippetsIT.java" region="orthogonalize"}
     *
     * <p>A zero matrix gives zero. NaN or infinity in a matrix is a {@link DeviceException.NotFinite} whose position
     * names it as {@code client}; nothing is written then.
     */
    interface Plan extends AutoCloseable {
        /** Computes {@code o = U V^T}; {@code o} may be {@code m} itself. */
        void orthogonalize(Batch m, Batch o);

        /** Computes the same for matrices with strides of their own: column-major, padded, or parts of larger ones. */
        void orthogonalize(MatrixBatch m, MatrixBatch o);

        /** Computes {@code w -= eta scale U V^T}. */
        void step(Batch m, double eta, Batch w);

        /**
         * Returns how many directions of each matrix of the last call were kept, of the short side; empty for an
         * iteration, which keeps all.
         */
        default List<Integer> kept() {
            return List.of();
        }

        /** Returns the code that runs, for logs and reports. */
        String path();

        /** Frees its workspace. */
        @Override
        void close();
    }
}
