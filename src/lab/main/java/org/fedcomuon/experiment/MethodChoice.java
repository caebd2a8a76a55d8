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
import org.fedcomuon.method.FedMaml;
import org.fedcomuon.method.FedMuon;
import org.fedcomuon.method.FedMuonBc;
import org.fedcomuon.method.FedMuonLga;
import org.fedcomuon.method.FedOpt;
import org.fedcomuon.method.FedProx;
import org.fedcomuon.method.LocalScgdm;
import org.fedcomuon.method.Method;
import org.fedcomuon.method.Muon;
import org.fedcomuon.method.Scaffold;
import org.fedcomuon.model.MemoryEstimate;
import org.fedcomuon.model.Network;

/**
 * A method.
 *
 * @param gradients evaluations of a gradient that a client makes in a step
 * @param perClient variables of the size of the model that the method has for each client, W among them
 * @param shared variables of the size of the model that the method has once per device
 * @param adaptationBytes for a method that takes the step of adaptation of meta learning itself and therefore receives
 *     the plain loss: the peak memory of an evaluation in bytes
 * @param factory makes the method
 */
record MethodChoice(
        String name,
        List<Setting> settings,
        int gradients,
        int perClient,
        int shared,
        Optional<ToLongBiFunction<Configuration, Network>> adaptationBytes,
        BiFunction<Configuration, Muon, Method> factory)
        implements Choice {
    private static final Setting ETA = Setting.schedule("eta");
    private static final Setting ALPHA = Setting.schedule("alpha");
    private static final Setting BETA = Setting.schedule("beta");
    private static final Setting GAMMA = Setting.schedule("gamma");
    private static final Setting RHO = Setting.schedule("rho");

    /** All methods; the paper's two and its baselines come first. */
    static final Registry<MethodChoice> ALL = new Registry<>(
            "method",
            method("fedcomuon", ETA, ALPHA, BETA)
                    .perClient(3)
                    .of((c, muon) -> new FedCoMuon(c.schedule("eta"), c.schedule("alpha"), c.schedule("beta"), muon)),
            method(
                            "fedcomuon-vr",
                            ETA,
                            ALPHA,
                            BETA,
                            GAMMA,
                            RHO,
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
            method("fedavg", ETA).perClient(2).of((c, muon) -> new FedAvg(c.schedule("eta"))),
            method("fedmaml", MetaObjective.INNER, ETA, MetaObjective.FIRST_ORDER)
                    .gradients(3)
                    .perClient(4)
                    .adapting(MethodChoice::fedMamlBytes)
                    .of((c, muon) -> new FedMaml(c.number("inner"), c.schedule("eta"), c.flag("firstOrder"))),
            method("fedmuon", ETA, BETA)
                    .perClient(3)
                    .of((c, muon) -> new FedMuon(c.schedule("eta"), c.schedule("beta"), muon)),
            method("fedmuon-lga", ETA, ALPHA, BETA)
                    .perClient(3)
                    .shared(3)
                    .of((c, muon) -> new FedMuonLga(c.schedule("eta"), c.schedule("alpha"), c.schedule("beta"), muon)),
            method("fedmuon-bc", ETA, ALPHA)
                    .perClient(6)
                    .shared(1)
                    .of((c, muon) -> new FedMuonBc(c.schedule("eta"), c.schedule("alpha"), muon)),
            method("comfedl", ETA).perClient(3).of((c, muon) -> new ComFedL(c.schedule("eta"))),
            method("local-scgdm", ETA, ALPHA, GAMMA, Setting.flag("averageU").withDefault("false"))
                    .perClient(3)
                    .of((c, muon) -> new LocalScgdm(
                            c.schedule("eta"), c.schedule("alpha"), c.schedule("gamma"), c.flag("averageU"))),
            method("fedprox", ETA, Setting.notNegative("mu").withDefault("0.1"))
                    .perClient(2)
                    .shared(1)
                    .of((c, muon) -> new FedProx(c.schedule("eta"), c.number("mu"))),
            method("scaffold", ETA, Setting.number("serverRate", 0, 1).withDefault("1"))
                    .perClient(5)
                    .shared(2)
                    .of((c, muon) -> new Scaffold(c.schedule("eta"), c.number("serverRate"))),
            fedOpt("fedadam", Device.AdaptiveRule.ADAM),
            fedOpt("fedyogi", Device.AdaptiveRule.YOGI),
            method(
                            "ef21-muon",
                            ETA,
                            BETA,
                            Setting.compressor("up").withDefault("top-k(0.1)"),
                            Setting.compressor("down").withDefault("none"))
                    .perClient(6)
                    .shared(5)
                    .of((c, muon) -> new Ef21Muon(
                            c.schedule("eta"),
                            c.schedule("beta"),
                            Compressor.parse(c.text("up")),
                            Compressor.parse(c.text("down")),
                            muon)));

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

    private static MethodChoice fedOpt(String name, Device.AdaptiveRule rule) {
        return method(
                        name,
                        ETA,
                        Setting.schedule("serverEta").withDefault("0.01"),
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

    private static Builder method(String name, Setting... settings) {
        return new Builder(name, List.of(settings));
    }

    private static final class Builder {
        private final String name;
        private final List<Setting> settings;
        private int gradients = 1;
        private int perClient;
        private int shared;
        private Optional<ToLongBiFunction<Configuration, Network>> adaptationBytes = Optional.empty();

        Builder(String name, List<Setting> settings) {
            this.name = name;
            this.settings = settings;
        }

        Builder gradients(int count) {
            gradients = count;
            return this;
        }

        Builder perClient(int variables) {
            perClient = variables;
            return this;
        }

        Builder shared(int variables) {
            shared = variables;
            return this;
        }

        Builder adapting(ToLongBiFunction<Configuration, Network> bytes) {
            adaptationBytes = Optional.of(bytes);
            return this;
        }

        MethodChoice of(BiFunction<Configuration, Muon, Method> factory) {
            return new MethodChoice(name, settings, gradients, perClient, shared, adaptationBytes, factory);
        }
    }
}
