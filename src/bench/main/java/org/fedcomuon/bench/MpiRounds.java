package org.fedcomuon.bench;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.fedcomuon.cluster.mpi.MpiCluster;

/** {@link ClusterRounds} in processes that {@code mpirun} starts, each with this class as its program. */
public final class MpiRounds {
    private static final String MPIRUN = "mpirun";
    private static final String ANSWER = "seconds of a round: ";

    private MpiRounds() {}

    /** Runs one process; process 0 prints the seconds per round. */
    public static void main(String[] args) throws InterruptedException {
        try (MpiCluster cluster = MpiCluster.join(1)) {
            double seconds =
                    ClusterRounds.seconds(Optional.of(cluster), Integer.parseInt(args[0]), Integer.parseInt(args[1]));
            if (cluster.self() == 0) {
                System.out.println(ANSWER + seconds);
            }
        }
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

    static double seconds(int members, int elements, int rounds) {
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
                List.of(), MpiRounds.class.getName(), List.of(Integer.toString(elements), Integer.toString(rounds))));
        try {
            Process process =
                    new ProcessBuilder(command).redirectErrorStream(true).start();
            String out = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
            int status = process.waitFor();
            return out.lines()
                    .filter(line -> status == 0 && line.startsWith(ANSWER))
                    .mapToDouble(line -> Double.parseDouble(line.substring(ANSWER.length())))
                    .findFirst()
                    .orElseThrow(() -> new IllegalStateException(
                            "mpirun ended with exit code %d: %s".formatted(status, out.strip())));
        } catch (IOException e) {
            throw new IllegalStateException("mpirun cannot be started: " + e.getMessage(), e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted while measuring", e);
        }
    }
}
