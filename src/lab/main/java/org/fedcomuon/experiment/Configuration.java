package org.fedcomuon.experiment;

import static java.util.stream.Collectors.joining;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Set;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.Precision;
import org.fedcomuon.federation.Federation;
import org.fedcomuon.format.Npy;
import org.fedcomuon.linalg.Auto;
import org.fedcomuon.linalg.Coefficients;
import org.fedcomuon.linalg.Exact;
import org.fedcomuon.linalg.ExactSvd;
import org.fedcomuon.linalg.GramNewtonSchulz;
import org.fedcomuon.linalg.NewtonSchulz;
import org.fedcomuon.linalg.Orthogonalizer;
import org.fedcomuon.linalg.ScaleRule;
import org.fedcomuon.method.ClientFault;
import org.fedcomuon.method.Method;
import org.fedcomuon.method.Muon;
import org.fedcomuon.method.Schedule;
import org.fedcomuon.model.Gradients;
import org.fedcomuon.model.Network;

/**
 * All settings that the result of a training run depends on: each is known, in range and in its canonical form. Running
 * the same configuration again gives bit-identical weights. Immutable.
 */
public final class Configuration {
    /** A file name has at most 255 bytes and a character up to four, and method and seed need space too. */
    private static final int LONGEST_NAME = 50;

    /** Returns the settings of every run, in the order of {@code config.yaml}. */
    static Map<String, Setting> general() {
        return byName(List.of(
                Setting.text("preset"),
                MethodChoice.ALL.setting(),
                Setting.integer("seed", Long.MIN_VALUE, Long.MAX_VALUE).withDefault("42"),
                DataChoice.ALL.setting(),
                DataChoice.POSITIVES,
                VALIDATION_SHARE,
                EARLY_STOPPING,
                ModelChoice.ALL.setting(),
                SplitChoice.ALL.setting().withDefault("iid"),
                Objectives.ALL.setting().withDefault("robust"),
                Setting.integer("clients", 1, 1_000_000).withDefault("10"),
                Setting.count("batch").withDefault("20"),
                Setting.count("iterations").withDefault("500"),
                Setting.count("tau").withDefault("5"),
                Setting.number("participation", 0, 1).withDefault("1"),
                Setting.count("cohort").optional(),
                Setting.oneOf("sampling", List.of("uniform", "examples")).withDefault("uniform"),
                Setting.oneOf("weighting", List.of("uniform", "examples")).withDefault("uniform"),
                Setting.oneOf("onFault", List.of("fail", "drop")).withDefault("fail"),
                Setting.integer("evaluateEvery", 0, Setting.MANY).withDefault("25"),
                Setting.integer("judgedTrain", 0, Setting.MANY).withDefault("0"),
                Setting.integer("judgedTest", 0, Setting.MANY).withDefault("0"),
                Setting.count("checkpointEvery").withDefault("10"),
                Setting.oneOf(
                                "exchange",
                                Arrays.stream(Federation.ExchangeKind.values())
                                        .map(Federation.ExchangeKind::toString)
                                        .toList())
                        .withDefault(Federation.ExchangeKind.AUTO.toString()),
                Setting.oneOf("gradients", List.of("auto", "together", "per-client"))
                        .withDefault("auto"),
                Setting.oneOf("orthogonalizer", List.of("exact", "exact-svd", "newton-schulz", "gram", "auto"))
                        .withDefault("newton-schulz"),
                new Setting("coefficients", "one of " + Coefficients.FORMS, text -> {
                            Coefficients.parse(text, Optional.empty());
                            return text;
                        })
                        .withDefault("jordan"),
                Setting.path("init").optional(),
                InitialNames.SETTING,
                Setting.integer("schulzSteps", 1, 100).optional(),
                Setting.oneOf("precision", List.of("fp32", "tf32", "bf16")).withDefault(Precision.FP32.toString()),
                Setting.oneOf("products", List.of("kernels", "cublas"))
                        .withDefault(Orthogonalizer.Products.KERNELS.toString()),
                Setting.oneOf("scale", List.of("none", "aspect", "rms")).withDefault("none"),
                Setting.oneOf("vectorRule", List.of("normalized", "plain")).withDefault("normalized"),
                Setting.notNegative("vectorRate").withDefault("1"),
                Setting.flag("nesterov").withDefault("false"),
                Setting.notNegative("weightDecay").withDefault("0"),
                Setting.oneOf("adamw", List.of("none", "vectors", "vectors+ends"))
                        .withDefault("none"),
                Setting.notNegative("adamwRate").withDefault("0.1"), // of eta: 0.001 where Muon has 0.01
                new Setting("blockRates", "none, or PATTERN=RATE;PATTERN=RATE;...", MuonSettings::canonicalRates)
                        .withDefault(MuonSettings.NONE),
                Setting.count("splitHeads").withDefault("1")));
    }

