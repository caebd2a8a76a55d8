package org.fedcomuon.experiment;

import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.fedcomuon.device.Precision;
import org.fedcomuon.device.StepRule;
import org.fedcomuon.federation.ExchangeKind;
import org.fedcomuon.linalg.Auto;
import org.fedcomuon.linalg.Coefficients;
import org.fedcomuon.linalg.ExactSvd;
import org.fedcomuon.linalg.GramNewtonSchulz;
import org.fedcomuon.linalg.NewtonSchulz;
import org.fedcomuon.linalg.Orthogonalizer;
import org.fedcomuon.linalg.ScaleRule;
import org.fedcomuon.method.FaultPolicy;
import org.fedcomuon.method.Method;
import org.fedcomuon.method.Muon;
import org.fedcomuon.method.Schedule;

/**
 * Everything that decides the bits of a training run, complete: each setting known, in range and in its canonical form.
 * Running it again gives the same weights. Immutable.
 */
public final class Configuration {
    private static final int MANY = 1_000_000_000;
    /** Of a file system's 255 bytes a character may take four, and others have to fit beside. */
    private static final int LONGEST_NAME = 50;

    /** What every run has. */
    private static final Map<String, Setting> GENERAL = byName(List.of(
            Setting.text("preset"),
            Setting.text("method"),
            Setting.integer("seed", Long.MIN_VALUE, Long.MAX_VALUE),
            Setting.part("data"),
            Setting.part("model"),
            Setting.part("split"),
            Setting.part("objective"),
            Setting.integer("clients", 1, 100_000),
            Setting.integer("batch", 1, MANY),
            Setting.number("lambda", 0, 1e6),
            Setting.number("exponentCap", 0, 60),
            Setting.integer("iterations", 1, MANY),
            Setting.integer("tau", 1, MANY),
            Setting.number("participation", 0, 1),
            Setting.oneOf("weighting", List.of("uniform", "examples")),
            Setting.oneOf("onFault", List.of("fail", "drop")),
            Setting.integer("evaluateEvery", 0, MANY),
            Setting.integer("judgedTrain", 0, MANY),
            Setting.integer("judgedTest", 0, MANY),
            Setting.integer("checkpointEvery", 1, MANY),
            Setting.oneOf(
                    "exchange",
                    Arrays.stream(ExchangeKind.values())
                            .map(ExchangeKind::toString)
                            .toList()),
            Setting.oneOf("orthogonalizer", List.of("exact", "newton-schulz", "gram", "auto")),
            new Setting(
                    "coefficients", "one of %s, or your own".formatted(String.join(", ", Coefficients.NAMES)), text -> {
                        Coefficients.parse(text, Optional.empty());
                        return text;
                    }),
            Setting.integer("schulzSteps", 1, 100),
            Setting.oneOf("precision", List.of("fp32", "tf32", "bf16")),
            Setting.oneOf("scale", List.of("none", "aspect", "rms")),
            Setting.oneOf("vectorRule", List.of("normalized", "plain")),
            Setting.notNegative("vectorRate")));

    /** What a preset need not say. */
    private static final Map<String, String> USUAL = Map.of(
            "split",
            "imbalanced",
            "objective",
            "robust",
            "judgedTrain",
            "0",
            "judgedTest",
            "0",
            "exchange",
            ExchangeKind.ORDERED.toString(),
            "precision",
            Precision.FP32.toString()); // all that a CPU has

    /** What some have: a model, a dataset, a split, an objective; see {@link Part}. */
    private static final Map<String, Setting> OF_PARTS = byName(List.of(
            Setting.integer("length", 1, 100_000),
            Setting.integer("wide", 1, 100_000),
            Setting.integer("wider", 1, 100_000),
            Setting.integer("narrow", 1, 100_000),
            Setting.integer("dense", 1, 100_000),
            Setting.integer("patch", 1, 100_000),
            Setting.integer("depth", 1, 1000),
            Setting.integer("width", 2, 100_000),
            Setting.integer("heads", 1, 1000),
            Setting.integer("hidden", 1, 1_000_000),
            Setting.notNegative("dropout"),
            Setting.oneOf("embeddingUpdate", List.of("orthogonal", "vector")),
            Setting.oneOf("headUpdate", List.of("orthogonal", "vector")),
            Setting.integer("largest", 1, MANY),
            Setting.integer("others", 1, MANY),
            Setting.number("share", 0, 1),
            Setting.number("chi", 0, 1),
            Setting.integer("perClient", 1, MANY),
            Setting.integer("testPerClient", 2, MANY),
            Setting.number("inner", 0, 1e6),
            Setting.flag("firstOrder")));

