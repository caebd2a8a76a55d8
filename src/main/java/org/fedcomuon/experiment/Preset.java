package org.fedcomuon.experiment;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.JsonNode;
import tools.jackson.dataformat.yaml.YAMLMapper;

/**
 * A named experiment: settings, and for each method its own on top of them. A run's {@code config.yaml} is one too,
 * without methods.
 *
 * @param name what it is called
 * @param settings by name
 * @param methods the settings of each method, by its name
 */
public record Preset(String name, Map<String, String> settings, Map<String, Map<String, String>> methods) {
    /** Those that come with the program. */
    public static final List<String> NAMES = List.of("mnist-robust");

    private static final String METHODS = "methods";

    /**
     * A preset by its name, or a file by its path.
     *
     * @throws ConfigurationException when there is none, or the file is no preset
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
        return read(Path.of(nameOrPath));
    }

    /** The preset in a file; a run's own configuration keeps the name of the preset it was made of. */
    public static Preset read(Path file) {
        String text;
        try {
            text = Files.readString(file);
        } catch (IOException e) {
            throw new ConfigurationException("%s cannot be read: %s".formatted(file, e), e);
        }
        return parse(file.toString(), text);
    }

    static Preset parse(String name, String text) {
        JsonNode root;
        try {
            root = YAMLMapper.shared().readTree(text);
        } catch (JacksonException e) {
            throw new ConfigurationException(
                    "%s is not YAML: %s"
                            .formatted(
                                    name,
                                    e.getOriginalMessage().lines().findFirst().orElse("")),
                    e);
        }
        if (!root.isObject()) {
            throw new ConfigurationException("%s is not a preset: settings, one a line, are needed".formatted(name));
        }
        var settings = new LinkedHashMap<String, String>();
        var methods = new LinkedHashMap<String, Map<String, String>>();
        root.properties().forEach(entry -> {
            if (!entry.getKey().equals(METHODS)) {
                settings.put(entry.getKey(), scalar(name, entry.getKey(), entry.getValue()));
                return;
            }
            entry.getValue().properties().forEach(method -> {
                MethodChoice.of(method.getKey());
                var own = new LinkedHashMap<String, String>();
                method.getValue()
                        .properties()
                        .forEach(setting ->
                                own.put(setting.getKey(), scalar(name, setting.getKey(), setting.getValue())));
                methods.put(method.getKey(), Collections.unmodifiableMap(own));
            });
        });
        String called = settings.containsKey("preset") ? settings.get("preset") : name;
        settings.remove("preset");
        return new Preset(called, Collections.unmodifiableMap(settings), Collections.unmodifiableMap(methods));
    }

    private static String scalar(String preset, String name, JsonNode value) {
        if (!value.isValueNode() || value.isNull()) {
            throw new ConfigurationException("%s: %s is not a single value".formatted(preset, name));
        }
        return value.asString();
    }
}
