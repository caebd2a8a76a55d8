package org.fedcomuon.experiment;

import static java.util.stream.Collectors.joining;

import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Stream;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.Precision;
import org.fedcomuon.federation.Federation;
import org.fedcomuon.linalg.Auto;
import org.fedcomuon.linalg.Coefficients;
import org.fedcomuon.linalg.ExactSvd;
import org.fedcomuon.linalg.GramNewtonSchulz;
import org.fedcomuon.linalg.NewtonSchulz;
import org.fedcomuon.linalg.Orthogonalizer;
import org.fedcomuon.linalg.ScaleRule;
import org.fedcomuon.method.ClientFault;
import org.fedcomuon.method.Method;
import org.fedcomuon.method.Muon;
import org.fedcomuon.method.Schedule;
import org.fedcomuon.model.Network;

/**
 * All settings that the result of a training run depends on: each is known, in range and in its canonical form. Running
 * the same configuration again gives bit-identical weights. Immutable.
 */
public final class Configuration {
    /** A file name has at most 255 bytes and a character up to four, and method and seed need space too. */
    private static final int LONGEST_NAME = 50;

    /** The settings of every run, in the order of {@code config.yaml}. */
    private static final Map<String, Setting> GENERAL = byName(List.of(
            Setting.text("preset"),
            MethodChoice.ALL.setting(),
            Setting.integer("seed", Long.MIN_VALUE, Long.MAX_VALUE),
            DataChoice.ALL.setting(),
            ModelChoice.ALL.setting(),
            SplitChoice.ALL.setting().withDefault("imbalanced"),
            ObjectiveChoice.ALL.setting().withDefault("robust"),
            Setting.integer("clients", 1, 100_000),
            Setting.count("batch"),
            Setting.number("lambda", 0, 1e6),
            Setting.number("exponentCap", 0, 60),
            Setting.count("iterations"),
            Setting.count("tau"),
            Setting.number("participation", 0, 1),
            Setting.oneOf("weighting", List.of("uniform", "examples")),
            Setting.oneOf("onFault", List.of("fail", "drop")),
            Setting.integer("evaluateEvery", 0, Setting.MANY),
            Setting.integer("judgedTrain", 0, Setting.MANY).withDefault("0"),
            Setting.integer("judgedTest", 0, Setting.MANY).withDefault("0"),
            Setting.count("checkpointEvery"),
            Setting.oneOf(
                            "exchange",
                            Arrays.stream(Federation.ExchangeKind.values())
                                    .map(Federation.ExchangeKind::toString)
                                    .toList())
                    .withDefault(Federation.ExchangeKind.ORDERED.toString()),
            Setting.oneOf("orthogonalizer", List.of("exact", "newton-schulz", "gram", "auto")),
            new Setting(
                    "coefficients", "one of %s, or your own".formatted(String.join(", ", Coefficients.NAMES)), text -> {
                        Coefficients.parse(text, Optional.empty());
                        return text;
                    }),
            Setting.integer("schulzSteps", 1, 100),
            Setting.oneOf("precision", List.of("fp32", "tf32", "bf16"))
                    .withDefault(Precision.FP32.toString()), // the only precision of a CPU
            Setting.oneOf("scale", List.of("none", "aspect", "rms")),
            Setting.oneOf("vectorRule", List.of("normalized", "plain")),
            Setting.notNegative("vectorRate")));

    /** The parts of a problem: the kinds whose choices have their own settings that checkpoints depend on. */
    private static final List<Registry<? extends Choice>> OF_PROBLEM =
            List.of(DataChoice.ALL, ModelChoice.ALL, SplitChoice.ALL, ObjectiveChoice.ALL);

    private final Map<String, String> values;

    private Configuration(Map<String, String> values) {
        this.values = Collections.unmodifiableMap(values);
    }

    private static Map<String, Setting> byName(List<Setting> settings) {
        var all = new LinkedHashMap<String, Setting>();
        settings.forEach(setting -> all.put(setting.name(), setting));
        return Collections.unmodifiableMap(all);
    }

    /**
     * Returns a preset with some of its settings changed.
     *
     * @param changes values by name; where they name a method, the settings of the preset for that method apply
     * @throws ConfigurationException naming what is unknown, missing or out of range
     */
    public static Configuration of(Preset preset, Map<String, String> changes) {
        String method = changes.getOrDefault("method", preset.settings().getOrDefault("method", "fedcomuon"));
        MethodChoice choice = MethodChoice.ALL.get(method);
        Map<String, String> given = given(preset, method, changes);

        // The possible settings depend on the method and on the parts of the problem.
        var possible = new LinkedHashMap<>(GENERAL);
        for (Registry<? extends Choice> registry : OF_PROBLEM) {
            Setting setting = GENERAL.get(registry.kind());
            String name = given.getOrDefault(setting.name(), setting.defaultValue());
            if (!name.isEmpty()) {
                possible.putAll(byName(registry.get(setting.check(name)).settings()));
            }
        }
        possible.putAll(byName(choice.settings()));
        for (String name : given.keySet()) {
            if (!possible.containsKey(name)) {
                throw new ConfigurationException(unknown(name, choice, possible.keySet()));
            }
        }
        var values = new LinkedHashMap<String, String>();
        possible.forEach((name, setting) -> {
            String value = given.getOrDefault(name, setting.defaultValue());
            if (value.isEmpty()) {
                throw new ConfigurationException("%s is not set for method '%s' in preset '%s'; use --set %s=..."
                        .formatted(name, method, preset.name(), name));
            }
            values.put(name, setting.check(value));
        });
        var configuration = new Configuration(values);
        try {
            configuration.method().validate(configuration.iterations(), configuration.integer("tau"));
        } catch (IllegalArgumentException e) {
            throw new ConfigurationException(String.valueOf(e.getMessage()), e);
        }
        return configuration;
    }

