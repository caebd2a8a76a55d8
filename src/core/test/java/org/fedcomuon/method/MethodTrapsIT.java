package org.fedcomuon.method;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;
import org.fedcomuon.linalg.Exact;
import org.fedcomuon.linalg.Orthogonalizer;
import org.fedcomuon.problem.Sample;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * What is easily got wrong in Algorithms 1 and 2. Each test also takes the step wrongly, in the reference, and sees
 * that the comparison would tell.
 */
class MethodTrapsIT {
    /** A mistake is further away than this after a few rounds. */
    private static final double CLEARLY = 1e-2;

    private static Schedule value(double value) {
        return Schedule.constant(value);
    }

    private static FedCoMuon first() {
        return new FedCoMuon(value(0.05), value(0.3), value(0.4), Muon.standard());
    }

    private static FedCoMuonVr second(double outerRadius, double innerRadius, int initialSamples) {
        return new FedCoMuonVr(
                value(0.05),
                value(0.3),
                value(0.4),
                value(0.2),
                value(0.35),
                outerRadius,
                innerRadius,
                initialSamples,
                Muon.standard());
    }

    private static FedCoMuonVr second() {
        return second(Double.POSITIVE_INFINITY, Double.POSITIVE_INFINITY, 3);
    }

    private static final class Both {
        final double right;
        final double wrong;

        private Both(double right, double wrong) {
            this.right = right;
            this.wrong = wrong;
        }
    }

    /** How far the method is from its reference after 11 steps at tau = 5, and from the reference with a mistake. */
    private static Both distances(Method method, Testbed bed, ReferenceMethods.Mistake mistake) {
        ReferenceMethod<?> right = ReferenceMethods.of(method, bed, Rig.SEED, Rig.equal(bed.clients));
        ReferenceMethod<?> wrong = ReferenceMethods.of(method, bed, Rig.SEED, Rig.equal(bed.clients), mistake);
        try (Rig rig = Rig.of(bed, method).iterations(11).open()) {
            rig.run();
            for (ReferenceMethod<?> reference : List.of(right, wrong)) {
                reference.initialize();
                for (int t = 0; t < 11; t++) {
                    reference.step(rig.at(t));
                }
            }
            return new Both(Comparison.distance(rig, right), Comparison.distance(rig, wrong));
        }
    }

    @ParameterizedTest
    @EnumSource(
            value = ReferenceMethods.Mistake.class,
            names = {"AVERAGES_U", "KEEPS_M_LOCAL", "AVERAGES_THE_INITIAL_M"})
    void fedCoMuonDoesNotMake(ReferenceMethods.Mistake mistake) {
        Both distances = distances(first(), Testbed.rates(), mistake);
        assertThat(distances.right).isLessThan(Comparison.TOLERANCE);
        assertThat(distances.wrong).isGreaterThan(CLEARLY);
    }

    @ParameterizedTest
    @EnumSource(
            value = ReferenceMethods.Mistake.class,
            names = {"AVERAGES_THE_INITIAL_M", "PROJECTS_NOTHING"},
            mode = EnumSource.Mode.EXCLUDE)
    void fedCoMuonVrDoesNotMake(ReferenceMethods.Mistake mistake) {
        Both distances = distances(second(), Testbed.rates(), mistake);
        assertThat(distances.right).isLessThan(Comparison.TOLERANCE);
        assertThat(distances.wrong).isGreaterThan(CLEARLY);
    }

    private static boolean sameEverywhere(Rig rig, String name) {
        for (int k = 1; k < rig.clients.count(); k++) {
            if (!Arrays.equals(rig.floats(name, 0), rig.floats(name, k))) {
                return false;
            }
        }
        return true;
    }

