package org.fedcomuon.device;

import java.lang.foreign.MemorySegment;

/**
 * Device memory for a library to work in. Grows to the largest that was asked for and then stays, so that a training
 * loop allocates in its first step only; the contents do not survive growing.
 */
final class CudaRoom implements AutoCloseable {
    /** What the libraries ask for; a device's own allocations promise less. */
    static final long ALIGNMENT = 256;

    private final NativeDevice device;
    private MemorySegment held = MemorySegment.NULL;
    private MemorySegment aligned = MemorySegment.NULL;

    CudaRoom(NativeDevice device) {
        this.device = device;
    }

    /** At least {@code bytes}, aligned; good until the next call. */
    MemorySegment of(long bytes) {
        if (bytes > aligned.byteSize()) {
            close();
            held = device.hold(bytes + ALIGNMENT);
            long skip = Math.floorMod(-held.address(), ALIGNMENT);
            aligned = held.asSlice(skip, bytes);
        }
        return aligned.asSlice(0, bytes);
    }

    /** {@code bytes} rounded up, so that what comes after it is aligned too. */
    static long padded(long bytes) {
        return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }

    @Override
    public void close() {
        if (held.byteSize() > 0) {
            MemorySegment old = held;
            held = MemorySegment.NULL;
            aligned = MemorySegment.NULL;
            device.release(old);
        }
    }
}
