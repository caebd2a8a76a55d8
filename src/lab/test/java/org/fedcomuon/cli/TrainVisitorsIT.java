package org.fedcomuon.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.net.HttpURLConnection;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.fedcomuon.testing.ChildJvm;
import org.fedcomuon.testing.Slow;
import org.fedcomuon.testing.SoakOnly;
import org.fedcomuon.testing.SoakReport;
import org.fedcomuon.testing.TrainProcess;
import org.fedcomuon.testing.Visitors;
import org.fedcomuon.testing.Visitors.Kind;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Runs whose live page has visitors who want to end them: they end as they do without a page. */
@Timeout(value = 300, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
@Slow
class TrainVisitorsIT {
    private static final int MOST_OPEN_FILES = 1024;
    private static final int TOO_FEW_OPEN_FILES = 100;

    /** What a run with visitors may take more when all have been there: the JVM's own tables and its young objects. */
    private static final long MORE_KIB = 16 << 10;

    private static final int ITERATIONS = 10;
    private static final long PATIENCE_SECONDS = 100;

    @TempDir
    private static Path directory;

    private static String alone = "";

    @TempDir
    private Path temporary;

    @BeforeAll
    static void trainAlone() throws Exception {
        alone = alone(directory, ITERATIONS);
    }

    /** A run with a page, and with so many file descriptors. */
    private static Process train(Path out, Path log, int openFiles, List<String> options, int iterations)
            throws IOException {
        List<String> arguments = TrainDashboardIT.run(out, iterations);
        arguments.addFirst("train");
        arguments.add("--dashboard");
        var command = new ArrayList<>(List.of("bash", "-c", "ulimit -n %d; exec \"$@\"".formatted(openFiles), "bash"));
        command.addAll(ChildJvm.command(options, "org.fedcomuon.cli.Main", arguments));
        return TrainProcess.start(log, command);
    }

    /** The weights of the same run, with neither a page nor limits. */
    private static String alone(Path directory, int iterations) throws Exception {
        Path out = directory.resolve("alone");
        List<String> arguments = TrainDashboardIT.run(out, iterations);
        arguments.addFirst("train");
        CommandRun run = CommandRun.of(arguments.toArray());
        assertThat(run.exitCode()).as(run.err()).isZero();
        return TrainProcess.sha256(out);
    }

    /** All come before the first step, and some more every second. */
    private void withVisitors(List<String> options, Kind kind, int count) throws Exception {
        Path out = temporary.resolve("run");
        Path log = temporary.resolve("log");
        Process train = train(out, log, MOST_OPEN_FILES, options, ITERATIONS);
        try (var visitors = new Visitors(TrainDashboardIT.page(train, log))) {
            visitors.come(kind, count);
            long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE_SECONDS);
            for (int i = 1; !train.waitFor(50, TimeUnit.MILLISECONDS); i++) {
                assertThat(System.nanoTime()).as(Files.readString(log)).isLessThan(deadline);
                visitors.goOn();
                visitors.come(kind, i % 20 == 0 ? count / 20 : 0);
            }
        } finally {
            train.destroyForcibly();
        }
        assertThat(train.exitValue()).as(Files.readString(log)).isZero();
        assertThat(TrainProcess.sha256(out)).isEqualTo(alone);
    }

    @Test
    void halfRequestsTakeNoFileOfTheRun() throws Exception {
        withVisitors(List.of(), Kind.HALF, 1100);
    }

    @Test
    void unfinishedHeadersTakeNoMemoryOfTheRun() throws Exception {
        withVisitors(List.of("-Xmx256m"), Kind.LARGE_HEADER, 600);
    }

    @Test
    void aRunThatCouldNotKeepEnoughFilesIsRefused() throws Exception {
        Path out = temporary.resolve("never");
        Path log = temporary.resolve("log");
        assertThat(TrainProcess.end(train(out, log, TOO_FEW_OPEN_FILES, List.of(), ITERATIONS)))
                .as(Files.readString(log))
                .isEqualTo(2);
        assertThat(Files.readAllLines(log))
                .singleElement()
                .asString()
                .contains("--dashboard", "file descriptors are left", "ulimit -n");
        assertThat(out).doesNotExist();
    }

    private record Figures(long residentKib, long files) {
        static Figures of(Process process) throws IOException {
            Path about = Path.of("/proc", Long.toString(process.pid()));
            try (Stream<Path> files = Files.list(about.resolve("fd"));
                    Stream<String> lines = Files.lines(about.resolve("status"))) {
                long resident = lines.filter(line -> line.startsWith("VmRSS:"))
                        .mapToLong(line -> Long.parseLong(line.replaceAll("[^0-9]", "")))
                        .findFirst()
                        .orElseThrow();
                return new Figures(resident, files.count());
            }
        }
    }

    private static int status(URI uri) throws IOException {
        var connection = (HttpURLConnection) uri.toURL().openConnection();
        connection.setReadTimeout((int) TimeUnit.SECONDS.toMillis(TrainProcess.PATIENCE_SECONDS));
        try {
            return connection.getResponseCode();
        } finally {
            connection.disconnect();
        }
    }

    @Test
    @SoakOnly
    @Timeout(1200)
    void thousandsOfVisitorsLeaveARunAsItIs() throws Exception {
        int each = 320;
        int iterations = 600;
        Path out = temporary.resolve("run");
        Path log = temporary.resolve("log");
        List<String> options = List.of("-Xmx256m", "-XX:+UseSerialGC");
        Process train = train(out, log, MOST_OPEN_FILES, options, iterations);
        var figures = new ArrayList<Figures>();
        int came = 0;
        try {
            URI page = TrainDashboardIT.page(train, log);
            // Two times, so that what grows with visitors grows in the second.
            for (int half = 0; half < 2; half++) {
                for (int i = 0; i < each / 2; i += 20) {
                    try (var visitors = new Visitors(page)) {
                        for (Kind kind : Kind.values()) {
                            visitors.come(kind, 20);
                            came += 20;
                        }
                        for (int j = 0; j < 20; j++) {
                            visitors.goOn();
                            Thread.sleep(50);
                        }
                        assertThat(status(page.resolve("health"))).isEqualTo(200);
                    }
                }
                Thread.sleep(TimeUnit.SECONDS.toMillis(3)); // all have been noticed to be gone
                figures.add(Figures.of(train));
            }
            assertThat(train.isAlive())
                    .as("the run goes on while there are visitors")
                    .isTrue();
            assertThat(train.waitFor(10, TimeUnit.MINUTES)).isTrue();
            assertThat(train.exitValue()).as(Files.readString(log)).isZero();
        } finally {
            train.destroyForcibly();
        }
        assertThat(came).isGreaterThanOrEqualTo(2500);
        Figures before = figures.getFirst();
        Figures after = figures.getLast();
        assertThat(after.residentKib).isLessThan(before.residentKib + MORE_KIB);
        assertThat(after.files).isLessThanOrEqualTo(before.files + 2);
        assertThat(TrainProcess.sha256(out)).isEqualTo(alone(temporary, iterations));
        SoakReport.row(
                SoakReport.Table.VISITORS,
                "train mnist-robust, 256 MiB of heap, 1024 file descriptors",
                "%,d".formatted(came),
                String.format(Locale.ROOT, "%,d KiB", before.residentKib),
                String.format(Locale.ROOT, "%,d KiB", after.residentKib),
                "%d, %d".formatted(before.files, after.files),
                "yes");
    }
}
