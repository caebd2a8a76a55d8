package org.fedcomuon.bench;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;
import org.fedcomuon.cluster.MemberFailedException;
import org.fedcomuon.cluster.mpi.MpiCluster;

/** {@link ClusterRounds} in processes that {@code mpirun} starts, each with this class as its program. */
public final class MpiRounds {
    private static final String MPIRUN = "mpirun";
    private static final String ANSWER = "a round: ";
    private static final Duration PATIENCE = Duration.ofMinutes(2);

    private MpiRounds() {}

    /** Runs one process; process 0 prints what it has measured. */
    public static void main(String[] args) throws InterruptedException {
        try (MpiCluster cluster = MpiCluster.join(PATIENCE, MpiRounds::end)) {
            ClusterRounds.Measured sample = ClusterRounds.run(
                    Optional.of(cluster),
                    new ClusterRounds.Work(
                            Integer.parseInt(args[0]), Integer.parseInt(args[1]), Integer.parseInt(args[2]), true));
            if (cluster.self() == 0) {
                System.out.println(ANSWER + sample);
            }
        }
    }

    private static void end(MemberFailedException failure) {
        System.err.println(failure.getMessage());
        Runtime.getRuntime().halt(1);
    }

    /** Returns the reason why MPI cannot be measured here. */
    static Optional<String> missing() {
        try {
            Process process = new ProcessBuilder(MPIRUN, "--version")
                    .redirectErrorStream(true)
                    .start();
            String version = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
            return version.contains("Open MPI") ? Optional.empty() : Optional.of("mpirun is not Open MPI's");
        } catch (IOException e) {
            return Optional.of("there is no mpirun; Debian has it in openmpi-bin");
        }
    }

    static ClusterRounds.Measured run(int members, ClusterRounds.Work work) {
        var command = new ArrayList<>(List.of(
                MPIRUN,
                "-np",
                Integer.toString(members),
                "--oversubscribe",
                "--bind-to",
                "none",
                "--mca",
                "mpi_yield_when_idle",
                "1"));
        if (System.getProperty("user.name").equals("root")) {
            command.add("--allow-run-as-root");
        }
        command.addAll(ChildJvm.command(
                List.of(),
                MpiRounds.class.getName(),
                Stream.of(work.clients(), work.elements(), work.rounds())
                        .map(Object::toString)
                        .toList()));
        return ClusterRounds.Measured.of(ChildJvm.answer(command, ANSWER, MPIRUN));
    }
}
