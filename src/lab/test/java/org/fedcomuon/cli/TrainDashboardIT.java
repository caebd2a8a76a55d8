package org.fedcomuon.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.fedcomuon.testing.Events;
import org.fedcomuon.testing.Slow;
import org.fedcomuon.testing.TrainProcess;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.JsonNode;

/** {@code train --dashboard}, as a user starts it. */
@Timeout(value = 300, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
@Slow
class TrainDashboardIT {
    private static final Pattern SAID = Pattern.compile("^dashboard: (http://\\S+)$", Pattern.MULTILINE);

    @TempDir
    private Path temporary;

    /** Where the page of a process is, as it says. */
    static URI page(Process train, Path log) throws IOException, InterruptedException {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(TrainProcess.PATIENCE_SECONDS);
        while (train.isAlive() && System.nanoTime() < deadline) {
            Matcher said = SAID.matcher(Files.readString(log));
            if (said.find()) {
                return URI.create(said.group(1));
            }
            Thread.sleep(20);
        }
        throw new AssertionError("no dashboard: " + Files.readString(log));
    }

    /** A run that evaluates often and is small. */
    static List<String> run(Path out, int iterations) {
        return new ArrayList<>(List.of(
                "mnist-robust",
                "--iterations",
                Integer.toString(iterations),
                "--set",
                "largest=200",
                "--set",
                "evaluateEvery=5",
                "--checkpoint-every",
                "1",
                "--threads",
                "1",
                "--out",
                out.toString(),
                "--quiet"));
    }

    /** The same with a page, for minutes. */
    static List<String> longRun(Path out, String... more) {
        List<String> arguments = run(out, 100_000);
        arguments.add("--dashboard");
        arguments.addAll(List.of(more));
        return arguments;
    }

    private static Events.Message until(Events events, long step) throws IOException {
        Events.Message message = events.next();
        while (message.data().get("step").asLong() < step) {
            message = events.next();
        }
        return message;
    }

    @Test
    void aRunIsSeenAndHowItWasStoppedAndGoesOnWithWhatItHadMeasured() throws Exception {
        Path out = temporary.resolve("run");
        Path log = temporary.resolve("log");
        Process train = TrainProcess.start(log, TrainProcess.command(longRun(out)));
        try (Events events = Events.open(page(train, log), "")) {
            assertThat(events.next().data().at("/about/facts/preset").asString())
                    .isEqualTo("mnist-robust");
            until(events, 15);
            train.destroy();
            JsonNode last = null;
            Events.Message message = events.next();
            while (!message.name().equals("bye")) {
                assertThat(message.name()).isNotEmpty();
                last = message.data();
                message = events.next();
            }
            assertThat(last).isNotNull();
            assertThat(last.get("state").asString()).isEqualTo("stopped");
            assertThat(last.at("/checkpoint/step").asLong())
                    .isEqualTo(last.get("step").asLong());
        }
        TrainProcess.end(train);

        Process rest = TrainProcess.start(
                log,
                TrainProcess.command(List.of("--resume", out.toString(), "--quiet", "--threads", "1", "--dashboard")));
        try (Events events = Events.open(page(rest, log), "")) {
            JsonNode before = events.next().data();
            assertThat(before.at("/evaluations/points/0/0").asLong(-1)).isZero();
            assertThat(before.at("/evaluations/points/2/0").asLong(-1)).isEqualTo(10);
            assertThat(before.at("/evaluations/points/2/1").propertyNames())
                    .contains("train_loss", "test_accuracy")
                    .doesNotContain("seconds", "step_seconds", "communicated_bytes");
            until(events, before.get("step").asLong() + 1);
        } finally {
            rest.destroy();
            TrainProcess.end(rest);
        }
    }

    @Test
    void aPageThatIsKeptIsThereAfterTheRun() throws Exception {
        Path log = temporary.resolve("log");
        List<String> arguments = longRun(temporary.resolve("run"), "--dashboard-keep");
        arguments.set(arguments.indexOf("--iterations") + 1, "10");
        Process train = TrainProcess.start(log, TrainProcess.command(arguments));
        try {
            URI page = page(train, log);
            try (Events events = Events.open(page, "")) {
                Events.Message message = events.next();
                while (!message.data().get("state").asString().equals("done")) {
                    message = events.next();
                }
            }
            while (!Files.readString(log).contains("dashboard: stays until Ctrl-C")) {
                assertThat(train.isAlive()).as(Files.readString(log)).isTrue();
                Thread.sleep(20);
            }
            assertThat(Files.readString(log)).contains("sha256", "report.html"); // the command has said all it has to
            try (Events events = Events.open(page, "")) { // as a reload
                JsonNode all = events.next().data();
                assertThat(all.get("state").asString()).isEqualTo("done");
                assertThat(all.at("/evaluations/points").size()).isEqualTo(3);
                train.destroy();
                assertThat(events.next().name()).isEqualTo("bye");
            }
            TrainProcess.end(train);
        } finally {
            train.destroyForcibly();
        }
    }

    private static String refused(String... arguments) {
        CommandRun run = CommandRun.of((Object[]) arguments);
        assertThat(run.exitCode()).as(run.err()).isEqualTo(2);
        assertThat(run.err().lines()).hasSize(1);
        return run.err();
    }

    @Test
    void aBadRequestIsOneLineAndLeavesNothing() throws Exception {
        Path out = temporary.resolve("never");
        String[] base = {"train", "mnist-robust", "--out", out.toString()};
        assertThat(refused("train", "--dashboard", "mnist-robust"))
                .contains("--dashboard mnist-robust", "not a port", "the preset before");
        assertThat(refused(with(base, "--dashboard", "65536"))).contains("65535");
        assertThat(refused(with(base, "--dashboard=x"))).contains("not a port");
        assertThat(refused(with(base, "--dashboard-host", "0.0.0.0"))).contains("requires --dashboard");
        assertThat(refused(with(base, "--dashboard-token", "0123456789abcdef"))).contains("requires --dashboard");
        assertThat(refused(with(base, "--dashboard-keep"))).contains("--dashboard-keep requires --dashboard");
        assertThat(refused(with(base, "--dashboard", "--dashboard-host", "0.0.0.0")))
                .contains("a token is needed");
        String shortToken =
                refused(with(base, "--dashboard", "--dashboard-host", "0.0.0.0", "--dashboard-token", "secret"));
        assertThat(shortToken).contains("at least 16").doesNotContain("secret");
        assertThat(refused(with(base, "--dashboard", "--dashboard-host", "no.such.host.invalid")))
                .contains("no such address");
        try (var taken = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            String port = Integer.toString(taken.getLocalPort());
            assertThat(refused(with(base, "--dashboard", port))).contains(port, "cannot be listened at");
        }
        assertThat(out).doesNotExist();
    }

    private static String[] with(String[] base, String... more) {
        var all = new ArrayList<>(List.of(base));
        all.addAll(List.of(more));
        return all.toArray(String[]::new);
    }
}
