package org.fedcomuon.experiment;

import java.io.IOException;
import java.nio.charset.CharacterCodingException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.TreeMap;
import tools.jackson.core.JacksonException;
import tools.jackson.core.StreamReadFeature;
import tools.jackson.core.json.JsonReadFeature;
import tools.jackson.databind.DeserializationFeature;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.ObjectMapper;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.dataformat.yaml.YAMLMapper;

/**
 * The files of a run of {@code train}, which may be still running.
 *
 * <p>Immutable.
 *
 * @param name of the directory
 * @param config every setting as text, in the file's order
 * @param evaluations by ascending step; none if there was none yet
 * @param summary the summary written at the end of the run: strings, numbers, booleans, and lists and maps of these.
 *     Empty while the run is under way, or if it crashed
 * @param clients the metrics of each client in the last evaluation, in the order of the clients; empty if they were not
 *     recorded
 */
public record RunRecord(
        String name,
        Map<String, String> config,
        List<Evaluation> evaluations,
        Optional<Map<String, Object>> summary,
        List<Map<String, Double>> clients) {
    public static final String CONFIG = "config.yaml";
    public static final String METRICS = "metrics.jsonl";
    public static final String SUMMARY = "summary.json";
    public static final String CLIENTS = "clients.jsonl";

    /** A line of metrics has a few hundred bytes. */
    private static final long MOST_BYTES = 256L << 20;

    private static final String STEP = "step";
    private static final String ROUND = "round";
    private static final String CLIENT = "client";

    private static final ObjectMapper YAML = YAMLMapper.builder()
            .enable(StreamReadFeature.STRICT_DUPLICATE_DETECTION)
            .enable(DeserializationFeature.USE_BIG_DECIMAL_FOR_FLOATS) // keeps the digits as written
            .build();
    private static final ObjectMapper JSON = JsonMapper.builder()
            .enable(StreamReadFeature.STRICT_DUPLICATE_DETECTION)
            .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
            .enable(JsonReadFeature.ALLOW_NON_NUMERIC_NUMBERS)
            .build();

    public RunRecord {
        config = Collections.unmodifiableMap(new LinkedHashMap<>(config));
        evaluations = List.copyOf(evaluations);
        summary = summary.map(map -> Collections.unmodifiableMap(new LinkedHashMap<>(map)));
        clients = List.copyOf(clients);
    }

    /** Creates the record of a run without metrics of clients. */
    public RunRecord(
            String name,
            Map<String, String> config,
            List<Evaluation> evaluations,
            Optional<Map<String, Object>> summary) {
        this(name, config, evaluations, summary, List.of());
    }

    /**
     * One evaluation.
     *
     * @param metrics every other number by its key, in the file's order. A metric that was not measured is missing; one
     *     that is not a number is NaN
     */
    public record Evaluation(long step, long round, Map<String, Double> metrics) {
        public Evaluation {
            metrics = Collections.unmodifiableMap(new LinkedHashMap<>(metrics));
        }
    }

    /** How a run ended, if it did. */
    public enum State {
        FINISHED,
        STOPPED,
        DIVERGED,
        /** There is no summary: the run is under way, or has crashed. */
        UNFINISHED
    }

    public State state() {
        if (summary.isEmpty()) {
            return State.UNFINISHED;
        }
        if (Objects.equals(summary.get().get("diverged"), true)) {
            return State.DIVERGED;
        }
        return Objects.equals(summary.get().get("stopped"), true) ? State.STOPPED : State.FINISHED;
    }

    /** Returns a setting, or else the value of this name in the summary. */
    public Optional<String> setting(String key) {
        return Optional.ofNullable(config.get(key))
                .or(() -> summary.map(map -> map.get(key)).map(Object::toString));
    }

    /** Returns the name of the method; the name of the run where the files do not name one. */
    public String method() {
        return setting("method").orElse(name);
    }

    public Optional<Evaluation> last() {
        return evaluations.isEmpty() ? Optional.empty() : Optional.of(evaluations.getLast());
    }

    /** Returns the metric in the last evaluation, or else in the summary; may be NaN or infinite. */
    public OptionalDouble last(String metric) {
        Double evaluated =
                last().map(evaluation -> evaluation.metrics.get(metric)).orElse(null);
        if (evaluated != null) {
            return OptionalDouble.of(evaluated);
        }
        return summary.map(map -> map.get(metric)).orElse(null) instanceof Number number
                ? OptionalDouble.of(number.doubleValue())
                : OptionalDouble.empty();
    }

    /**
     * Reads the directory of a run.
     *
     * @throws RunRecordException when it is not the directory of a run, or a file in it is damaged
     */
    public static RunRecord read(Path directory) {
        if (!Files.isDirectory(directory)) {
            throw new RunRecordException(directory, "no such directory; name a directory that 'train --out' wrote");
        }
        Path config = directory.resolve(CONFIG);
        Path metrics = directory.resolve(METRICS);
        Path summary = directory.resolve(SUMMARY);
        if (!Files.exists(config)) {
            throw new RunRecordException(config, "no such file; a directory that 'train' wrote has one");
        }
        // Read before the metrics, so that the metrics are complete if the run ends between the two reads.
        Optional<Map<String, Object>> end = Files.exists(summary) ? Optional.of(summary(summary)) : Optional.empty();
        if (end.isPresent() && !Files.exists(metrics)) {
            throw new RunRecordException(metrics, "no such file, although the run has ended and has a " + SUMMARY);
        }
        List<Evaluation> evaluations =
                Files.exists(metrics) ? evaluations(metrics, end.isPresent()) : List.<Evaluation>of();
        Path name = directory.toAbsolutePath().normalize().getFileName();
        Path ofClients = directory.resolve(CLIENTS);
        return new RunRecord(
                name == null ? "/" : name.toString(),
                config(config),
                evaluations,
                end,
                Files.exists(ofClients) && !evaluations.isEmpty()
                        ? clients(ofClients, evaluations.getLast().step)
                        : List.of());
    }

    /**
     * Checks what {@link #read} will read when a run that is under way has ended: all but the summary, which is still
     * to be written.
     *
     * @throws RunRecordException when a file is damaged
     */
    static void requireWhole(Path directory) {
        config(directory.resolve(CONFIG));
        Path metrics = directory.resolve(METRICS);
        Path ofClients = directory.resolve(CLIENTS);
        List<Evaluation> evaluations = Files.exists(metrics) ? evaluations(metrics, true) : List.of();
        if (Files.exists(ofClients) && !evaluations.isEmpty()) {
            clients(ofClients, evaluations.getLast().step);
        }
    }

    /** Reads the rows of one step. */
    private static List<Map<String, Double>> clients(Path file, long step) {
        var rows = new TreeMap<Long, Map<String, Double>>();
        List<String> lines = text(file).lines().toList();
        for (int i = 0; i < lines.size(); i++) {
            if (lines.get(i).isBlank()) {
                continue;
            }
            String where = "line %d: ".formatted(i + 1);
            JsonNode object = object(JSON, file, where, lines.get(i));
            if (!object.has(STEP) || !object.has(CLIENT)) {
                throw new RunRecordException(file, where + "no step or no client; every line has both");
            }
            if (count(file, where, STEP, object) == step) {
                rows.put(count(file, where, CLIENT, object), metrics(file, where, object));
            }
        }
        return List.copyOf(rows.values());
    }

    private static Map<String, String> config(Path file) {
        var config = new LinkedHashMap<String, String>();
        for (Map.Entry<String, JsonNode> entry :
                object(YAML, file, "", text(file)).properties()) {
            JsonNode value = entry.getValue();
            config.put(entry.getKey(), value.isNull() ? "" : value.isValueNode() ? value.asString() : value.toString());
        }
        return config;
    }

    private static List<Evaluation> evaluations(Path file, boolean ended) {
        String text = text(file);
        List<String> lines = text.lines().toList();
        // A run under way, or one that crashed, may have written only half of its last line.
        int whole = ended || text.endsWith("\n") ? lines.size() : lines.size() - 1;
        var evaluations = new TreeMap<Long, Evaluation>();
        for (int i = 0; i < lines.size(); i++) {
            if (lines.get(i).isBlank()) {
                continue;
            }
            try {
                Evaluation evaluation = evaluation(file, "line %d: ".formatted(i + 1), lines.get(i));
                // A run that was resumed may have evaluated a step twice: the later one is that of its model.
                evaluations.put(evaluation.step, evaluation);
            } catch (RunRecordException e) {
                if (i < whole) {
                    throw e;
                }
            }
        }
        return List.copyOf(evaluations.values());
    }

    private static Evaluation evaluation(Path file, String where, String line) {
        JsonNode object = object(JSON, file, where, line);
        if (!object.has(STEP)) {
            throw new RunRecordException(file, where + "no step; every evaluation has one");
        }
        return new Evaluation(
                count(file, where, STEP, object),
                object.has(ROUND) ? count(file, where, ROUND, object) : 0,
                metrics(file, where, object));
    }

    private static Map<String, Double> metrics(Path file, String where, JsonNode object) {
        var metrics = new LinkedHashMap<String, Double>();
        for (Map.Entry<String, JsonNode> entry : object.properties()) {
            String key = entry.getKey();
            JsonNode value = entry.getValue();
            if (value.isNull() || key.equals(STEP) || key.equals(ROUND) || key.equals(CLIENT)) {
                continue;
            }
            OptionalDouble number = number(value);
            if (number.isEmpty()) {
                throw new RunRecordException(file, "%s%s is %s; a number is expected".formatted(where, key, value));
            }
            metrics.put(key, number.getAsDouble());
        }
        return Collections.unmodifiableMap(metrics);
    }

    private static long count(Path file, String where, String key, JsonNode object) {
        JsonNode value = object.get(key);
        if (!value.isIntegralNumber() || !value.canConvertToLong() || value.longValue() < 0) {
            throw new RunRecordException(
                    file, "%s%s is %s; a whole number from 0 is expected".formatted(where, key, value));
        }
        return value.longValue();
    }

    /** Returns a number, which may be NaN. JSON has no NaN; writers quote it, or write it nevertheless. */
    private static OptionalDouble number(JsonNode value) {
        if (value.isNumber()) {
            return OptionalDouble.of(
                    value.numberValue().doubleValue()); // the node's own method refuses a number of 400 digits
        }
        return switch (value.isString() ? value.stringValue() : "") {
            case "NaN" -> OptionalDouble.of(Double.NaN);
            case "Infinity" -> OptionalDouble.of(Double.POSITIVE_INFINITY);
            case "-Infinity" -> OptionalDouble.of(Double.NEGATIVE_INFINITY);
            default -> OptionalDouble.empty();
        };
    }

    private static Map<String, Object> summary(Path file) {
        return plain(object(JSON, file, "", text(file)));
    }

    private static Map<String, Object> plain(JsonNode object) {
        var map = new LinkedHashMap<String, Object>();
        object.properties()
                .forEach(entry -> value(entry.getValue()).ifPresent(value -> map.put(entry.getKey(), value)));
        return Collections.unmodifiableMap(map);
    }

    /** Omits null, which means the same as a missing value. */
    private static Optional<Object> value(JsonNode node) {
        if (node.isNull()) {
            return Optional.empty();
        }
        if (node.isObject()) {
            return Optional.of(plain(node));
        }
        if (node.isArray()) {
            var list = new ArrayList<Object>();
            node.forEach(item -> value(item).ifPresent(list::add));
            return Optional.of(List.copyOf(list));
        }
        return Optional.of(
                node.isNumber()
                        ? node.numberValue()
                        : node.isBoolean() ? (Object) node.booleanValue() : node.asString());
    }

    private static JsonNode object(ObjectMapper mapper, Path file, String where, String text) {
        JsonNode node;
        try {
            node = mapper.readTree(new SurrogateSafeReader(text));
        } catch (JacksonException e) {
            String at = where.isEmpty() && e.getLocation() != null
                    ? "line " + e.getLocation().getLineNr() + ": "
                    : where;
            throw new RunRecordException(file, at + e.getOriginalMessage(), e);
        }
        if (!node.isObject()) {
            throw new RunRecordException(
                    file, "%sholds %s; keys with values are expected".formatted(where, kind(node)));
        }
        return node;
    }

    private static String kind(JsonNode node) {
        return node.isMissingNode() || node.isNull() ? "nothing" : node.isArray() ? "a list" : "a single value";
    }

    private static String text(Path file) {
        // The directory is not trusted, and the page made from it may be published.
        if (!Files.isRegularFile(file, LinkOption.NOFOLLOW_LINKS)) {
            throw new RunRecordException(file, "is a link, or not a regular file; use a copy");
        }
        try {
            if (Files.size(file) > MOST_BYTES) {
                throw new RunRecordException(file, "is larger than %d bytes".formatted(MOST_BYTES));
            }
            return Files.readString(file);
        } catch (CharacterCodingException e) {
            throw new RunRecordException(file, "is not UTF-8 text", e);
        } catch (IOException e) {
            throw new RunRecordException(file, "cannot be read: " + e, e);
        }
    }
}
