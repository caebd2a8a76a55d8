package org.fedcomuon.observe;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.time.Clock;
import java.time.Instant;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Collectors;
import org.fedcomuon.federation.Evaluation;
import org.fedcomuon.federation.Federation;
import org.fedcomuon.federation.Listener;
import org.fedcomuon.federation.Start;

/**
 * Writes a run as event files, which TensorBoard shows: a scalar per metric of each evaluation, by the name of the
 * metric and at its step, and the settings as the text {@code config}. Scalars have the precision of a float, as all in
 * TensorBoard.
 *
 * <p>Each run needs its own, given to {@link Federation.Builder#listener}, and a directory of its own:
 * {@snippet file="org/fedcomuon/observe/TensorBoardEventsIT.java" region="tensorboard"} An evaluation is on the disk
 * when the run goes on. A run that is resumed with the same directory adds a file to it, whose start tells readers to
 * forget what was written after the checkpoint; so every step is there once, also after the run was killed.
 *
 * <p>Not thread-safe; the listener of one run.
 */
public final class TensorBoardEvents implements Listener {
    private static final String VERSION = "brain.Event:2";
    private static final String CONFIG = "config";
    private static final String TEXT_PLUGIN = "text";

    // The numbers of fields and of values of enums, from TensorFlow's event.proto, summary.proto, tensor.proto and
    // types.proto.
    private static final int EVENT_WALL_TIME = 1;
    private static final int EVENT_STEP = 2;
    private static final int EVENT_FILE_VERSION = 3;
    private static final int EVENT_SUMMARY = 5;
    private static final int EVENT_SESSION_LOG = 7;
    private static final int SESSION_LOG_STATUS = 1;
    private static final int STATUS_START = 1;
    private static final int SUMMARY_VALUE = 1;
    private static final int VALUE_TAG = 1;
    private static final int VALUE_SIMPLE = 2;
    private static final int VALUE_TENSOR = 8;
    private static final int VALUE_METADATA = 9;
    private static final int METADATA_PLUGIN = 1;
    private static final int PLUGIN_NAME = 1;
    private static final int TENSOR_TYPE = 1;
    private static final int TENSOR_SHAPE = 2;
    private static final int TENSOR_STRING = 8;
    private static final int TYPE_STRING = 7;

    private static final double NANOS = 1e-9;

    private final Path directory;
    private final Map<String, String> settings;
    private final InstantSource clock;
    private Optional<EventFile> file = Optional.empty();

    /**
     * Creates a listener.
     *
     * @param directory of this run alone, such as {@code tensorboard} in that of the run; made when it starts, unless
     *     it exists
     * @param settings shown as a table; none if empty
     */
    public TensorBoardEvents(Path directory, Map<String, String> settings) {
        this(directory, settings, Clock.systemUTC());
    }

    TensorBoardEvents(Path directory, Map<String, String> settings, InstantSource clock) {
        this.directory = directory;
        this.settings = new LinkedHashMap<>(settings);
        this.clock = clock;
    }

    @Override
    public void onStart(Start start) {
        // The evaluation at the step of the checkpoint was before it, and is not repeated.
        long first = start.step() == 0 ? 0 : start.step() + 1;
        try {
            Instant now = clock.instant();
            EventFile made = EventFile.create(directory, now);
            file = Optional.of(made);
            var events = new ArrayList<ProtocolMessage>();
            events.add(event(now).text(EVENT_FILE_VERSION, VERSION));
            events.add(event(now)
                    .integer(EVENT_STEP, first)
                    .message(EVENT_SESSION_LOG, new ProtocolMessage().integer(SESSION_LOG_STATUS, STATUS_START)));
            if (!settings.isEmpty()) {
                events.add(event(now)
                        .integer(EVENT_STEP, first)
                        .message(EVENT_SUMMARY, new ProtocolMessage().message(SUMMARY_VALUE, config())));
            }
            made.append(events);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    @Override
    public void onEvaluation(Evaluation evaluation) {
        var summary = new ProtocolMessage();
        evaluation
                .metrics()
                .forEach((name, value) -> summary.message(
                        SUMMARY_VALUE,
                        new ProtocolMessage().text(VALUE_TAG, name).float32(VALUE_SIMPLE, value.floatValue())));
        ProtocolMessage event =
                event(clock.instant()).integer(EVENT_STEP, evaluation.step()).message(EVENT_SUMMARY, summary);
        try {
            file.orElseThrow().append(List.of(event));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static ProtocolMessage event(Instant time) {
        return new ProtocolMessage().float64(EVENT_WALL_TIME, time.getEpochSecond() + time.getNano() * NANOS);
    }

    /** Returns the settings as a table in Markdown, which TensorBoard renders. */
    private ProtocolMessage config() {
        String table = settings.entrySet().stream()
                .map(entry -> "| %s | %s |".formatted(cell(entry.getKey()), cell(entry.getValue())))
                .collect(Collectors.joining("\n", "| setting | value |\n|---|---|\n", "\n"));
        var tensor = new ProtocolMessage()
                .integer(TENSOR_TYPE, TYPE_STRING)
                .message(TENSOR_SHAPE, new ProtocolMessage()) // of a scalar
                .text(TENSOR_STRING, table);
        var plugin = new ProtocolMessage().text(PLUGIN_NAME, TEXT_PLUGIN);
        return new ProtocolMessage()
                .text(VALUE_TAG, CONFIG)
                .message(VALUE_TENSOR, tensor)
                .message(VALUE_METADATA, new ProtocolMessage().message(METADATA_PLUGIN, plugin));
    }

    private static String cell(String text) {
        return text.replaceAll("\\R", " ")
                .replaceAll("([\\\\`*_|\\[\\]])", "\\\\$1")
                .replace("&", "&amp;")
                .replace("<", "&lt;");
    }
}
