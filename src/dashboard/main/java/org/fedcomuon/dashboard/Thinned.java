package org.fedcomuon.dashboard;

import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.BinaryOperator;
import org.jspecify.annotations.Nullable;

/**
 * A series in bounded memory. When it is full, each two neighbours are merged into one, and from then on twice as many
 * new values form one. Not thread-safe.
 */
final class Thinned<T> {
    private final int most;
    private final BinaryOperator<T> merge;
    private List<T> kept = new ArrayList<>();
    private long stride = 1;
    private long gathered; // in the open one
    private @Nullable T open;
    private int taken;
    private boolean thinned;

    /**
     * An empty series.
     *
     * @param most values that are kept
     * @param merge makes one value of two neighbours; the earlier is its first argument
     */
    Thinned(int most, BinaryOperator<T> merge) {
        this.most = most;
        this.merge = merge;
    }

    void add(T value) {
        T sum = open == null ? value : merge.apply(open, value);
        gathered++;
        if (gathered < stride) {
            open = sum;
            return;
        }
        open = null;
        gathered = 0;
        kept.add(sum);
        if (kept.size() >= most) {
            halve();
        }
    }

    private void halve() {
        var half = new ArrayList<T>(most);
        for (int i = 0; i + 1 < kept.size(); i += 2) {
            half.add(merge.apply(kept.get(i), kept.get(i + 1)));
        }
        if (kept.size() % 2 != 0) {
            open = kept.getLast();
            gathered = stride;
        }
        kept = half;
        stride *= 2;
        thinned = true;
    }

    /** The complete values, from the first on. */
    List<T> all() {
        return List.copyOf(kept);
    }

    /** The last value, if more will be merged into it. */
    Optional<T> open() {
        return Optional.ofNullable(open);
    }

    /** The complete values since the last {@link #take}; empty if earlier values have been merged since. */
    Optional<List<T>> fresh() {
        return thinned ? Optional.empty() : Optional.of(List.copyOf(kept.subList(taken, kept.size())));
    }

    /** Marks all values as passed on. */
    void take() {
        taken = kept.size();
        thinned = false;
    }
}
