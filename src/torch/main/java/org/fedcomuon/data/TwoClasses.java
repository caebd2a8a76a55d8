package org.fedcomuon.data;

import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Optional;
import java.util.Set;

/** The same examples with other labels: 1 for those of some classes, 0 for all others. Immutable. */
record TwoClasses(ExampleSet set, Set<Integer> positives) implements ExampleSet {
    @Override
    public int count() {
        return set.count();
    }

    @Override
    public List<Integer> shape() {
        return set.shape();
    }

    @Override
    public int classes() {
        return 2;
    }

    @Override
    public int label(int example) {
        return positives.contains(set.label(example)) ? 1 : 0;
    }

    @Override
    public void copyTo(int example, MemorySegment into, long offset) {
        set.copyTo(example, into, offset);
    }

    @Override
    public Optional<String> group(int example) {
        return set.group(example);
    }
}
