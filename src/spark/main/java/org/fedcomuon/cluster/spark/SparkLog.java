package org.fedcomuon.cluster.spark;

import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeoutException;
import java.util.function.Consumer;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.logging.log4j.Level;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.core.LogEvent;
import org.apache.logging.log4j.core.LoggerContext;
import org.apache.logging.log4j.core.appender.AbstractAppender;
import org.apache.logging.log4j.core.config.Property;
import org.fedcomuon.experiment.RunRecord;
import org.jspecify.annotations.Nullable;

/**
 * The last words of Spark in this process. Nobody wants to read them while all goes well; when a run fails they are
 * written to its directory. What Spark tells by no other way is taken from here: on which host it starts an executor,
 * that a master refuses a secret, and an error that a thread of Spark survives. Thread-safe.
 */
final class SparkLog implements AutoCloseable {
    private static final String FILE = "spark.log";
    private static final String NAME = "fedcomuon";
    private static final String SPARK = "org.apache.spark.";
    private static final int MOST_ENTRIES = 300;
    private static final int MOST_LINES = 40; // of a stack trace
    private static final int MOST_CAUSES = 10;
    private static final Pattern EXECUTOR = Pattern.compile("Executor added: \\S+/(\\d+) on \\S+ \\((.+):\\d+\\).*");

    /** How this end of a connection says that it cannot prove its secret to the other. */
    private static final String NO_PROOF = "Exception while bootstrapping client";

    /** How the other end says that it wants a proof, and this end has no secret. */
    private static final String PROOF_WANTED = "Expected SaslMessage";

    private final Consumer<Throwable> errors;
    private final Deque<String> entries = new ArrayDeque<>(); // guarded by itself
    private final Map<String, String> hosts = new ConcurrentHashMap<>(); // by executor
    private final Optional<LoggerContext> context;
    private final Appender appender = new Appender();
    private volatile Optional<String> refusal = Optional.empty();
    private volatile Optional<String> warning = Optional.empty();

    private final class Appender extends AbstractAppender {
        Appender() {
            super(NAME, null, null, true, Property.EMPTY_ARRAY);
        }

        @Override
        public void append(LogEvent event) {
            hear(event);
        }
    }

    private SparkLog(Consumer<Throwable> errors) {
        this.errors = errors;
        // Somebody may have another implementation of the interface.
        context = LogManager.getContext(false) instanceof LoggerContext own ? Optional.of(own) : Optional.empty();
        appender.start();
        context.ifPresent(own -> {
            own.getConfiguration().getRootLogger().addAppender(appender, Level.INFO, null);
            own.updateLoggers();
        });
    }

    /**
     * Begins to listen. To be called before the first class of Spark is used, because that looks for appenders.
     *
     * @param errors receives every error that is logged
     */
    static SparkLog open(Consumer<Throwable> errors) {
        return new SparkLog(errors);
    }

    private void hear(LogEvent event) {
        Throwable thrown = event.getThrown();
        List<Throwable> causes = causes(thrown);
        causes.stream().filter(Error.class::isInstance).findFirst().ifPresent(errors);
        String words = event.getMessage().getFormattedMessage();
        Matcher added = EXECUTOR.matcher(words);
        if (added.matches()) {
            hosts.put(added.group(1), added.group(2));
        }
        boolean noProof = words.startsWith(NO_PROOF) && causes.stream().noneMatch(TimeoutException.class::isInstance);
        if (noProof
                || causes.stream()
                        .anyMatch(each -> String.valueOf(each.getMessage()).contains(PROOF_WANTED))) {
            refusal = Optional.of(
                    firstLine(causes.isEmpty() ? words : causes.getLast().toString()));
        }
        if (event.getLevel().isMoreSpecificThan(Level.WARN)) {
            if (event.getLoggerName().startsWith(SPARK)) {
                warning = Optional.of(firstLine(words));
            }
            add("%s %s: %s".formatted(event.getLevel(), event.getLoggerName(), words), thrown);
        }
    }

    private static List<Throwable> causes(@Nullable Throwable thrown) {
        var all = new ArrayList<Throwable>();
        for (Throwable each = thrown; each != null && all.size() < MOST_CAUSES; each = each.getCause()) {
            all.add(each);
        }
        return all;
    }

    private static String firstLine(String text) {
        return text.lines().findFirst().orElse("");
    }

    /** Adds what somebody has said, and thrown. */
    void add(String words, @Nullable Throwable thrown) {
        var trace = new StringWriter();
        if (thrown != null) {
            thrown.printStackTrace(new PrintWriter(trace));
        }
        String entry = Stream.concat(Stream.of(words), trace.toString().lines().limit(MOST_LINES))
                .map(line -> line + System.lineSeparator())
                .collect(Collectors.joining());
        synchronized (entries) {
            if (entries.size() == MOST_ENTRIES) {
                entries.removeFirst();
            }
            entries.addLast(entry);
        }
    }

    /** Returns the host that an executor was to start on, if Spark has said so. */
    Optional<String> host(String executor) {
        return Optional.ofNullable(hosts.get(executor));
    }

    /** Returns how somebody has said that secrets differ. */
    Optional<String> refusal() {
        return refusal;
    }

    /** Returns the last warning of Spark itself. */
    Optional<String> warning() {
        return warning;
    }

    /** Writes the last words to the directory of a run that has failed. One that has not begun leaves no directory. */
    void keep(Path directory) {
        List<String> all;
        synchronized (entries) {
            all = List.copyOf(entries);
        }
        if (!all.isEmpty() && Files.exists(directory.resolve(RunRecord.CONFIG))) {
            try {
                Files.writeString(directory.resolve(FILE), String.join("", all));
            } catch (IOException e) {
                // The disk may be what has failed.
            }
        }
    }

    @Override
    public void close() {
        context.ifPresent(own -> {
            own.getConfiguration().getRootLogger().removeAppender(NAME);
            own.updateLoggers();
        });
        appender.stop();
    }
}
