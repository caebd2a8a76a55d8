package org.fedcomuon.problem;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Objects;
import java.util.Optional;
import org.fedcomuon.internal.NativeHeap;
import org.jspecify.annotations.Nullable;

/**
 * A view of floats in memory that it does not own. Indices are checked. An oracle may use it only during the call that
 * passed it. Not thread-safe, unless all threads only read.
 *
 * <p>Oracles that {@linkplain JointOracle#computesOnDevice compute there} are given memory of a device. Such a view has
 * a length, an address and a {@link #device}, and no element that the host can read or write.
 */
public final class Floats {
    private static final ValueLayout.OfFloat FLOAT = ValueLayout.JAVA_FLOAT;

    /**
     * What the host may access: nothing of a device's memory, so that an access is an
     * {@link IndexOutOfBoundsException}.
     */
    private final MemorySegment memory;

    private final @Nullable Far far;

    /** Memory that the host cannot access. */
    private record Far(String device, long address, long length) {}

    private Floats(MemorySegment memory, @Nullable Far far) {
        this.memory = memory;
        this.far = far;
    }

    /** Returns a view of all of {@code memory}. */
    public static Floats of(MemorySegment memory) {
        return new Floats(memory, null);
    }

    /** Returns a view of {@code length} floats at an address of the device called {@code device}. */
    public static Floats onDevice(String device, long address, long length) {
        return new Floats(MemorySegment.NULL, new Far(device, address, length));
    }

    /** Allocates {@code length} zeros outside the heap, which are freed when they become unreachable. */
    public static Floats zeros(long length) {
        return of(NativeHeap.allocate(length * Float.BYTES));
    }

    /** Returns a view of {@code values}: changes show in the array. */
    public static Floats of(float... values) {
        return of(MemorySegment.ofArray(values));
    }

    /** Returns the number of elements. */
    public long length() {
        return far != null ? far.length() : memory.byteSize() / Float.BYTES;
    }

    /** Returns the device whose memory it is, by name; empty when it is the host's. */
    public Optional<String> device() {
        return far != null ? Optional.of(far.device()) : Optional.empty();
    }

    /** Returns its address, on its device or in the native memory of the host. */
    public long address() {
        return far != null ? far.address() : memory.address();
    }

    /** Returns element {@code i}. */
    public float get(long i) {
        return memory.getAtIndex(FLOAT, i);
    }

    /** Sets element {@code i} to the float nearest to {@code value}. */
    public void set(long i, double value) {
        memory.setAtIndex(FLOAT, i, (float) value);
    }

    /** Adds to element {@code i}. */
    public void add(long i, double value) {
        set(i, get(i) + value);
    }

    /** Sets every element to {@code value}. */
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

    /** Returns a view of a part. */
    public Floats slice(long from, long length) {
        Objects.checkFromIndexSize(from, length, length());
        if (far != null) {
            return onDevice(far.device(), far.address() + from * Float.BYTES, length);
        }
        return of(memory.asSlice(from * Float.BYTES, length * Float.BYTES));
    }

    /** Returns a copy of all elements. */
    public float[] toArray() {
        return memory.toArray(FLOAT);
    }

    /**
     * Returns the memory itself, for oracles that pass it to a library.
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
