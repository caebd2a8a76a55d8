package org.example.embedding;

import static org.example.embedding.ServiceProcess.ENDLESS;
import static org.example.embedding.ServiceProcess.SHORT;
import static org.example.embedding.ServiceProcess.is;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.Socket;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * Connections that want nothing good, beside jobs that run: {@code -Dtests.soak=true} makes 2,500 of them. All are of this
 * process to the one that it has started, on loopback.
 */
@Timeout(300)
class HostileConnectionsTest {
    private static final int ROUNDS = Boolean.getBoolean("tests.soak") ? 25 : 2;
    private static final int AT_ONCE = 100;
    private static final long HELD_MILLIS = 500;

    /** What a connection holds while it is open, in the order in which they take turns. */
    private enum Attack {
        NOTHING,
        HALF_A_REQUEST,
        HALF_A_HEADER,
        HEADERS_OF_370_KB,
        MANY_HEADERS,
        DRIPS,
        A_BODY_THAT_DOES_NOT_COME,
        A_BODY_OF_A_MEGABYTE,
        NOT_HTTP,
        NO_READING,
    }

    @TempDir
    private Path directory;

    @Test
    void theJobsFinishAndNothingGrows() throws Exception {
        try (ServiceProcess service = ServiceProcess.start(directory)) {
            String alone = service.create(SHORT);
            String hash = service.await(alone, is("DONE")).get("sha256").asString();
            String endless = service.create(ENDLESS);
            attack(service, 2); // what a process allocates once: threads, compiled code, arenas of malloc
            awaitAnswer(service);
            Footprint before = Footprint.of(service);
            String beside = service.create(SHORT);
            attack(service, ROUNDS);
            awaitAnswer(service);
            assertEquals(hash, service.await(beside, is("DONE")).get("sha256").asString());
            long step = service.job(endless).get("step").asLong();
            service.await(endless, job -> job.get("step").asLong() > step);
            service.json("POST", "/jobs/" + endless + "/stop", "", 200);
            Footprint after = Footprint.of(service);
            System.out.printf("%d connections: %s before, %s after%n", ROUNDS * AT_ONCE, before, after);
            String both = before + " before, " + after + " after";
            assertTrue(after.descriptors() <= before.descriptors() + 10, both);
            assertTrue(after.residentKiB() <= before.residentKiB() + 8 * 1024, both);
        }
    }

    /** Requests that arrive slowly do not keep others from being answered. */
    @Test
    void slowRequestsDelayNobody() throws Exception {
        try (ServiceProcess service = ServiceProcess.start(directory)) {
            var slow = new ArrayList<Socket>();
            for (int i = 0; i < 50; i++) {
                var socket = new Socket(InetAddress.getLoopbackAddress(), service.port());
                send(socket.getOutputStream(), "POST /jobs HTTP/1.1\r\nContent-Length: 9\r\n\r\n");
                slow.add(socket);
            }
            Instant start = Instant.now();
            service.json("GET", "/jobs", "", 200);
            assertTrue(Duration.between(start, Instant.now()).toSeconds() < 5);
            for (Socket each : slow) {
                each.setSoTimeout(30_000);
                assertEquals(-1, each.getInputStream().read()); // when the service closes it
                each.close();
            }
        }
    }

    private static void attack(ServiceProcess service, int rounds) throws Exception {
        try (ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
            for (int round = 0; round < rounds; round++) {
                var attacks = new ArrayList<Future<?>>();
                for (int i = 0; i < AT_ONCE; i++) {
                    Attack attack = Attack.values()[i % Attack.values().length];
                    attacks.add(threads.submit(() -> attack(service.port(), attack)));
                }
                for (Future<?> each : attacks) {
                    each.get();
                }
            }
        }
    }

    private static void attack(int port, Attack attack) {
        try (var socket = new Socket(InetAddress.getLoopbackAddress(), port)) {
            OutputStream out = socket.getOutputStream();
            String get = "GET /jobs HTTP/1.1\r\nHost: localhost:%d\r\n".formatted(port);
            String post = "POST /jobs HTTP/1.1\r\nHost: localhost:%d\r\n".formatted(port);
            switch (attack) {
                case NOTHING -> {}
                case HALF_A_REQUEST -> send(out, "GET /jo");
                case HALF_A_HEADER -> send(out, get + "X-Half: ");
                case HEADERS_OF_370_KB -> send(out, get + "X-Long: " + "x".repeat(370_000) + "\r\n\r\n");
                case MANY_HEADERS -> send(out, get + "X-Many: x\r\n".repeat(10_000) + "\r\n");
                case DRIPS -> {
                    for (int i = 0; i < 20; i++) {
                        send(out, get.substring(i, i + 1));
                        Thread.sleep(HELD_MILLIS / 20);
                    }
                }
                case A_BODY_THAT_DOES_NOT_COME -> send(out, post + "Content-Length: 1000000000\r\n\r\n{");
                case A_BODY_OF_A_MEGABYTE ->
                    send(out, post + "Content-Length: 1000000\r\n\r\n" + " ".repeat(1_000_000));
                case NOT_HTTP -> send(out, "\u0016\u0003\u0001\r\n\r\n\u0000\u0000");
                case NO_READING -> send(out, (get + "\r\n").repeat(1000));
            }
            Thread.sleep(HELD_MILLIS);
        } catch (IOException e) {
            // The service does not have to listen to this.
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    private static void send(OutputStream out, String text) throws IOException {
        out.write(text.getBytes(StandardCharsets.ISO_8859_1));
    }

    /** Waits until the service has time and a connection for others again. */
    private static void awaitAnswer(ServiceProcess service) throws Exception {
        Instant deadline = Instant.now().plusSeconds(30);
        while (true) {
            try {
                HttpResponse<String> health = service.ask("GET", "/health", "");
                assertEquals(200, health.statusCode(), health.body());
                return;
            } catch (IOException e) { // closed: there are too many
                assertTrue(service.process().isAlive() && Instant.now().isBefore(deadline), e::toString);
                Thread.sleep(100);
            }
        }
    }

    /** What a process holds of the machine. */
    private record Footprint(long residentKiB, long descriptors) {
        static Footprint of(ServiceProcess service) throws Exception {
            Path process = Path.of("/proc", Long.toString(service.process().pid()));
            Thread.sleep(Duration.ofSeconds(2)); // connections that were closed on this side
            String resident = Files.readAllLines(process.resolve("status")).stream()
                    .filter(line -> line.startsWith("VmRSS:"))
                    .findFirst()
                    .orElseThrow();
            int descriptors = process.resolve("fd").toFile().list().length;
            return new Footprint(Long.parseLong(resident.replaceAll("\\D", "")), descriptors);
        }

        @Override
        public String toString() {
            return "%d KiB and %d descriptors".formatted(residentKiB, descriptors);
        }
    }
}