    @Test
    void fedCoMuonExchangesWAndMInOneRoundTripAndKeepsU() {
        try (Rig rig = Rig.of(Testbed.rates(), first()).open()) {
            rig.initialize();
            assertThat(rig.trips).isEmpty();
            assertThat(sameEverywhere(rig, "M")).isFalse();
            for (int t = 0; t < 4; t++) {
                rig.step(t);
                assertThat(rig.trips).isEmpty();
                assertThat(sameEverywhere(rig, "W")).isFalse();
            }
            rig.step(4);
            assertThat(rig.trips).hasSize(1);
            assertThat(rig.trips.getFirst()).containsExactlyInAnyOrder("W", "M");
            assertThat(sameEverywhere(rig, "W")).isTrue();
            assertThat(sameEverywhere(rig, "M")).isTrue();
            assertThat(sameEverywhere(rig, "u")).isFalse();
        }
    }

    @Test
    void fedCoMuonVrExchangesWThenMAndKeepsItsTrackers() {
        try (Rig rig = Rig.of(Testbed.rates(), second()).open()) {
            rig.initialize();
            assertThat(rig.trips).containsExactly(List.of("M"));
            assertThat(sameEverywhere(rig, "M")).isTrue();
            for (int t = 0; t < 4; t++) {
                rig.step(t);
            }
            assertThat(rig.trips).hasSize(1);
            rig.step(4);
            assertThat(rig.trips).containsExactly(List.of("M"), List.of("W"), List.of("M"));
            assertThat(sameEverywhere(rig, "W")).isTrue();
            assertThat(sameEverywhere(rig, "M")).isTrue();
            for (String tracker : List.of("u", "v", "H")) {
                assertThat(sameEverywhere(rig, tracker)).as(tracker).isFalse();
            }
        }
    }

    private static float[][] endOf(Testbed bed, double beta, double outerRadius) {
        var method = new FedCoMuonVr(
                value(0.05),
                value(0.3),
                value(beta),
                value(0.2),
                value(0.35),
                outerRadius,
                Double.POSITIVE_INFINITY,
                1,
                Muon.standard());
        try (Rig rig = Rig.of(bed, method).open()) {
            rig.run();
            return Stream.of("W", "u", "v", "H", "M")
                    .map(name -> rig.floats(name, 3))
                    .toArray(float[][]::new);
        }
    }

    /** v is grad f(u) then, whatever beta. */
    @Test
    void betaIsInertWhenFHasNoNoise() {
        Testbed plain = Testbed.ratesWithPlainF();
        double none = Double.POSITIVE_INFINITY;
        assertThat(endOf(plain, 0.2, none)).isDeepEqualTo(endOf(plain, 0.8, none));
        assertThat(endOf(plain, 0.2, 0.8)).as("the projection bites").isNotEqualTo(endOf(plain, 0.8, 0.8));
        Testbed noisy = Testbed.rates();
        assertThat(endOf(noisy, 0.2, none)).as("f is noisy").isNotEqualTo(endOf(noisy, 0.8, none));
    }

    /** The trackers stay in their balls, and where they leave them they are scaled back, not cut off. */
    @Test
    void projectionsBite() {
        double outer = 0.6;
        double inner = 0.9;
        FedCoMuonVr method = second(outer, inner, 1);
        Both distances = distances(method, Testbed.rates(), ReferenceMethods.Mistake.PROJECTS_NOTHING);
        assertThat(distances.right).isLessThan(Comparison.TOLERANCE);
        assertThat(distances.wrong).isGreaterThan(CLEARLY);

        Testbed bed = Testbed.blocks();
        ReferenceMethod<?> reference = ReferenceMethods.of(method, bed, Rig.SEED, Rig.equal(bed.clients));
        try (Rig rig = Rig.of(bed, method).open()) {
            rig.initialize();
            reference.initialize();
            int bitten = 0;
            for (int t = 0; t < 20; t++) {
                rig.step(t);
                reference.step(rig.at(t));
                Comparison.requireSame(rig, reference, "after step " + t);
                for (int k = 0; k < bed.clients; k++) {
                    double v = ReferenceMatrix.norm(rig.doubles("v")[k]);
                    double h = ReferenceMatrix.norm(rig.doubles("H")[k]);
                    assertThat(v).isLessThan(outer * (1 + 1e-6));
                    assertThat(h).isLessThan(inner * (1 + 1e-6));
                    bitten += v > outer * (1 - 1e-5) ? 1 : 0;
                    bitten += h > inner * (1 - 1e-5) ? 1 : 0;
                }
            }
            assertThat(bitten).isBetween(20, 199);
        }
    }

