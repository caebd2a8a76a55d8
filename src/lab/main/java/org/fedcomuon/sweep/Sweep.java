package org.fedcomuon.sweep;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.Set;
import org.fedcomuon.device.DeviceException;
import org.fedcomuon.device.Devices;
import org.fedcomuon.experiment.ConfigurationException;
import org.fedcomuon.experiment.Preset;
import org.fedcomuon.experiment.Training;
import org.fedcomuon.experiment.TrainingEngine;
import org.fedcomuon.federation.RunLock;

/**
 * Tries settings of a preset, each for several seeds, and finds the best of each method by validation examples: a share
 * of each client's training examples, on which no trial trains. Trials are training runs in processes of their own,
 * side by side, on this machine or in a cluster, and leave what {@link Training} leaves, in a directory each. What a
 * directory has already is not run again.
 *
 * <p>For example: {@snippet file="org/fedcomuon/sweep/SweepIT.java" region="sweep"}
 *
 * <p>Not thread-safe, except for {@link #stop}; a sweep runs once.
 */
public final class Sweep {
    /** So often files about a sweep under way are written at most. */
    private static final long BETWEEN_FILES_NANOS = 2_000_000_000L;

    private final SweepPlan plan;
    private final TrialCluster cluster;
    private final TrialCluster.Job job;
    private final Listener listener;
    private final Path directory;
    private Optional<TrialRunner> runner = Optional.empty();
    private boolean stopping;

    private Sweep(SweepPlan plan, TrialCluster cluster, TrialCluster.Job job, Listener listener, Path directory) {
        this.plan = plan;
        this.cluster = cluster;
        this.job = job;
        this.listener = listener;
        this.directory = directory;
    }

    /**
     * Observes a sweep.
     *
     * <p>Called by several threads, but never by two at once; it should return quickly.
     */
    public interface Listener {
        /** Something is to be known, such as that another process has left the directory locked. */
        default void onNote(String note) {}

        /**
         * The trials are planned.
         *
         * @param trials how many there are
         * @param steps of all trials
         * @param metric by which settings are chosen
         */
        default void onPlan(int trials, long steps, String metric) {}

        /** Trials begin that no earlier start has run. */
        default void onBegin() {}

        /** So many steps of all trials are done, those of an earlier start included. */
        default void onSteps(long done) {}

        /**
         * A trial has ended.
         *
         * @param isNew otherwise an earlier start has run it
         * @param ended how many trials have ended
         */
        default void onTrial(Trial trial, boolean isNew, int ended) {}
    }

    /** Starts describing a sweep. */
    public static Builder of(Preset preset) {
        return new Builder(preset);
    }

    /** Returns the number of trials, if all can be run. */
    public int trials() {
        return plan.size();
    }

    /**
     * Runs the trials that have no result yet, until all have ended or {@link #stop} is called. A trial that fails or
     * diverges has a place in the result.
     *
     * @throws RunLock.InUseException when another sweep has the directory
     * @throws IOException when files cannot be written, or no process can be started
     */
    public SweepRecord run() throws IOException, InterruptedException {
        try (RunLock lock = Training.lock(directory)) {
            lock.notes().forEach(listener::onNote);
            return new Course(new SweepFiles(directory)).run();
        }
    }

    /**
     * Ends all trials after their current step, with checkpoints; {@link #run} then returns. A sweep with the same
     * directory continues. May be called by any thread at any time.
     */
    public synchronized void stop() {
        stopping = true;
        runner.ifPresent(TrialRunner::stop);
    }

    private synchronized boolean isStopping() {
        return stopping;
    }

    private synchronized void begin(TrialRunner begun) {
        runner = Optional.of(begun);
        if (stopping) {
            begun.stop();
        }
    }

    /** One run of the sweep. Its watcher is called by threads of the runner, by one at a time. */
    private final class Course implements TrialRunner.Watcher {
        private final SweepFiles files;
        private final TrialDirectories directories;
        private final Map<TrialPlan, Trial> ended = new LinkedHashMap<>();
        private final List<TrialPlan> order = new ArrayList<>(); // of files, whichever ends first
        private final Map<TrialPlan, Long> under = new HashMap<>(); // steps of trials that are under way
        private long steps; // of those that have ended
        private long written;
        private boolean isFirst = true;

        Course(SweepFiles files) throws IOException {
            this.files = files;
            directories = new TrialDirectories(files.trials());
        }

