package org.fedcomuon.method;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.params.provider.Arguments.arguments;

import java.util.ArrayList;
import java.util.List;
import java.util.function.DoubleFunction;
import java.util.function.Function;
import java.util.stream.Stream;
import org.fedcomuon.device.Device;
import org.fedcomuon.linalg.Exact;
import org.fedcomuon.linalg.ScaleRule;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

class MethodParametersTest {
    private static final Schedule OK = Schedule.constant(0.1);
    private static final Muon MUON = Muon.standard();
    private static final double INFINITY = Double.POSITIVE_INFINITY;

    private static final double[] NO_RATES = {0, -0.1, Double.NaN, INFINITY};
    private static final double[] NO_FRACTIONS = {1, 1.5, -0.1, Double.NaN, INFINITY};
    private static final double[] NOT_POSITIVE = {0, -1, Double.NaN};

    private static void add(List<Arguments> cases, String name, double[] values, DoubleFunction<Method> method) {
        for (double value : values) {
            cases.add(arguments(name, value, method));
        }
    }

    private static DoubleFunction<Method> scheduled(Function<Schedule, Method> method) {
        return value -> method.apply(Schedule.constant(value));
    }

    static Stream<Arguments> refused() {
        var cases = new ArrayList<Arguments>();
        add(cases, "eta", NO_RATES, scheduled(x -> new FedCoMuon(x, OK, OK, MUON)));
        add(cases, "alpha", NO_FRACTIONS, scheduled(x -> new FedCoMuon(OK, x, OK, MUON)));
        add(cases, "beta", NO_FRACTIONS, scheduled(x -> new FedCoMuon(OK, OK, x, MUON)));

        add(cases, "eta", NO_RATES, scheduled(x -> new FedCoMuonVr(x, OK, OK, OK, OK, MUON)));
        add(cases, "alpha", NO_FRACTIONS, scheduled(x -> new FedCoMuonVr(OK, x, OK, OK, OK, MUON)));
        add(cases, "beta", NO_FRACTIONS, scheduled(x -> new FedCoMuonVr(OK, OK, x, OK, OK, MUON)));
        add(cases, "gamma", NO_FRACTIONS, scheduled(x -> new FedCoMuonVr(OK, OK, OK, x, OK, MUON)));
        add(cases, "rho", NO_FRACTIONS, scheduled(x -> new FedCoMuonVr(OK, OK, OK, OK, x, MUON)));
        add(cases, "outerRadius", NOT_POSITIVE, x -> new FedCoMuonVr(OK, OK, OK, OK, OK, x, 1, 1, MUON));
        add(cases, "innerRadius", NOT_POSITIVE, x -> new FedCoMuonVr(OK, OK, OK, OK, OK, 1, x, 1, MUON));
        add(
                cases,
                "initialSamples",
                new double[] {0, -3},
                x -> new FedCoMuonVr(OK, OK, OK, OK, OK, 1, 1, (int) x, MUON));

        add(cases, "eta", NO_RATES, scheduled(FedAvg::new));
        add(cases, "outer", NO_RATES, scheduled(x -> new FedMaml(0.1, x, true)));
        add(cases, "inner", NO_RATES, x -> new FedMaml(x, OK, true));
        add(cases, "eta", NO_RATES, scheduled(x -> new FedMuon(x, OK, MUON)));
        add(cases, "beta", NO_FRACTIONS, scheduled(x -> new FedMuon(OK, x, MUON)));
        add(cases, "eta", NO_RATES, scheduled(x -> new FedMuonLga(x, OK, OK, MUON)));
        add(cases, "alpha", NO_FRACTIONS, scheduled(x -> new FedMuonLga(OK, x, OK, MUON)));
        add(cases, "beta", NO_FRACTIONS, scheduled(x -> new FedMuonLga(OK, OK, x, MUON)));
        add(cases, "eta", NO_RATES, scheduled(x -> new FedMuonBc(x, OK, MUON)));
        add(cases, "alpha", NO_FRACTIONS, scheduled(x -> new FedMuonBc(OK, x, MUON)));
        add(cases, "eta", NO_RATES, scheduled(ComFedL::new));
        add(cases, "eta", NO_RATES, scheduled(x -> new LocalScgdm(x, OK, OK, false)));
        add(cases, "alpha", NO_FRACTIONS, scheduled(x -> new LocalScgdm(OK, x, OK, false)));
        add(cases, "gamma", NO_FRACTIONS, scheduled(x -> new LocalScgdm(OK, OK, x, false)));
        add(cases, "eta", NO_RATES, scheduled(x -> new FedProx(x, 0)));
        add(cases, "mu", new double[] {-0.1, Double.NaN, INFINITY}, x -> new FedProx(OK, x));
        add(cases, "eta * mu", new double[] {10, 100}, x -> new FedProx(OK, x));
        add(cases, "eta", NO_RATES, scheduled(x -> new Scaffold(x, 1)));
        add(cases, "serverRate", NO_RATES, x -> new Scaffold(OK, x));
        for (Device.AdaptiveRule rule : Device.AdaptiveRule.values()) {
            add(cases, "eta", NO_RATES, scheduled(x -> new FedOpt(rule, x, OK, 0.9, 0.99, 1e-3)));
            add(cases, "serverEta", NO_RATES, scheduled(x -> new FedOpt(rule, OK, x, 0.9, 0.99, 1e-3)));
            add(cases, "beta1", NO_FRACTIONS, x -> new FedOpt(rule, OK, OK, x, 0.99, 1e-3));
            add(cases, "beta2", NO_FRACTIONS, x -> new FedOpt(rule, OK, OK, 0.9, x, 1e-3));
            add(cases, "epsilon", NO_RATES, x -> new FedOpt(rule, OK, OK, 0.9, 0.99, x));
        }
        add(cases, "inner", NO_RATES, x -> new LocalMoml(x, OK, OK, true));
        add(cases, "eta", NO_RATES, scheduled(x -> new LocalMoml(0.1, x, OK, true)));
        add(cases, "beta", NO_FRACTIONS, scheduled(x -> new LocalMoml(0.1, OK, x, true)));
        add(cases, "eta", NO_RATES, scheduled(x -> new FgdroKl(x, OK, 1)));
        add(cases, "alpha", NO_FRACTIONS, scheduled(x -> new FgdroKl(OK, x, 1)));
        add(cases, "lambda", NO_RATES, x -> new FgdroKl(OK, OK, x));
        add(cases, "eta", NO_RATES, scheduled(x -> new FgdroCvar(x, OK, OK, 0.5, 0)));
        add(cases, "thresholdEta", NO_RATES, scheduled(x -> new FgdroCvar(OK, x, OK, 0.5, 0)));
        add(cases, "alpha", NO_FRACTIONS, scheduled(x -> new FgdroCvar(OK, OK, x, 0.5, 0)));
        add(cases, "level", NO_FRACTIONS, x -> new FgdroCvar(OK, OK, OK, x, 0));
        add(cases, "smoothing", new double[] {-0.1, Double.NaN, INFINITY}, x -> new FgdroCvar(OK, OK, OK, 0.5, x));
        add(cases, "eta", NO_RATES, scheduled(x -> new FedDro(x, OK)));
        add(cases, "alpha", NO_FRACTIONS, scheduled(x -> new FedDro(OK, x)));
        add(
                cases,
                "weightDecay",
                new double[] {-0.1, Double.NaN, INFINITY},
                x -> new FedMuon(OK, OK, MUON.withWeightDecay(x)));
        add(
                cases,
                "adamW.beta1",
                NO_FRACTIONS,
                x -> new FedMuon(OK, OK, MUON.withAdamW(new Muon.AdamW(1, x, 0.9, 1e-8, List.of()))));
        add(
                cases,
                "adamW.beta2",
                NO_FRACTIONS,
                x -> new FedMuon(OK, OK, MUON.withAdamW(new Muon.AdamW(1, 0.9, x, 1e-8, List.of()))));
        add(
                cases,
                "adamW.epsilon",
                NO_RATES,
                x -> new FedMuon(OK, OK, MUON.withAdamW(new Muon.AdamW(1, 0.9, 0.9, x, List.of()))));
        Compressor all = Compressor.none();
        add(cases, "eta", NO_RATES, scheduled(x -> new Ef21Muon(x, OK, all, all, MUON)));
        add(cases, "beta", NO_FRACTIONS, scheduled(x -> new Ef21Muon(OK, x, all, all, MUON)));
        add(
                cases,
                "vectorRate",
                new double[] {-0.1, Double.NaN, INFINITY},
                x -> new FedMuon(OK, OK, new Muon(new Exact(), ScaleRule.NONE, Device.StepRule.PLAIN, x)));
        add(
                cases,
                "share",
                new double[] {0, -0.1, 1.01, Double.NaN},
                x -> new Ef21Muon(OK, OK, Compressor.topK(x), all, MUON));
        add(cases, "rank", new double[] {0, -1}, x -> new Ef21Muon(OK, OK, Compressor.lowRank((int) x), all, MUON));
        return cases.stream();
    }

