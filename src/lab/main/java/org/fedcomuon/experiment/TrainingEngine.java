package org.fedcomuon.experiment;

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
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.fedcomuon.cluster.MemberFailedException;
import org.fedcomuon.federation.Listener;
import org.fedcomuon.federation.RunLock;

/**
 * Runs a training in this process or in other processes, each with a part of the clients. Engines are found by
 * {@link ServiceLoader}, so that the libraries of unused engines are not needed. An engine serves one run.
 *
 * <p>Called by the thread that runs, and by others that ask it to stop.
 */
public interface TrainingEngine {
    /** The engine that runs everything in this process. */
    String LOCAL = "local";

    /**
     * Returns the engine for a name.
     *
     * @throws ConfigurationException when there is none; the message lists the names
     */
    static TrainingEngine of(String cluster) {
        var names = new ArrayList<String>();
        for (TrainingEngine engine : ServiceLoader.load(TrainingEngine.class)) {
            if (engine.isMeantBy(cluster)) {
                return engine;
            }
            names.add(engine.names());
        }
        Collections.sort(names); // engines are in the order of the class path
        throw new ConfigurationException(
                "--cluster %s: unknown; possible are %s".formatted(cluster, String.join(", ", names)));
    }

    /** Returns whether a name stands for this engine, such as {@code spark://host:7077}. */
    boolean isMeantBy(String cluster);

    /** Returns the names of this engine, for messages. */
    String names();

    /**
     * The description of a run.
     *
     * <p>Immutable.
     *
     * @param cluster the name by which the engine was chosen
     * @param resumes whether the run resumes from the last checkpoint in its directory
     * @param devices of each process
     * @param threads of each process; its share of the cores if empty
     * @param dataDirectory the user's own data files, as each process sees them
     * @param memoryLimit the limit of each process in bytes; the available memory if empty
     * @param tensorBoard whether the process that writes the files writes event files too
     * @param timeout the time after which an engine that cannot go on ends the run
     * @param version of the program
     */
    record Job(
            String cluster,
            Configuration configuration,
            boolean resumes,
            List<String> devices,
            OptionalInt threads,
            Optional<Path> dataDirectory,
            OptionalLong memoryLimit,
            boolean tensorBoard,
            Duration timeout,
            String version) {
        public Job {
            devices = List.copyOf(devices);
        }
    }

    /**
     * The output of a run, which only the process that leads the run has.
     *
     * <p>Immutable.
     *
     * @param directory the directory for the files of the run, which all processes can access; it may not exist yet
     * @param lock of the directory, in the process that leads the run, which closes it after the run
     * @param listeners receive the events of the run, in this process
     * @param notes receives lines about the processes
     */
    record View(Path directory, Optional<RunLock> lock, List<Listener> listeners, Consumer<String> notes) {
        public View {
            listeners = List.copyOf(listeners);
        }
    }

    /**
     * Runs to the end, or until {@link #stop}; the files of the run are then in its directory.
     *
     * @param view called once, by the process that leads the run, before the run starts
     * @param abandon ends this process with the line of a failure and never returns; called by an engine whose members
     *     wait in a library for a process that is silent, so that {@code run} can neither return nor throw
     * @throws ConfigurationException when the engine cannot be used as named, or its hosts cannot run members
     * @throws MemberFailedException when a member cannot continue
     */
    void run(Job job, Supplier<View> view, Consumer<MemberFailedException> abandon)
            throws IOException, InterruptedException;

    /** Asks the run to stop as soon as it can, with a checkpoint. May be called by any thread at any time. */
    void stop();
}
