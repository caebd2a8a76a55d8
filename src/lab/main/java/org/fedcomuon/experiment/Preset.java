package org.fedcomuon.experiment;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.fedcomuon.file.MalformedFileException;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.DeserializationFeature;
import tools.jackson.databind.JsonNode;
import tools.jackson.dataformat.yaml.YAMLMapper;

/**
 * A named experiment: settings, and for each method the settings that differ. A user's own file is a preset too, and so
 * is the {@code config.yaml} of a run. A preset may extend another one: its own values take precedence over all of the
 * other's, and values of the other that do not apply to its own choice of data, model, split, objective or method are
 * left out.
 *
 * @param name of the preset
 * @param settings values by name
 * @param methods the settings of each method, by the name of the method
 * @param cases settings of methods that differ where a setting has a certain value
 * @param base the preset that it extends
 * @param mistakes found in the file, a line each; {@link Configuration#of} reports them together with its own
 * @param unread the settings that are in the file, but whose values are among the mistakes
 */
public record Preset(
        String name,
        Map<String, String> settings,
        Map<String, Map<String, String>> methods,
        List<Case> cases,
        Optional<Preset> base,
        List<String> mistakes,
        Set<String> unread) {
    /** The names of the presets that come with the program. */
    public static final List<String> NAMES = List.of(
            "mnist-robust",
            "wikitext2-robust",
            "cifar-maml-cnn",
            "cifar-maml-vit",
            "mnist-auc",
            "portfolio",
            "policy-evaluation");

    /** A setting that is given twice is a mistake, of which one would be dropped silently. */
    private static final YAMLMapper YAML = YAMLMapper.builder()
            .enable(DeserializationFeature.FAIL_ON_READING_DUP_TREE_KEY)
            .build();

    private static final long MOST_BYTES = 1 << 20;
    private static final String METHODS = "methods";
    private static final String CASES = "where";
    private static final String EXTENDS = "extends";

    /** More than anybody could keep track of. */
    private static final int MOST_BASES = 20;

    /** The settings that may be a list. */
    private static final Set<String> LISTS = Set.of("positives", "shares");

    /** The settings that may be a mapping, whose entries become settings such as {@code train.x}. */
    private static final Set<String> GROUPS = Set.of("train", "test");

    /**
     * Settings of methods that apply where a setting has a certain value.
     *
     * @param setting the name of that setting
     * @param value the value that it must have
     * @param methods the settings of each method, by the name of the method
     */
    public record Case(String setting, String value, Map<String, Map<String, String>> methods) {}

    public Preset {
        settings = Collections.unmodifiableMap(new LinkedHashMap<>(settings));
        methods = Collections.unmodifiableMap(new LinkedHashMap<>(methods));
        cases = List.copyOf(cases);
        mistakes = List.copyOf(mistakes);
        unread = Set.copyOf(unread);
    }

    /**
     * Returns a preset by its name, or a file by its path.
     *
     * @throws ConfigurationException when there is none, or the file is not a preset
     */
    public static Preset load(String nameOrPath) {
        if (NAMES.contains(nameOrPath)) {
            return packaged(nameOrPath);
        }
        if (!isFile(nameOrPath)) {
            throw new ConfigurationException(
                    Nearest.unknown("preset", nameOrPath, NAMES) + " Or name a file that ends in .yaml");
        }
        try {
            return read(Path.of(nameOrPath));
        } catch (InvalidPathException e) {
            throw new ConfigurationException("%s cannot be the name of a file".formatted(nameOrPath), e);
        }
    }

    private static boolean isFile(String nameOrPath) {
        return nameOrPath.endsWith(".yaml") || nameOrPath.endsWith(".yml");
    }

    private static Preset packaged(String name) {
        try (InputStream in = Preset.class.getResourceAsStream("presets/%s.yaml".formatted(name))) {
            if (in == null) {
                throw new IllegalStateException("the preset %s is not among the resources".formatted(name));
            }
            return parse(name, new String(in.readAllBytes(), StandardCharsets.UTF_8));
        } catch (IOException e) {
            throw new IllegalStateException("the preset %s cannot be read".formatted(name), e);
        }
    }

    /** Reads a preset from a file; the configuration of a run keeps the name of its preset. */
    public static Preset read(Path file) {
        return read(file, List.of());
    }

    private static Preset read(Path file, List<Path> extending) {
        return new Reader(file.toString(), Optional.of(file), extending).preset(text(file));
    }

    private static String text(Path file) {
        try {
            // A device or a pipe may be endless.
            if (Files.exists(file) && !Files.isRegularFile(file)) {
                throw new ConfigurationException("%s is not a regular file".formatted(file));
            }
            if (Files.size(file) > MOST_BYTES) {
                throw new ConfigurationException(
                        "%s is larger than %d bytes and so cannot be a preset".formatted(file, MOST_BYTES));
            }
            return Files.readString(file);
        } catch (IOException e) {
            throw new ConfigurationException(
                    "%s cannot be read: %s".formatted(file, MalformedFileException.reason(e)), e);
        }
    }

    static Preset parse(String name, String text) {
        return new Reader(name, Optional.empty(), List.of()).preset(text);
    }

    /** Returns the presets that are extended, the most general first, and this one last. */
    List<Preset> lineage() {
        var all = new ArrayList<Preset>(base.map(Preset::lineage).orElse(List.of()));
        all.add(this);
        return all;
    }

    /** Returns a value of this preset, or else of the one that it extends. */
    public Optional<String> setting(String key) {
        return Optional.ofNullable(settings.get(key)).or(() -> base.flatMap(other -> other.setting(key)));
    }

    /** Reads one file, and those that it extends. */
    private static final class Reader {
        private final String name;
        private final Optional<Path> file;
        private final List<Path> extending;
        private final List<String> mistakes = new ArrayList<>();
        private final Set<String> unread = new HashSet<>();

        /** @param extending the files that led to this one */
        Reader(String name, Optional<Path> file, List<Path> extending) {
            this.name = name;
            this.file = file;
            this.extending = extending;
        }

        Preset preset(String text) {
            JsonNode root = tree(text);
            var settings = new LinkedHashMap<String, String>();
            var methods = new LinkedHashMap<String, Map<String, String>>();
            var cases = new ArrayList<Case>();
            Optional<Preset> base = Optional.empty();
            for (Map.Entry<String, JsonNode> entry : root.properties()) {
                String key = entry.getKey();
                JsonNode value = entry.getValue();
                switch (key) {
                    case METHODS -> methods.putAll(methods(METHODS, value));
                    case CASES -> cases(value, cases);
                    case EXTENDS -> base = scalar(key, value).flatMap(this::base);
                    default -> setting(key, value, settings);
                }
            }
            String called = settings.containsKey("preset") ? settings.get("preset") : name;
            settings.remove("preset");
            return new Preset(called, settings, methods, cases, base, mistakes, unread);
        }

        private JsonNode tree(String text) {
            JsonNode root;
            try {
                root = YAML.readTree(new SurrogateSafeReader(text));
            } catch (JacksonException e) {
                throw new ConfigurationException(
                        "%s is not YAML: %s"
                                .formatted(
                                        name,
                                        e.getOriginalMessage()
                                                .lines()
                                                .findFirst()
                                                .orElse("")),
                        e);
            }
            if (!root.isObject()) {
                throw new ConfigurationException("%s is not a preset: one setting per line is needed".formatted(name));
            }
            return root;
        }

        private Optional<Preset> base(String nameOrPath) {
            if (NAMES.contains(nameOrPath)) {
                return Optional.of(packaged(nameOrPath));
            }
            if (!isFile(nameOrPath)) {
                mistake("%s: %s = %s: %s Or name a file that ends in .yaml"
                        .formatted(name, EXTENDS, nameOrPath, Nearest.unknown("preset", nameOrPath, NAMES)));
                return Optional.empty();
            }
            try {
                var next = new ArrayList<>(extending);
                file.ifPresent(path -> next.add(path.toAbsolutePath().normalize()));
                Path other = resolved(nameOrPath).toAbsolutePath().normalize();
                if (next.contains(other) || next.size() > MOST_BASES) {
                    mistake("%s: %s = %s leads back to a file that extends it; a file may not extend itself"
                            .formatted(name, EXTENDS, nameOrPath));
                    return Optional.empty();
                }
                Preset read = Preset.read(other, next);
                mistakes.addAll(read.mistakes());
                unread.addAll(read.unread());
                return Optional.of(read);
            } catch (ConfigurationException | InvalidPathException e) {
                mistake("%s: %s = %s: %s".formatted(name, EXTENDS, nameOrPath, e.getMessage()));
                return Optional.empty();
            }
        }

        /** Returns a path that begins at the directory of the file. */
        private Path resolved(String path) {
            return file.map(own -> own.resolveSibling(path)).orElseGet(() -> Path.of(path));
        }

        /**
         * Adds a setting. {@code model: {layers: [...]}} is the same as {@code model: layers} and {@code layers:
         * [...]}; {@code train: {x: FILE}} is the same as {@code train.x: FILE}.
         */
        private void setting(String key, JsonNode value, Map<String, String> settings) {
            if (value.isObject() && key.equals(ModelChoice.ALL.kind())) {
                if (value.size() != 1) {
                    unread.add(key);
                    mistake("%s: model has %d entries; one is possible: %s"
                            .formatted(name, value.size(), String.join(", ", ModelChoice.STRUCTURED)));
                    return;
                }
                value.properties().forEach(only -> {
                    settings.put(key, only.getKey());
                    put(only.getKey(), only.getValue(), settings);
                });
            } else if (value.isObject() && GROUPS.contains(key)) {
                value.properties().forEach(entry -> put(key + "." + entry.getKey(), entry.getValue(), settings));
            } else {
                put(key, value, settings);
            }
        }

        private void put(String key, JsonNode value, Map<String, String> settings) {
            if (key.equals(ModelChoice.LAYERS) && value.isArray()) {
                settings.put(key, value.toString()); // as JSON, which fits on a line
            } else {
                scalar(key, value).ifPresent(text -> settings.put(key, located(key, text)));
            }
        }

        /** Returns a path as it is seen from the working directory; other values as they are. */
        private String located(String key, String value) {
            if (file.isEmpty() || !Configuration.isPath(key)) {
                return value;
            }
            try {
                return resolved(value).toString();
            } catch (InvalidPathException e) {
                return value; // which is then found to be no path
            }
        }

        private void cases(JsonNode all, List<Case> cases) {
            entries(CASES, all).forEach((setting, values) -> {
                String where = CASES + "." + setting;
                entries(where, values)
                        .forEach((value, methods) ->
                                cases.add(new Case(setting, value, methods(where + "." + value, methods))));
            });
        }

        /** Returns the entries of a mapping; anything else is a mistake. */
        private Map<String, JsonNode> entries(String key, JsonNode value) {
            var entries = new LinkedHashMap<String, JsonNode>();
            if (value.isObject()) {
                value.properties().forEach(entry -> entries.put(entry.getKey(), entry.getValue()));
            } else {
                mistake("%s: %s is not a mapping, such as %s: {NAME: {...}}"
                        .formatted(name, key, key.substring(key.lastIndexOf('.') + 1)));
            }
            return entries;
        }

        private Map<String, Map<String, String>> methods(String key, JsonNode all) {
            var methods = new LinkedHashMap<String, Map<String, String>>();
            entries(key, all).forEach((method, settings) -> {
                try {
                    MethodChoice.ALL.get(method);
                } catch (ConfigurationException e) {
                    mistake("%s: %s".formatted(key, e.getMessage()));
                }
                var own = new LinkedHashMap<String, String>();
                entries(key + "." + method, settings)
                        .forEach((setting, value) -> scalar(setting, value).ifPresent(text -> own.put(setting, text)));
                methods.put(method, Collections.unmodifiableMap(own));
            });
            return Collections.unmodifiableMap(methods);
        }

        /** Returns a single value, or the elements of a list separated by commas. */
        private Optional<String> scalar(String key, JsonNode value) {
            if (LISTS.contains(key)
                    && value.isArray()
                    && !value.isEmpty()
                    && value.valueStream().allMatch(Reader::isSingle)) {
                return Optional.of(String.join(
                        ",", value.valueStream().map(JsonNode::asString).toList()));
            }
            if (!isSingle(value)) {
                unread.add(key);
                mistake("%s: %s is %s; %s is needed".formatted(name, key, kind(value), wanted(key)));
                return Optional.empty();
            }
            return Optional.of(value.asString());
        }

        private static String kind(JsonNode value) {
            return value.isArray() ? "a list" : value.isObject() ? "a mapping" : "empty";
        }

        private static String wanted(String key) {
            if (LISTS.contains(key)) {
                return "a list of single values";
            }
            if (key.equals(ModelChoice.ALL.kind())) {
                return "a name, or layers: [...]";
            }
            return GROUPS.contains(key) ? "a path, or a mapping such as {x: FILE, y: FILE}" : "a single value";
        }

        private static boolean isSingle(JsonNode value) {
            return value.isValueNode() && !value.isNull();
        }

        private void mistake(String text) {
            mistakes.add(text);
        }
    }
}
