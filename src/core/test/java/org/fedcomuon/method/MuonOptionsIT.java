package org.fedcomuon.method;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;
import static org.junit.jupiter.params.provider.Arguments.arguments;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;
import org.fedcomuon.device.Device;
import org.fedcomuon.linalg.Coefficients;
import org.fedcomuon.linalg.Exact;
import org.fedcomuon.linalg.NewtonSchulz;
import org.fedcomuon.linalg.ScaleRule;
import org.junit.jupiter.api.Named;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** What users of Muon know from elsewhere: every option alone and all together, with every method that has a Muon. */
class MuonOptionsIT {
    private static final int STEPS = 50;
    private static final Muon.AdamW ADAM = Muon.AdamW.ofVectors(0.5);

    private static Schedule value(double value) {
        return Schedule.constant(value);
    }

    private static Muon everything() {
        // @start region="options"
        Muon muon = Muon.standard()
                .withNesterov(true)
                .withWeightDecay(0.1)
                .withAdamW(Muon.AdamW.ofVectors(0.3).and(List.of("embedding*", "second")))
                .withBlockRates(List.of(new Muon.BlockRate("bias*", 0.5)))
                .withHeads(new Muon.Heads(3, List.of("first")));
        // @end
        return muon;
    }

    private static List<Muon> options() {
        Muon plain = Muon.standard();
        Muon scaled = new Muon(new NewtonSchulz(Coefficients.jordan(5)), ScaleRule.RMS, Device.StepRule.PLAIN, 0.5);
        return List.of(
                plain.withNesterov(true),
                scaled.withNesterov(true),
                Muon.with(new Exact()).withNesterov(true),
                plain.withWeightDecay(0.5),
                scaled.withWeightDecay(0.5),
                plain.withAdamW(ADAM),
                plain.withAdamW(ADAM.and(List.of("second"))),
                plain.withAdamW(ADAM.and(List.of("*"))).withWeightDecay(0.2),
                plain.withBlockRates(List.of(new Muon.BlockRate("b*", 3), new Muon.BlockRate("first", 0.25))),
                scaled.withBlockRates(List.of(new Muon.BlockRate("second", 0.5), new Muon.BlockRate("*", 2))),
                plain.withHeads(new Muon.Heads(3, List.of("first"))),
                scaled.withHeads(new Muon.Heads(5, List.of("second"))),
                everything());
    }

    private static List<Method> methods(Muon muon) {
        return List.of(
                new FedCoMuon(value(0.05), value(0.3), value(0.4), muon),
                new FedCoMuonVr(value(0.05), value(0.3), value(0.4), value(0.2), value(0.35), muon),
                new FedMuon(value(0.05), value(0.3), muon),
                new FedMuonLga(value(0.05), value(0.4), value(0.8), muon),
                new FedMuonBc(value(0.05), value(0.3), muon),
                // AdamW's first step is equally long everywhere, so that its largest elements are not unique.
                new Ef21Muon(value(0.05), value(0.3), Compressor.topK(0.5), Compressor.none(), muon));
    }

    static Stream<Arguments> all() {
        var cases = new ArrayList<Arguments>();
        for (Muon muon : options()) {
            for (Method method : methods(muon)) {
                cases.add(arguments(Named.of(method.name() + " " + method.parameters(), method)));
            }
        }
        return cases.stream();
    }

    @ParameterizedTest
    @MethodSource("all")
    void everyMethodFollowsItsReference(Method method) {
        follow(method, false);
    }

    @ParameterizedTest
    @MethodSource("all")
    void everyMethodFollowsItsReferenceWithSomeAbsent(Method method) {
        follow(method, true);
    }

