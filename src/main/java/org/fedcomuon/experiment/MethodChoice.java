package org.fedcomuon.experiment;

import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.function.BiFunction;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.fedcomuon.device.AdaptiveRule;
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

/**
 * A method by the name that commands and presets use.
 *
 * @param name such as {@code fedcomuon-vr}
 * @param parameters its own settings, with their defaults; empty where a preset must say it
 * @param gradients evaluations of a gradient that a client makes in a step
 * @param perClient variables as large as the model that it has for each client, W among them
 * @param shared those that it has once
 * @param build makes it of a configuration
 */
public record MethodChoice(
        String name,
        Map<String, String> parameters,
        int gradients,
        int perClient,
        int shared,
        BiFunction<Configuration, Muon, Method> build) {
    private static final String REQUIRED = "";

    /** All of them; the paper's two and its baselines first. */
    public static final Map<String, MethodChoice> ALL = Stream.of(
                    choice(
                            "fedcomuon",
                            1,
                            3,
                            0,
                            (c, muon) ->
                                    new FedCoMuon(c.schedule("eta"), c.schedule("alpha"), c.schedule("beta"), muon),
                            "eta",
                            REQUIRED,
                            "alpha",
                            REQUIRED,
                            "beta",
                            REQUIRED),
                    choice(
                            "fedcomuon-vr",
                            2,
                            6,
                            0,
                            (c, muon) -> new FedCoMuonVr(
                                    c.schedule("eta"),
                                    c.schedule("alpha"),
                                    c.schedule("beta"),
                                    c.schedule("gamma"),
                                    c.schedule("rho"),
                                    c.number("outerRadius"),
                                    c.number("innerRadius"),
                                    c.integer("initialSamples"),
                                    muon),
                            "eta",
                            REQUIRED,
                            "alpha",
                            REQUIRED,
                            "beta",
                            REQUIRED,
                            "gamma",
                            REQUIRED,
                            "rho",
                            REQUIRED,
                            "outerRadius",
                            "Infinity",
                            "innerRadius",
                            "Infinity",
                            "initialSamples",
                            "1"),
                    choice("fedavg", 1, 2, 0, (c, muon) -> new FedAvg(c.schedule("eta")), "eta", REQUIRED),
                    choice(
                            "fedmaml",
                            3,
                            4,
                            0,
                            (c, muon) -> new FedMaml(c.number("inner"), c.schedule("eta"), c.flag("firstOrder")),
                            "inner",
                            REQUIRED,
                            "eta",
                            REQUIRED,
                            "firstOrder",
                            "false"),
                    choice(
                            "fedmuon",
                            1,
                            3,
                            0,
                            (c, muon) -> new FedMuon(c.schedule("eta"), c.schedule("beta"), muon),
                            "eta",
                            REQUIRED,
                            "beta",
                            REQUIRED),
                    choice(
                            "fedmuon-lga",
                            1,
                            3,
                            3,
                            (c, muon) ->
                                    new FedMuonLga(c.schedule("eta"), c.schedule("alpha"), c.schedule("beta"), muon),
                            "eta",
                            REQUIRED,
                            "alpha",
                            REQUIRED,
                            "beta",
                            REQUIRED),
                    choice(
                            "fedmuon-bc",
                            1,
                            6,
                            1,
                            (c, muon) -> new FedMuonBc(c.schedule("eta"), c.schedule("alpha"), muon),
                            "eta",
                            REQUIRED,
                            "alpha",
                            REQUIRED),
                    choice("comfedl", 1, 3, 0, (c, muon) -> new ComFedL(c.schedule("eta")), "eta", REQUIRED),
                    choice(
                            "local-scgdm",
                            1,
                            3,
                            0,
                            (c, muon) -> new LocalScgdm(
                                    c.schedule("eta"), c.schedule("alpha"), c.schedule("gamma"), c.flag("averageU")),
                            "eta",
                            REQUIRED,
                            "alpha",
                            REQUIRED,
                            "gamma",
                            REQUIRED,
                            "averageU",
                            "false"),
                    choice(
                            "fedprox",
                            1,
                            2,
                            1,
                            (c, muon) -> new FedProx(c.schedule("eta"), c.number("mu")),
                            "eta",
                            REQUIRED,
                            "mu",
                            "0.1"),
                    choice(
                            "scaffold",
                            1,
                            5,
                            2,
                            (c, muon) -> new Scaffold(c.schedule("eta"), c.number("serverRate")),
                            "eta",
                            REQUIRED,
                            "serverRate",
                            "1"),
                    choice(
                            "fedadam",
                            1,
                            2,
                            4,
                            (c, muon) -> fedOpt(AdaptiveRule.ADAM, c),
                            "eta",
                            REQUIRED,
                            "serverEta",
                            "0.01",
                            "beta1",
                            "0.9",
                            "beta2",
                            "0.99",
                            "epsilon",
                            "0.001"),
                    choice(
                            "fedyogi",
                            1,
                            2,
                            4,
                            (c, muon) -> fedOpt(AdaptiveRule.YOGI, c),
                            "eta",
                            REQUIRED,
                            "serverEta",
                            "0.01",
                            "beta1",
                            "0.9",
                            "beta2",
                            "0.99",
                            "epsilon",
                            "0.001"),
                    choice(
                            "ef21-muon",
                            1,
                            6,
                            5,
                            (c, muon) -> new Ef21Muon(
                                    c.schedule("eta"),
                                    c.schedule("beta"),
                                    Compressor.parse(c.text("up")),
                                    Compressor.parse(c.text("down")),
                                    muon),
                            "eta",
                            REQUIRED,
                            "beta",
                            REQUIRED,
                            "up",
                            "top-k(0.1)",
                            "down",
                            "none"))
            .collect(Collectors.collectingAndThen(
                    Collectors.toMap(MethodChoice::name, c -> c, (a, b) -> a, java.util.LinkedHashMap::new),
                    Collections::unmodifiableMap));

    /** The nine rows of the paper's tables, in its order. */
    public static final List<String> PAPER = List.of(
            "fedavg",
            "fedmaml",
            "fedmuon",
            "fedmuon-lga",
            "fedmuon-bc",
            "comfedl",
            "local-scgdm",
            "fedcomuon",
            "fedcomuon-vr");

    private static Method fedOpt(AdaptiveRule rule, Configuration c) {
        return new FedOpt(
                rule,
                c.schedule("eta"),
                c.schedule("serverEta"),
                c.number("beta1"),
                c.number("beta2"),
                c.number("epsilon"));
    }

    private static MethodChoice choice(
            String name,
            int gradients,
            int perClient,
            int shared,
            BiFunction<Configuration, Muon, Method> build,
            String... parameters) {
        var all = new java.util.LinkedHashMap<String, String>();
        for (int i = 0; i < parameters.length; i += 2) {
            all.put(parameters[i], parameters[i + 1]);
        }
        return new MethodChoice(name, java.util.Collections.unmodifiableMap(all), gradients, perClient, shared, build);
    }

    /** The one called {@code name}. */
    public static MethodChoice of(String name) {
        MethodChoice choice = ALL.get(name);
        if (choice == null) {
            throw new ConfigurationException(Nearest.unknown("method", name, ALL.keySet()));
        }
        return choice;
    }
}
