package org.fedcomuon.device;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Memory on a device, zeroed when it is allocated. The caller of {@link Device#allocate} closes it. Closing it twice
 * does nothing, using it afterwards is an {@link IllegalStateException}, and a buffer that is never closed is reported
 * in the log under its label.
 *
 * <p>Not thread-safe; confined to the device thread, except for {@link #close}, and for the {@link #segment} while no
 * operation runs on it.
 */
public final class Buffer implements AutoCloseable {
    private final NativeDevice device;
    private final BufferMemory memory;

    Buffer(NativeDevice device, BufferMemory memory) {
        this.device = device;
        this.memory = memory;
    }

    /** Returns the device it is on. */
    public Device device() {
        return device;
    }

    /** Returns its name in messages. */
    public String label() {
        return memory.label();
    }

    /** Returns the type of its elements. */
    public ElementType type() {
        return memory.type();
    }

    /** Returns the number of elements. */
    public long length() {
        return memory.length();
    }

    /** Returns whether it has been closed, by {@link #close} or with its device. */
    public boolean isClosed() {
        return memory.isClosed();
    }

    /** Returns a view as {@code clients} vectors of {@code length} elements, one after the other from the start. */
    public Batch batch(long clients, long length) {
        return new Batch(this, 0, clients, length, length);
    }

    /**
     * Returns the memory itself, without a copy; valid as long as the buffer is open. Only where {@link Device#isHost};
     * use {@link #mirror} elsewhere.
     *
     * @throws IllegalStateException when the buffer is closed, or the host cannot access its memory
     */
    public MemorySegment segment() {
        if (!device.isHost()) {
            throw new IllegalStateException("the host cannot touch %s: it is on %s; copy it or make a mirror"
                    .formatted(label(), device.name()));
        }
        return memory.segment();
    }

    /**
     * Returns the address in the device's memory, for libraries that compute on the device.
     *
     * @throws IllegalStateException when the buffer is closed
     */
    public long address() {
        return memory.segment().address();
    }

    /** Creates a view for the host, which the caller closes. */
    public Mirror mirror() {
        return device.mirror(this, memory);
    }

    /** Returns where {@code offset} elements from the start are, checked to be alive and on {@code user}. */
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
            switch (type()) {
                case FLOAT32 -> segment.setAtIndex(ValueLayout.JAVA_FLOAT, i, (float) value);
                case FLOAT64 -> segment.setAtIndex(ValueLayout.JAVA_DOUBLE, i, value);
                case UINT8 -> segment.setAtIndex(ValueLayout.JAVA_BYTE, i, (byte) (int) value);
                case INT64 -> segment.setAtIndex(ValueLayout.JAVA_LONG, i, (long) value);
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

    /** Writes all of {@code values}, unsigned, from element {@code offset} on. */
    public void copyIn(long offset, byte[] values) {
        requireType(ElementType.UINT8);
        stage(offset, values.length, MemorySegment.ofArray(values), true);
    }

    /** Writes all of {@code values} from element {@code offset} on. */
    public void copyIn(long offset, long[] values) {
        requireType(ElementType.INT64);
        stage(offset, values.length, MemorySegment.ofArray(values), true);
    }

    /** Reads {@code count} elements from {@code offset} on. */
    public float[] toFloats(long offset, int count) {
        requireType(ElementType.FLOAT32);
        var values = new float[count];
        stage(offset, count, MemorySegment.ofArray(values), false);
        return values;
    }

    /** Reads {@code count} elements from {@code offset} on; FLOAT32 is widened. */
    public double[] toDoubles(long offset, int count) {
        var values = new double[count];
        if (type() == ElementType.FLOAT32) {
            float[] floats = toFloats(offset, count);
            for (int i = 0; i < count; i++) {
                values[i] = floats[i];
            }
            return values;
        }
        requireType(ElementType.FLOAT64);
        stage(offset, count, MemorySegment.ofArray(values), false);
        return values;
    }

    /** Reads {@code count} elements from {@code offset} on, which are unsigned. */
    public byte[] toBytes(long offset, int count) {
        requireType(ElementType.UINT8);
        var values = new byte[count];
        stage(offset, count, MemorySegment.ofArray(values), false);
        return values;
    }

    /** Reads {@code count} elements from {@code offset} on. */
    public long[] toLongs(long offset, int count) {
        requireType(ElementType.INT64);
        var values = new long[count];
        stage(offset, count, MemorySegment.ofArray(values), false);
        return values;
    }

    /** Writes all of {@code from}, host memory of any kind, from element {@code offset} on. */
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

    void requireFloatingPoint() {
        if (!type().isFloatingPoint()) {
            throw new DeviceException.InvalidOperand(
                    "%s holds %s, not floating-point numbers".formatted(label(), type()));
        }
    }

    /** Frees the memory. Closing twice does nothing. */
    @Override
    public void close() {
        memory.close();
    }

    @Override
    public String toString() {
        return "%s (%d %s on %s%s)".formatted(label(), length(), type(), device.name(), isClosed() ? ", closed" : "");
    }

    /**
     * A view of a buffer for the host: code on the host reads and writes {@link #segment}, and {@link #fetch} and
     * {@link #store} copy the values from and to the device. On a device whose memory is the host's it is the buffer
     * itself and nothing is copied; elsewhere it is pinned host memory of the same size, allocated once.
     *
     * <p>Copies are asynchronous: call {@link Device#synchronize} between a copy and the host's next use of the
     * segment. Not thread-safe; confined to the device thread, except for the segment. The caller of {@link #mirror}
     * closes it, before its buffer.
     */
    public static final class Mirror implements AutoCloseable {
        private final Buffer buffer;
        private final NativeDevice device;
        private final @Nullable BufferMemory pinned; // null: the buffer itself

        Mirror(Buffer buffer, NativeDevice device, @Nullable BufferMemory pinned) {
            this.buffer = buffer;
            this.device = device;
            this.pinned = pinned;
        }

        /** Returns all values, in the order of the buffer, in native memory. */
        public MemorySegment segment() {
            return pinned == null ? buffer.segment() : pinned.segment();
        }

        /** Copies {@code count} values from {@code offset} on from the device. */
        public void fetch(long offset, long count) {
            buffer.requireRange(offset, count);
            if (pinned != null) {
                device.copyOutAsync(buffer, offset, part(pinned, offset, count), count);
            }
        }

        /** Copies {@code count} values from {@code offset} on to the device. */
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

        /** Frees the host memory, if it has any of its own. Closing twice does nothing. */
        @Override
        public void close() {
            if (pinned != null) {
                pinned.close();
            }
        }
    }
}
