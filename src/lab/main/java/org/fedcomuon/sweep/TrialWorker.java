package org.fedcomuon.sweep;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
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

    /** How long a step and its checkpoint may take when the process is to end. */
    private static final long STOP_SECONDS = 120;

    private final TrialRun trials;
    private final PrintStream answers;
    private final BlockingQueue<Optional<Path>> orders = new LinkedBlockingQueue<>();
    private volatile boolean stopping;

    private TrialWorker(TrialRun trials, PrintStream answers) {
        this.trials = trials;
        this.answers = answers;
    }

    /** Runs trials until the end of standard input. */
    static void main(String[] args) throws InterruptedException {
        var worker = new TrialWorker(new TrialRun(TrialCluster.Arguments.of(List.of(args))), System.out);
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

    private void stop() {
        stopping = true;
        trials.stop();
        orders.add(Optional.empty());
    }

    private void work() throws InterruptedException {
        while (true) {
            Optional<Path> directory = orders.take();
            if (directory.isEmpty() || stopping) {
                return;
            }
            try {
                answer(trials.run(directory.get(), step -> answer(STEP + step)).text());
            } catch (VirtualMachineError e) {
                answer(new TrialCluster.Answer.Failed(TrialRun.reason(e)).text());
                throw e;
            }
        }
    }

    private void answer(String text) {
        answers.println(PREFIX + text);
        answers.flush();
    }
}
