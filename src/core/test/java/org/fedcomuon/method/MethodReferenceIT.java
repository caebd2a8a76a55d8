package org.fedcomuon.method;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.params.provider.Arguments.arguments;

import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.fedcomuon.device.Device;
import org.fedcomuon.linalg.Coefficients;
import org.fedcomuon.linalg.Exact;
import org.fedcomuon.linalg.NewtonSchulz;
import org.fedcomuon.linalg.ScaleRule;
import org.fedcomuon.problem.Client;
import org.fedcomuon.problem.Floats;
import org.fedcomuon.problem.Jacobian;
import org.fedcomuon.problem.Loss;
import org.fedcomuon.problem.Point;
import org.fedcomuon.problem.Problem;
import org.fedcomuon.problem.Risk;
import org.fedcomuon.problem.Sample;
import org.junit.jupiter.api.Named;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** Every method against its reference: every state variable of every client after every step. */
class MethodReferenceIT {
    private static final int STEPS = 50;

    private static final Muon EXACT = Muon.with(new Exact());
    private static final Muon SCHULZ = Muon.standard();
    private static final Muon SCALED =
            new Muon(new NewtonSchulz(Coefficients.jordan(5)), ScaleRule.RMS, Device.StepRule.PLAIN, 0.5);
    private static final Muon EXACT_SCALED = new Muon(new Exact(), ScaleRule.ASPECT, Device.StepRule.NORMALIZED, 0.25);

    private static Schedule value(double value) {
        return Schedule.constant(value);
    }

    private static FedCoMuon fedCoMuon(Muon muon) {
        return new FedCoMuon(value(0.05), value(0.3), value(0.4), muon);
    }

    private static FedCoMuonVr fedCoMuonVr(Muon muon) {
        return new FedCoMuonVr(value(0.05), value(0.3), value(0.4), value(0.2), value(0.35), muon);
    }

    /** With projections that bite, for some clients and not for others. */
    private static FedCoMuonVr projected() {
        return new FedCoMuonVr(value(0.05), value(0.3), value(0.4), value(0.2), value(0.35), 0.8, 0.9, 4, SCHULZ);
    }

    private static FedMuonLga fedMuonLga(Muon muon) {
        return new FedMuonLga(value(0.05), value(0.4), value(0.8), muon);
    }

    private static FedMuonBc fedMuonBc(Muon muon) {
        return new FedMuonBc(value(0.05), value(0.3), muon);
    }

    private static Ef21Muon ef21(Muon muon, Compressor up, Compressor down) {
        return new Ef21Muon(value(0.05), value(0.3), up, down, muon);
    }

    private static FedOpt fedOpt(Device.AdaptiveRule rule) {
        return new FedOpt(rule, value(0.05), value(0.02), 0.9, 0.95, 1e-2);
    }

    private static List<Method> muonMethods(Muon muon) {
        // All singular values of an exact step are equal, so that its nearest matrix of rank 1 is not unique.
        Compressor down = muon.orthogonalizer() instanceof Exact ? Compressor.topK(0.4) : Compressor.lowRank(1);
        return List.of(
                fedCoMuon(muon),
                fedCoMuonVr(muon),
                new FedMuon(value(0.05), value(0.3), muon),
                fedMuonLga(muon),
                fedMuonBc(muon),
                ef21(muon, Compressor.none(), Compressor.none()),
                ef21(muon, Compressor.topK(0.3), down),
                ef21(muon, Compressor.lowRank(1), Compressor.topK(0.5)));
    }

    private static List<Method> gradientMethods() {
        return List.of(
                new FedAvg(value(0.05)),
                new FedMaml(1.5, value(0.05), false),
                new FedMaml(1.5, value(0.05), true),
                new ComFedL(value(0.05)),
                new LocalScgdm(value(0.05), value(0.3), value(0.4), false),
                new LocalScgdm(value(0.05), value(0.3), value(0.4), true),
                new FedProx(value(0.05), 2),
                new Scaffold(value(0.05), 1),
                new Scaffold(value(0.05), 0.6),
                fedOpt(Device.AdaptiveRule.ADAM),
                fedOpt(Device.AdaptiveRule.YOGI),
                new LocalMoml(0.5, value(0.05), value(0.4), false),
                new LocalMoml(0.5, value(0.05), value(0.4), true),
                new FedDro(value(0.05), value(0.3)));
    }

