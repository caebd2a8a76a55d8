package org.fedcomuon.device;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Objects;

/**
 * Memory on a device, zeroed when it is allocated. {@link Device#allocate} makes one; whoever asked for it closes it.
 * Closing twice is fine, using it after is an {@link IllegalStateException}, and never closing it is reported in the
 * log under its label.
 *
 * <p>Of the device's thread; {@link #close} from any, and the {@link #segment} too while no operation runs on it.
 */
public final class Buffer implements AutoCloseable {
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
     * The memory itself, without a copy; it lives as long as the buffer. Only where {@link Device#isHost}; elsewhere
     * there is {@link #mirror}.
     *
     * @throws IllegalStateException when the buffer is closed, or the host cannot touch its memory
     */
    public MemorySegment segment() {
        if (!device.isHost()) {
            throw new IllegalStateException("the host cannot touch %s: it is on %s; copy it or make a mirror"
                    .formatted(label(), device.name()));
        }
        return memory.segment();
    }

    /**
     * Where the memory is, for libraries that work on the device themselves; an address of the device, not of the host.
     *
     * @throws IllegalStateException when the buffer is closed
     */
    public long address() {
        return memory.segment().address();
    }

    /** A view for the host, which whoever asked for it closes. Of the device's thread. */
    public Mirror mirror() {
        return device.mirror(this, memory);
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

    /** Sets every element to {@code value}, rounded to the type. */
    public void fill(double value) {
        if (device.isHost()) {
            fill(memory.segment(), value);
            return;
        }
        long bytes = length() * type().bytes();
        MemorySegment stage = device.stage();
        MemorySegment piece = stage.asSlice(0, Math.min(bytes, stage.byteSize()));
        fill(piece, value);
        for (long at = 0; at < bytes; at += piece.byteSize()) {
            device.copyIn(this, at, piece, Math.min(piece.byteSize(), bytes - at));
        }
    }

    private void fill(MemorySegment segment, double value) {
        for (long i = 0, n = segment.byteSize() / type().bytes(); i < n; i++) {
            if (type() == ElementType.FLOAT32) {
                segment.setAtIndex(ValueLayout.JAVA_FLOAT, i, (float) value);
            } else {
                segment.setAtIndex(ValueLayout.JAVA_DOUBLE, i, value);
            }
        }
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

    /** Writes all that {@code from} holds, host memory of any kind, from element {@code offset} on. */
    public void copyIn(long offset, MemorySegment from) {
        stage(offset, elements(from), from, true);
    }

    /** Fills {@code to}, host memory of any kind, from element {@code offset} on. */
    public void copyOut(long offset, MemorySegment to) {
        stage(offset, elements(to), to, false);
    }

    private long elements(MemorySegment segment) {
        if (segment.byteSize() % type().bytes() != 0) {
            throw new DeviceException.InvalidOperand("%d bytes are no whole elements of %s, which holds %s"
                    .formatted(segment.byteSize(), label(), type()));
        }
        return segment.byteSize() / type().bytes();
    }

    /** Copies {@code count} elements from {@code source}, which may be on another device. */
    public void copyFrom(Buffer source, long sourceOffset, long offset, long count) {
        requireCopy(this, offset, source, sourceOffset, count);
        device.copy(this, offset, source, sourceOffset, count);
    }

    static void requireCopy(Buffer to, long offset, Buffer from, long fromOffset, long count) {
        if (from.type() != to.type()) {
            throw new DeviceException.InvalidOperand(
                    "%s holds %s, but %s holds %s".formatted(from.label(), from.type(), to.label(), to.type()));
        }
        to.requireRange(offset, count);
        from.requireRange(fromOffset, count);
    }

    private void stage(long offset, long count, MemorySegment host, boolean in) {
        requireRange(offset, count);
        int bytes = type().bytes();
        long total = count * bytes;
        MemorySegment stage = device.stage();
        for (long at = 0; at < total; at += stage.byteSize()) {
            long length = Math.min(stage.byteSize(), total - at);
            if (in) {
                MemorySegment.copy(host, ValueLayout.JAVA_BYTE, at, stage, ValueLayout.JAVA_BYTE, 0, length);
                device.copyIn(this, offset * bytes + at, stage, length);
            } else {
                device.copyOut(this, offset * bytes + at, stage, length);
                MemorySegment.copy(stage, ValueLayout.JAVA_BYTE, 0, host, ValueLayout.JAVA_BYTE, at, length);
            }
        }
    }

    void requireRange(long offset, long count) {
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
