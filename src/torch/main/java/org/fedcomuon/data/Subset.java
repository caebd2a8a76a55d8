package org.fedcomuon.data;

import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Optional;

/** Some of the examples of another set, without a copy of them. Immutable. */
final class Subset implements ExampleSet {
    private final ExampleSet all;
    private final int[] indices;

    /** Owns {@code indices}, which are below the number of examples of {@code all}. */
    Subset(ExampleSet all, int[] indices) {
        this.all = all;
        this.indices = indices;
    }

    @Override
    public int count() {
        return indices.length;
    }

    @Override
    public List<Integer> shape() {
        return all.shape();
    }

    @Override
    public int classes() {
        return all.classes();
    }

    @Override
    public int size() {
        return all.size();
    }

    @Override
    public int label(int example) {
        return all.label(indices[example]);
    }

    @Override
    public Optional<String> group(int example) {
        return all.group(indices[example]);
    }

    @Override
    public void copyTo(int example, MemorySegment into, long offset) {
        all.copyTo(indices[example], into, offset);
    }

    @Override
    public String toString() {
        return ExampleSet.describe(this);
    }
}
