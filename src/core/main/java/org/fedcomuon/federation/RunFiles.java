package org.fedcomuon.federation;

import java.io.IOException;
import java.nio.charset.CharacterCodingException;
import java.nio.file.DirectoryNotEmptyException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Pattern;
import org.fedcomuon.file.MalformedFileException;
import org.fedcomuon.format.AtomicFile;
import org.fedcomuon.problem.Point;
import org.jspecify.annotations.Nullable;
import tools.jackson.core.JacksonException;
import tools.jackson.core.type.TypeReference;
import tools.jackson.databind.SerializationFeature;
import tools.jackson.databind.json.JsonMapper;

/**
 * The files of a run in its directory. A file that exists is complete: it gets its name when all of it is on the disk.
 *
 * <table>
 * <caption>The files</caption>
 * <tr><td>{@code config.yaml}</td><td>every setting, one per line</td></tr>
 * <tr><td>{@code metrics.jsonl}</td><td>an object per evaluation: step, round, metrics, seconds, bytes</td></tr>
 * <tr><td>{@code metrics.csv}</td><td>the same as a table (RFC 4180), a row per evaluation</td></tr>
 * <tr><td>{@code clients.jsonl}</td><td>an object per evaluation and client: step, client, metrics of the client</td></tr>
 * <tr><td>{@code summary.json}</td><td>written at the end: the last values, how the run ended, SHA-256 of the weights,
 * where it ran</td></tr>
 * <tr><td>{@code model.safetensors}</td><td>the final weights, a tensor per block</td></tr>
 * <tr><td>{@code report.html}</td><td>a page about all of it, where the lab is on the class path</td></tr>
 * <tr><td>{@code checkpoints}</td><td>what the run can be resumed from</td></tr>
 * <tr><td>{@code tensorboard}</td><td>event files, if they were asked for; each is complete up to the last evaluation,
 * and is there from the start</td></tr>
 * <tr><td>{@code run.lock}</td><td>while it runs: the process that writes the others; see {@link RunLock}</td></tr>
 * </table>
 *
 * <p>Not thread-safe.
 */
public final class RunFiles {
    private static final JsonMapper JSON = JsonMapper.shared();
    private static final JsonMapper PRETTY =
            JsonMapper.builder().enable(SerializationFeature.INDENT_OUTPUT).build();

    /** What YAML reads back as the same text without quotes, whatever type it takes it for. */
    private static final Pattern PLAIN = Pattern.compile("[A-Za-z0-9/.+-][A-Za-z0-9_/.+()-]*");

    private static final TypeReference<Map<String, Object>> VALUES = new TypeReference<>() {};

    private final Path directory;
    private final List<String> metrics = new ArrayList<>();
    private final MetricsTable table = new MetricsTable();
    private final List<String> clients = new ArrayList<>();

    /** Creates the description of a directory, which need not exist. */
    public RunFiles(Path directory) {
        this.directory = directory;
    }

    /**
     * Returns a directory for the files of a new run: the given one or, if it exists, the first of {@code NAME-2},
     * {@code NAME-3} and so on that does not. Another process may be given the same: {@link RunLock#takeUnused} is for
     * one process alone.
     */
    public static Path unused(Path directory) {
        Path free = directory;
        for (int i = 2; Files.exists(free); i++) {
            free = directory.resolveSibling(directory.getFileName() + "-" + i);
        }
        return free;
    }

    /** Returns the file of the settings. */
    public Path config() {
        return directory.resolve("config.yaml");
    }

    /** Returns the file of the metrics. */
    public Path metrics() {
        return directory.resolve("metrics.jsonl");
    }

    /** Returns the file of the metrics as a table. */
    public Path metricsTable() {
        return directory.resolve("metrics.csv");
    }

    /** Returns the file of the metrics of clients. */
    public Path clients() {
        return directory.resolve("clients.jsonl");
    }

    /** Returns the file of the summary. */
    public Path summary() {
        return directory.resolve("summary.json");
    }

    /** Returns the file of the final weights. */
    public Path model() {
        return directory.resolve("model.safetensors");
    }

    /** Returns the page about the run. */
    public Path report() {
        return directory.resolve("report.html");
    }

    /** Returns the directory of the checkpoints. */
    public Path checkpoints() {
        return directory.resolve("checkpoints");
    }