    /** Either when it is made or when a run begins, and by name. */
    @ParameterizedTest(name = "{0} = {1}")
    @MethodSource("refused")
    void namesWhatIsOutOfRange(String name, double value, DoubleFunction<Method> method) {
        assertThatThrownBy(() -> method.apply(value).validate(100, 5))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageStartingWith(name + " = ")
                .hasMessageContaining(name.contains("*") || value == (int) value ? "" : Double.toString(value));
    }

    /** Every method with usual values. */
    static Stream<Method> usual() {
        return Stream.of(
                new FedCoMuon(OK, OK, OK, MUON),
                new FedCoMuonVr(OK, OK, OK, OK, OK, MUON),
                new FedAvg(OK),
                new FedMaml(0.1, OK, false),
                new FedMuon(OK, OK, MUON),
                new FedMuonLga(OK, OK, OK, MUON),
                new FedMuonBc(OK, OK, MUON),
                new ComFedL(OK),
                new LocalScgdm(OK, OK, OK, false),
                new FedProx(OK, 0.1),
                new Scaffold(OK, 1),
                new FedOpt(Device.AdaptiveRule.ADAM, OK, OK, 0.9, 0.99, 1e-3),
                new FedOpt(Device.AdaptiveRule.YOGI, OK, OK, 0.9, 0.99, 1e-3),
                new Ef21Muon(OK, OK, Compressor.topK(0.1), Compressor.lowRank(2), MUON),
                new LocalMoml(0.1, OK, OK, false),
                new FgdroKl(OK, OK, 1),
                new FgdroCvar(OK, OK, OK, 0.5, 0.1),
                new FedDro(OK, OK));
    }