    /** Those that compare the losses of clients. */
    private static List<Method> lossMethods() {
        return List.of(
                new FgdroKl(value(0.05), value(0.3), 0.5),
                new FgdroKl(value(0.05), value(0.3), 10),
                new FgdroCvar(value(0.05), value(0.02), value(0.3), 0.5, 0.3),
                new FgdroCvar(value(0.05), value(0.02), value(0.3), 0.3, 0));
    }

    private static Arguments named(Method method, String problem, Testbed bed, int tau) {
        return arguments(Named.of(method.name() + " " + method.parameters(), method), Named.of(problem, bed), tau);
    }

    static Stream<Arguments> all() {
        var cases = new ArrayList<Arguments>();
        var methods = new ArrayList<Method>();
        methods.addAll(muonMethods(EXACT));
        methods.addAll(muonMethods(SCHULZ));
        methods.addAll(gradientMethods());
        for (Method method : methods) {
            cases.add(named(method, "rate test-bed", Testbed.rates(), 5));
            cases.add(named(method, "blocks", Testbed.blocks(), 5));
            cases.add(named(method, "d = 1", Testbed.plain(), 5));
        }
        for (Method method : lossMethods()) {
            cases.add(named(method, "d = 1", Testbed.plain(), 5));
            cases.add(named(method, "d = 1", Testbed.plain(), 1));
            cases.add(named(method, "blocks", Testbed.blocks(), 5));
        }
        for (Method method : muonMethods(SCALED)) {
            cases.add(named(method, "blocks", Testbed.blocks(), 5));
        }
        for (Method method : List.of(fedCoMuon(EXACT_SCALED), fedCoMuonVr(EXACT_SCALED))) {
            cases.add(named(method, "blocks", Testbed.blocks(), 5));
        }
        for (Muon muon : List.of(EXACT, SCHULZ)) {
            for (Method method : List.of(fedCoMuon(muon), fedCoMuonVr(muon))) {
                cases.add(named(method, "rate test-bed", Testbed.rates(), 1));
                cases.add(named(method, "blocks", Testbed.blocks(), 7));
                cases.add(named(method, "rank 2", Testbed.deficient(), 5));
            }
        }
        cases.add(named(ef21(SCHULZ, Compressor.topK(0.3), Compressor.topK(0.3)), "blocks", Testbed.blocks(), 1));
        cases.add(named(projected(), "rate test-bed", Testbed.rates(), 5));
        cases.add(named(
                new FedCoMuon(Schedule.cosine(0.1, 0.01), Schedule.power(1, -0.5), Schedule.power(2, -0.4), SCHULZ),
                "blocks",
                Testbed.blocks(),
                5));
        return cases.stream();
    }

    @ParameterizedTest(name = "{0} on {1}, tau = {2}")
    @MethodSource("all")
    void followsItsReference(Method method, Testbed bed, int tau) {
        ReferenceMethod<?> reference = ReferenceMethods.of(method, bed, Rig.SEED, Rig.equal(bed.clients));
        try (Rig rig = Rig.of(bed, method).tau(tau).iterations(STEPS).open()) {
            rig.initialize();
            reference.initialize();
            Comparison.requireSame(rig, reference, "after initialisation");
            for (int t = 0; t < STEPS; t++) {
                rig.step(t);
                reference.step(rig.at(t));
                Comparison.requireSame(rig, reference, "after step " + t);
            }
            assertThat(ReferenceMatrix.distance(bed.start(), reference.w[0])).isGreaterThan(0.1);
        }
    }

    static Stream<Arguments> partial() {
        return Stream.concat(
                lossMethods().stream().map(method -> named(method, "d = 1", Testbed.plain(), 4)),
                partialOfAnyProblem());
    }

