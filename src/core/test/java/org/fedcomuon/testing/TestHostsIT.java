package org.fedcomuon.testing;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** What tests with several hosts rely on: that there are several, and that their faults are faults. */
@Slow
@Timeout(60)
class TestHostsIT {
    private static final int PORT = 7000;

    @TempDir
    private Path directory;

    private TestHosts hosts;

    @BeforeEach
    void start() throws Exception {
        TestHosts.assumePossible();
        Path shared = Files.createDirectories(directory.resolve("shared"));
        hosts = TestHosts.start(directory.resolve("hosts"), List.of(shared), "near", "far");
    }

    @AfterEach
    void close() {
        if (hosts != null) {
            hosts.close();
        }
    }

    /** Answers every byte with the same; or sends some, and prints how many milliseconds each answer took. */
    static final class Echo {
        private Echo() {}

        public static void main(String[] arguments) throws Exception {
            if (arguments.length == 0) {
                try (var server = new ServerSocket(PORT)) {
                    System.out.println("listens");
                    try (Socket socket = server.accept()) {
                        socket.setTcpNoDelay(true);
                        socket.getInputStream().transferTo(socket.getOutputStream());
                    }
                }
                return;
            }
            try (var socket = new Socket(arguments[0], PORT)) {
                socket.setTcpNoDelay(true);
                while (true) {
                    long sent = System.nanoTime();
                    socket.getOutputStream().write(1);
                    if (socket.getInputStream().read() != 1) {
                        throw new IOException("the other side has ended");
                    }
                    System.out.println(TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - sent));
                    Thread.sleep(10);
                }
            }
        }
    }

    private Path log(String host) {
        return directory.resolve("echo-" + host);
    }

    private Process echo(String host, String... arguments) throws Exception {
        List<String> command = ChildJvm.command(List.of(), Echo.class, List.of(arguments));
        Process process = hosts.host(host).start(log(host), Map.of(), command);
        awaitLines(log(host), 0);
        return process;
    }

    /** Until there are more lines; returns them. */
    private static List<String> awaitLines(Path log, int before) throws Exception {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(30);
        List<String> lines = Files.readAllLines(log, US_ASCII);
        while (lines.size() <= before) {
            assertThat(System.nanoTime()).as(log + ": " + lines).isLessThan(deadline);
            Thread.sleep(10);
            lines = Files.readAllLines(log, US_ASCII);
        }
        return lines;
    }

    @Test
    void aLinkIsCutAndSlowAndReset() throws Exception {
        echo("far");
        Process sender = echo("near", "far");
        Path log = log("near");
        for (boolean silently : List.of(false, true)) {
            if (silently) {
                hosts.host("far").isolate();
            } else {
                hosts.host("far").cut();
            }
            Thread.sleep(50);
            int before = awaitLines(log, 0).size();
            Thread.sleep(300);
            assertThat(Files.readAllLines(log)).hasSize(before);
            hosts.host("far").restore();
            assertThat(awaitLines(log, before).get(before))
                    .satisfies(took -> assertThat(Integer.parseInt(took)).isBetween(300, 5000));
        }
        if (Files.isWritable(SlowLink.DEVICE)) {
            hosts.host("far").slow(Duration.ofMillis(100), 0);
            int before = awaitLines(log, 0).size();
            List<String> slow = awaitLines(log, before + 2);
            assertThat(Integer.parseInt(slow.getLast())).isBetween(200, 1000);
            hosts.host("far").restore();
            int then = slow.size();
            assertThat(Integer.parseInt(awaitLines(log, then + 10).getLast())).isLessThan(200);
        }
        hosts.host("near").resetConnections();
        assertThat(sender.waitFor(30, TimeUnit.SECONDS)).isTrue();
        assertThat(Files.readString(log)).contains("SocketException");
    }

    @Test
    void nothingIsSharedButWhatTheTestSays() throws Exception {
        Path log = directory.resolve("log");
        String write = "hostname > /tmp/mine; hostname > %s/$(hostname)".formatted(directory.resolve("shared"));
        for (String host : List.of("near", "far")) {
            assertThat(TrainProcess.end(hosts.host(host).start(log, Map.of(), List.of("sh", "-c", write))))
                    .as(Files.readString(log))
                    .isZero();
            assertThat(directory.resolve("shared").resolve(host)).hasContent(host);
            assertThat(hosts.host(host).privateDirectory(Path.of("/tmp")).resolve("mine"))
                    .hasContent(host);
        }
        assertThat(TrainProcess.end(hosts.host("far").start(log, Map.of(), List.of("ip", "route"))))
                .isZero();
        assertThat(Files.readString(log)).contains(hosts.host("far").address()).doesNotContain("default");
    }

    @Test
    void aShellOnAnotherHost() throws Exception {
        Path shell = hosts.remoteShell(directory.resolve("shared"));
        Path log = directory.resolve("log");
        Process process = hosts.host("near")
                .start(log, Map.of(), List.of(shell.toString(), "far", "hostname;", "echo", "'a b';", "exit", "3"));
        assertThat(TrainProcess.end(process)).isEqualTo(3);
        assertThat(log).hasContent("far\na b");
    }

    @Test
    void nothingIsLeft() throws Exception {
        echo("far");
        List<ProcessHandle> all = hosts.host("far").processes();
        assertThat(all).isNotEmpty().allMatch(ProcessHandle::isAlive);
        hosts.close();
        assertThat(all).noneMatch(ProcessHandle::isAlive);
    }
}
