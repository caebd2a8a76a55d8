package org.fedcomuon.problem;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Objects;
import java.util.Optional;
import org.fedcomuon.internal.NativeHeap;
import org.jspecify.annotations.Nullable;

/**
 * A run of floats in memory that somebody else owns: a view, nothing is copied. Indices are checked. An oracle may use
 * it only during the call that handed it out. Of one thread at a time, unless all only read.
 *
 * <p>Oracles that {@linkplain Client#acceptsMemoryOf ask for it} are given memory of a device. Such a view has a
 * length, an address and a {@link #device}, and no element that the host could read or write.
 */
public final class Floats {
    private static final ValueLayout.OfFloat FLOAT = ValueLayout.JAVA_FLOAT;

    /** What the host may touch: nothing of a device's memory, so that a try is an {@link IndexOutOfBoundsException}. */
    private final MemorySegment memory;

    private final @Nullable Far far;

    /** Memory that the host cannot touch. */
    private record Far(String device, long address, long length) {}

    private Floats(MemorySegment memory, @Nullable Far far) {
        this.memory = memory;
        this.far = far;
    }

    /** The whole of {@code memory}. */
    public static Floats of(MemorySegment memory) {
        return new Floats(memory, null);
    }

    /** {@code length} floats at an address of a device, which is called {@code device}. */
    public static Floats onDevice(String device, long address, long length) {
        return new Floats(MemorySegment.NULL, new Far(device, address, length));
    }

    /**
     * {@code length} zeros in memory of their own, outside the heap, which is free when nobody refers to it any more.
     */
    public static Floats zeros(long length) {
        return of(NativeHeap.allocate(length * Float.BYTES));
    }

    /** A view of {@code values}: changes show in the array. */
    public static Floats of(float... values) {
        return of(MemorySegment.ofArray(values));
    }

    /** How many. */
    public long length() {
        return far != null ? far.length() : memory.byteSize() / Float.BYTES;
    }

    /** The device whose memory it is, by name; empty when it is the host's. */
    public Optional<String> device() {
        return far != null ? Optional.of(far.device()) : Optional.empty();
    }

    /** Where it is, on its device or in the native memory of the host. */
    public long address() {
        return far != null ? far.address() : memory.address();
    }

    /** Element {@code i}. */
    public float get(long i) {
        return memory.getAtIndex(FLOAT, i);
    }

    /** Makes element {@code i} the nearest float to {@code value}. */
    public void set(long i, double value) {
        memory.setAtIndex(FLOAT, i, (float) value);
    }

    /** Adds to element {@code i}. */
    public void add(long i, double value) {
        set(i, get(i) + value);
    }

    /** Makes every element {@code value}. */
    public void fill(double value) {
        for (long i = 0, n = length(); i < n; i++) {
            set(i, value);
        }
    }

    /** Overwrites all elements. */
    public void set(float... values) {
        if (values.length != length()) {
            throw new IllegalArgumentException("%d values for %d elements".formatted(values.length, length()));
        }
        MemorySegment.copy(values, 0, memory, FLOAT, 0, values.length);
    }

    /** A part, as a view. */
    public Floats slice(long from, long length) {
        Objects.checkFromIndexSize(from, length, length());
        if (far != null) {
            return onDevice(far.device(), far.address() + from * Float.BYTES, length);
        }
        return of(memory.asSlice(from * Float.BYTES, length * Float.BYTES));
    }

    /** A copy. */
    public float[] toArray() {
        return memory.toArray(FLOAT);
    }

    /**
     * The memory itself, for oracles that hand it to a library.
     *
     * @throws IllegalStateException when it is a device's
     */
    public MemorySegment segment() {
        if (far != null) {
            throw new IllegalStateException("the host cannot touch the memory of " + far.device());
        }
        return memory;
    }
}