    static Stream<Orthogonalizer> orthogonalizers() {
        return Stream.of(new Exact(), Muon.standard().orthogonalizer());
    }

    /** g does not depend on W here. */
    @ParameterizedTest
    @MethodSource("orthogonalizers")
    void zeroMomentumIsNoStep(Orthogonalizer orthogonalizer) {
        Testbed flat = Testbed.flat();
        Muon muon = Muon.with(orthogonalizer);
        List<Method> methods = List.of(
                new FedCoMuon(value(0.05), value(0.3), value(0.4), muon),
                new FedCoMuonVr(value(0.05), value(0.3), value(0.4), value(0.2), value(0.35), muon),
                new FedMuon(value(0.05), value(0.3), muon),
                new FedMuonLga(value(0.05), value(0.3), value(0.4), muon),
                new FedMuonBc(value(0.05), value(0.3), muon),
                new Ef21Muon(value(0.05), value(0.3), Compressor.topK(0.5), Compressor.lowRank(1), muon));
        for (Method method : methods) {
            try (Rig rig = Rig.of(flat, method).iterations(12).open()) {
                float[] before = rig.floats("W", 0);
                rig.run();
                assertThat(rig.floats("M", 2)).as(method.name()).containsOnly(0);
                for (int k = 0; k < flat.clients; k++) {
                    assertThat(rig.floats("W", k)).as(method.name()).isEqualTo(before);
                }
            }
        }
    }

    /** Only the momentum of one block of one client is zero: everything else moves. */
    @ParameterizedTest
    @MethodSource("orthogonalizers")
    void zeroMomentumOfOneBlockIsNoStepOfThatBlock(Orthogonalizer orthogonalizer) {
        Testbed bed = Testbed.blocks();
        var method = new FedCoMuon(value(0.05), value(0.3), value(0.4), Muon.with(orthogonalizer));
        for (int block = 0; block < 3; block++) {
            try (Rig rig = Rig.of(bed, method).open()) {
                rig.initialize();
                int from = Math.toIntExact(bed.layout.offset(block));
                int size = Math.toIntExact(bed.layout.blocks().get(block).size());
                rig.variable("M").buffer().copyIn(2L * bed.n + from, new float[size]);
                float[] before = rig.floats("W", 2);
                rig.step(0);
                float[] after = rig.floats("W", 2);
                for (int e = 0; e < bed.n; e++) {
                    assertThat(after[e] == before[e]).as("element " + e).isEqualTo(e >= from && e < from + size);
                }
                assertThat(rig.floats("W", 1)[from]).isNotEqualTo(before[from]);
            }
        }
    }

    @Test
    void initialTrackersAreMeansOfTheirSamples() {
        Testbed bed = Testbed.rates();
        FedCoMuonVr method = second(Double.POSITIVE_INFINITY, Double.POSITIVE_INFINITY, 7);
        ReferenceMethod<?> reference = ReferenceMethods.of(method, bed, Rig.SEED, Rig.equal(bed.clients));
        ReferenceMethod<?> single = ReferenceMethods.of(
                method, bed, Rig.SEED, Rig.equal(bed.clients), ReferenceMethods.Mistake.ONE_INITIAL_SAMPLE);
        try (Rig rig = Rig.of(bed, method).open()) {
            rig.initialize();
            reference.initialize();
            single.initialize();
            Comparison.requireSame(rig, reference, "after initialisation");
            assertThat(rig.clients.innerDraws()).containsOnly(7);
            assertThat(rig.clients.outerDraws()).containsOnly(7);
            for (String tracker : List.of("u", "v", "H", "M")) {
                assertThat(Comparison.distance(
                                rig.doubles(tracker), single.state().get(tracker)))
                        .as(tracker)
                        .isGreaterThan(CLEARLY);
            }
        }
    }

