package org.fedcomuon.experiment;

import java.util.List;
import java.util.Optional;
import java.util.function.BiFunction;
import java.util.function.ToLongBiFunction;
import org.fedcomuon.device.Device;
import org.fedcomuon.method.ComFedL;
import org.fedcomuon.method.Compressor;
import org.fedcomuon.method.Ef21Muon;
import org.fedcomuon.method.FedAvg;
import org.fedcomuon.method.FedCoMuon;
import org.fedcomuon.method.FedCoMuonVr;
import org.fedcomuon.method.FedDro;
import org.fedcomuon.method.FedMaml;
import org.fedcomuon.method.FedMuon;
import org.fedcomuon.method.FedMuonBc;
import org.fedcomuon.method.FedMuonLga;
import org.fedcomuon.method.FedOpt;
import org.fedcomuon.method.FedProx;
import org.fedcomuon.method.FgdroCvar;
import org.fedcomuon.method.FgdroKl;
import org.fedcomuon.method.LocalMoml;
import org.fedcomuon.method.LocalScgdm;
import org.fedcomuon.method.Method;
import org.fedcomuon.method.Muon;
import org.fedcomuon.method.Scaffold;
import org.fedcomuon.model.MemoryEstimate;
import org.fedcomuon.model.Network;

/**
 * A method.
 *
 * <p>Immutable.
 *
 * @param gradients evaluations of a gradient that a client makes in a step
 * @param perClient variables of the size of the model that the method has for each client, W among them
 * @param shared variables of the size of the model that the method has once per device
 * @param stepsAtServer whether it is the server that steps by Muon, with the moments of its options
 * @param adaptationBytes for a method that takes the step of adaptation of meta learning itself and therefore receives
 *     the plain loss: the peak memory of an evaluation in bytes
 * @param factory makes the method
 */
