package org.fedcomuon.device;

import java.lang.foreign.MemorySegment;

/** The workspace of a plan, which holds what was prepared for it. Confined to the device thread. */
final class PreparedWorkspace implements AutoCloseable {
    private final NativeDevice device;
    private final long bytes;
    private MemorySegment memory;

    PreparedWorkspace(NativeDevice device, long bytes) {
        this.device = device;
        this.bytes = bytes;
        memory = bytes == 0 ? MemorySegment.NULL : device.hold(bytes);
    }

    MemorySegment memory() {
        if (bytes > 0 && memory.equals(MemorySegment.NULL)) {
            throw new IllegalStateException("the plan is closed");
        }
        return memory;
    }

    long bytes() {
        return bytes;
    }

    @Override
    public void close() {
        if (!memory.equals(MemorySegment.NULL) && !device.isClosed()) { // which has freed it
            device.release(memory);
        }
        memory = MemorySegment.NULL;
    }
}
