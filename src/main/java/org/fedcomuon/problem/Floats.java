package org.fedcomuon.problem;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Objects;

/**
 * A run of floats in memory that somebody else owns: a view, nothing is copied. Indices are checked. An oracle may use
 * it only during the call that handed it out.
 */
public final class Floats {
    private static final ValueLayout.OfFloat FLOAT = ValueLayout.JAVA_FLOAT;

    private final MemorySegment memory;

    private Floats(MemorySegment memory) {
        this.memory = memory;
    }

    /** The whole of {@code memory}. */
    public static Floats of(MemorySegment memory) {
        return new Floats(memory);
    }

    /** A view of {@code values}: changes show in the array. */
    public static Floats of(float... values) {
        return new Floats(MemorySegment.ofArray(values));
    }

    /** How many. */
    public long length() {
        return memory.byteSize() / Float.BYTES;
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
        return new Floats(memory.asSlice(from * Float.BYTES, length * Float.BYTES));
    }

    /** A copy. */
    public float[] toArray() {
        return memory.toArray(FLOAT);
    }

    /** The memory itself, for oracles that hand it to a library. */
    public MemorySegment segment() {
        return memory;
    }
}