    private static Stream<Arguments> partialOfAnyProblem() {
        return Stream.of(
                        new LocalMoml(0.5, value(0.05), value(0.4), false),
                        new FedDro(value(0.05), value(0.3)),
                        fedCoMuon(EXACT),
                        fedCoMuon(SCHULZ),
                        fedCoMuonVr(EXACT),
                        fedCoMuonVr(SCHULZ),
                        projected(),
                        new Scaffold(value(0.05), 1),
                        new Scaffold(value(0.05), 0.6),
                        fedMuonBc(SCHULZ),
                        fedMuonLga(SCHULZ),
                        ef21(SCHULZ, Compressor.topK(0.3), Compressor.lowRank(1)),
                        ef21(EXACT, Compressor.none(), Compressor.none()),
                        new FedAvg(value(0.05)),
                        new FedProx(value(0.05), 2),
                        new LocalScgdm(value(0.05), value(0.3), value(0.4), false),
                        fedOpt(Device.AdaptiveRule.ADAM))
                .flatMap(method -> Stream.of(
                        named(method, "blocks", Testbed.blocks(), 5),
                        named(method, "rate test-bed", Testbed.rates(), 4)));
    }

    /** Who takes part in a round: the first and the last, gaps, one alone, and everybody turn up. */
    private static boolean[] admitted(int round, int clients) {
        var takingPart = new boolean[clients];
        for (int k = 0; k < clients; k++) {
            takingPart[k] = switch (round % 5) {
                case 0 -> k % 2 == 0;
                case 1 -> k == 1;
                case 2 -> true;
                case 3 -> k >= 2;
                default -> k != 2 && k != clients - 1;
            };
        }
        return takingPart;
    }

    @ParameterizedTest(name = "{0} on {1}, tau = {2}")
    @MethodSource("partial")
    void partialParticipation(Method method, Testbed bed, int tau) {
        compareWithSomeAbsent(method, bed, tau, Rig.equal(bed.clients));
    }

    @ParameterizedTest(name = "{0} on {1}, tau = {2}")
    @MethodSource("partial")
    void partialParticipationOfClientsWithWeights(Method method, Testbed bed, int tau) {
        var weights = new double[bed.clients];
        for (int k = 0; k < bed.clients; k++) {
            weights[k] = 1 + 3 * ((k * 5) % 7);
        }
        compareWithSomeAbsent(method, bed, tau, weights);
    }

    private static void compareWithSomeAbsent(Method method, Testbed bed, int tau, double[] weights) {
        ReferenceMethod<?> reference = ReferenceMethods.of(method, bed, Rig.SEED, weights);
        try (Rig rig =
                Rig.of(bed, method).tau(tau).iterations(STEPS).weights(weights).open()) {
            rig.initialize();
            reference.initialize();
            for (int t = 0; t < STEPS; t++) {
                if (t % tau == 0) {
                    boolean[] takingPart = admitted(t / tau, bed.clients);
                    rig.clients.admit(takingPart);
                    reference.admit(takingPart);
                }
                rig.step(t);
                reference.step(rig.at(t));
                Comparison.requireSame(rig, reference, "after step " + t);
            }
        }
    }

    static Stream<Arguments> weighted() {
        return Stream.concat(muonMethods(SCHULZ).stream(), gradientMethods().stream())
                .map(method -> named(method, "blocks", Testbed.blocks(), 5));
    }

    @ParameterizedTest(name = "{0} on {1}, tau = {2}")
    @MethodSource("weighted")
    void weightedAverages(Method method, Testbed bed, int tau) {
        double[] weights = {3, 1, 0.5, 2, 7};
        ReferenceMethod<?> reference = ReferenceMethods.of(method, bed, Rig.SEED, weights);
        try (Rig rig = Rig.of(bed, method).tau(tau).weights(weights).open()) {
            rig.initialize();
            reference.initialize();
            for (int t = 0; t < STEPS; t++) {
                rig.step(t);
                reference.step(rig.at(t));
            }
            Comparison.requireSame(rig, reference, "at the end");
        }
    }

    static Stream<Arguments> big() {
        return Stream.of(fedCoMuon(SCHULZ), fedCoMuonVr(SCHULZ), fedMuonBc(EXACT))
                .map(method -> named(method, "a large and a small matrix", Testbed.large(), 2));
    }

