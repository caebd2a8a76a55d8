package org.fedcomuon.device;

import java.lang.foreign.MemorySegment;

/**
 * The workspace of a library in device memory. It grows to the largest size requested, so that a training loop
 * allocates in its first step only; the contents do not survive growth.
 */
final class CudaWorkspace implements AutoCloseable {
    /** The alignment that the libraries require; a device's own allocations guarantee less. */
    static final long ALIGNMENT = 256;

    private final NativeDevice device;
    private MemorySegment held = MemorySegment.NULL;
    private MemorySegment aligned = MemorySegment.NULL;

    CudaWorkspace(NativeDevice device) {
        this.device = device;
    }

    /** Returns at least {@code bytes}, aligned; valid until the next call. */
    MemorySegment of(long bytes) {
        if (bytes > aligned.byteSize()) {
            close();
            held = device.hold(bytes + ALIGNMENT);
            long skip = Math.floorMod(-held.address(), ALIGNMENT);
            aligned = held.asSlice(skip, bytes);
        }
        return aligned.asSlice(0, bytes);
    }

    /** Returns {@code bytes} rounded up, so that what follows is aligned too. */
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