        SweepRecord run() throws IOException, InterruptedException {
            listener.onPlan(plan.size(), plan.steps(), plan.metric().name());
            Map<String, List<Map<String, String>>> settings = new LinkedHashMap<>();
            plan.methods()
                    .forEach(method -> settings.put(method, plan.ladder(method).settings()));
            boolean goesOn = true;
            int rungs = plan.methods().stream()
                    .mapToInt(method -> plan.ladder(method).rungs().size())
                    .max()
                    .orElse(0);
            try (var trials = new TrialRunner(cluster, job, directories, this)) {
                begin(trials);
                for (int rung = 0; rung < rungs && goesOn; rung++) {
                    goesOn = climb(rung, settings, trials);
                }
            }
            SweepRecord record = record();
            files.write(record);
            if (goesOn) {
                for (String method : plan.methods()) {
                    Optional<Standing> best = record.bestStanding(method);
                    if (best.isPresent()) {
                        files.writeBest(
                                record, best.get(), plan.best(method, best.get().settings()));
                    }
                }
            }
            return record;
        }

        /** Runs the trials of a rung, after which the settings are those of the next one. */
        private boolean climb(int rung, Map<String, List<Map<String, String>>> settings, TrialRunner trials)
                throws IOException, InterruptedException {
            var plans = new LinkedHashMap<String, List<TrialPlan>>();
            settings.forEach((method, own) -> {
                if (rung < plan.ladder(method).rungs().size()) {
                    plans.put(method, plan.trials(method, own, rung));
                }
            });
            List<TrialPlan> all = bySeed(plans);
            order.addAll(all);
            List<TrialPlan> missing = all.stream().filter(each -> !exists(each)).toList();
            if (!missing.isEmpty()) {
                if (isFirst) {
                    files.deleteBest(plan.methods());
                    listener.onBegin();
                    isFirst = false;
                }
                if (isStopping() || !trials.run(missing)) {
                    return false;
                }
            }
            plans.forEach((method, own) -> settings.put(method, survivors(method, own, rung)));
            return true;
        }

        /** All settings with the first seed come first, so that there is something to see soon. */
        private List<TrialPlan> bySeed(Map<String, List<TrialPlan>> plans) {
            return plan.seeds().stream()
                    .flatMap(seed -> plans.values().stream()
                            .flatMap(List::stream)
                            .filter(each -> each.configuration().seed() == seed))
                    .toList();
        }

        private boolean exists(TrialPlan each) {
            Path trial = directories.of(each);
            Optional<Trial> result = Files.isDirectory(trial) ? each.result(trial) : Optional.empty();
            result.ifPresent(there -> end(each, there, false));
            return result.isPresent();
        }

        private List<Map<String, String>> survivors(String method, List<TrialPlan> own, int rung) {
            List<Strategy.Rung> rungs = plan.ladder(method).rungs();
            if (rung + 1 >= rungs.size()) {
                return List.of();
            }
            List<Trial> results = own.stream()
                    .flatMap(each -> Optional.ofNullable(ended.get(each)).stream())
                    .toList();
            return Standing.of(results, plan.metric(), plan.seeds().size()).stream()
                    .limit(rungs.get(rung + 1).settings())
                    .map(Standing::settings)
                    .toList();
        }

        @Override
        public void onSteps(TrialPlan of, long done) {
            under.put(of, done);
            report();
        }

        @Override
        public void onTrial(TrialPlan of, Trial trial) {
            end(of, trial, true);
            long now = System.nanoTime();
            if (now - written > BETWEEN_FILES_NANOS) {
                written = now;
                try {
                    files.write(record());
                } catch (IOException e) {
                    throw new UncheckedIOException(e);
                }
            }
        }

        private void end(TrialPlan of, Trial trial, boolean isNew) {
            ended.put(of, trial);
            under.remove(of);
            steps += of.configuration().iterations();
            listener.onTrial(trial, isNew, ended.size());
            report();
        }

        private void report() {
            listener.onSteps(
                    steps + under.values().stream().mapToLong(Long::longValue).sum());
        }

        private SweepRecord record() {
            return new SweepRecord(
                    plan.preset().name(),
                    plan.metric(),
                    plan.strategy().name(),
                    plan.methods(),
                    plan.seeds(),
                    plan.varied(),
                    plan.size(),
                    order.stream()
                            .flatMap(each -> Optional.ofNullable(ended.get(each)).stream())
                            .toList());
        }
    }

    /** Describes a sweep. Everything but the preset and the directory has a default. Not thread-safe. */
    public static final class Builder {
        private final Preset preset;
        private final Map<String, String> changes = new LinkedHashMap<>();
        private final List<String> axes = new ArrayList<>();
        private final Set<String> mistakes = new LinkedHashSet<>();
        private List<String> methods = List.of();
        private int seeds = 1;
        private Optional<String> metric = Optional.empty();
        private Strategy strategy = Strategy.grid();
        private String cluster = TrainingEngine.LOCAL;
        private Duration timeout = Duration.ofMinutes(2);
        private OptionalInt parallel = OptionalInt.empty();
        private List<String> devices = List.of("cpu:0");
        private int threads = 1;
        private Optional<Path> dataDirectory = Optional.empty();
        private OptionalLong memoryLimit = OptionalLong.empty();
        private Optional<String> classPath = Optional.empty();
        private boolean tensorBoard;
        private String version = "";
        private Listener listener = new Listener() {};