    /** The first step's old iterate is W0, and both evaluations see the same noise. */
    @Test
    void trackersFollowExactlyWhenNothingMoves() {
        Testbed flat = Testbed.flat();
        try (Rig rig = Rig.of(flat, second(Double.POSITIVE_INFINITY, Double.POSITIVE_INFINITY, 1))
                .open()) {
            rig.initialize();
            double[][] before = rig.doubles("u");
            rig.step(0);
            // g(W; xi) and g(Wold; xi) are the same numbers: u' = g + (1 - alpha)(u - g).
            for (int k = 0; k < flat.clients; k++) {
                var xi = new Sample(Rig.SEED, k, Sample.Stream.INNER, 1);
                double[] g = flat.inner(k, xi, flat.start());
                for (int i = 0; i < flat.d; i++) {
                    assertThat(rig.doubles("u")[k][i]).isCloseTo(0.3 * g[i] + 0.7 * before[k][i], within(1e-6));
                }
            }
        }
    }

    /** 2 eta tau sqrt(n) is what the analysis allows. */
    @Test
    void localStepsDriftNoFurtherThanTheAnalysisSays() {
        int tau = 5;
        double eta = 0.05;
        Testbed bed = Testbed.rates();
        var method = new FedCoMuon(value(eta), value(0.3), value(0.4), Muon.with(new Exact()));
        try (Rig rig = Rig.of(bed, method).tau(tau).open()) {
            rig.initialize();
            double most = 0;
            for (int t = 0; t < 50; t++) {
                rig.step(t);
                double[][] w = rig.doubles("W");
                var mean = new double[bed.n];
                for (double[] row : w) {
                    ReferenceMethod.combine(1.0 / w.length, row, 1, mean);
                }
                double drift = 0;
                for (double[] row : w) {
                    drift += ReferenceMatrix.distance(row, mean) / w.length;
                }
                most = Math.max(most, drift);
            }
            assertThat(most).isPositive().isLessThanOrEqualTo(2 * eta * tau * Math.sqrt(3));
        }
    }

    @Test
    void compressedMessagesAreCountedAsWhatTheyTake() {
        Testbed bed = Testbed.blocks();
        Compressor up = Compressor.topK(0.3);
        Compressor down = Compressor.lowRank(1);
        var method = new Ef21Muon(value(0.05), value(0.3), up, down, Muon.standard());
        try (Rig rig = Rig.of(bed, method).iterations(10).open()) {
            rig.run();
            assertThat(rig.bytes)
                    .containsExactly(
                            List.of(up.bytes(bed.layout), down.bytes(bed.layout)),
                            List.of(up.bytes(bed.layout), down.bytes(bed.layout)));
            assertThat(rig.trips).as("the first gradients travel whole").hasSize(3);
        }
    }

    /** G is the mean of all G_k, also of the clients that are away: what share() is for. */
    @Test
    void whatTheServerRemembersIsTheMeanOverAllClients() {
        Testbed bed = Testbed.blocks();
        double[] weights = {3, 1, 0.5, 2, 7};
        record Memory(Method method, String common, String own) {}
        List<Memory> memories = List.of(
                new Memory(new FedMuonBc(value(0.05), value(0.3), Muon.standard()), "C", "C_k"),
                new Memory(new Scaffold(value(0.05), 1), "c", "c_k"),
                new Memory(
                        new Ef21Muon(value(0.05), value(0.3), Compressor.topK(0.3), Compressor.none(), Muon.standard()),
                        "G",
                        "G_k"));
        for (Memory memory : memories) {
            try (Rig rig = Rig.of(bed, memory.method).weights(weights).open()) {
                rig.initialize();
                for (int t = 0; t < 50; t++) {
                    if (t % 5 == 0) {
                        int round = t / 5;
                        rig.clients.admit(
                                new boolean[] {round % 2 == 0, round % 3 == 0, true, round % 2 == 1, round > 4});
                    }
                    rig.step(t);
                }
                double[][] own = rig.doubles(memory.own);
                var mean = new double[bed.n];
                for (int k = 0; k < bed.clients; k++) {
                    ReferenceMethod.combine(weights[k] / 13.5, own[k], 1, mean);
                }
                assertThat(Comparison.distance(rig.doubles(memory.common), new double[][] {mean}))
                        .as(memory.method.name())
                        .isLessThan(Comparison.TOLERANCE);
            }
        }
    }
}
