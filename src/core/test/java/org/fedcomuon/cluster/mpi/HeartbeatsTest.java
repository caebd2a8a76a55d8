package org.fedcomuon.cluster.mpi;

import static java.util.concurrent.TimeUnit.MILLISECONDS;
import static java.util.concurrent.TimeUnit.SECONDS;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import org.fedcomuon.cluster.MemberFailedException;
import org.fedcomuon.testing.Slow;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Signs of life without MPI: all processes are in this one. */
@Slow
@Timeout(60)
class HeartbeatsTest {
    private static final Duration SILENCE = Duration.ofSeconds(1);

    private final BlockingQueue<String> reports = new LinkedBlockingQueue<>();

    private HeartbeatHub hub(int processes) throws IOException {
        return HeartbeatHub.open("first", true, processes, SILENCE, this::report);
    }

    private HeartbeatLink link(int process, String host, HeartbeatAddress address) {
        return HeartbeatLink.open(process, host, address, SILENCE, this::report);
    }

    private void report(MemberFailedException failure) {
        reports.add(String.valueOf(failure.getMessage()));
    }

    private static void wait(Duration duration) throws InterruptedException {
        MILLISECONDS.sleep(duration.toMillis());
    }

    @Test
    void whoFallsSilentIsReportedOnceWithItsHost() throws Exception {
        try (HeartbeatHub hub = hub(3);
                HeartbeatLink _ = link(2, "third", hub.address())) {
            HeartbeatLink silent = link(1, "second", hub.address());
            wait(SILENCE.multipliedBy(2));
            assertThat(reports).isEmpty();
            silent.close();
            long from = System.nanoTime();
            assertThat(reports.poll(30, SECONDS)).isEqualTo("no sign of life for 1 s from process 1 on second");
            assertThat(Duration.ofNanos(System.nanoTime() - from))
                    .isGreaterThan(SILENCE.multipliedBy(8).dividedBy(10));
            wait(SILENCE);
            assertThat(reports).isEmpty();
        }
    }

    @Test
    void theOthersReportTheFirst() throws Exception {
        HeartbeatHub hub = hub(3);
        try (HeartbeatLink _ = link(1, "second", hub.address());
                HeartbeatLink _ = link(2, "third", hub.address())) {
            wait(SILENCE.dividedBy(2));
            hub.close();
            assertThat(reports.poll(30, SECONDS)).isEqualTo("no sign of life for 1 s from process 0 on first");
            assertThat(HeartbeatLink.stagger(1, SILENCE)).isZero();
            assertThat(HeartbeatLink.stagger(2, SILENCE)).isEqualTo(Duration.ofMillis(200));
            assertThat(HeartbeatLink.stagger(2000, SILENCE)).isEqualTo(SILENCE.dividedBy(2));
        }
    }

    @Test
    void whatWasStoppedItselfAccusesNobody() {
        var watch = new SilenceWatch(1, 3, Duration.ofSeconds(10), silent -> {});
        long now = System.nanoTime();
        assertThat(watch.silentAt(now + Duration.ofHours(1).toNanos())).isEmpty();
        for (int second = 1; second < 8; second++) {
            watch.heard(2);
            assertThat(watch.silentAt(
                            now + Duration.ofHours(1).plusSeconds(second).toNanos()))
                    .isEmpty();
        }
        assertThat(watch.silentAt(now + Duration.ofHours(1).plusSeconds(9).toNanos()))
                .containsExactly(1);
    }

    @Test
    void aConnectionThatBreaksIsMadeAgain() throws Exception {
        try (HeartbeatHub hub = hub(2);
                var between = new ServerSocket(0, 50, InetAddress.getLoopbackAddress())) {
            var address = new HeartbeatAddress(
                    hub.address().token(),
                    "first",
                    between.getLocalPort(),
                    hub.address().addresses());
            Thread.ofVirtual()
                    .start(() -> breakConnections(between, hub.address().port()));
            try (HeartbeatLink _ = link(1, "second", address)) {
                wait(SILENCE.multipliedBy(2));
                assertThat(reports).isEmpty();
            }
        }
    }

    /** Passes on a beat of each connection and its answer, and then ends the connection. */
    private static void breakConnections(ServerSocket between, int port) {
        while (!between.isClosed()) {
            try (Socket link = between.accept();
                    var hub = new Socket(InetAddress.getLoopbackAddress(), port)) {
                var introduction = new byte[HeartbeatAddress.TOKEN_BYTES + Integer.BYTES + Short.BYTES + 6 + 1];
                link.getInputStream().readNBytes(introduction, 0, introduction.length);
                hub.getOutputStream().write(introduction);
                link.getOutputStream().write(hub.getInputStream().read());
            } catch (IOException e) {
                // The next one, if there is one.
            }
        }
    }

    @Test
    void strangersAreNotHeardAndKeepNobodyFromBeingHeard() throws Exception {
        var strangers = new ArrayList<Socket>();
        try (HeartbeatHub hub = hub(3);
                HeartbeatLink _ = link(2, "third", hub.address())) {
            for (int i = 0; i < 300; i++) {
                var stranger = new Socket(
                        InetAddress.getLoopbackAddress(), hub.address().port());
                strangers.add(stranger);
                if (i % 3 == 0) {
                    stranger.getOutputStream().write(new byte[HeartbeatAddress.TOKEN_BYTES + 7]);
                }
            }
            assertThat(reports.poll(30, SECONDS))
                    .startsWith(
                            "no sign of life for 1 s from process 1, which has never reached process 0 on first, port ")
                    .doesNotContain("process 2")
                    .doesNotContain(hub.address().token());
            for (Socket stranger : strangers.subList(0, 200)) {
                stranger.setSoTimeout(10_000);
                assertThat(closed(stranger)).isTrue(); // long before they have had the time to introduce themselves
            }
        } finally {
            for (Socket each : strangers) {
                each.close();
            }
        }
    }

    private static boolean closed(Socket socket) {
        try {
            return socket.getInputStream().read() < 0;
        } catch (IOException e) {
            return true; // by a reset
        }
    }

    @Test
    void anAddressGoesAroundAsText() {
        var address = new HeartbeatAddress("00".repeat(16), "first", 4711, List.of("10.0.0.1", "fe80::1%eth0"));
        assertThat(HeartbeatAddress.of(address.text())).isEqualTo(address);
        assertThat(address.toString()).doesNotContain(address.token());
        assertThat(address.isToken(new byte[16])).isTrue();
        assertThat(address.isToken(new byte[15])).isFalse();
    }
}
