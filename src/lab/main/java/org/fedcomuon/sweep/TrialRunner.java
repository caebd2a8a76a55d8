package org.fedcomuon.sweep;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.fedcomuon.experiment.Training;
import org.fedcomuon.federation.RunFiles;

/**
 * Runs trials side by side in worker processes, so that one that takes its process down is only a trial that has
 * failed.
 *
 * <p>Thread-safe.
 */
final class TrialRunner implements AutoCloseable {
    /**
     * Where trials run.
     *
     * @param devices dealt out to the processes
     * @param threads of a process
     * @param memoryLimit of a process in bytes; its share of the available memory if empty
     * @param classPath of classes that trials need besides those of this process
     * @param tensorBoard whether trials write event files
     */
    record Place(
            int parallel,
            List<String> devices,
            int threads,
            Optional<Path> dataDirectory,
            OptionalLong memoryLimit,
            Optional<String> classPath,
            boolean tensorBoard,
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
                    tensorBoard,
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
    private final Map<Integer, WorkerProcess> running = new HashMap<>(); // by number; they stay for the next rung
    private boolean stopping;

    TrialRunner(Place place, TrialDirectories directories, Watcher watcher) {
        this.place = place;
        this.directories = directories;
        this.watcher = watcher;
    }

    /**
     * Runs trials that have no result yet, in this order. Called by one thread, once for each rung.
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
                    work(number, workers, queue);
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

    private void work(int number, int workers, Queue<TrialPlan> queue) throws IOException, InterruptedException {
        for (TrialPlan plan = next(queue).orElse(null);
                plan != null;
                plan = next(queue).orElse(null)) {
            Optional<WorkerProcess> worker = worker(number, workers);
            if (worker.isEmpty()) {
                return;
            }
            run(worker.get(), plan);
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

    /** Returns the process of this number, a new one if it has none or has lost it; empty if the sweep is to end. */
    private synchronized Optional<WorkerProcess> worker(int number, int workers) throws IOException {
        if (stopping) {
            return Optional.empty();
        }
        WorkerProcess there = running.get(number);
        if (there != null && there.isAlive()) {
            return Optional.of(there);
        }
        WorkerProcess started = WorkerProcess.start(place.worker(number, workers), place.classPath());
        running.put(number, started);
        return Optional.of(started);
    }

    /** Ends all processes, which have no trial then. */
    @Override
    public void close() {
        stop();
        List<WorkerProcess> all;
        synchronized (this) {
            all = List.copyOf(running.values());
        }
        all.forEach(WorkerProcess::close);
    }

    private synchronized boolean isStopping() {
        return stopping;
    }

    /** Ends all trials after their current step, with checkpoints, and begins no other. May be called at any time. */
    synchronized void stop() {
        stopping = true;
        running.values().forEach(WorkerProcess::stop);
    }
}