    @ParameterizedTest
    @MethodSource("usual")
    void usualValuesAreTaken(Method method) {
        assertThatCode(() -> method.validate(100, 5)).doesNotThrowAnyException();
        assertThat(method.warnings(100, 5)).isEmpty();
        assertThat(method.parameters()).isNotEmpty().doesNotContainValue("");
        assertThat(method.name()).matches("[a-z0-9-]+");
    }

    /** Two methods that differ in anything must not resume each other's checkpoints. */
    @Test
    void parametersTellMethodsApart() {
        List<Method> methods = new ArrayList<>(usual().toList());
        Schedule other = Schedule.constant(0.2);
        Muon exact = Muon.with(new Exact());
        methods.addAll(List.of(
                new FedCoMuon(other, OK, OK, MUON),
                new FedCoMuon(OK, other, OK, MUON),
                new FedCoMuon(OK, OK, other, MUON),
                new FedCoMuon(OK, OK, OK, exact),
                new FedCoMuon(
                        OK, OK, OK, new Muon(MUON.orthogonalizer(), ScaleRule.RMS, Device.StepRule.NORMALIZED, 1)),
                new FedCoMuon(OK, OK, OK, new Muon(MUON.orthogonalizer(), ScaleRule.NONE, Device.StepRule.PLAIN, 1)),
                new FedCoMuon(
                        OK, OK, OK, new Muon(MUON.orthogonalizer(), ScaleRule.NONE, Device.StepRule.NORMALIZED, 2)),
                new FedCoMuon(OK, OK, OK, MUON.withNesterov(true)),
                new FedCoMuon(OK, OK, OK, MUON.withWeightDecay(0.1)),
                new FedCoMuon(OK, OK, OK, MUON.withAdamW(Muon.AdamW.ofVectors(1))),
                new FedCoMuon(OK, OK, OK, MUON.withAdamW(Muon.AdamW.ofVectors(2))),
                new FedCoMuon(OK, OK, OK, MUON.withAdamW(Muon.AdamW.ofVectors(1).and(List.of("head")))),
                new FedCoMuon(OK, OK, OK, MUON.withBlockRates(List.of(new Muon.BlockRate("head", 2)))),
                new FedCoMuon(OK, OK, OK, MUON.withHeads(Muon.Heads.of(2))),
                new FedCoMuon(OK, OK, OK, MUON.withHeads(Muon.Heads.of(4))),
                new LocalMoml(0.2, OK, OK, false),
                new LocalMoml(0.1, OK, OK, true),
                new FgdroKl(OK, OK, 2),
                new FgdroCvar(OK, OK, OK, 0.6, 0.1),
                new FgdroCvar(OK, OK, OK, 0.5, 0.2),
                new FgdroCvar(OK, other, OK, 0.5, 0.1),
                new FedCoMuonVr(OK, OK, OK, OK, other, MUON),
                new FedCoMuonVr(OK, OK, OK, other, OK, MUON),
                new FedCoMuonVr(OK, OK, OK, OK, OK, 2, INFINITY, 1, MUON),
                new FedCoMuonVr(OK, OK, OK, OK, OK, INFINITY, 2, 1, MUON),
                new FedCoMuonVr(OK, OK, OK, OK, OK, INFINITY, INFINITY, 2, MUON),
                new FedMaml(0.2, OK, false),
                new FedMaml(0.1, OK, true),
                new LocalScgdm(OK, OK, OK, true),
                new FedProx(OK, 0.2),
                new Scaffold(OK, 0.5),
                new FedOpt(Device.AdaptiveRule.ADAM, OK, OK, 0.8, 0.99, 1e-3),
                new FedOpt(Device.AdaptiveRule.ADAM, OK, OK, 0.9, 0.98, 1e-3),
                new FedOpt(Device.AdaptiveRule.ADAM, OK, OK, 0.9, 0.99, 1e-4),
                new FedOpt(Device.AdaptiveRule.ADAM, OK, other, 0.9, 0.99, 1e-3),
                new Ef21Muon(OK, OK, Compressor.topK(0.2), Compressor.lowRank(2), MUON),
                new Ef21Muon(OK, OK, Compressor.topK(0.1), Compressor.lowRank(3), MUON),
                new Ef21Muon(OK, OK, Compressor.topK(0.1), Compressor.none(), MUON)));
        assertThat(methods.stream().map(method -> method.name() + " " + method.parameters()))
                .doesNotHaveDuplicates();
    }

