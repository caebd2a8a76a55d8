package org.fedcomuon.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.fedcomuon.testing.TrainProcess.awaitCheckpoint;
import static org.fedcomuon.testing.TrainProcess.checkpoints;
import static org.fedcomuon.testing.TrainProcess.end;
import static org.fedcomuon.testing.TrainProcess.sha256;
import static org.fedcomuon.testing.TrainProcess.summary;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.fedcomuon.testing.Slow;
import org.fedcomuon.testing.SoakOnly;
import org.fedcomuon.testing.TestHosts;
import org.fedcomuon.testing.TrainProcess;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** {@code mpirun ./fedcomuon train --cluster mpi} with a process on each of two hosts. */
@Slow
@Timeout(300)
class MpiHostsIT {
    private static final String FIRST = "first";
    private static final String SECOND = "second";

    @TempDir
    private static Path whole;

    @TempDir
    private Path temporary;

    private static String expected = "";

    private TestHosts hosts;
    private Path shared;
    private Path out;
    private Path log;

    @BeforeAll
    static void trainInOneProcess() throws Exception {
        TestHosts.assumePossible();
        MpiIT.assumeOpenMpi();
        Path run = whole.resolve("run");
        Path said = whole.resolve("log");
        assertThat(end(TrainProcess.start(said, TrainProcess.command(arguments(run)))))
                .as(Files.readString(said))
                .isZero();
        expected = sha256(run);
    }

    @BeforeEach
    void startHosts() throws Exception {
        shared = Files.createDirectories(temporary.resolve("shared"));
        hosts = TestHosts.start(temporary.resolve("hosts"), List.of(shared), FIRST, SECOND);
        out = shared.resolve("run");
        log = shared.resolve("log");
    }

    @AfterEach
    void closeHosts() {
        if (hosts != null) {
            hosts.close();
        }
    }

    private static List<String> arguments(Path out) {
        return List.of("mnist-robust", "--iterations", "100", "--checkpoint-every", "1", "--out", out.toString());
    }

    private Process train(String... more) throws IOException {
        var command = new ArrayList<>(List.of(MpiIT.MPIRUN, "--allow-run-as-root", "--bind-to", "none"));
        command.addAll(
                List.of("--mca", "plm_rsh_agent", hosts.remoteShell(shared).toString()));
        command.addAll(List.of("--host", FIRST + "," + SECOND, "-np", "2", "-x", "OPENBLAS_NUM_THREADS"));
        command.addAll(TrainProcess.command(arguments(out)));
        command.addAll(List.of("--cluster", "mpi", "--threads", "1"));
        command.addAll(List.of(more));
        return hosts.host(FIRST).start(log, Map.of("OPENBLAS_NUM_THREADS", "1"), command);
    }

    private void assertEndsWell(Process run) throws Exception {
        assertThat(end(run)).as(Files.readString(log)).isZero();
        assertThat(sha256(out)).isEqualTo(expected);
        assertThat(summary(out).get("members").asInt()).isEqualTo(2);
    }

    @Test
    void twoHostsGiveTheBitsOfOneProcess() throws Exception {
        assertEndsWell(train());
    }

    @Test
    @SoakOnly
    void aLinkThatIsCutForSeconds() throws Exception {
        Process run = train();
        assertThat(awaitCheckpoint(run, out, List.of()))
                .as(Files.readString(log))
                .isNotEmpty();
        hosts.host(SECOND).cut();
        TimeUnit.SECONDS.sleep(1); // what is under way arrives or does not
        List<String> before = checkpoints(out);
        TimeUnit.SECONDS.sleep(10);
        assertThat(checkpoints(out)).isEqualTo(before);
        assertThat(run.isAlive()).as(Files.readString(log)).isTrue();
        hosts.host(SECOND).restore();
        assertEndsWell(run);
    }

    @Test
    @SoakOnly
    void aLinkThatIsCutForGoodEndsTheProcessesOnBothSides() throws Exception {
        Process run = train("--cluster-timeout", "5");
        assertThat(awaitCheckpoint(run, out, List.of()))
                .as(Files.readString(log))
                .isNotEmpty();
        hosts.host(SECOND).cut();
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
        while (isTraining(FIRST) || isTraining(SECOND)) {
            assertThat(System.nanoTime()).as(Files.readString(log)).isLessThan(deadline);
            TimeUnit.MILLISECONDS.sleep(100);
        }
        assertThat(Files.readString(log)) // what the second says does not get here
                .containsOnlyOnce(
                        "fedcomuon: no sign of life for 5 s from process 1 on second; the last checkpoint is ");
        hosts.host(FIRST).killAll(); // mpirun waits on for its daemon on the other host
        hosts.host(SECOND).restore();

        Path rest = temporary.resolve("rest");
        assertThat(end(TrainProcess.start(rest, TrainProcess.command(List.of("--resume", out.toString())))))
                .as(Files.readString(rest))
                .isZero();
        assertThat(sha256(out)).isEqualTo(expected);
    }

    private boolean isTraining(String host) {
        return hosts.host(host).processes().stream()
                .anyMatch(each -> each.info().command().orElse("").endsWith("/java"));
    }

    @Test
    @SoakOnly
    void aProcessThatRestsForSecondsIsWaitedFor() throws Exception {
        Process run = train();
        assertThat(awaitCheckpoint(run, out, List.of()))
                .as(Files.readString(log))
                .isNotEmpty();
        List<ProcessHandle> members = hosts.host(SECOND).processes().stream()
                .filter(each -> each.info().command().orElse("").endsWith("/java"))
                .toList();
        assertThat(members).hasSize(1);
        TestHosts.pause(members);
        TimeUnit.SECONDS.sleep(10);
        TestHosts.proceed(members);
        assertEndsWell(run);
    }
}
