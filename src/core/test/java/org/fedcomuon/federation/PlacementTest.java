package org.fedcomuon.federation;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** Where clients run: balanced by what they cost, and the same whenever asked. */
class PlacementTest {
    private static double[] equal(int count) {
        return IntStream.range(0, count).mapToDouble(i -> 1).toArray();
    }

    /** When the last device is done. */
    private static double makespan(List<List<Integer>> clients, double[] costs, double[] speeds) {
        double last = 0;
        for (int device = 0; device < speeds.length; device++) {
            last = Math.max(
                    last,
                    clients.get(device).stream()
                                    .mapToDouble(client -> costs[client])
                                    .sum()
                            / speeds[device]);
        }
        return last;
    }

    /** By trying them all. */
    private static double best(double[] costs, double[] speeds) {
        double best = Double.POSITIVE_INFINITY;
        long ways = Math.round(Math.pow(speeds.length, costs.length));
        for (long way = 0; way < ways; way++) {
            var load = new double[speeds.length];
            long rest = way;
            for (double cost : costs) {
                load[(int) (rest % speeds.length)] += cost;
                rest /= speeds.length;
            }
            double last = 0;
            for (int device = 0; device < speeds.length; device++) {
                last = Math.max(last, load[device] / speeds[device]);
            }
            best = Math.min(best, last);
        }
        return best;
    }

    @Test
    void equalClientsAreSharedOutInTurn() {
        assertThat(Placement.of(equal(5), equal(2)).clients()).containsExactly(List.of(0, 2, 4), List.of(1, 3));
        assertThat(Placement.of(equal(3), equal(1)).clients()).containsExactly(List.of(0, 1, 2));
        assertThat(Placement.of(equal(3), equal(3)).clients()).containsExactly(List.of(0), List.of(1), List.of(2));
    }

    @Test
    void aCostlyClientHasADeviceToItself() {
        assertThat(Placement.of(new double[] {1, 1, 4, 1, 1}, equal(2)).clients())
                .containsExactly(List.of(2), List.of(0, 1, 3, 4));
        assertThat(Placement.of(new double[] {5, 4, 3, 3, 3}, equal(2)).clients())
                .containsExactly(List.of(0, 3), List.of(1, 2, 4));
    }

    @Test
    void aFastDeviceHasMore() {
        assertThat(Placement.of(equal(6), new double[] {1, 2}).clients())
                .containsExactly(List.of(1, 4), List.of(0, 2, 3, 5));
    }

    @Test
    void noDeviceIsLeftWithoutAClient() {
        assertThat(Placement.of(equal(3), new double[] {1, 1000, 0.001}).clients())
                .containsExactly(List.of(1), List.of(0), List.of(2));
    }

    @Test
    void everyClientIsSomewhereAndTheLastDeviceIsNotLate() {
        var random = new Random(7);
        for (int trial = 0; trial < 60; trial++) {
            double[] costs = random.doubles(2 + random.nextInt(7), 0.1, 3).toArray();
            double[] speeds = equal(1 + random.nextInt(Math.min(3, costs.length)));
            List<List<Integer>> clients = Placement.of(costs, speeds).clients();
            var all = new ArrayList<Integer>();
            for (List<Integer> some : clients) {
                assertThat(some).isNotEmpty().isSorted();
                all.addAll(some);
            }
            assertThat(all)
                    .containsExactlyInAnyOrderElementsOf(
                            IntStream.range(0, costs.length).boxed().toList());
            double bound = 4.0 / 3 - 1.0 / (3 * speeds.length); // Graham's
            assertThat(makespan(clients, costs, speeds)).isLessThanOrEqualTo(bound * best(costs, speeds) + 1e-12);
        }
    }
}