        private Builder(Preset preset) {
            this.preset = preset;
        }

        /** Changes settings of the preset in all trials, as {@code --set} does. */
        public Builder changes(Map<String, String> settings) {
            changes.putAll(settings);
            return this;
        }

        /** Sets the methods; that of the preset by default. */
        public Builder methods(List<String> names) {
            methods = List.copyOf(names);
            return this;
        }

        /**
         * Varies a setting. A method that does not have it is tried without it.
         *
         * @param axis {@code NAME=VALUE,VALUE,...}, or {@code NAME=LOW..HIGH} for a strategy that draws by chance
         */
        public Builder grid(String axis) {
            axes.add(axis);
            return this;
        }

        /** Sets the number of seeds; the first one is that of the preset, the others follow it. One by default. */
        public Builder seeds(int count) {
            seeds = count;
            return this;
        }

        /**
         * Sets the metric by which settings are chosen, which begins with {@code validation_}. By default an accuracy
         * or an area under the curve, or else the loss or the objective.
         */
        public Builder metric(String name) {
            metric = Optional.of(name);
            return this;
        }

        /** Sets which settings are tried; all combinations by default. */
        public Builder strategy(Strategy which) {
            strategy = which;
            return this;
        }

        /**
         * Sets where trials run: {@code local}, which is the default, or {@code spark://HOST:PORT} and the other names
         * of {@code train --cluster} for Apache Spark, with a directory that all hosts share.
         */
        public Builder cluster(String name) {
            cluster = name;
            return this;
        }

        /** Sets after what time a cluster that cannot go on is given up; 120 s by default. */
        public Builder clusterTimeout(Duration limit) {
            timeout = limit;
            return this;
        }

        /**
         * Sets how many trials run at a time, each in a process of its own; by default as many as there are cores, of
         * this machine or of the executors.
         */
        public Builder parallel(int trials) {
            parallel = OptionalInt.of(trials);
            return this;
        }

        /** Sets the devices, one for each process in turn; {@code cpu:0} by default. */
        public Builder devices(List<String> names) {
            devices = List.copyOf(names);
            return this;
        }

        /** Sets the number of threads of a trial; 1 by default. */
        public Builder threads(int count) {
            threads = count;
            return this;
        }

        /** Sets the directory of the user's own data files. */
        public Builder dataDirectory(Path data) {
            dataDirectory = Optional.of(data);
            return this;
        }

        /** Sets the limit of the memory of a trial; its share of the available memory by default. */
        public Builder memoryLimit(long bytes) {
            memoryLimit = OptionalLong.of(bytes);
            return this;
        }

        /** Sets a class path with classes that trials need besides those of this program. */
        public Builder classPath(String path) {
            classPath = Optional.of(path);
            return this;
        }

        /** Has trials write event files for TensorBoard, as {@code train --tensorboard} does. */
        public Builder tensorBoard() {
            tensorBoard = true;
            return this;
        }

        /** Sets the version of the program that the summaries of trials name. */
        public Builder version(String name) {
            version = name;
            return this;
        }

        /** Sets an observer. */
        public Builder listener(Listener observer) {
            listener = observer;
            return this;
        }

        /** Adds a mistake that the caller has found, to be reported together with those that {@link #build} finds. */
        public Builder mistake(String line) {
            mistakes.add(line);
            return this;
        }

        /**
         * Plans the trials, without running any.
         *
         * @param directory for the files of the sweep and of its trials; made when it runs
         * @throws ConfigurationException naming all that is unknown, missing or out of range
         */
        public Sweep build(Path directory) {
            parallel.ifPresent(trials -> atLeastOne("--parallel", trials));
            atLeastOne("--threads", threads);
            if (devices.isEmpty()) {
                mistakes.add("--devices: at least one is needed");
            }
            TrialCluster where = TrialCluster.of(cluster);
            if (where.hasDevicesOfThisHost()) {
                devices.stream().distinct().forEach(this::requireDevice);
            }
            SweepPlan plan = SweepPlan.of(
                    new SweepPlan.Request(preset, changes, methods, axes, seeds, metric, strategy),
                    dataDirectory,
                    List.copyOf(mistakes));
            return new Sweep(
                    plan,
                    where,
                    new TrialCluster.Job(
                            cluster,
                            directory.toAbsolutePath().normalize(),
                            parallel,
                            devices,
                            threads,
                            dataDirectory,
                            memoryLimit,
                            classPath,
                            tensorBoard,
                            timeout,
                            version,
                            listener::onNote),
                    listener,
                    directory);
        }

        private void atLeastOne(String option, int value) {
            if (value < 1) {
                mistakes.add("%s %d: at least 1 is needed".formatted(option, value));
            }
        }

        private void requireDevice(String name) {
            try {
                Devices.open(name).close();
            } catch (DeviceException e) {
                mistakes.add(String.valueOf(e.getMessage()));
            }
        }
    }
}