    /** On a wide matrix, a vector and a tall matrix. */
    private static void follow(Method method, boolean partial) {
        Testbed bed = Testbed.blocks();
        ReferenceMethod<?> reference = ReferenceMethods.of(method, bed, Rig.SEED, Rig.equal(bed.clients));
        try (Rig rig = Rig.of(bed, method).tau(5).iterations(STEPS).open()) {
            rig.initialize();
            reference.initialize();
            Comparison.requireSame(rig, reference, "after initialisation");
            for (int t = 0; t < STEPS; t++) {
                if (partial && t % 5 == 0) {
                    var takingPart = new boolean[bed.clients];
                    for (int k = 0; k < bed.clients; k++) {
                        takingPart[k] = (k + t / 5) % 3 != 0;
                    }
                    rig.clients.admit(takingPart);
                    reference.admit(takingPart);
                }
                rig.step(t);
                reference.step(rig.at(t));
                Comparison.requireSame(rig, reference, "after step " + t);
            }
            assertThat(ReferenceMatrix.distance(bed.start(), reference.w[0])).isGreaterThan(0.1);
        }
    }

    static Stream<Muon> big() {
        Muon plain = Muon.standard();
        return Stream.of(
                plain.withHeads(new Muon.Heads(10, List.of("large"))),
                plain.withBlockRates(List.of(new Muon.BlockRate("large", 0.25))),
                plain.withNesterov(true).withWeightDecay(0.5));
    }

    /** What is too large for the one-call kernel, and what is small enough only when it is split. */
    @ParameterizedTest
    @MethodSource("big")
    void largeMatrices(Muon muon) {
        Testbed bed = Testbed.large();
        var method = new FedMuon(value(0.05), value(0.3), muon);
        ReferenceMethod<?> reference = ReferenceMethods.of(method, bed, Rig.SEED, Rig.equal(bed.clients));
        try (Rig rig = Rig.of(bed, method).tau(2).open()) {
            rig.initialize();
            reference.initialize();
            for (int t = 0; t < 3; t++) {
                rig.step(t);
                reference.step(rig.at(t));
                Comparison.requireSame(rig, reference, "after step " + t);
            }
        }
    }

    /** An option with the value that changes nothing changes no bit, and is no parameter. */
    @Test
    void optionsThatAreOffLeaveNoTrace() {
        Muon plain = Muon.standard();
        Muon off = plain.withNesterov(false)
                .withWeightDecay(0)
                .withBlockRates(List.of())
                .withHeads(Muon.Heads.of(1));
        assertThat(off).isEqualTo(plain);
        assertThat(off.parameters()).containsOnlyKeys("orthogonalizer", "scale", "vectorRule", "vectorRate");
        Muon same = plain.withBlockRates(List.of(new Muon.BlockRate("*", 1)));
        Testbed bed = Testbed.blocks();
        for (Method method : methods(plain)) {
            Method other = methods(same).get(methods(plain).indexOf(method));
            try (Rig first = Rig.of(bed, method).open().run();
                    Rig second = Rig.of(bed, other).open().run()) {
                assertThat(second.floats("W", 0)).containsExactly(first.floats("W", 0));
            }
        }
    }

    /** AdamW's first step has the length of its rate in every element, whatever the gradient. */
    @Test
    void biasIsCorrected() {
        Testbed bed = Testbed.blocks();
        Muon muon = Muon.standard().withAdamW(Muon.AdamW.ofVectors(0.2).and(List.of("*")));
        try (Rig rig = Rig.of(bed, new FedMuon(value(0.05), value(0.3), muon))
                .tau(2)
                .iterations(1)
                .open()
                .run()) {
            double[] start = bed.start();
            float[] end = rig.floats("W", 1);
            for (int e = 0; e < end.length; e++) {
                assertThat(Math.abs(end[e] - start[e])).isCloseTo(0.05 * 0.2, within(1e-6));
            }
            assertThat(rig.floats("AdamW steps", 1)).containsExactly(1);
        }
    }

    @Test
    void aSecondMomentOutOfRangeIsToldAndNotSwallowed() {
        Testbed bed = Testbed.blocks();
        Muon muon = Muon.standard().withAdamW(ADAM);
        try (Rig rig = Rig.of(bed, new FedMuon(value(0.05), value(0.3), muon)).open()) {
            rig.initialize();
            var huge = new float[Math.toIntExact(rig.clients.n())];
            Arrays.fill(huge, 1e25f);
            rig.variable("last gradient").buffer().copyIn(2 * rig.clients.n(), huge);
            assertThatThrownBy(() -> rig.step(0))
                    .isInstanceOf(DivergedException.class)
                    .hasMessageContainingAll("client 2", "bias", "last gradient");
        }
    }