    /**
     * Returns a name for the directory of the run, {@code PRESET-METHOD-SEED}. The name of the preset may come from a
     * file that is not trusted, so characters with a meaning in paths are replaced.
     */
    public String directoryName() {
        String preset = text("preset");
        String last = preset.substring(preset.lastIndexOf('/') + 1)
                .replaceAll("[^\\p{L}\\p{N}._-]+", "-")
                .replaceFirst("^[.-]+", "");
        int end = last.offsetByCodePoints(0, Math.min(LONGEST_NAME, last.codePointCount(0, last.length())));
        return "%s-%s-%d".formatted(last.isEmpty() ? "run" : last.substring(0, end), methodName(), seed());
    }

    /**
     * Returns all values that are given: by the preset, for the method, for the method in a case of the preset, by
     * changes.
     */
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
        return Stream.concat(
                        Stream.of(GENERAL.values()),
                        Stream.concat(OF_PROBLEM.stream(), Stream.of(MethodChoice.ALL))
                                .flatMap(registry -> registry.entries().stream())
                                .map(Choice::settings))
                .flatMap(Collection::stream)
                .filter(setting -> setting.name().equals(name))
                .findFirst()
                .orElseThrow(() -> new ConfigurationException(Nearest.unknown("setting", name, GENERAL.keySet())));
    }

    /** Explains why a setting is not one of this run. */
    private static String unknown(String name, MethodChoice method, Set<String> possible) {
        String others =
                OF_PROBLEM.stream().flatMap(registry -> having(name, registry)).collect(joining(" or "));
        if (!others.isEmpty()) {
            return "%s is not a setting of this run; it requires %s".formatted(name, others);
        }
        return having(name, MethodChoice.ALL).findAny().isPresent()
                ? "method '%s' has no %s; it has %s"
                        .formatted(
                                method.name(),
                                name,
                                method.settings().stream().map(Setting::name).collect(joining(", ")))
                : Nearest.unknown("setting", name, possible);
    }

    /** Returns the choices that have a setting, for a message. */
    private static Stream<String> having(String name, Registry<? extends Choice> registry) {
        return registry.entries().stream()
                .filter(choice -> choice.settings().stream()
                        .anyMatch(setting -> setting.name().equals(name)))
                .map(choice -> "%s = %s".formatted(registry.kind(), choice.name()));
    }

    /** Returns every setting by name, in canonical form and order. */
    public Map<String, String> values() {
        return values;
    }

    /** Returns a setting as it is written. */
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

    /** Returns the number of local steps T. */
    public long iterations() {
        return Long.parseLong(text("iterations"));
    }

    /** Returns the seed of W0, of the split and of all samples. */
    public long seed() {
        return Long.parseLong(text("seed"));
    }

    /** Returns the names of all methods. */
    public static Set<String> methodNames() {
        return MethodChoice.ALL.names();
    }

    /** Returns the method's name. */
    public String methodName() {
        return text("method");
    }

    /** Returns the chosen entry of a kind. */
    <C extends Choice> C chosen(Registry<C> registry) {
        return registry.get(text(registry.kind()));
    }

    /** Returns the number of gradient evaluations of all clients in {@code steps} steps, with full participation. */
    long gradientEvaluations(long steps) {
        return steps * chosen(MethodChoice.ALL).gradients() * integer("clients");
    }

    Federation.ExchangeKind exchange() {
        return Federation.ExchangeKind.valueOf(text("exchange").toUpperCase(Locale.ROOT));
    }

    ClientFault.Policy policy() {
        return text("onFault").equals("drop") ? ClientFault.Policy.DROP : ClientFault.Policy.FAIL;
    }

    Method method() {
        return chosen(MethodChoice.ALL).factory().apply(this, muon());
    }

    /**
     * Returns the network without data.
     *
     * @param classes the number of classes of a prediction: those of images, or the vocabulary
     */
    @SuppressWarnings("exports") // users of networks have libtorch; others must not need it
    public Network network(int classes) {
        return chosen(ModelChoice.ALL).factory().network(this, classes);
    }

    /**
     * Returns the settings that the losses of the clients depend on: a checkpoint of another problem must not be
     * resumed.
     */
    Map<String, String> problem() {
        var all = new LinkedHashMap<String, String>();
        for (String name : List.of("model", "split", "objective", "batch", "lambda", "exponentCap")) {
            all.put(name, text(name));
        }
        for (Registry<? extends Choice> registry : OF_PROBLEM) {
            chosen(registry).settings().forEach(setting -> all.put(setting.name(), text(setting.name())));
        }
        return all;
    }

    private Muon muon() {
        return new Muon(
                orthogonalizer(),
                ScaleRule.valueOf(text("scale").toUpperCase(Locale.ROOT)),
                Device.StepRule.valueOf(text("vectorRule").toUpperCase(Locale.ROOT)),
                number("vectorRate"));
    }

    Orthogonalizer orthogonalizer() {
        String name = text("orthogonalizer");
        Precision precision = Precision.parse(text("precision"));
        if (name.equals("exact")) {
            if (precision != Precision.FP32) {
                throw new ConfigurationException("precision = %s: exact is always fp32".formatted(precision));
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
