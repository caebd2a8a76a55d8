package org.fedcomuon.dashboard;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.FileInputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.net.InetAddress;
import java.net.Socket;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.TimeUnit;
import org.fedcomuon.testing.ChildJvm;
import org.fedcomuon.testing.Slow;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** A page in a process that runs out of file descriptors by itself. */
@Slow
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class FileDescriptorsIT {
    private static final int LIMIT = 400;

    /** The process; prints what it finds, and takes a byte for each of its parts. */
    static final class Child {
        private Child() {}

        public static void main(String[] arguments) throws Exception {
            var files = new ArrayList<FileInputStream>();
            try (Dashboard dashboard = Dashboard.builder().open()) {
                System.out.println(dashboard.uri());
                System.in.read(); // until the page has been loaded, and with it the classes that it needs
                open(files, Integer.MAX_VALUE);
                System.out.println("full");
                System.in.read();
                Thread server = Thread.getAllStackTraces().keySet().stream()
                        .filter(thread -> thread.getName().startsWith("dashboard-"))
                        .findFirst()
                        .orElseThrow();
                long before = ManagementFactory.getThreadMXBean().getThreadCpuTime(server.threadId());
                Thread.sleep(1000);
                long millis = TimeUnit.NANOSECONDS.toMillis(
                        ManagementFactory.getThreadMXBean().getThreadCpuTime(server.threadId()) - before);
                close(files);
                System.out.printf(Locale.ROOT, "busy %d open %s%n", millis, dashboard.isOpen());
                System.in.read();
            }
            open(files, (int) FileDescriptors.left() - 60);
            try (Dashboard dashboard = Dashboard.builder().open()) {
                System.out.println("opened " + dashboard.uri());
            } catch (UncheckedIOException e) {
                close(files);
                System.out.println("refused " + e.getMessage());
            }
        }

        private static void open(List<FileInputStream> files, int count) {
            try {
                for (int i = 0; i < count; i++) {
                    files.add(new FileInputStream("/dev/null"));
                }
            } catch (IOException e) {
                // There are no more.
            }
        }

        private static void close(List<FileInputStream> files) throws IOException {
            for (FileInputStream file : files) {
                file.close();
            }
            files.clear();
        }
    }

    @Test
    void aPageWaitsForDescriptorsAndIsRefusedWhereTooFewAreLeft() throws Exception {
        var command = new ArrayList<>(List.of("bash", "-c", "ulimit -n %d; exec \"$@\"".formatted(LIMIT), "bash"));
        command.addAll(ChildJvm.command(List.of("-XX:+UseSerialGC"), Child.class, List.of()));
        Process child = new ProcessBuilder(command)
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
        try (var said = child.inputReader();
                var go = child.outputWriter()) {
            int port = URI.create(said.readLine()).getPort();
            try (var before = new Socket(InetAddress.getLoopbackAddress(), port)) {
                assertThat(health(before)).startsWith("HTTP/1.1 200 OK");
            }
            go.write("\n");
            go.flush();
            assertThat(said.readLine()).isEqualTo("full");
            try (var waiting = new Socket(InetAddress.getLoopbackAddress(), port)) {
                go.write("\n");
                go.flush();
                String[] figures = said.readLine().split(" ", -1);
                assertThat(Integer.parseInt(figures[1]))
                        .as("milliseconds of a second in which nothing can be accepted")
                        .isLessThan(300);
                assertThat(figures[3]).as("whether the page is open").isEqualTo("true");
                assertThat(health(waiting)).startsWith("HTTP/1.1 200 OK");
            }
            go.write("\n");
            go.flush();
            assertThat(said.readLine()).startsWith("refused ").contains("60 file descriptors are left", "ulimit -n");
            assertThat(child.waitFor(20, TimeUnit.SECONDS)).isTrue();
        } finally {
            child.destroyForcibly();
        }
    }

    private static String health(Socket socket) throws IOException {
        socket.getOutputStream()
                .write("GET /health HTTP/1.1\r\nHost: localhost:%d\r\n\r\n"
                        .formatted(socket.getPort())
                        .getBytes(StandardCharsets.US_ASCII));
        return new String(socket.getInputStream().readAllBytes(), StandardCharsets.US_ASCII);
    }
}