    /** The parts of a problem: the kinds whose choices have their own settings that checkpoints depend on. */
    private static final List<Registry<? extends Choice>> OF_PROBLEM =
            List.of(DataChoice.ALL, ModelChoice.ALL, SplitChoice.ALL, Objectives.ALL);

    /** All kinds of choices: the settings of a run depend on them. */
    private static final List<Registry<? extends Choice>> KINDS =
            List.of(DataChoice.ALL, ModelChoice.ALL, SplitChoice.ALL, Objectives.ALL, MethodChoice.ALL);

    /** The share of each client's training examples that is held back for validation. */
    static final Setting VALIDATION_SHARE = Setting.share("validationShare").optional();

    /** The number of evaluations without a better validation metric after which a run ends. */
    static final Setting EARLY_STOPPING = Setting.count("earlyStopping").optional();

    /** The method where a preset names none. */
    public static final String DEFAULT_METHOD = "fedcomuon";

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
     * @throws ConfigurationException naming all that is unknown, missing or out of range
     */
    public static Configuration of(Preset preset, Map<String, String> changes) {
        var mistakes = new ArrayList<>(preset.mistakes());
        String method = changes.getOrDefault("method", preset.setting("method").orElse(DEFAULT_METHOD));
        Given given = Given.of(preset, method, changes, mistakes);

        var unknown = new HashSet<String>(); // kinds whose choice is not known, and so not its settings either
        Map<String, Setting> possible = possible(given, unknown, mistakes);
        for (String name : given.own()) {
            boolean explained = KINDS.stream()
                    .anyMatch(registry -> unknown.contains(registry.kind())
                            && having(name, registry).findAny().isPresent());
            if (!possible.containsKey(name) && !explained && !given.isLeftOver(name)) {
                mistakes.add(unknown(name, method, possible.keySet()));
            }
        }
        var values = new LinkedHashMap<String, String>();
        possible.forEach((name, setting) -> {
            String value = given.value(setting);
            if (!value.isEmpty()) {
                if (!unknown.contains(name)) {
                    attempt(() -> setting.check(value), mistakes).ifPresent(checked -> values.put(name, checked));
                }
            } else if (setting.need() == Setting.Need.REQUIRED
                    && preset.unread().stream().noneMatch(key -> name.equals(key) || name.startsWith(key + "."))) {
                mistakes.add("%s is not set for method '%s' in preset '%s'; use --set %s=..., with %s"
                        .formatted(name, method, preset.name(), name, setting.range()));
            }
        });
        if (values.containsKey(EARLY_STOPPING.name())) {
            mistakes.addAll(EarlyStopping.mistakes(values));
        }
        if (mistakes.isEmpty()) {
            var configuration = new Configuration(values);
            try {
                configuration.method().validate(configuration.iterations(), configuration.integer("tau"));
                return configuration;
            } catch (IllegalArgumentException | ConfigurationException e) {
                mistakes.add(String.valueOf(e.getMessage()));
            }
        }
        mistakes.addAll(new Configuration(values).missingFiles()); // which would be the next message
        throw ConfigurationException.of(preset.name(), mistakes);
    }

    /** Returns the possible settings by name, which depend on the method and on the parts of the problem. */
    private static Map<String, Setting> possible(Given given, Set<String> unknown, List<String> mistakes) {
        var possible = new LinkedHashMap<>(general());
        for (Registry<? extends Choice> registry : KINDS) {
            Setting setting = possible.get(registry.kind());
            String name = given.value(setting);
            if (!name.isEmpty()) {
                attempt(() -> registry.get(setting.check(name)), mistakes)
                        .ifPresentOrElse(
                                choice -> possible.putAll(byName(choice.settings())),
                                () -> unknown.add(registry.kind()));
            }
        }
        return possible;
    }

    /** Returns the names of all settings that a preset with some of its settings changed may have. */
    public static Set<String> settingNames(Preset preset, Map<String, String> changes) {
        String method = changes.getOrDefault("method", preset.setting("method").orElse(DEFAULT_METHOD));
        Given given = Given.of(preset, method, changes, new ArrayList<>());
        return Collections.unmodifiableSet(
                possible(given, new HashSet<>(), new ArrayList<>()).keySet());
    }

    /** Returns a value, or notes why there is none. */
    private static <T> Optional<T> attempt(Supplier<T> work, List<String> mistakes) {
        try {
            return Optional.of(work.get());
        } catch (ConfigurationException e) {
            mistakes.addAll(e.lines());
            return Optional.empty();
        }
    }

