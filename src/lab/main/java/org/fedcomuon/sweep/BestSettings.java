package org.fedcomuon.sweep;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import org.fedcomuon.experiment.ConfigurationException;
import org.fedcomuon.file.MalformedFileException;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/**
 * The settings that a complete sweep has found, from its file: for those who go on with them after the sweep has ended.
 *
 * <p>Immutable.
 *
 * @param preset by name
 * @param settings that the sweep has varied, by method
 */
public record BestSettings(String preset, Map<String, Map<String, String>> settings) {
    public BestSettings {
        settings = Collections.unmodifiableMap(new LinkedHashMap<>(settings));
    }

    /**
     * Reads the file of a sweep.
     *
     * @param directory of the sweep
     * @throws ConfigurationException when it has none, a damaged one, or one of a sweep that is not complete
     */
    public static BestSettings read(Path directory) {
        Path file = SweepFiles.json(directory);
        try {
            JsonNode all = JsonMapper.shared().readTree(Files.readString(file));
            if (!all.required("complete").booleanValue()) {
                throw new ConfigurationException("%s: %d of %d trials have ended; the command that began it continues"
                        .formatted(
                                file,
                                all.required("trials").size(),
                                all.required("planned").intValue()));
            }
            var best = new LinkedHashMap<String, Map<String, String>>();
            for (JsonNode ranking : all.required("rankings")) {
                for (JsonNode standing : ranking.required("settings")) { // the best one first
                    if (standing.has("mean")) {
                        best.putIfAbsent(standing.required("method").stringValue(), settings(standing));
                    }
                }
            }
            return new BestSettings(all.required("preset").stringValue(), best);
        } catch (IOException e) {
            throw new ConfigurationException("%s: %s".formatted(file, MalformedFileException.reason(e)), e);
        } catch (JacksonException e) {
            throw new ConfigurationException(
                    "%s: not the file of a sweep: %s"
                            .formatted(
                                    file,
                                    e.getOriginalMessage().lines().findFirst().orElse("no JSON")),
                    e);
        }
    }

    private static Map<String, String> settings(JsonNode standing) {
        var settings = new LinkedHashMap<String, String>();
        standing.required("settings")
                .properties()
                .forEach(entry -> settings.put(entry.getKey(), entry.getValue().stringValue()));
        return settings;
    }
}
