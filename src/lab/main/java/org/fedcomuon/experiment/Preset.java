package org.fedcomuon.experiment;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.JsonNode;
import tools.jackson.dataformat.yaml.YAMLMapper;

/**
 * A named experiment: settings, and for each method the settings that differ. The {@code config.yaml} of a run is a
 * preset too, without methods.
 *
 * @param name of the preset
 * @param settings values by name
 * @param methods the settings of each method, by the name of the method
 * @param cases settings of methods that differ where a setting has a certain value
 */
public record Preset(
        String name, Map<String, String> settings, Map<String, Map<String, String>> methods, List<Case> cases) {
    /** The names of the presets that come with the program. */
    public static final List<String> NAMES =
            List.of("mnist-robust", "wikitext2-robust", "cifar-maml-cnn", "cifar-maml-vit");

    private static final long MOST_BYTES = 1 << 20;
    private static final String METHODS = "methods";
    private static final String CASES = "where";

    /**
     * Settings of methods that apply where a setting has a certain value.
     *
     * @param setting the name of that setting
     * @param value the value that it must have
     * @param methods the settings of each method, by the name of the method
     */
    public record Case(String setting, String value, Map<String, Map<String, String>> methods) {}

    public Preset {
        cases = List.copyOf(cases);
    }

    /**
     * Returns a preset by its name, or a file by its path.
     *
     * @throws ConfigurationException when there is none, or the file is not a preset
     */
    public static Preset load(String nameOrPath) {
        if (NAMES.contains(nameOrPath)) {
            try (InputStream in = Preset.class.getResourceAsStream("presets/%s.yaml".formatted(nameOrPath))) {
                if (in == null) {
                    throw new IllegalStateException("the preset %s is not among the resources".formatted(nameOrPath));
                }
                return parse(nameOrPath, new String(in.readAllBytes(), java.nio.charset.StandardCharsets.UTF_8));
            } catch (IOException e) {
                throw new IllegalStateException("the preset %s cannot be read".formatted(nameOrPath), e);
            }
        }
        if (!nameOrPath.endsWith(".yaml") && !nameOrPath.endsWith(".yml")) {
            throw new ConfigurationException(
                    Nearest.unknown("preset", nameOrPath, NAMES) + " Or name a file that ends in .yaml");
        }
        try {
            return read(Path.of(nameOrPath));
        } catch (InvalidPathException e) {
            throw new ConfigurationException("%s cannot be the name of a file".formatted(nameOrPath), e);
        }
    }

    /** Reads a preset from a file; the configuration of a run keeps the name of its preset. */
    public static Preset read(Path file) {
        String text;
        try {
            // A device or a pipe may be endless.
            if (Files.exists(file) && !Files.isRegularFile(file)) {
                throw new ConfigurationException("%s is not a regular file".formatted(file));
            }
            if (Files.size(file) > MOST_BYTES) {
                throw new ConfigurationException(
                        "%s is larger than %d bytes and so cannot be a preset".formatted(file, MOST_BYTES));
            }
            text = Files.readString(file);
        } catch (IOException e) {
            throw new ConfigurationException("%s cannot be read: %s".formatted(file, e), e);
        }
        return parse(file.toString(), text);
    }

    static Preset parse(String name, String text) {
        JsonNode root;
        try {
            root = YAMLMapper.shared().readTree(new SurrogateSafeReader(text));
        } catch (JacksonException e) {
            throw new ConfigurationException(
                    "%s is not YAML: %s"
                            .formatted(
                                    name,
                                    e.getOriginalMessage().lines().findFirst().orElse("")),
                    e);
        }
        if (!root.isObject()) {
            throw new ConfigurationException("%s is not a preset: one setting per line is needed".formatted(name));
        }
        var settings = new LinkedHashMap<String, String>();
        var methods = new LinkedHashMap<String, Map<String, String>>();
        var cases = new ArrayList<Case>();
        root.properties().forEach(entry -> {
            switch (entry.getKey()) {
                case METHODS -> methods.putAll(methods(name, entry.getValue()));
                case CASES ->
                    entry.getValue()
                            .properties()
                            .forEach(setting -> setting.getValue()
                                    .properties()
                                    .forEach(value -> cases.add(new Case(
                                            setting.getKey(), value.getKey(), methods(name, value.getValue())))));
                default -> settings.put(entry.getKey(), scalar(name, entry.getKey(), entry.getValue()));
            }
        });
        String called = settings.containsKey("preset") ? settings.get("preset") : name;
        settings.remove("preset");
        return new Preset(called, Collections.unmodifiableMap(settings), Collections.unmodifiableMap(methods), cases);
    }

    private static Map<String, Map<String, String>> methods(String preset, JsonNode all) {
        var methods = new LinkedHashMap<String, Map<String, String>>();
        all.properties().forEach(method -> {
            MethodChoice.ALL.get(method.getKey());
            var own = new LinkedHashMap<String, String>();
            method.getValue()
                    .properties()
                    .forEach(
                            setting -> own.put(setting.getKey(), scalar(preset, setting.getKey(), setting.getValue())));
            methods.put(method.getKey(), Collections.unmodifiableMap(own));
        });
        return Collections.unmodifiableMap(methods);
    }

    private static String scalar(String preset, String name, JsonNode value) {
        if (!value.isValueNode() || value.isNull()) {
            throw new ConfigurationException("%s: %s is not a single value".formatted(preset, name));
        }
        return value.asString();
    }
}
