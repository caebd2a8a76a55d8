package org.fedcomuon.dashboard;

import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.BinaryOperator;
import org.jspecify.annotations.Nullable;

/**
 * The whole course of something in bounded room: when it is full each two neighbours become one, and from then on twice
 * as many of those that come. Not thread-safe.
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
     * An empty one.
     *
     * @param most that are kept
     * @param merge one for two neighbours, the earlier first
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

    /** Those that are whole, from the first on. */
    List<T> all() {
        return List.copyOf(kept);
    }

    /** The one that more may be added to. */
    Optional<T> open() {
        return Optional.ofNullable(open);
    }

    /** The whole ones since the last {@link #take}; empty if what was there before is no longer so. */
    Optional<List<T>> fresh() {
        return thinned ? Optional.empty() : Optional.of(List.copyOf(kept.subList(taken, kept.size())));
    }

    /** All that is here has been passed on. */
    void take() {
        taken = kept.size();
        thinned = false;
    }
}