    /**
     * All values that are given.
     *
     * @param values of the presets, the most general first: its settings, those for the method, those for the method in
     *     a case; then the changes
     * @param own the names whose value is not inherited from a preset that is extended
     * @param changes by the user, of this preset
     */
    private record Given(Map<String, String> values, Set<String> own, Map<String, String> changes) {
        static Given of(Preset preset, String method, Map<String, String> changes, List<String> mistakes) {
            var values = new LinkedHashMap<String, String>();
            var own = new LinkedHashSet<String>();
            for (Preset each : preset.lineage()) {
                own.clear();
                var layer = new LinkedHashMap<>(each.settings());
                layer.putAll(each.methods().getOrDefault(method, Map.of()));
                var all = new LinkedHashMap<>(values);
                all.putAll(layer);
                all.putAll(changes);
                for (Preset.Case where : each.cases()) {
                    String value = all.getOrDefault(where.setting(), "");
                    attempt(() -> setting(where.setting()), mistakes).ifPresent(setting -> {
                        if (!value.isEmpty() && isSame(setting, value, where.value())) {
                            layer.putAll(where.methods().getOrDefault(method, Map.of()));
                        }
                    });
                }
                values.putAll(layer);
                own.addAll(layer.keySet());
            }
            values.putAll(changes);
            own.addAll(changes.keySet());
            values.put("preset", preset.name());
            values.put("method", method);
            return new Given(values, own, changes);
        }

        /** Compares two values in their canonical form; one that has none is reported where it is used. */
        private static boolean isSame(Setting setting, String a, String b) {
            try {
                return setting.check(a).equals(setting.check(b));
            } catch (ConfigurationException e) {
                return false;
            }
        }

        /**
         * Returns whether a value is there for a choice that the user has changed, such as {@code lambda} after
         * {@code --set objective=mean}; a name that no choice has is a mistake all the same.
         */
        boolean isLeftOver(String name) {
            return !changes.containsKey(name)
                    && KINDS.stream()
                            .anyMatch(registry -> changes.containsKey(registry.kind())
                                    && having(name, registry).findAny().isPresent());
        }

        String value(Setting setting) {
            return values.getOrDefault(setting.name(), setting.defaultValue());
        }
    }

    /** Returns whether a setting of any choice is a path. */
    static boolean isPath(String name) {
        return settings().anyMatch(setting -> setting.isPath() && setting.name().equals(name));
    }