    @Test
    void patternsThatNameNothingAreRefused() {
        var layout = Testbed.blocks().layout;
        Muon plain = Muon.standard();
        assertThatThrownBy(() -> plain.withBlockRates(List.of(new Muon.BlockRate("third", 1)))
                        .matrices(layout))
                .hasMessage("blockRates: no block is called third; these are: first, bias, second");
        assertThatThrownBy(() -> plain.withAdamW(ADAM.and(Muon.AdamW.ENDS)).matrices(layout))
                .hasMessageStartingWith("adamW: no block is called embedding* or");
        assertThatThrownBy(() -> plain.withHeads(Muon.Heads.of(2)).matrices(layout))
                .hasMessageStartingWith("heads: no block is called *query.weight or");
        assertThatThrownBy(() ->
                        plain.withHeads(new Muon.Heads(2, List.of("first"))).matrices(layout))
                .hasMessage("splitHeads = 2 does not divide the 3 rows of block 'first'");
        assertThatThrownBy(() -> Muon.Heads.of(0)).hasMessageStartingWith("splitHeads = 0");
    }

    /** A dot of a name is a dot, and a star is anything. */
    @Test
    void patternsAreNoRegularExpressions() {
        var layout = Testbed.blocks().layout;
        assertThatThrownBy(() -> Muon.standard()
                        .withBlockRates(List.of(new Muon.BlockRate("f.rst", 1)))
                        .matrices(layout))
                .hasMessageContaining("f.rst");
        assertThat(Muon.standard()
                        .withBlockRates(List.of(new Muon.BlockRate("f*st", 4)))
                        .matrices(layout))
                .extracting(block -> block.scale())
                .containsExactly(4.0, 1.0);
    }

    @Test
    void ratesOfBlocksAreReadAsTheyAreWritten() {
        var rate = new Muon.BlockRate("*.query.*", 0.5);
        assertThat(rate).hasToString("*.query.*=0.5");
        assertThat(Muon.BlockRate.parse(rate.toString())).isEqualTo(rate);
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "head", "head=", "=1", "head=fast", "head=-1", "head=NaN", " =1"})
    void nonsenseIsNoRate(String text) {
        assertThatThrownBy(() -> Muon.BlockRate.parse(text)).isInstanceOf(IllegalArgumentException.class);
    }

    @Test
    void elementsAreThoseThatAreAllocated() {
        Testbed bed = Testbed.blocks();
        for (Muon muon : options()) {
            long without = bytes(bed, new FedMuon(value(0.05), value(0.3), Muon.with(muon.orthogonalizer())));
            long with = bytes(bed, new FedMuon(value(0.05), value(0.3), muon));
            long elements = muon.clientElements(bed.layout, false) * bed.clients;
            // A norm for every client and variable, and ones.
            assertThat(with - without - 4 * elements).as("%s", muon).isBetween(0L, 8L * 7 * bed.clients);
            var compressed = new Ef21Muon(value(0.05), value(0.3), Compressor.none(), Compressor.none(), muon);
            Muon off = Muon.with(muon.orthogonalizer());
            var plain = new Ef21Muon(value(0.05), value(0.3), Compressor.none(), Compressor.none(), off);
            elements = muon.clientElements(bed.layout, true) * bed.clients + muon.serverElements(bed.layout, true);
            assertThat(bytes(bed, compressed) - bytes(bed, plain) - 4 * elements)
                    .as("%s", muon)
                    .isBetween(0L, 8L * 7 * bed.clients);
        }
    }

    private static long bytes(Testbed bed, Method method) {
        try (Rig rig = Rig.of(bed, method).open()) {
            return rig.device.liveBytes();
        }
    }
}
