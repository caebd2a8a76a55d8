package org.fedcomuon.federation;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Arrays;
import java.util.HashSet;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class ParticipationTest {
    private static final int ROUNDS = 20_000;

    /** Returns how often each client takes part in rounds. */
    private static double[] frequencies(Participation participation, int clients) {
        var counts = new double[clients];
        for (long round = 0; round < ROUNDS; round++) {
            for (int client : participation.cohort(round)) {
                counts[client] += 1.0 / ROUNDS;
            }
        }
        return counts;
    }

    private static void requireCohort(int[] cohort, int count, int clients) {
        assertThat(cohort).hasSize(count).doesNotHaveDuplicates().isSorted();
        assertThat(Arrays.stream(cohort).allMatch(client -> client >= 0 && client < clients))
                .isTrue();
    }

    @Test
    void everyCohortHasItsSizeAndIsTheSameWheneverItIsAskedFor() {
        for (int count = 1; count <= 10; count++) {
            for (long round = 0; round < 50; round++) {
                int[] cohort = Participation.of(10, count, 7).cohort(round);
                requireCohort(cohort, count, 10);
                assertThat(Participation.of(10, count, 7).cohort(round)).containsExactly(cohort);
            }
        }
        assertThat(Participation.of(10, 10, 7).cohort(3))
                .containsExactly(IntStream.range(0, 10).toArray());
    }

    @Test
    void allClientsAreEquallyLikelyAndSoAreAllPairs() {
        var pairs = new double[6][6];
        Participation participation = Participation.of(6, 3, 11);
        for (double frequency : frequencies(participation, 6)) {
            assertThat(frequency).isBetween(0.48, 0.52); // five standard deviations are 0.018
        }
        for (long round = 0; round < ROUNDS; round++) {
            int[] cohort = participation.cohort(round);
            for (int a : cohort) {
                for (int b : cohort) {
                    pairs[a][b] += 1.0 / ROUNDS;
                }
            }
        }
        for (int a = 0; a < 6; a++) {
            for (int b = 0; b < a; b++) {
                assertThat(pairs[a][b]).isBetween(0.185, 0.215); // 3/6 * 2/5
            }
        }
    }

    /** A generator that only counts on from its seed would give them the same clients a round apart. */
    @Test
    void neighbouringSeedsAndRoundsHaveNothingInCommon() {
        int common = 0;
        int all = 0;
        for (long seed = 0; seed < 20; seed++) {
            for (long round = 0; round < 20; round++) {
                var one = new HashSet<Integer>();
                Arrays.stream(Participation.of(1000, 100, seed).cohort(round)).forEach(one::add);
                for (long[] other : new long[][] {{seed + 1, round}, {seed, round + 1}, {seed + 1, round - 1}}) {
                    common += (int)
                            Arrays.stream(Participation.of(1000, 100, other[0]).cohort(other[1]))
                                    .filter(one::contains)
                                    .count();
                    all += 100;
                }
            }
        }
        assertThat(common / (double) all).isBetween(0.09, 0.11); // a tenth by chance
    }

    @Test
    void weightsDecideHowLikelyAClientIs() {
        double[] weights = {1, 2, 3, 4, 0};
        double[] one = frequencies(Participation.of(weights, 1, 3), 5);
        for (int k = 0; k < 5; k++) {
            assertThat(one[k]).isBetween(weights[k] / 10 - 0.018, weights[k] / 10 + 0.018);
        }
        assertThat(one[4]).isZero();
        // Two, one after the other: P(0) = 1/10 + sum_j w_j/10 * 1/(10 - w_j) over the others.
        double[] two = frequencies(Participation.of(weights, 2, 3), 5);
        double expected = 0.1 + 0.2 / 8 + 0.3 / 7 + 0.4 / 6;
        assertThat(two[0]).isBetween(expected - 0.018, expected + 0.018);
        assertThat(two[4]).isZero();
    }

    /** The last clients are then found by a look at all of them, which must not change how likely they are. */
    @Test
    void veryUnequalWeightsEndAndAreDrawnAlike() {
        var weights = new double[200];
        Arrays.fill(weights, 1e-9);
        weights[17] = 1;
        Participation participation = Participation.of(weights, 3, 5);
        var counts = new int[200];
        for (long round = 0; round < 2000; round++) {
            int[] cohort = participation.cohort(round);
            requireCohort(cohort, 3, 200);
            assertThat(cohort).contains(17);
            Arrays.stream(cohort).forEach(client -> counts[client]++);
        }
        assertThat(Arrays.stream(counts).filter(count -> count == 0).count()).isLessThan(5); // 20 expected of each
        double[] zeros = {0, 1, 0, 1, 1};
        assertThat(Participation.of(zeros, 3, 5).cohort(0)).containsExactly(1, 3, 4);
    }

    @Test
    void aCohortOfAMillionClients() {
        Participation equal = Participation.of(1_000_000, 100, 1);
        requireCohort(equal.cohort(12), 100, 1_000_000);
        var weights = new double[1_000_000];
        Arrays.setAll(weights, k -> k % 10 == 0 ? 1 : 0);
        int[] cohort = Participation.of(weights, 100, 1).cohort(12);
        requireCohort(cohort, 100, 1_000_000);
        assertThat(Arrays.stream(cohort).allMatch(client -> client % 10 == 0)).isTrue();
    }
}