    /** What is too large for the one-call kernel goes another way, beside what is not. */
    @ParameterizedTest(name = "{0} on {1}, tau = {2}")
    @MethodSource("big")
    void largeMatrices(Method method, Testbed bed, int tau) {
        ReferenceMethod<?> reference = ReferenceMethods.of(method, bed, Rig.SEED, Rig.equal(bed.clients));
        try (Rig rig = Rig.of(bed, method).tau(tau).open()) {
            rig.initialize();
            reference.initialize();
            for (int t = 0; t < 3; t++) {
                rig.step(t);
                reference.step(rig.at(t));
                Comparison.requireSame(rig, reference, "after step " + t);
            }
        }
    }

    static Stream<Arguments> scheduled() {
        Schedule eta = Schedule.cosine(0.1, 0.01);
        Schedule follow = Schedule.cosine(0.8, 0.1);
        return Stream.of(
                        new FedCoMuonVr(eta, follow, Schedule.cosine(0.1, 0.9), follow, follow, SCHULZ),
                        new FedAvg(eta),
                        new FedMaml(1.5, eta, false),
                        new FedMuon(eta, follow, SCHULZ),
                        new FedMuonLga(eta, follow, Schedule.cosine(0.1, 0.9), SCHULZ),
                        new FedMuonBc(eta, follow, SCHULZ),
                        new ComFedL(eta),
                        new LocalScgdm(eta, follow, Schedule.cosine(0.1, 0.9), false),
                        new FedProx(eta, 2),
                        new Scaffold(eta, 1),
                        new FedOpt(Device.AdaptiveRule.YOGI, eta, Schedule.cosine(0.03, 0.01), 0.9, 0.95, 1e-2),
                        new Ef21Muon(eta, follow, Compressor.topK(0.5), Compressor.none(), SCHULZ))
                .map(method -> named(method, "blocks", Testbed.blocks(), 5));
    }

    @Test
    void methodsThatCompareLossesNeedTheValueOfF() {
        Problem blocks = Testbed.blocks().problem();
        var silent = Problem.of(blocks.layout(), blocks.innerDimension(), blocks.clients(), k -> new Client() {
            private final Client client = blocks.client(k);

            @Override
            public void inner(Sample xi, Point w, Floats value, Jacobian jacobian) throws Exception {
                client.inner(xi, w, value, jacobian);
            }

            @Override
            public void outerGradient(Sample zeta, Floats y, Floats gradient) throws Exception {
                client.outerGradient(zeta, y, gradient);
            }
        });
        for (Method method : lossMethods()) {
            assertThatThrownBy(() -> {
                        try (Rig rig =
                                Rig.of(Testbed.blocks(), method).problem(silent).open()) {
                            rig.run();
                        }
                    })
                    .isInstanceOf(ClientFaultException.class)
                    .hasMessageContaining("compares clients by f, whose value this client does not say");
        }
    }

    /** Losses of 1e30, of which no exponential is a number. */
    @Test
    void noExponentialOverflows() {
        Testbed bed = Testbed.plain();
        var problem = Problem.ofLosses(
                bed.layout,
                IntStream.range(0, bed.clients)
                        .<Loss>mapToObj(k -> (xi, w, gradient) -> {
                            gradient.values().fill(1);
                            return k == 0 ? 1e30 : -1e30 * k;
                        })
                        .toList(),
                Risk.mean());
        try (Rig rig = Rig.of(bed, new FgdroKl(value(0.01), value(0.5), 1e-3))
                .problem(problem)
                .iterations(20)
                .open()
                .run()) {
            for (float value : rig.floats("W", 0)) {
                assertThat(value).isFinite();
            }
            assertThat(rig.floats("s", 0)[0]).isFinite();
        }
    }

    /** Where a rule divides by {@code tau eta}, that is the sum of the round's learning rates. */
    @ParameterizedTest(name = "{0} on {1}, tau = {2}")
    @MethodSource("scheduled")
    void schedules(Method method, Testbed bed, int tau) {
        followsItsReference(method, bed, tau);
    }
}
