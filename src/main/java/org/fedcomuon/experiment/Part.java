package org.fedcomuon.experiment;

import static java.util.stream.Collectors.joining;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.UnaryOperator;

/**
 * Something that a run is made of, such as the model {@code vit}, and what can be set only with it.
 *
 * @param kind {@code data}, {@code model}, {@code split} or {@code objective}; a setting of that name chooses
 * @param name the value that chooses it
 * @param settings its own, with what they usually are; empty where a preset must say it
 */
record Part(String kind, String name, Map<String, String> settings) {
    private static final String REQUIRED = "";

    private static final List<Part> ALL = List.of(
            part("data", "mnist"),
            part("data", "cifar10"),
            part("data", "wikitext2", "length", "128"),
            part("model", "lenet"),
            part("model", "cifar-cnn", "wide", "96", "wider", "196", "narrow", "10", "dense", "1000"),
            part("model", "vit", "patch", "4", "depth", "12", "width", "192", "heads", "3"),
            part(
                    "model",
                    "transformer",
                    "depth",
                    "8",
                    "width",
                    "768",
                    "heads",
                    "8",
                    "hidden",
                    "1024",
                    "dropout",
                    "0.1",
                    "embeddingUpdate",
                    "orthogonal",
                    "headUpdate",
                    "orthogonal"),
            part("split", "imbalanced", "largest", REQUIRED, "others", REQUIRED),
            part("split", "one-large", "share", "0.5"),
            part("split", "dominant", "chi", REQUIRED, "perClient", "5000", "testPerClient", "1000"),
            part("objective", "robust"),
            part("objective", "meta", "inner", REQUIRED, "firstOrder", "false"));

    private static Part part(String kind, String name, String... settings) {
        var all = new LinkedHashMap<String, String>();
        for (int i = 0; i < settings.length; i += 2) {
            all.put(settings[i], settings[i + 1]);
        }
        return new Part(kind, name, all);
    }

    /** Those of a kind. */
    static List<String> names(String kind) {
        return ALL.stream()
                .filter(part -> part.kind().equals(kind))
                .map(Part::name)
                .toList();
    }

    /** Those that settings choose; of a kind that is not set, none. */
    static List<Part> of(UnaryOperator<String> settings) {
        return ALL.stream()
                .filter(part -> part.name().equals(settings.apply(part.kind())))
                .toList();
    }

    /** Which ones have a setting, in words. */
    static String having(String setting) {
        return ALL.stream()
                .filter(part -> part.settings().containsKey(setting))
                .map(part -> "%s = %s".formatted(part.kind(), part.name()))
                .collect(joining(" or "));
    }
}
