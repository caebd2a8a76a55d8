package org.fedcomuon.sweep;

import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.ServiceLoader;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import java.util.function.LongConsumer;
import org.fedcomuon.cluster.MemberFailedException;
import org.fedcomuon.experiment.ConfigurationException;
import org.fedcomuon.experiment.TrainingEngine;

/**
 * Where the trials of a sweep run: in processes of this machine, or in those of a cluster, which are found by
 * {@link ServiceLoader}, so that the libraries of unused ones are not needed. The directory of the sweep is one that
 * all of its hosts share.
 *
 * <p>Called by the thread that sweeps, before trials begin.
 */
public interface TrialCluster {
    /**
     * Returns the one for a name.
     *
     * @throws ConfigurationException when there is none; the message lists the names
     */
    static TrialCluster of(String cluster) {
        if (cluster.equals(TrainingEngine.LOCAL)) {
            return new TrialProcesses();
        }
        var names = new ArrayList<>(List.of(TrainingEngine.LOCAL));
        for (TrialCluster each : ServiceLoader.load(TrialCluster.class)) {
            if (each.isMeantBy(cluster)) {
                return each;
            }
            names.add(each.names());
        }
        Collections.sort(names); // they are in the order of the class path
        throw new ConfigurationException(
                "--cluster %s: no trials can run there; possible are %s".formatted(cluster, String.join(", ", names)));
    }

    /** Returns whether a name stands for this one, such as {@code spark://host:7077}. */
    boolean isMeantBy(String cluster);

    /** Returns its names, for messages. */
    String names();

    /** Returns whether its hosts have the devices of this one, so that a device that is missing is known at once. */
    boolean hasDevicesOfThisHost();

    /**
     * Makes ready for trials.
     *
     * @param stopping whether the sweep has been stopped meanwhile
     * @throws ConfigurationException when it cannot be used as named, or its hosts cannot run trials
     * @throws MemberFailedException when it cannot go on
     */
    Session start(Job job, BooleanSupplier stopping) throws IOException, InterruptedException;

    /**
     * What a sweep asks for.
     *
     * <p>Immutable.
     *
     * @param cluster the name by which it was chosen
     * @param directory of the sweep, which exists
     * @param parallel how many trials are to run at a time; as many as there is room for if empty
     * @param devices dealt out to the slots
     * @param threads of a trial
     * @param dataDirectory the user's own data files
     * @param memoryLimit of a trial in bytes; its share of the available memory if empty
     * @param classPath of classes that trials need besides those of this program
     * @param tensorBoard whether trials write event files
     * @param timeout after which a cluster that cannot go on is given up
     * @param version of the program
     * @param notes receives lines about processes and hosts
     */
    record Job(
            String cluster,
            Path directory,
            OptionalInt parallel,
            List<String> devices,
            int threads,
            Optional<Path> dataDirectory,
            OptionalLong memoryLimit,
            Optional<String> classPath,
            boolean tensorBoard,
            Duration timeout,
            String version,
            Consumer<String> notes) {
        public Job {
            devices = List.copyOf(devices);
        }

        /** Returns the arguments of the trials of a slot, by its number. */
        public Arguments arguments(int slot) {
            return new Arguments(
                    devices.get(slot % devices.size()),
                    threads,
                    dataDirectory.map(Path::toAbsolutePath),
                    memoryLimit,
                    tensorBoard,
                    version);
        }
    }

    /**
     * Trials can run until it is closed.
     *
     * <p>Called by several threads, but for {@link #close}.
     */
    interface Session extends AutoCloseable {
        /** Returns how many trials run at a time. */
        int slots();

        /**
         * Opens a slot, also in place of one that has been lost.
         *
         * @param number from 0
         * @param atATime how many slots there will be, each with its share of what there is
         */
        Slot open(int number, int atATime) throws IOException;

        /** Ends what runs, after the current step and with checkpoints. */
        @Override
        void close();
    }

    /**
     * Runs one trial after the other.
     *
     * <p>Called by the thread that runs its trials, but for {@link #stop}.
     */
    interface Slot extends AutoCloseable {
        /**
         * Runs a trial, whose directory has its settings.
         *
         * @param steps receives the number of steps that are done, now and then
         */
        Answer run(Path directory, LongConsumer steps) throws InterruptedException;

        /** Returns whether it can run another trial. */
        boolean isAlive();

        /** Asks it to end after the current step, with a checkpoint. May be called by any thread. */
        void stop();

        /** Asks it to end, and waits for that. */
        @Override
        void close();
    }

    /**
     * How a trial ended, as far as its process knows; its files say more. As a text of one line, for another process.
     *
     * <p>Immutable.
     */
    sealed interface Answer {
        /** Returns the text, of which {@link #of} makes the same again. */
        String text();

        /** Returns the answer that a text stands for; empty if it is none. */
        static Optional<Answer> of(String text) {
            return switch (text) {
                case Done.TEXT -> Optional.of(new Done());
                case Stopped.TEXT -> Optional.of(new Stopped());
                default ->
                    text.startsWith(Failed.TEXT)
                            ? Optional.of(new Failed(text.substring(Failed.TEXT.length())))
                            : Optional.empty();
            };
        }

        /** Its files say how it went. */
        record Done() implements Answer {
            private static final String TEXT = "done";

            @Override
            public String text() {
                return TEXT;
            }
        }

        /** It can be resumed. */
        record Stopped() implements Answer {
            private static final String TEXT = "stopped";

            @Override
            public String text() {
                return TEXT;
            }
        }

        /**
         * It could not be completed.
         *
         * @param reason in one line
         */
        record Failed(String reason) implements Answer {
            private static final String TEXT = "failed ";

            @Override
            public String text() {
                return TEXT + reason;
            }
        }
    }

    /**
     * What all trials of a slot have in common; as a list of texts, for another process.
     *
     * <p>Immutable.
     *
     * @param threads of a trial
     * @param dataDirectory the user's own data files, as the process of the trial sees them
     * @param memoryLimit in bytes; the available memory if empty
     * @param tensorBoard whether to write event files
     * @param version of the program
     */
    record Arguments(
            String device,
            int threads,
            Optional<Path> dataDirectory,
            OptionalLong memoryLimit,
            boolean tensorBoard,
            String version) {
        /** Returns them as texts, of which {@link #of} makes the same again. */
        public List<String> toList() {
            return List.of(
                    device,
                    Integer.toString(threads),
                    dataDirectory.map(Path::toString).orElse(""),
                    memoryLimit.isPresent() ? Long.toString(memoryLimit.getAsLong()) : "",
                    Boolean.toString(tensorBoard),
                    version);
        }

        /** Returns the arguments that a list stands for. */
        public static Arguments of(List<String> list) {
            return new Arguments(
                    list.get(0),
                    Integer.parseInt(list.get(1)),
                    list.get(2).isEmpty() ? Optional.empty() : Optional.of(Path.of(list.get(2))),
                    list.get(3).isEmpty() ? OptionalLong.empty() : OptionalLong.of(Long.parseLong(list.get(3))),
                    Boolean.parseBoolean(list.get(4)),
                    list.get(5));
        }

        /** Returns the same with another limit of the memory. */
        public Arguments withMemoryLimit(OptionalLong limit) {
            return new Arguments(device, threads, dataDirectory, limit, tensorBoard, version);
        }
    }
}
