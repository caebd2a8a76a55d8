package org.fedcomuon.experiment;

import java.io.IOException;
import java.nio.charset.CharacterCodingException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.fedcomuon.format.AtomicFile;
import org.fedcomuon.format.Dtype;
import org.fedcomuon.format.SafetensorsWriter;
import org.fedcomuon.format.TensorSpec;
import org.fedcomuon.problem.Block;
import org.fedcomuon.problem.Point;
import tools.jackson.core.JacksonException;
import tools.jackson.core.type.TypeReference;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.SerializationFeature;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.dataformat.yaml.YAMLMapper;
import tools.jackson.dataformat.yaml.YAMLWriteFeature;

/** What a run leaves in its directory. Every file is whole whenever it is there. */
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

    Path directory() {
        return directory;
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

    /** Whether anything has been measured here. */
    boolean hasMetrics() {
        return Files.exists(metricsFile());
    }

    Path config() {
        return directory.resolve("config.yaml");
    }

    /** Deletes what is left of an earlier part of the run that was killed while it was writing. */
    void deleteAbandoned() throws IOException {
        for (Path file : List.of(config(), metricsFile(), summaryFile())) {
            AtomicFile.deleteAbandoned(file);
        }
    }

    void writeConfig(Configuration configuration) throws IOException {
        AtomicFile.write(config(), YAML.writeValueAsString(configuration.values()));
    }

    /**
     * Takes up the metrics of an earlier part of the run.
     *
     * @param step what came after it is done again, and so forgotten
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
            throw new ConfigurationException("%s is no UTF-8 text".formatted(file), e);
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

    /** The model, a tensor a block, in the shape that its block has. */
    void writeModel(Point weights, Map<String, String> metadata) throws IOException {
        var specs = new ArrayList<TensorSpec>();
        for (Block block : weights.layout().blocks()) {
            specs.add(new TensorSpec(
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
