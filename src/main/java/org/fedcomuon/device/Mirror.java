package org.fedcomuon.device;

import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/**
 * A buffer as the host sees it: what runs on the host reads and writes {@link #segment}, and {@link #fetch} and
 * {@link #store} carry the values from and to the device. On a device whose memory is the host's it is the buffer
 * itself and nothing is carried; elsewhere it is pinned host memory of the same size, made once.
 *
 * <p>Neither waits for its copy: between a transfer and the host's next use of the segment comes
 * {@link Device#synchronize}. Of the device's thread; the segment from any. Closed by whoever made it, before its
 * buffer.
 */
public final class Mirror implements AutoCloseable {
    private final Buffer buffer;
    private final NativeDevice device;
    private final @Nullable BufferMemory pinned; // null: the buffer itself

    Mirror(Buffer buffer, NativeDevice device, @Nullable BufferMemory pinned) {
        this.buffer = buffer;
        this.device = device;
        this.pinned = pinned;
    }

    /** All values, in the order of the buffer. Native memory. */
    public MemorySegment segment() {
        return pinned == null ? buffer.segment() : pinned.segment();
    }

    /** Brings {@code count} values from {@code offset} on here. */
    public void fetch(long offset, long count) {
        buffer.requireRange(offset, count);
        if (pinned != null) {
            device.copyOutAsync(buffer, offset, part(pinned, offset, count), count);
        }
    }

    /** Takes {@code count} values from {@code offset} on to the device. */
    public void store(long offset, long count) {
        buffer.requireRange(offset, count);
        if (pinned != null) {
            device.copyInAsync(buffer, offset, part(pinned, offset, count), count);
        }
    }

    private MemorySegment part(BufferMemory memory, long offset, long count) {
        int bytes = buffer.type().bytes();
        return memory.segment().asSlice(offset * bytes, count * bytes);
    }

    /** Gives the host memory back, if it has any of its own. Closing twice does nothing. */
    @Override
    public void close() {
        if (pinned != null) {
            pinned.close();
        }
    }
}
