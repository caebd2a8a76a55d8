package org.fedcomuon.experiment.statistics;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.stream.IntStream;

/**
 * Holm's correction: with it, the probability of any wrong decision among several tests stays below the level.
 *
 * <p>Thread-safe.
 */
public final class Holm {
    private Holm() {}

    /**
     * Returns the p-values as they count beside each other, in their order. The tests may depend on each other in any
     * way.
     */
    public static List<Double> adjust(List<Double> values) {
        values.forEach(Significance::checkProbability);
        List<Integer> ascending = IntStream.range(0, values.size())
                .boxed()
                .sorted(Comparator.comparing(values::get))
                .toList();
        var adjusted = new ArrayList<>(values);
        double before = 0;
        for (int rank = 0; rank < ascending.size(); rank++) {
            int at = ascending.get(rank);
            before = Math.max(before, Math.min(1, (values.size() - rank) * values.get(at)));
            adjusted.set(at, before);
        }
        return List.copyOf(adjusted);
    }
}
