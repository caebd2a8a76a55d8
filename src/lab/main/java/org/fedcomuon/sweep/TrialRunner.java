package org.fedcomuon.sweep;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.fedcomuon.experiment.Training;
import org.fedcomuon.federation.RunFiles;

/**
 * Runs trials side by side in worker processes: two processes with a core each train a third more than one with two
 * threads.
 *
 * <p>Thread-safe.
 */
final class TrialRunner {
    /**
     * Where trials run.
     *
     * @param devices dealt out to the processes
     * @param threads of a process
     * @param memoryLimit of a process in bytes; its share of the available memory if empty
     * @param classPath of classes that trials need besides those of this process
     */
    record Place(
            int parallel,
            List<String> devices,
            int threads,
            Optional<Path> dataDirectory,
            OptionalLong memoryLimit,
            Optional<String> classPath,
            String version) {
        Place {
            devices = List.copyOf(devices);
        }

        TrialWorker.Arguments worker(int number, int workers) {
            OptionalLong available = Training.availableMemory();
            return new TrialWorker.Arguments(
                    devices.get(number % devices.size()),
                    threads,
                    dataDirectory.map(Path::toAbsolutePath),
                    memoryLimit.isPresent() || available.isEmpty()
                            ? memoryLimit
                            : OptionalLong.of(available.getAsLong() / workers),
                    version);
        }
    }

    /** Receives what happens, from several threads, but never two at once. */
    interface Watcher {
        /** A trial has done this many steps. */
        void onSteps(TrialPlan plan, long steps);

        /** A trial has ended. */
        void onTrial(TrialPlan plan, Trial trial);
    }

    private final Place place;
    private final TrialDirectories directories;
    private final Watcher watcher;
    private final Set<WorkerProcess> running = new HashSet<>();
    private boolean stopping;

    TrialRunner(Place place, TrialDirectories directories, Watcher watcher) {
        this.place = place;
        this.directories = directories;
        this.watcher = watcher;
    }

    /**
     * Runs trials that have no result yet, in this order.
     *
     * @return whether all have ended; otherwise the sweep was stopped
     */
    boolean run(List<TrialPlan> plans) throws InterruptedException, IOException {
        Queue<TrialPlan> queue = new ConcurrentLinkedQueue<>(plans);
        int workers = Math.min(place.parallel(), plans.size());
        var failures = new ArrayList<Exception>();
        var threads = new ArrayList<Thread>();
        for (int i = 0; i < workers; i++) {
            int number = i;
            threads.add(Thread.ofPlatform().name("trials-" + i).start(() -> {
                try {
                    work(place.worker(number, workers), queue);
                } catch (IOException | InterruptedException | RuntimeException e) {
                    synchronized (failures) {
                        failures.add(e);
                    }
                    stop();
                }
            }));
        }
        try {
            for (Thread thread : threads) {
                thread.join();
            }
        } catch (InterruptedException e) {
            stop();
            threads.forEach(Thread::interrupt);
            throw e;
        }
        for (Exception failure : failures) {
            switch (failure) {
                case IOException e -> throw e;
                case RuntimeException e -> throw e;
                default -> throw new IllegalStateException(failure);
            }
        }
        return !isStopping();
    }

    private void work(TrialWorker.Arguments arguments, Queue<TrialPlan> queue)
            throws IOException, InterruptedException {
        Optional<WorkerProcess> worker = Optional.empty();
        try {
            for (TrialPlan plan = next(queue).orElse(null); plan != null; plan = next(queue).orElse(null)) {
                if (worker.isEmpty() || !worker.get().isAlive()) {
                    worker.ifPresent(this::close);
                    worker = begin(arguments);
                    if (worker.isEmpty()) {
                        return;
                    }
                }
                run(worker.get(), plan);
            }
        } finally {
            worker.ifPresent(this::close);
        }
    }

    private synchronized Optional<TrialPlan> next(Queue<TrialPlan> queue) {
        return stopping ? Optional.empty() : Optional.ofNullable(queue.poll());
    }

    private void run(WorkerProcess worker, TrialPlan plan) throws IOException, InterruptedException {
        Path directory;
        synchronized (directories) {
            directory = directories.of(plan);
        }
        Training.prepare(plan.configuration(), directory);
        WorkerProcess.Answer answer = worker.run(directory, steps -> {
            synchronized (watcher) {
                watcher.onSteps(plan, steps);
            }
        });
        if (answer instanceof WorkerProcess.Answer.Stopped) {
            return;
        }
        // A run that has diverged has failed, and its files say so. Those of an older run may not be complete.
        Optional<Trial> result = new RunFiles(directory).areTaken() ? plan.result(directory) : Optional.empty();
        if (result.isEmpty() && isStopping()) {
            return; // it ended because it was told to
        }
        Trial trial = result.orElseGet(() -> plan.failed(
                directory,
                answer instanceof WorkerProcess.Answer.Failed failed
                        ? failed.reason()
                        : "its files are not those of a run that has ended"));
        synchronized (watcher) {
            watcher.onTrial(plan, trial);
        }
    }

    private synchronized Optional<WorkerProcess> begin(TrialWorker.Arguments arguments) {
        if (stopping) {
            return Optional.empty();
        }
        try {
            WorkerProcess started = WorkerProcess.start(arguments, place.classPath());
            running.add(started);
            return Optional.of(started);
        } catch (IOException e) {
            throw new UncheckedIOException("a process for trials cannot be started: " + e.getMessage(), e);
        }
    }

    private void close(WorkerProcess worker) {
        worker.close();
        synchronized (this) {
            running.remove(worker);
        }
    }

    private synchronized boolean isStopping() {
        return stopping;
    }

    /** Ends all trials after their current step, with checkpoints, and begins no other. May be called at any time. */
    synchronized void stop() {
        stopping = true;
        running.forEach(WorkerProcess::stop);
    }
}
