package org.fedcomuon.experiment;

import java.io.IOException;
import java.nio.charset.CharacterCodingException;
import java.nio.file.DirectoryNotEmptyException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.fedcomuon.format.Dtype;
import org.fedcomuon.format.SafetensorsWriter;
import org.fedcomuon.internal.file.AtomicFile;
import org.fedcomuon.problem.Block;
import org.fedcomuon.problem.Point;
import tools.jackson.core.JacksonException;
import tools.jackson.core.type.TypeReference;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.SerializationFeature;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.dataformat.yaml.YAMLMapper;
import tools.jackson.dataformat.yaml.YAMLWriteFeature;

/** The files of a run in its directory. A file that exists is complete. */
final class RunFiles {
    private static final JsonMapper JSON = JsonMapper.shared();
    private static final YAMLMapper YAML = YAMLMapper.builder()
            .enable(YAMLWriteFeature.MINIMIZE_QUOTES)
            .disable(YAMLWriteFeature.WRITE_DOC_START_MARKER)
            .build();
    private static final JsonMapper PRETTY =
            JsonMapper.builder().enable(SerializationFeature.INDENT_OUTPUT).build();

    private final Path directory;
    private final List<String> metrics = new ArrayList<>();

    RunFiles(Path directory) {
        this.directory = directory;
    }

    /** Deletes the configuration, and the directory if nothing else is in it. */
    void deleteUnused() throws IOException {
        Files.deleteIfExists(config());
        try {
            Files.deleteIfExists(directory);
        } catch (DirectoryNotEmptyException e) {
            // It holds other files, which are kept.
        }
    }

    Path checkpoints() {
        return directory.resolve("checkpoints");
    }

    private Path metricsFile() {
        return directory.resolve("metrics.jsonl");
    }

    private Path summaryFile() {
        return directory.resolve("summary.json");
    }

    /** Returns whether the run has metrics. */
    boolean hasMetrics() {
        return Files.exists(metricsFile());
    }

    Path config() {
        return directory.resolve("config.yaml");
    }

    /** Deletes incomplete files of an earlier part of the run that was killed while writing. */
    void deleteAbandoned() throws IOException {
        for (Path file : List.of(config(), metricsFile(), summaryFile())) {
            AtomicFile.deleteAbandoned(file);
        }
    }

    void writeConfig(Configuration configuration) throws IOException {
        AtomicFile.write(config(), YAML.writeValueAsString(configuration.values()));
    }

    /**
     * Reads the metrics of an earlier part of the run.
     *
     * @param step the step that the run is resumed from; later metrics are dropped, because they are measured again
     * @return the last line kept; empty when there is none
     */
    Optional<JsonNode> resumeMetrics(long step) throws IOException {
        Path file = metricsFile();
        Optional<JsonNode> last = Optional.empty();
        if (Files.exists(file)) {
            for (String line : lines(file)) {
                try {
                    JsonNode values = JSON.readTree(line);
                    if (values.path("step").asLong(Long.MAX_VALUE) <= step) {
                        metrics.add(line);
                        last = Optional.of(values);
                    }
                } catch (JacksonException e) {
                    throw new ConfigurationException("%s has a line that is not JSON".formatted(file), e);
                }
            }
        }
        return last;
    }

    private static List<String> lines(Path file) throws IOException {
        try {
            return Files.readAllLines(file);
        } catch (CharacterCodingException e) {
            throw new ConfigurationException("%s is not UTF-8 text".formatted(file), e);
        }
    }

    void addMetrics(Map<String, Object> values) throws IOException {
        metrics.add(JSON.writeValueAsString(values));
        AtomicFile.write(metricsFile(), String.join("\n", metrics) + '\n');
    }

    void writeSummary(Map<String, Object> values) throws IOException {
        AtomicFile.write(summaryFile(), PRETTY.writeValueAsString(values) + '\n');
    }

    Map<String, Object> readSummary() throws IOException {
        return JSON.readValue(Files.readString(summaryFile()), new TypeReference<Map<String, Object>>() {});
    }

    /** Writes the model, one tensor per block, in the shape of the block. */
    void writeModel(Point weights, Map<String, String> metadata) throws IOException {
        var specs = new ArrayList<SafetensorsWriter.Tensor>();
        for (Block block : weights.layout().blocks()) {
            specs.add(new SafetensorsWriter.Tensor(
                    block.name(),
                    Dtype.F32,
                    block.shape().stream().map(Integer::longValue).toList()));
        }
        try (var writer = SafetensorsWriter.create(
                directory.resolve("model.safetensors"), new LinkedHashMap<>(metadata), specs)) {
            for (Block block : weights.layout().blocks()) {
                writer.write(block.name(), 0, weights.block(block.name()).segment());
            }
            writer.commit();
        }
    }
}