    @Test
    void scheduledValuesAreCheckedForTheLengthOfTheRun() {
        var theory = new FedCoMuon(Schedule.power(1, -0.75), Schedule.power(1, -0.5), Schedule.power(1, -0.5), MUON);
        assertThatCode(() -> theory.validate(256, 4)).doesNotThrowAnyException();
        assertThatThrownBy(() -> theory.validate(1, 1)).hasMessageStartingWith("alpha = power(1.0, -0.5)");
        var ends = new FedAvg(Schedule.cosine(0.1, 0));
        assertThatThrownBy(() -> ends.validate(100, 5)).hasMessageStartingWith("eta = cosine(0.1, 0.0)");
        var exceeds = new FedMuonBc(OK, Schedule.cosine(0.5, 1), MUON);
        assertThatThrownBy(() -> exceeds.validate(100, 5)).hasMessageStartingWith("alpha = cosine(0.5, 1.0)");
        var below = new FedMuonBc(OK, Schedule.cosine(0.5, -0.1), MUON);
        assertThatThrownBy(() -> below.validate(100, 5)).hasMessageStartingWith("alpha = cosine(0.5, -0.1)");
    }

    @ParameterizedTest
    @ValueSource(doubles = {0.1, 0.2})
    void alphaTauUpToOneIsSilent(double alpha) {
        assertThat(new FedCoMuon(OK, Schedule.constant(alpha), OK, MUON).warnings(100, 5))
                .isEmpty();
    }

    @Test
    void alphaTauAboveOneIsWarnedOf() {
        var method = new FedCoMuon(OK, Schedule.constant(0.25), OK, MUON);
        assertThat(method.warnings(100, 5)).singleElement().asString().contains("alpha * tau = 1.25", "up to 1");
        assertThat(method.warnings(100, 4)).isEmpty();
        var falling = new FedCoMuon(OK, Schedule.cosine(0.5, 0.01), OK, MUON);
        assertThat(falling.warnings(100, 4)).singleElement().asString().contains("alpha * tau = 2.0");
        var theory = new FedCoMuon(OK, Schedule.power(1, -0.5), OK, MUON);
        assertThat(theory.warnings(256, 4)).isEmpty();
        assertThat(theory.warnings(256, 17)).hasSize(1);
    }
}