    /** Returns the directory of the event files. */
    public Path tensorBoard() {
        return directory.resolve("tensorboard");
    }

    /** Returns whether the directory holds a run already, finished or not. */
    public boolean areTaken() {
        return Files.exists(metrics())
                || new CheckpointStore(checkpoints()).newest().isPresent();
    }

    /** Returns the sentence by which a new run is refused in the directory of another. */
    static String taken(@Nullable Path directory) {
        return "%s holds a run already; name another directory, or resume it".formatted(directory);
    }

    /** Deletes the configuration, and the directory if nothing else is in it. */
    public void deleteUnused() throws IOException {
        Files.deleteIfExists(config());
        try {
            Files.deleteIfExists(directory);
        } catch (DirectoryNotEmptyException e) {
            // It holds other files, which are kept.
        }
    }

    /** Deletes incomplete files of an earlier part of the run that was killed while writing. */
    void deleteAbandoned() throws IOException {
        for (Path file : List.of(config(), metrics(), metricsTable(), clients(), summary(), report())) {
            AtomicFile.deleteAbandoned(file);
        }
    }

    /** Writes the settings. */
    public void writeConfig(Map<String, String> settings) throws IOException {
        AtomicFile.write(config(), yaml(settings));
    }

    /** Returns settings as YAML, a line each. */
    public static String yaml(Map<String, String> settings) {
        var text = new StringBuilder();
        settings.forEach((name, value) ->
                text.append(scalar(name)).append(": ").append(scalar(value)).append('\n'));
        return text.toString();
    }

    /** Returns a text as YAML, which takes every string of JSON. */
    private static String scalar(String text) {
        return PLAIN.matcher(text).matches() ? text : JSON.writeValueAsString(text);
    }

    /**
     * Reads the metrics of an earlier part of the run.
     *
     * @param step the step that the run is resumed from; later metrics are dropped, because they are measured again
     * @return the last line kept; empty when there is none
     * @throws MalformedFileException when a line is damaged
     */
    public Optional<Map<String, Object>> resume(long step) throws IOException {
        resume(clients(), step, clients);
        List<Map<String, Object>> rows = resume(metrics(), step, metrics);
        rows.forEach(table::add);
        return rows.isEmpty() ? Optional.empty() : Optional.of(rows.getLast());
    }

    private static List<Map<String, Object>> resume(Path file, long step, List<String> kept) throws IOException {
        var rows = new ArrayList<Map<String, Object>>();
        if (Files.exists(file)) {
            List<String> lines = lines(file);
            for (int i = 0; i < lines.size(); i++) {
                String line = lines.get(i);
                if (line.isBlank()) {
                    continue;
                }
                try {
                    Map<String, Object> values = JSON.readValue(line, VALUES);
                    if (values.get("step") instanceof Number at && at.longValue() <= step) {
                        kept.add(line);
                        rows.add(values);
                    }
                } catch (JacksonException e) {
                    throw new MalformedFileException(file, "line %d: not a JSON object".formatted(i + 1), e);
                }
            }
        }
        return rows;
    }

    private static List<String> lines(Path file) throws IOException {
        try {
            return Files.readAllLines(file);
        } catch (CharacterCodingException e) {
            throw new MalformedFileException(file, "not UTF-8 text", e);
        }
    }

    void addMetrics(Map<String, Object> values) throws IOException {
        metrics.add(JSON.writeValueAsString(values));
        table.add(values);
        AtomicFile.write(metricsTable(), table.csv()); // first, so that a line is there only when its row is
        AtomicFile.write(metrics(), String.join("\n", metrics) + '\n');
    }

    void addClients(List<Map<String, Object>> rows) throws IOException {
        rows.forEach(row -> clients.add(JSON.writeValueAsString(row)));
        AtomicFile.write(clients(), String.join("\n", clients) + '\n');
    }

    void writeSummary(Map<String, Object> values) throws IOException {
        AtomicFile.write(summary(), PRETTY.writeValueAsString(values) + '\n');
    }

    /** Returns the summary that a run has left. */
    public Map<String, Object> readSummary() throws IOException {
        return JSON.readValue(Files.readString(summary()), VALUES);
    }

    void writeModel(Point weights, Map<String, String> metadata) throws IOException {
        weights.save(model(), metadata);
    }
}
