package org.fedcomuon.device;

import org.jspecify.annotations.Nullable;

/**
 * What NVIDIA's libraries do on one CUDA device, real or simulated: products and decompositions that have no kernel of
 * ours. Created when a device first needs them, confined to its thread, and closed before its context.
 *
 * <p>Work goes to the device's {@linkplain NativeDevice#stream stream}; workspaces come from {@link NativeDevice#hold}.
 */
interface VendorLibraries extends AutoCloseable {
    /**
     * {@code out = factor A B + baseFactor base}, as in {@link Device#multiply}.
     *
     * @param base null for none
     */
    record Product(
            Precision precision,
            double factor,
            MatrixBatch a,
            MatrixBatch b,
            double baseFactor,
            @Nullable MatrixBatch base,
            boolean symmetric,
            MatrixBatch out) {}

    Blas blas();

    Solver solver();

    /** Returns the library that computes products, with its version. */
    String title();

    /** Returns whether there is a library that {@link #takes} products at all. */
    boolean multiplies();

    /** Returns whether {@link #multiply} computes this product, and not our own kernel. Depends on its sizes only. */
    boolean takes(Product product);

    void multiply(Product product);

    @Override
    void close();

    /** Returns the libraries of a device; {@link Missing} where they cannot be used. */
    static VendorLibraries of(NativeDevice device) {
        return CudaLibraries.of(device);
    }

    /** No libraries, and the reason, which is thrown when one is needed. */
    record Missing(String device, String reason) implements VendorLibraries {
        @Override
        public Blas blas() {
            throw new DeviceException.Unsupported("%s has no matrix library: %s".formatted(device, reason));
        }

        @Override
        public Solver solver() {
            throw new DeviceException.Unsupported("%s has no decompositions: %s".formatted(device, reason));
        }

        @Override
        public String title() {
            throw new DeviceException.Unsupported("%s has no matrix library: %s".formatted(device, reason));
        }

        @Override
        public boolean multiplies() {
            return false;
        }

        @Override
        public boolean takes(Product product) {
            return false;
        }

        @Override
        public void multiply(Product product) {
            throw new DeviceException.Unsupported("%s has no matrix library: %s".formatted(device, reason));
        }

        @Override
        public void close() {}
    }
}