public record MethodChoice(
        String name,
        List<Setting> settings,
        int gradients,
        int perClient,
        int shared,
        boolean stepsAtServer,
        Optional<ToLongBiFunction<Configuration, Network>> adaptationBytes,
        BiFunction<Configuration, Muon, Method> factory)
        implements Choice {
    // The defaults are the rates of mnist-robust, which the paper gives; presets have their own.

    /** All methods; the paper's two and its baselines come first. */
    static final Registry<MethodChoice> ALL = new Registry<>(
            "method",
            ChoiceProvider::methods,
            method("fedcomuon", rate("eta", "0.01"), rate("alpha", "0.2"), rate("beta", "0.1"))
                    .perClient(3)
                    .of((c, muon) -> new FedCoMuon(c.schedule("eta"), c.schedule("alpha"), c.schedule("beta"), muon)),
            method(
                            "fedcomuon-vr",
                            rate("eta", "0.01"),
                            rate("alpha", "0.2"),
                            rate("beta", "0.8"),
                            rate("gamma", "0.9"),
                            rate("rho", "0.2"),
                            Setting.number("outerRadius", 0, Double.POSITIVE_INFINITY)
                                    .withDefault("Infinity"),
                            Setting.number("innerRadius", 0, Double.POSITIVE_INFINITY)
                                    .withDefault("Infinity"),
                            Setting.count("initialSamples").withDefault("1"))
                    .gradients(2)
                    .perClient(6)
                    .of((c, muon) -> new FedCoMuonVr(
                            c.schedule("eta"),
                            c.schedule("alpha"),
                            c.schedule("beta"),
                            c.schedule("gamma"),
                            c.schedule("rho"),
                            c.number("outerRadius"),
                            c.number("innerRadius"),
                            c.integer("initialSamples"),
                            muon)),
            method("fedavg", rate("eta", "0.02")).perClient(2).of((c, muon) -> new FedAvg(c.schedule("eta"))),
            method("fedmaml", MetaObjective.INNER, rate("eta", "0.02"), MetaObjective.FIRST_ORDER)
                    .gradients(3)
                    .perClient(4)
                    .adapting(MethodChoice::fedMamlBytes)
                    .of((c, muon) -> new FedMaml(c.number("inner"), c.schedule("eta"), c.flag("firstOrder"))),
            method("fedmuon", rate("eta", "0.01"), rate("beta", "0.1"))
                    .perClient(3)
                    .of((c, muon) -> new FedMuon(c.schedule("eta"), c.schedule("beta"), muon)),
            method("fedmuon-lga", rate("eta", "0.01"), rate("alpha", "0.2"), rate("beta", "0.8"))
                    .perClient(3)
                    .shared(3)
                    .of((c, muon) -> new FedMuonLga(c.schedule("eta"), c.schedule("alpha"), c.schedule("beta"), muon)),
            method("fedmuon-bc", rate("eta", "0.01"), rate("alpha", "0.1"))
                    .perClient(6)
                    .shared(1)
                    .of((c, muon) -> new FedMuonBc(c.schedule("eta"), c.schedule("alpha"), muon)),
            method("comfedl", rate("eta", "0.02")).perClient(3).of((c, muon) -> new ComFedL(c.schedule("eta"))),
            method(
                            "local-scgdm",
                            rate("eta", "0.01"),
                            rate("alpha", "0.2"),
                            rate("gamma", "0.3"),
                            Setting.flag("averageU").withDefault("false"))
                    .perClient(3)
                    .of((c, muon) -> new LocalScgdm(
                            c.schedule("eta"), c.schedule("alpha"), c.schedule("gamma"), c.flag("averageU"))),
            method("fedprox", rate("eta", "0.02"), Setting.notNegative("mu").withDefault("0.1"))
                    .perClient(2)
                    .shared(1)
                    .of((c, muon) -> new FedProx(c.schedule("eta"), c.number("mu"))),
            method(
                            "scaffold",
                            rate("eta", "0.02"),
                            Setting.number("serverRate", 0, 1).withDefault("1"))
                    .perClient(5)
                    .shared(2)
                    .of((c, muon) -> new Scaffold(c.schedule("eta"), c.number("serverRate"))),
            fedOpt("fedadam", Device.AdaptiveRule.ADAM),
            fedOpt("fedyogi", Device.AdaptiveRule.YOGI),
            method(
                            "ef21-muon",
                            rate("eta", "0.05"),
                            rate("beta", "0.5"),
                            Setting.compressor("up").withDefault("top-k(0.1)"),
                            Setting.compressor("down").withDefault("none"))
                    .perClient(6)
                    .shared(5)
                    .stepsAtServer()
                    .of((c, muon) -> new Ef21Muon(
                            c.schedule("eta"),
                            c.schedule("beta"),
                            Compressor.parse(c.text("up")),
                            Compressor.parse(c.text("down")),
                            muon)),
            method(
                            "local-moml",
                            MetaObjective.INNER,
                            rate("eta", "0.02"),
                            rate("beta", "0.5"),
                            MetaObjective.FIRST_ORDER)
                    .gradients(3)
                    .perClient(4)
                    .adapting(MethodChoice::fedMamlBytes)
                    .of((c, muon) -> new LocalMoml(
                            c.number("inner"), c.schedule("eta"), c.schedule("beta"), c.flag("firstOrder"))),
            method("fgdro-kl", rate("eta", "0.02"), rate("alpha", "0.2"), LossObjective.LAMBDA)
                    .perClient(3)
                    .of((c, muon) -> new FgdroKl(c.schedule("eta"), c.schedule("alpha"), c.number("lambda"))),
            method(
                            "fgdro-cvar",
                            rate("eta", "0.02"),
                            rate("thresholdEta", "0.05"),
                            rate("alpha", "0.2"),
                            LossObjective.LEVEL,
                            LossObjective.SMOOTHING)
                    .perClient(3)
                    .of((c, muon) -> new FgdroCvar(
                            c.schedule("eta"),
                            c.schedule("thresholdEta"),
                            c.schedule("alpha"),
                            c.number("level"),
                            c.number("smoothing"))),
            method("feddro", rate("eta", "0.02"), rate("alpha", "0.2"))
                    .perClient(3)
                    .of((c, muon) -> new FedDro(c.schedule("eta"), c.schedule("alpha"))));

    /** The nine rows of the paper's tables, in its order. */
    static final List<String> PAPER = List.of(
            "fedavg",
            "fedmaml",
            "fedmuon",
            "fedmuon-lga",
            "fedmuon-bc",
            "comfedl",
            "local-scgdm",
            "fedcomuon",
            "fedcomuon-vr");

    private static Setting rate(String name, String value) {
        return Setting.schedule(name).withDefault(value);
    }

    private static MethodChoice fedOpt(String name, Device.AdaptiveRule rule) {
        return method(
                        name,
                        rate("eta", "0.02"),
                        rate("serverEta", "0.01"),
                        Setting.notNegative("beta1").withDefault("0.9"),
                        Setting.notNegative("beta2").withDefault("0.99"),
                        Setting.number("epsilon", 0, 1e6).withDefault("0.001"))
                .perClient(2)
                .shared(4)
                .of((c, muon) -> new FedOpt(
                        rule,
                        c.schedule("eta"),
                        c.schedule("serverEta"),
                        c.number("beta1"),
                        c.number("beta2"),
                        c.number("epsilon")));
    }

    private static long fedMamlBytes(Configuration c, Network network) {
        int batch = c.integer("batch");
        MemoryEstimate estimate = c.flag("firstOrder")
                ? MemoryEstimate.gradient(network, batch)
                : MemoryEstimate.hessianProduct(network, batch);
        return estimate.evaluation();
    }

    /**
     * Returns whether the method takes the step of adaptation of meta learning itself, and therefore receives the plain
     * loss.
     */
    boolean adapts() {
        return adaptationBytes.isPresent();
    }

    /** Begins a method; its variables and a factory are to follow. */
    public static Builder method(String name, Setting... settings) {
        return new Builder(name, List.of(settings));
    }

    /** Describes a method. Not thread-safe. */
    public static final class Builder {
        private final String name;
        private final List<Setting> settings;
        private int gradients = 1;
        private int perClient;
        private int shared;
        private boolean stepsAtServer;
        private Optional<ToLongBiFunction<Configuration, Network>> adaptationBytes = Optional.empty();

        Builder(String name, List<Setting> settings) {
            this.name = name;
            this.settings = settings;
        }

        /** Sets how many gradients a client evaluates in a step; one by default. */
        public Builder gradients(int count) {
            gradients = count;
            return this;
        }

        /** Sets how many variables of the size of the model a client has, W among them. */
        public Builder perClient(int variables) {
            perClient = variables;
            return this;
        }

        /** Sets how many variables of the size of the model a device has for all its clients; none by default. */
        public Builder shared(int variables) {
            shared = variables;
            return this;
        }

        Builder stepsAtServer() {
            stepsAtServer = true;
            return this;
        }

        Builder adapting(ToLongBiFunction<Configuration, Network> bytes) {
            adaptationBytes = Optional.of(bytes);
            return this;
        }

        /** Returns the choice, with what makes the method from its settings. */
        public MethodChoice of(BiFunction<Configuration, Muon, Method> factory) {
            return new MethodChoice(
                    name, settings, gradients, perClient, shared, stepsAtServer, adaptationBytes, factory);
        }
    }
}