    private static Stream<Setting> settings() {
        return Stream.concat(
                general().values().stream(),
                KINDS.stream()
                        .flatMap(registry -> registry.entries().stream())
                        .flatMap(choice -> choice.settings().stream()));
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

    private static Setting setting(String name) {
        return settings()
                .filter(setting -> setting.name().equals(name))
                .findFirst()
                .orElseThrow(() -> new ConfigurationException(
                        Nearest.unknown("setting", name, general().keySet())));
    }

    /** Explains why a setting is not one of this run. */
    private static String unknown(String name, String method, Set<String> possible) {
        if (OF_PROBLEM.stream()
                .anyMatch(registry -> having(name, registry).findAny().isPresent())) {
            return "%s is not a setting of this run; it requires %s"
                    .formatted(
                            name,
                            KINDS.stream()
                                    .flatMap(registry -> having(name, registry))
                                    .collect(joining(" or ")));
        }
        return having(name, MethodChoice.ALL).findAny().isPresent()
                ? "method '%s' has no %s; it has %s"
                        .formatted(
                                method,
                                name,
                                MethodChoice.ALL.get(method).settings().stream()
                                        .map(Setting::name)
                                        .collect(joining(", ")))
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

    /** Returns whether it has a setting: one that need not be given may be missing. */
    public boolean has(String name) {
        return values.containsKey(name);
    }

    /** Returns a setting that is a path; empty where it is not given. */
    public Optional<Path> path(String name) {
        return Optional.ofNullable(values.get(name)).map(Path::of);
    }

    /** Returns a line for every setting that names a file or a directory that does not exist. */
    List<String> missingFiles() {
        return settings()
                .filter(Setting::isPath)
                .map(Setting::name)
                .distinct()
                .flatMap(name -> path(name).stream()
                        .filter(file -> !Files.exists(Npy.file(file)))
                        .map(file -> "%s = %s: no such file or directory".formatted(name, Npy.file(file))))
                .toList();
    }

    /** Returns a setting that is a whole number. */
    public int integer(String name) {
        return Integer.parseInt(text(name));
    }

    /** Returns a setting that is a number. */
    public double number(String name) {
        return Double.parseDouble(text(name));
    }

    /** Returns a setting that is true or false. */
    public boolean flag(String name) {
        return Boolean.parseBoolean(text(name));
    }

    /** Returns a setting that may change from step to step. */
    public Schedule schedule(String name) {
        return Schedule.parse(text(name));
    }

    /** Returns the number of local steps T. */
    public long iterations() {
        return Long.parseLong(text("iterations"));
    }

    /** Returns the number of clients; empty where the data say it, as a split by a column allows. */
    public OptionalInt clients() {
        return has("clients") ? OptionalInt.of(integer("clients")) : OptionalInt.empty();
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

    /**
     * Returns a name for what the method minimizes. Single-level methods minimize the mean of the clients' losses
     * whatever the objective is, and some methods have an objective of their own.
     */
    public String minimized() {
        if (method().isSingleLevel()) {
            return "mean";
        }
        List<Setting> own = chosen(MethodChoice.ALL).settings();
        return own.contains(LossObjective.LAMBDA) || own.contains(LossObjective.LEVEL)
                ? methodName()
                : text(Objectives.ALL.kind());
    }

    /** Returns the objective by which models are evaluated, with its settings. */
    public String objective() {
        ObjectiveChoice objective = chosen(Objectives.ALL);
        return objective.settings().stream()
                .filter(setting -> has(setting.name()))
                .map(setting -> ", %s = %s".formatted(setting.name(), text(setting.name())))
                .collect(joining("", objective.name(), ""));
    }

    /** Returns the chosen entry of a kind. */
    <C extends Choice> C chosen(Registry<C> registry) {
        return registry.get(text(registry.kind()));
    }

    /** Returns the number of gradient evaluations of all clients in {@code steps} steps, if none is dropped. */
    long gradientEvaluations(long steps, int clients) {
        return steps * chosen(MethodChoice.ALL).gradients() * cohort(clients);
    }

    /** Returns how many of all clients take part in a round. */
    int cohort(int clients) {
        return has("cohort") ? integer("cohort") : (int) Math.max(1, Math.round(number("participation") * clients));
    }

    Federation.ExchangeKind exchange() {
        return Federation.ExchangeKind.valueOf(text("exchange").toUpperCase(Locale.ROOT));
    }

    /** Returns how gradients are computed. */
    Gradients gradients() {
        return Gradients.valueOf(text("gradients").replace('-', '_').toUpperCase(Locale.ROOT));
    }

    ClientFault.Policy policy() {
        return text("onFault").equals("drop") ? ClientFault.Policy.DROP : ClientFault.Policy.FAIL;
    }

    Method method() {
        return chosen(MethodChoice.ALL).factory().apply(this, muon());
    }

    /**
     * Returns a network that is made for one kind of data, without data.
     *
     * @param classes the number of classes of a prediction: those of images, or the vocabulary
     */
    @SuppressWarnings("exports") // users of networks have libtorch; others must not need it
    public Network network(int classes) {
        ModelChoice model = chosen(ModelChoice.ALL);
        return model.factory().network(this, model.input().orElseThrow(), classes);
    }

    /**
     * Returns the settings that the losses of the clients depend on: a checkpoint of another problem must not be
     * resumed.
     */
    Map<String, String> problem() {
        var all = new LinkedHashMap<String, String>();
        for (String name : List.of("model", "split", "objective", "batch", "positives", VALIDATION_SHARE.name())) {
            if (has(name)) {
                all.put(name, text(name));
            }
        }
        for (Registry<? extends Choice> registry : OF_PROBLEM) {
            chosen(registry).settings().stream()
                    .filter(setting -> has(setting.name()) && !setting.isPath()) // files are compared by their content
                    .forEach(setting -> all.put(setting.name(), text(setting.name())));
        }
        return all;
    }

    Muon muon() {
        return MuonSettings.options(
                this,
                new Muon(
                        orthogonalizer(),
                        ScaleRule.valueOf(text("scale").toUpperCase(Locale.ROOT)),
                        Device.StepRule.valueOf(text("vectorRule").toUpperCase(Locale.ROOT)),
                        number("vectorRate")));
    }

    /**
     * Returns the schedule of Newton-Schulz, with the steps that are set or those of the set.
     *
     * @throws IllegalArgumentException when it has no such number of steps
     */
    public Coefficients coefficients() {
        return Coefficients.parse(
                text("coefficients"), has("schulzSteps") ? Optional.of(integer("schulzSteps")) : Optional.empty());
    }

    Orthogonalizer orthogonalizer() {
        String name = text("orthogonalizer");
        Precision precision = Precision.parse(text("precision"));
        var products = Orthogonalizer.Products.parse(text("products"));
        if (name.startsWith("exact")) {
            if (precision != Precision.FP32) {
                throw new ConfigurationException("precision = %s: %s is always fp32".formatted(precision, name));
            }
            return name.equals("exact") ? new Exact() : new ExactSvd();
        }
        Coefficients coefficients;
        try {
            coefficients = coefficients();
            return switch (name) {
                case "gram" -> new GramNewtonSchulz(coefficients, precision, products);
                case "auto" -> new Auto(coefficients, precision, products);
                default -> new NewtonSchulz(coefficients, precision, products);
            };
        } catch (IllegalArgumentException e) {
            throw new ConfigurationException(String.valueOf(e.getMessage()), e);
        }
    }
}
