package org.fedcomuon.experiment;

import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.function.Consumer;
import org.fedcomuon.federation.Listener;

/**
 * Runs a training in processes that it starts or knows of, each a {@link Training} with a part of the clients. Found by
 * {@link java.util.ServiceLoader}, so that whoever does without an engine does without its libraries.
 */
public interface TrainingEngine {
    /** Whether it is the one that such a name means, {@code spark://host:7077} for example. */
    boolean isMeantBy(String cluster);

    /** What names it has, for messages. */
    String names();

    /**
     * What is to be done.
     *
     * @param cluster the name by which the engine was chosen
     * @param directory where the run's files go, which all members reach; {@code config.yaml} is there already
     * @param resume the checkpoint to go on from
     * @param devices of each member: one
     * @param threads of each member; its share of the cores if empty
     * @param dataDirectory a user's own data files, as members see it
     * @param memoryLimit bytes that the run may take
     * @param version of the program
     */
    record Job(
            String cluster,
            Path directory,
            Optional<Path> resume,
            List<String> devices,
            OptionalInt threads,
            Optional<Path> dataDirectory,
            OptionalLong memoryLimit,
            String version) {
        public Job {
            devices = List.copyOf(devices);
        }
    }

    /**
     * Runs to the end, or until {@link #stop}; the files of the run are then in its directory.
     *
     * @param listener hears what the members do, in this process
     * @param notes hears, in lines, what they found, and what became of them
     * @throws ConfigurationException when the engine cannot be used as named, or its hosts cannot run members
     * @throws org.fedcomuon.cluster.MemberFailedException when a member cannot go on
     */
    void run(Job job, Listener listener, Consumer<String> notes) throws IOException, InterruptedException;

    /** Asks the members to stop when they meet next, with a checkpoint. From any thread, at any time. */
    void stop();
}