    /** What some methods have. */
    private static final Map<String, Setting> OF_METHODS = byName(List.of(
            Setting.schedule("eta"),
            Setting.schedule("alpha"),
            Setting.schedule("beta"),
            Setting.schedule("gamma"),
            Setting.schedule("rho"),
            Setting.number("outerRadius", 0, Double.POSITIVE_INFINITY),
            Setting.number("innerRadius", 0, Double.POSITIVE_INFINITY),
            Setting.integer("initialSamples", 1, MANY),
            Setting.flag("averageU"),
            Setting.notNegative("mu"),
            Setting.number("serverRate", 0, 1),
            Setting.schedule("serverEta"),
            Setting.notNegative("beta1"),
            Setting.notNegative("beta2"),
            Setting.number("epsilon", 0, 1e6),
            Setting.compressor("up"),
            Setting.compressor("down")));

    private final Map<String, String> values;
    private final MethodChoice choice;

    private Configuration(Map<String, String> values, MethodChoice choice) {
        this.values = Collections.unmodifiableMap(values);
        this.choice = choice;
    }

    private static Map<String, Setting> byName(List<Setting> settings) {
        var all = new LinkedHashMap<String, Setting>();
        settings.forEach(setting -> all.put(setting.name(), setting));
        return Collections.unmodifiableMap(all);
    }

    /**
     * A preset with some of its settings changed.
     *
     * @param changes by name; a method, if given, brings the preset's settings for it
     * @throws ConfigurationException naming what is unknown, missing or out of range
     */
    public static Configuration of(Preset preset, Map<String, String> changes) {
        String method = changes.getOrDefault("method", preset.settings().getOrDefault("method", "fedcomuon"));
        MethodChoice choice = MethodChoice.of(method);
        Map<String, String> given = given(preset, method, changes);

        // What may be set depends on the method, and on what the run is made of.
        var usual = new LinkedHashMap<String, String>();
        GENERAL.keySet().forEach(name -> usual.put(name, USUAL.getOrDefault(name, "")));
        for (Part part : Part.of(name -> {
            String value = given.getOrDefault(name, USUAL.getOrDefault(name, ""));
            return value.isEmpty() ? value : setting(name).check(value);
        })) {
            usual.putAll(part.settings());
        }
        usual.putAll(choice.parameters());
        for (String name : given.keySet()) {
            if (!usual.containsKey(name)) {
                throw new ConfigurationException(unknown(name, choice, usual.keySet()));
            }
        }
        var values = new LinkedHashMap<String, String>();
        usual.forEach((name, otherwise) -> {
            String value = given.getOrDefault(name, otherwise);
            if (value.isEmpty()) {
                throw new ConfigurationException("%s is not set for method '%s' in preset '%s'; say --set %s=..."
                        .formatted(name, method, preset.name(), name));
            }
            values.put(name, setting(name).check(value));
        });
        var configuration = new Configuration(values, choice);
        try {
            configuration.method().validate(configuration.iterations(), configuration.integer("tau"));
        } catch (IllegalArgumentException e) {
            throw new ConfigurationException(String.valueOf(e.getMessage()), e);
        }
        return configuration;
    }

    /**
     * What a directory for its run can be called, {@code PRESET-METHOD-SEED}. A preset may be called anything by a file
     * that is somebody else's, so nothing of that which could lead elsewhere gets there.
     */
    public String directoryName() {
        String preset = text("preset");
        String last = preset.substring(preset.lastIndexOf('/') + 1)
                .replaceAll("[^\\p{L}\\p{N}._-]+", "-")
                .replaceFirst("^[.-]+", "");
        int end = last.offsetByCodePoints(0, Math.min(LONGEST_NAME, last.codePointCount(0, last.length())));
        return "%s-%s-%d".formatted(last.isEmpty() ? "run" : last.substring(0, end), methodName(), seed());
    }

