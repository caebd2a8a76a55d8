package org.fedcomuon.sweep;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.fedcomuon.experiment.Training;
import org.fedcomuon.federation.Federation;
import org.fedcomuon.federation.Listener;
import org.fedcomuon.federation.RunLock;
import tools.jackson.databind.json.JsonMapper;

/**
 * A process that runs trials one after the other: it is told their directories on standard input, and answers on
 * standard output. When its input ends, because the sweep is stopped or was killed, it ends after the current step,
 * with a checkpoint.
 *
 * <p>One process runs many trials, because a JVM with libtorch takes seconds to start and longer to become fast.
 */
final class TrialWorker {
    /** What every line of an answer begins with; other lines are those of libraries. */
    static final String PREFIX = "sweep: ";

    static final String STEP = "step ";
    static final String DONE = "done";
    static final String STOPPED = "stopped";
    static final String FAILED = "failed ";

    /** How long a step and its checkpoint may take when the process is to end. */
    private static final long STOP_SECONDS = 120;

    /** The worker of a sweep that was killed may still be at its last step. */
    private static final Duration LOCK_PATIENCE = Duration.ofSeconds(60);

    private static final long BETWEEN_STEPS = TimeUnit.MILLISECONDS.toNanos(200);

    /** A collected logger loses its level. */
    private static final Logger OF_RUNS = Logger.getLogger(Federation.class.getName());

    private final Arguments arguments;
    private final PrintStream answers;
    private final BlockingQueue<Optional<Path>> orders = new LinkedBlockingQueue<>();
    private Optional<Training> current = Optional.empty();
    private boolean stopping;

    /**
     * What all trials of a worker have in common, as its command line has it.
     *
     * @param memoryLimit in bytes; the available memory if empty
     * @param tensorBoard whether to write event files
     */
    record Arguments(
            String device,
            int threads,
            Optional<Path> dataDirectory,
            OptionalLong memoryLimit,
            boolean tensorBoard,
            String version) {
        List<String> toList() {
            return List.of(
                    device,
                    Integer.toString(threads),
                    dataDirectory.map(Path::toString).orElse(""),
                    memoryLimit.isPresent() ? Long.toString(memoryLimit.getAsLong()) : "",
                    Boolean.toString(tensorBoard),
                    version);
        }

        static Arguments of(String... list) {
            return new Arguments(
                    list[0],
                    Integer.parseInt(list[1]),
                    list[2].isEmpty() ? Optional.empty() : Optional.of(Path.of(list[2])),
                    list[3].isEmpty() ? OptionalLong.empty() : OptionalLong.of(Long.parseLong(list[3])),
                    Boolean.parseBoolean(list[4]),
                    list[5]);
        }
    }

    private TrialWorker(Arguments arguments, PrintStream answers) {
        this.arguments = arguments;
        this.answers = answers;
    }

    /** Runs trials until the end of standard input. */
    static void main(String[] args) throws InterruptedException {
        OF_RUNS.setLevel(Level.OFF); // the sweep says what there is to say
        var worker = new TrialWorker(Arguments.of(args), System.out);
        var ended = new CountDownLatch(1);
        // A terminal's Ctrl-C reaches this process as well, and it must not end during a call of libtorch.
        Runtime.getRuntime().addShutdownHook(Thread.ofPlatform().unstarted(() -> {
            worker.stop();
            await(ended);
        }));
        Thread.ofPlatform().daemon().name("orders").start(worker::listen);
        try {
            worker.work();
        } finally {
            ended.countDown();
        }
    }

    private static void await(CountDownLatch ended) {
        try {
            ended.await(STOP_SECONDS, TimeUnit.SECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private void listen() {
        var mapper = JsonMapper.shared();
        try (var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                orders.add(Optional.of(Path.of(mapper.readValue(line, String.class))));
            }
        } catch (IOException e) {
            // The sweep is gone.
        }
        stop();
    }

    private synchronized void stop() {
        stopping = true;
        current.ifPresent(Training::stop);
        orders.add(Optional.empty());
    }

    private synchronized boolean isStopping() {
        return stopping;
    }

    private synchronized void begin(Training training) {
        current = Optional.of(training);
        if (stopping) {
            training.stop();
        }
    }

    private void work() throws InterruptedException {
        while (true) {
            Optional<Path> directory = orders.take();
            if (directory.isEmpty() || isStopping()) {
                return;
            }
            try {
                run(directory.get());
            } catch (IOException | RuntimeException | Error e) { // a row of the sweep, and not its end
                answer(FAILED + reason(e));
                if (e instanceof VirtualMachineError fatal) {
                    throw fatal;
                }
            }
        }
    }

    private void run(Path directory) throws IOException, InterruptedException {
        try (RunLock lock = lock(directory)) {
            boolean resumes = Training.lastCheckpoint(directory).isPresent();
            if (resumes) {
                Training.requireWhole(directory);
            }
            var options = new Training.Options(
                    List.of(arguments.device()),
                    Optional.empty(),
                    arguments.threads(),
                    arguments.dataDirectory(),
                    arguments.memoryLimit(),
                    Optional.of(Training.checkpoints(directory)),
                    arguments.tensorBoard(),
                    arguments.version());
            var training = new Training(
                    Training.configurationOf(directory, Map.of()),
                    options,
                    directory,
                    Optional.of(lock),
                    List.of(new Steps()),
                    note -> {});
            begin(training);
            boolean stopped = Boolean.TRUE.equals(training.run().get("stopped"));
            answer(stopped ? STOPPED : DONE);
        }
    }

    private RunLock lock(Path directory) throws IOException, InterruptedException {
        long start = System.nanoTime();
        while (true) {
            try {
                return Training.lock(directory);
            } catch (RunLock.InUseException e) {
                if (isStopping() || System.nanoTime() - start > LOCK_PATIENCE.toNanos()) {
                    throw e;
                }
                TimeUnit.MILLISECONDS.sleep(250);
            }
        }
    }

    /** Returns a message as one line. */
    private static String reason(Throwable failure) {
        String message = failure instanceof RuntimeException && failure.getMessage() != null
                ? failure.getMessage()
                : failure.toString();
        return message.strip().replaceAll("\\s*\\R\\s*", "; ");
    }

    private void answer(String text) {
        answers.println(PREFIX + text);
        answers.flush();
    }

    /** Says how far the trial is. Confined to the thread of the run. */
    private final class Steps implements Listener {
        private long said = System.nanoTime();

        @Override
        public void onStep(long step) {
            long now = System.nanoTime();
            if (now - said > BETWEEN_STEPS) {
                said = now;
                answer(STEP + step);
            }
        }
    }
}
