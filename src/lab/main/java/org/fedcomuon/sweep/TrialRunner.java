package org.fedcomuon.sweep;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.fedcomuon.experiment.Training;
import org.fedcomuon.federation.RunFiles;

/**
 * Runs trials side by side, in the slots of a cluster or of this machine.
 *
 * <p>Thread-safe.
 */
final class TrialRunner implements AutoCloseable {
    /** Receives what happens, from several threads, but never two at once. */
    interface Watcher {
        /** A trial has done this many steps. */
        void onSteps(TrialPlan plan, long steps);

        /** A trial has ended. */
        void onTrial(TrialPlan plan, Trial trial);
    }

    private final TrialCluster cluster;
    private final TrialCluster.Job job;
    private final TrialDirectories directories;
    private final Watcher watcher;
    private final Map<Integer, TrialCluster.Slot> running = new HashMap<>(); // by number; they stay for the next rung
    private Optional<TrialCluster.Session> session = Optional.empty();
    private volatile boolean stopping;

    TrialRunner(TrialCluster cluster, TrialCluster.Job job, TrialDirectories directories, Watcher watcher) {
        this.cluster = cluster;
        this.job = job;
        this.directories = directories;
        this.watcher = watcher;
    }

    /**
     * Runs trials that have no result yet, in this order. Called by one thread, once for each rung.
     *
     * @return whether all have ended; otherwise the sweep was stopped
     */
    boolean run(List<TrialPlan> plans) throws InterruptedException, IOException {
        TrialCluster.Session place = session();
        Queue<TrialPlan> queue = new ConcurrentLinkedQueue<>(plans);
        int workers = Math.min(place.slots(), plans.size());
        var failures = new ArrayList<Exception>();
        var threads = new ArrayList<Thread>();
        for (int i = 0; i < workers; i++) {
            int number = i;
            threads.add(Thread.ofPlatform().name("trials-" + i).start(() -> {
                try {
                    work(place, number, workers, queue);
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

    /** Returns where trials run, which is made ready for the first of them. */
    private TrialCluster.Session session() throws IOException, InterruptedException {
        if (session.isEmpty()) {
            session = Optional.of(cluster.start(job, () -> stopping));
        }
        return session.get();
    }

    private void work(TrialCluster.Session place, int number, int workers, Queue<TrialPlan> queue)
            throws IOException, InterruptedException {
        for (TrialPlan plan = next(queue).orElse(null);
                plan != null;
                plan = next(queue).orElse(null)) {
            Optional<TrialCluster.Slot> worker = worker(place, number, workers);
            if (worker.isEmpty()) {
                return;
            }
            run(worker.get(), plan);
        }
    }

    private synchronized Optional<TrialPlan> next(Queue<TrialPlan> queue) {
        return stopping ? Optional.empty() : Optional.ofNullable(queue.poll());
    }

    private void run(TrialCluster.Slot worker, TrialPlan plan) throws IOException, InterruptedException {
        Path directory;
        synchronized (directories) {
            directory = directories.of(plan);
        }
        Training.prepare(plan.configuration(), directory);
        TrialCluster.Answer answer = worker.run(directory, steps -> {
            synchronized (watcher) {
                watcher.onSteps(plan, steps);
            }
        });
        if (answer instanceof TrialCluster.Answer.Stopped) {
            return;
        }
        // A run that has diverged has failed, and its files say so. Those of an older run may not be complete.
        Optional<Trial> result = new RunFiles(directory).areTaken() ? plan.result(directory) : Optional.empty();
        if (result.isEmpty() && isStopping()) {
            return; // it ended because it was told to
        }
        Trial trial = result.orElseGet(() -> plan.failed(
                directory,
                answer instanceof TrialCluster.Answer.Failed failed
                        ? failed.reason()
                        : "its files are not those of a run that has ended"));
        synchronized (watcher) {
            watcher.onTrial(plan, trial);
        }
    }

    /** Returns the slot of this number, a new one if it has none or has lost it; empty if the sweep is to end. */
    private synchronized Optional<TrialCluster.Slot> worker(TrialCluster.Session place, int number, int workers)
            throws IOException {
        if (stopping) {
            return Optional.empty();
        }
        TrialCluster.Slot there = running.get(number);
        if (there != null && there.isAlive()) {
            return Optional.of(there);
        }
        TrialCluster.Slot started = place.open(number, workers);
        running.put(number, started);
        return Optional.of(started);
    }

    /** Ends all slots, which have no trial then. */
    @Override
    public void close() {
        stop();
        List<TrialCluster.Slot> all;
        synchronized (this) {
            all = List.copyOf(running.values());
        }
        all.forEach(TrialCluster.Slot::close);
        session.ifPresent(TrialCluster.Session::close);
    }

    private synchronized boolean isStopping() {
        return stopping;
    }

    /** Ends all trials after their current step, with checkpoints, and begins no other. May be called at any time. */
    synchronized void stop() {
        stopping = true;
        running.values().forEach(TrialCluster.Slot::stop);
    }
}
