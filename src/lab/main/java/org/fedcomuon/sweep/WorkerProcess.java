package org.fedcomuon.sweep;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.io.Writer;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.function.LongConsumer;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import tools.jackson.databind.json.JsonMapper;

/**
 * A {@link TrialWorker} as the sweep sees it. Confined to the thread that runs trials with it, but for {@link #stop}.
 */
final class WorkerProcess implements TrialCluster.Slot {
    private static final long END_SECONDS = 130;
    private static final int KEPT_LINES = 20;
    private static final int INTERRUPT = 2;
    private static final int KILL = 9;
    private static final int TERMINATE = 15;

    /** Options of a JVM that make sense for another one with the same work; others name files or ports. */
    private static final Pattern SHARED = Pattern.compile(
            "-X(?!bootclasspath|log|X:(AOT|Start|.*Recording|SharedArchive|.*(File|Path|Log)=)).*|-D(?!jdk\\.|surefire).*");

    private final Process process;
    private final Writer orders;
    private final BufferedReader answers;
    private final Deque<String> last = new ArrayDeque<>(); // lines of its standard error
    private final Thread drain;

    private WorkerProcess(Process process) {
        this.process = process;
        orders = process.outputWriter(StandardCharsets.UTF_8);
        answers = process.inputReader(StandardCharsets.UTF_8);
        drain = Thread.ofPlatform().daemon().name("worker-errors").start(this::drain);
    }

    /**
     * Starts one.
     *
     * @param classPath of classes that the trials need besides those of this process
     */
    static WorkerProcess start(TrialCluster.Arguments arguments, Optional<String> classPath) throws IOException {
        var builder = new ProcessBuilder(command(arguments, classPath));
        // One core is one trial's: libraries that start threads of their own would only fight for it.
        builder.environment().put("OPENBLAS_NUM_THREADS", "1");
        builder.environment().put("OMP_NUM_THREADS", "1");
        return new WorkerProcess(builder.start());
    }

    /** Everything is on its class path, which serves a program with modules and one without. */
    private static List<String> command(TrialCluster.Arguments arguments, Optional<String> classPath) {
        String path = Stream.concat(
                        classPath.stream(),
                        Stream.of("jdk.module.path", "surefire.real.class.path", "java.class.path")
                                .map(property -> System.getProperty(property, "")))
                .filter(part -> !part.isEmpty())
                .collect(Collectors.joining(File.pathSeparator));
        var command = new ArrayList<>(List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-cp",
                path,
                "--enable-native-access=ALL-UNNAMED",
                "--sun-misc-unsafe-memory-access=allow"));
        ManagementFactory.getRuntimeMXBean().getInputArguments().stream()
                .filter(option -> SHARED.matcher(option).matches())
                .forEach(command::add);
        System.getProperties().stringPropertyNames().stream() // also those that were set when this program ran
                .filter(name -> name.startsWith("fedcomuon.") || name.startsWith("org.bytedeco."))
                .sorted()
                .forEach(name -> command.add("-D%s=%s".formatted(name, System.getProperty(name))));
        command.add(TrialWorker.class.getName());
        command.addAll(arguments.toList());
        return command;
    }

    private void drain() {
        try (var errors = new BufferedReader(new InputStreamReader(process.getErrorStream(), StandardCharsets.UTF_8))) {
            for (String line = errors.readLine(); line != null; line = errors.readLine()) {
                keep(line);
            }
        } catch (IOException e) {
            keep(e.toString());
        }
    }

    private synchronized void keep(String line) {
        if (!line.isBlank()) {
            last.addLast(line.strip());
            if (last.size() > KEPT_LINES) {
                last.removeFirst();
            }
        }
    }

    private synchronized Optional<String> lastWords() {
        return Optional.ofNullable(last.peekLast());
    }

    @Override
    public TrialCluster.Answer run(Path directory, LongConsumer steps) throws InterruptedException {
        try {
            orders.write(JsonMapper.shared()
                            .writeValueAsString(directory.toAbsolutePath().toString())
                    + "\n");
            orders.flush();
            for (String line = answers.readLine(); line != null; line = answers.readLine()) {
                if (line.startsWith(TrialWorker.PREFIX)) {
                    Optional<TrialCluster.Answer> answer = answer(line.substring(TrialWorker.PREFIX.length()), steps);
                    if (answer.isPresent()) {
                        return answer.get();
                    }
                }
            }
        } catch (IOException | UncheckedIOException e) {
            // It is gone.
        }
        return gone();
    }

    private static Optional<TrialCluster.Answer> answer(String text, LongConsumer steps) {
        if (text.startsWith(TrialWorker.STEP)) {
            steps.accept(Long.parseLong(text.substring(TrialWorker.STEP.length())));
            return Optional.empty();
        }
        return TrialCluster.Answer.of(text);
    }

    private TrialCluster.Answer gone() throws InterruptedException {
        if (!process.waitFor(END_SECONDS, TimeUnit.SECONDS)) {
            process.destroyForcibly().waitFor();
        }
        drain.join();
        int status = process.exitValue();
        int signal = status - 128;
        if (signal == INTERRUPT || signal == TERMINATE) {
            return new TrialCluster.Answer.Stopped(); // a terminal's Ctrl-C has reached it before this process
        }
        String how = signal > 0 && signal < 65
                ? "was killed by signal %d%s"
                        .formatted(signal, signal == KILL ? ", as processes are when memory is short" : "")
                : "ended with exit code %d".formatted(status);
        return new TrialCluster.Answer.Failed(
                "its process %s%s".formatted(how, lastWords().map(": "::concat).orElse("")));
    }

    @Override
    public boolean isAlive() {
        return process.isAlive();
    }

    @Override
    public void stop() {
        try {
            process.getOutputStream().close();
        } catch (IOException e) {
            // It is gone.
        }
    }

    @Override
    public void close() {
        stop();
        boolean interrupted = false;
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(END_SECONDS);
        while (process.isAlive()) {
            try {
                if (!process.waitFor(deadline - System.nanoTime(), TimeUnit.NANOSECONDS)) {
                    process.destroyForcibly();
                }
            } catch (InterruptedException e) {
                interrupted = true;
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }
}
