package org.fedcomuon.device;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Objects;

/**
 * Memory on a device, zeroed when it is allocated. {@link Device#allocate} makes one; whoever asked for it closes it.
 * Closing twice is fine, using it after is an {@link IllegalStateException}, and never closing it is reported in the
 * log under its label.
 *
 * <p>May be closed on any thread; copies belong to the device's own thread.
 */
public final class Buffer implements AutoCloseable {
    /** Host arrays pass through a piece of native memory of this size. */
    private static final long STAGE_BYTES = 1 << 20;

    private final NativeDevice device;
    private final BufferMemory memory;

    Buffer(NativeDevice device, BufferMemory memory) {
        this.device = device;
        this.memory = memory;
    }

    /** The device it is on. */
    public Device device() {
        return device;
    }

    /** What it is called in messages. */
    public String label() {
        return memory.label();
    }

    /** What it holds. */
    public ElementType type() {
        return memory.type();
    }

    /** How many elements. */
    public long length() {
        return memory.length();
    }

    /** Whether {@link #close} has been called, here or by the device's own closing. */
    public boolean isClosed() {
        return memory.isClosed();
    }

    /** {@code clients} vectors of {@code length} elements, one after the other from the start. */
    public Batch batch(long clients, long length) {
        return new Batch(this, 0, clients, length, length);
    }

    /**
     * The memory itself, without a copy; it lives as long as the buffer. Only CPU buffers have it.
     *
     * @throws IllegalStateException when the buffer is closed
     */
    public MemorySegment segment() {
        return memory.segment();
    }

    /** Where {@code offset} elements from the start are, checked to be alive and on {@code user}. */
    MemorySegment at(NativeDevice user, long offset) {
        if (device != user) {
            throw new DeviceException.InvalidOperand(
                    "%s is on %s, not on %s".formatted(label(), device.name(), user.name()));
        }
        return memory.segment().asSlice(offset * type().bytes());
    }

    /** Sets every element to zero. */
    public void zero() {
        device.zero(this);
    }

    /** Writes all of {@code values} from element {@code offset} on. */
    public void copyIn(long offset, float... values) {
        requireType(ElementType.FLOAT32);
        stage(offset, values.length, MemorySegment.ofArray(values), true);
    }

    /** Writes all of {@code values} from element {@code offset} on. */
    public void copyIn(long offset, double... values) {
        requireType(ElementType.FLOAT64);
        stage(offset, values.length, MemorySegment.ofArray(values), true);
    }

    /** Reads {@code count} elements from {@code offset} on. */
    public float[] toFloats(long offset, int count) {
        requireType(ElementType.FLOAT32);
        var values = new float[count];
        stage(offset, count, MemorySegment.ofArray(values), false);
        return values;
    }

    /** Reads {@code count} elements from {@code offset} on; FLOAT32 is widened, which loses nothing. */
    public double[] toDoubles(long offset, int count) {
        var values = new double[count];
        if (type() == ElementType.FLOAT32) {
            float[] floats = toFloats(offset, count);
            for (int i = 0; i < count; i++) {
                values[i] = floats[i];
            }
            return values;
        }
        stage(offset, count, MemorySegment.ofArray(values), false);
        return values;
    }

    /** Copies {@code count} elements from {@code source}, which may be on another device. */
    public void copyFrom(Buffer source, long sourceOffset, long offset, long count) {
        if (source.type() != type()) {
            throw new DeviceException.InvalidOperand(
                    "%s holds %s, but %s holds %s".formatted(source.label(), source.type(), label(), type()));
        }
        requireRange(offset, count);
        source.requireRange(sourceOffset, count);
        device.copy(this, offset, source, sourceOffset, count);
    }

    private void stage(long offset, long count, MemorySegment array, boolean in) {
        requireRange(offset, count);
        int bytes = type().bytes();
        long total = count * bytes;
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment stage = arena.allocate(Math.min(STAGE_BYTES, total), Double.BYTES);
            for (long at = 0; at < total; at += STAGE_BYTES) {
                long length = Math.min(STAGE_BYTES, total - at);
                if (in) {
                    MemorySegment.copy(array, ValueLayout.JAVA_BYTE, at, stage, ValueLayout.JAVA_BYTE, 0, length);
                    device.copyIn(this, offset * bytes + at, stage, length);
                } else {
                    device.copyOut(this, offset * bytes + at, stage, length);
                    MemorySegment.copy(stage, ValueLayout.JAVA_BYTE, 0, array, ValueLayout.JAVA_BYTE, at, length);
                }
            }
        }
    }

    private void requireRange(long offset, long count) {
        try {
            Objects.checkFromIndexSize(offset, count, length());
        } catch (IndexOutOfBoundsException e) {
            throw new DeviceException.InvalidOperand(
                    "%s has %d elements, not %d from %d".formatted(label(), length(), count, offset));
        }
    }

    void requireType(ElementType wanted) {
        if (type() != wanted) {
            throw new DeviceException.InvalidOperand("%s holds %s, not %s".formatted(label(), type(), wanted));
        }
    }

    /** Frees the memory. Closing a closed buffer does nothing. */
    @Override
    public void close() {
        memory.close();
    }

    @Override
    public String toString() {
        return "%s (%d %s on %s%s)".formatted(label(), length(), type(), device.name(), isClosed() ? ", closed" : "");
    }
}