    /** All that is said: by the preset, for the method, for the method where a setting has some value, by changes. */
    private static Map<String, String> given(Preset preset, String method, Map<String, String> changes) {
        var given = new LinkedHashMap<String, String>();
        given.putAll(preset.settings());
        given.putAll(preset.methods().getOrDefault(method, Map.of()));
        var all = new LinkedHashMap<>(given);
        all.putAll(changes);
        for (Preset.Case where : preset.cases()) {
            String value = all.getOrDefault(where.setting(), "");
            Setting setting = setting(where.setting());
            if (!value.isEmpty() && setting.check(value).equals(setting.check(where.value()))) {
                given.putAll(where.methods().getOrDefault(method, Map.of()));
            }
        }
        given.putAll(changes);
        given.put("preset", preset.name());
        given.put("method", method);
        return given;
    }

    private static Setting setting(String name) {
        Setting setting = GENERAL.getOrDefault(name, OF_PARTS.getOrDefault(name, OF_METHODS.get(name)));
        if (setting == null) {
            throw new ConfigurationException(Nearest.unknown("setting", name, GENERAL.keySet()));
        }
        return setting;
    }

    private static String unknown(String name, MethodChoice choice, Set<String> known) {
        if (OF_METHODS.containsKey(name)) {
            return "method '%s' has no %s; it has %s"
                    .formatted(
                            choice.name(),
                            name,
                            String.join(", ", choice.parameters().keySet()));
        }
        if (OF_PARTS.containsKey(name)) {
            return "%s is not a setting of this run; it is one with %s".formatted(name, Part.having(name));
        }
        return Nearest.unknown("setting", name, known);
    }

    /** Every setting by name, in canonical form and order. */
    public Map<String, String> values() {
        return values;
    }

    /** A setting as it is written. */
    public String text(String name) {
        String value = values.get(name);
        if (value == null) {
            throw new IllegalArgumentException("this configuration has no " + name);
        }
        return value;
    }

    int integer(String name) {
        return Integer.parseInt(text(name));
    }

    double number(String name) {
        return Double.parseDouble(text(name));
    }

    boolean flag(String name) {
        return Boolean.parseBoolean(text(name));
    }

    Schedule schedule(String name) {
        return Schedule.parse(text(name));
    }

    /** T. */
    public long iterations() {
        return Long.parseLong(text("iterations"));
    }

    /** Of W0, the partition and all samples. */
    public long seed() {
        return Long.parseLong(text("seed"));
    }

    /** The method's name. */
    public String methodName() {
        return choice.name();
    }

    /** Evaluations of a gradient in all steps of all clients, full participation presumed. */
    long gradientEvaluations(long steps) {
        return steps * choice.gradients() * integer("clients");
    }

    ExchangeKind exchange() {
        return ExchangeKind.valueOf(text("exchange").toUpperCase(Locale.ROOT));
    }

    FaultPolicy policy() {
        return text("onFault").equals("drop") ? FaultPolicy.DROP : FaultPolicy.FAIL;
    }

    Method method() {
        return choice.build().apply(this, muon());
    }

    /** What the losses of the clients depend on: nobody may go on with a checkpoint of another problem. */
    Map<String, String> problem() {
        var all = new LinkedHashMap<String, String>();
        for (String name : List.of("model", "split", "objective", "batch", "lambda", "exponentCap")) {
            all.put(name, text(name));
        }
        for (Part part : Part.of(this::text)) {
            part.settings().keySet().forEach(name -> all.put(name, text(name)));
        }
        return all;
    }

    private Muon muon() {
        return new Muon(
                orthogonalizer(),
                ScaleRule.valueOf(text("scale").toUpperCase(Locale.ROOT)),
                StepRule.valueOf(text("vectorRule").toUpperCase(Locale.ROOT)),
                number("vectorRate"));
    }

    Orthogonalizer orthogonalizer() {
        String name = text("orthogonalizer");
        Precision precision = Precision.parse(text("precision"));
        if (name.equals("exact")) {
            if (precision != Precision.FP32) {
                throw new ConfigurationException("precision = %s: exact is fp32 always".formatted(precision));
            }
            return new ExactSvd();
        }
        Coefficients coefficients;
        try {
            coefficients = Coefficients.parse(text("coefficients"), Optional.of(integer("schulzSteps")));
            return switch (name) {
                case "gram" -> new GramNewtonSchulz(coefficients, precision);
                case "auto" -> new Auto(coefficients, precision);
                default -> new NewtonSchulz(coefficients, precision);
            };
        } catch (IllegalArgumentException e) {
            throw new ConfigurationException(String.valueOf(e.getMessage()), e);
        }
    }
}
