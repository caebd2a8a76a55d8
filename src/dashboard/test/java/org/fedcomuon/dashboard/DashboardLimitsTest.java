package org.fedcomuon.dashboard;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.lang.management.ManagementFactory;
import java.net.HttpURLConnection;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.stream.IntStream;
import org.fedcomuon.federation.Start;
import org.fedcomuon.testing.Events;
import org.fedcomuon.testing.Visitors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What visitors can take, and what becomes of a page that fails. No run is behind it. */
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class DashboardLimitsTest {
    private static final Duration SHORT = Duration.ofMillis(300);
    /** What a busy machine may take longer. */
    private static final Duration SOON = Duration.ofSeconds(10);

    private static Limits limits(int connections, long waitingBytes) {
        return new Limits(connections, 16 << 10, waitingBytes, SHORT, SHORT, SHORT);
    }

    private static Dashboard.Builder page(Limits limits) {
        return Dashboard.builder().period(Duration.ofMillis(10)).limits(limits);
    }

    /** A page whose history has megabytes, which no kernel keeps for a connection here. */
    private static Dashboard.Builder large(Limits limits) {
        Dashboard.Builder builder = page(limits);
        var metrics = new TreeMap<String, Double>();
        IntStream.range(0, 40).forEach(i -> metrics.put("a_metric_with_a_long_name_%d".formatted(i), 1.0 / 3));
        IntStream.range(0, History.MOST_POINTS - 10).forEach(step -> builder.earlier(step, metrics));
        return builder;
    }

    private static Socket socket(Dashboard dashboard) throws IOException {
        var socket = new Socket();
        socket.setReceiveBufferSize(4 << 10);
        socket.connect(new InetSocketAddress(
                InetAddress.getLoopbackAddress(), dashboard.uri().getPort()));
        return socket;
    }

    private static void send(Socket socket, String text) throws IOException {
        socket.getOutputStream().write(text.getBytes(StandardCharsets.US_ASCII));
    }

    private static String request(Dashboard dashboard, String path) {
        return "GET %s HTTP/1.1\r\nHost: localhost:%d\r\n\r\n"
                .formatted(path, dashboard.uri().getPort());
    }

    private static int status(Dashboard dashboard, String path) throws IOException {
        var connection =
                (HttpURLConnection) dashboard.uri().resolve(path).toURL().openConnection();
        try {
            return connection.getResponseCode();
        } finally {
            connection.disconnect();
        }
    }

    /** Everything until the connection ends, in whatever way. */
    private static byte[] all(InputStream in) {
        var bytes = new ByteArrayOutputStream();
        try {
            byte[] some = new byte[8 << 10];
            for (int count = in.read(some); count >= 0; count = in.read(some)) {
                bytes.write(some, 0, count);
            }
        } catch (IOException e) {
            // It was reset.
        }
        return bytes.toByteArray();
    }

    private static void await(String what, Callable<Boolean> condition) throws Exception {
        long deadline = System.nanoTime() + SOON.toNanos();
        while (!condition.call()) {
            assertThat(System.nanoTime()).as(what).isLessThan(deadline);
            Thread.sleep(5);
        }
    }

    private static Start start(int clients) {
        List<Integer> all = IntStream.range(0, clients).boxed().toList();
        return new Start(
                "trial", "fedcomuon", 7, 0, 100, 5, 42, 0, clients, clients, 0, List.of("cpu:0"), List.of(all));
    }

    @Test
    void aRequestThatDripsInIsCut() throws Exception {
        try (Dashboard dashboard = page(limits(10, 1 << 20)).open();
                Socket socket = socket(dashboard)) {
            long begin = System.nanoTime();
            boolean open = true;
            String text = "GET /?" + "x".repeat(10_000);
            for (int i = 0; open && i < text.length(); i++) { // never silent for long
                try {
                    send(socket, text.substring(i, i + 1));
                    open = socket.getInputStream().available() >= 0;
                } catch (IOException e) {
                    open = false;
                }
                Thread.sleep(5);
            }
            assertThat(open).isFalse();
            assertThat(Duration.ofNanos(System.nanoTime() - begin)).isBetween(SHORT, SOON);
        }
    }

    @Test
    void whoSendsNothingIsCut() throws Exception {
        try (Dashboard dashboard = page(limits(10, 1 << 20)).open();
                Socket socket = socket(dashboard)) {
            long begin = System.nanoTime();
            assertThat(all(socket.getInputStream())).isEmpty();
            assertThat(Duration.ofNanos(System.nanoTime() - begin)).isBetween(SHORT.minusMillis(50), SOON);
        }
    }

    @Test
    void whoDoesNotReadAnAnswerIsCut() throws Exception {
        try (Dashboard dashboard = large(limits(10, 64 << 20)).open();
                Socket socket = socket(dashboard)) {
            send(socket, request(dashboard, "/history"));
            Thread.sleep(SHORT.multipliedBy(3));
            String text = new String(all(socket.getInputStream()), StandardCharsets.UTF_8);
            assertThat(text).startsWith("HTTP/1.1 200 OK");
            int whole = Integer.parseInt(text.replaceFirst("(?s).*?Content-Length: ([0-9]+).*", "$1"));
            assertThat(text.length()).isLessThan(whole / 2);
        }
    }

    @Test
    void eventsLastLongerThanAnyAnswer() throws Exception {
        try (Dashboard dashboard = page(limits(10, 1 << 20)).open();
                Events events = Events.open(dashboard.uri(), "")) {
            assertThat(events.next().name()).isEqualTo("history");
            Thread.sleep(SHORT.multipliedBy(3));
            dashboard.onWarning("later");
            assertThat(events.next().data().get("warnings").toString()).contains("later");
        }
    }

    @ParameterizedTest
    @CsvSource({"16000, 200", "17000, 431", "370000, 431"})
    void aHeaderHasALimit(int length, int status) throws Exception {
        try (Dashboard dashboard = Dashboard.builder().open();
                Socket socket = socket(dashboard)) {
            send(
                    socket,
                    request(dashboard, "/health")
                            .replace("\r\n\r\n", "\r\nX: " + "x".repeat(length) + (status == 200 ? "\r\n\r\n" : "")));
            assertThat(new String(all(socket.getInputStream()), StandardCharsets.US_ASCII))
                    .startsWith("HTTP/1.1 %d ".formatted(status));
        }
    }

    @Test
    void manyConnectionsLeaveRoomForAVisitor() throws Exception {
        try (Dashboard dashboard = Dashboard.builder()
                        .limits(new Limits(8, 16 << 10, 1 << 20, Duration.ofMinutes(1), Duration.ofMinutes(1), SHORT))
                        .open();
                var visitors = new Visitors(dashboard.uri())) {
            visitors.come(Visitors.Kind.HALF, 100);
            assertThat(status(dashboard, "health")).isEqualTo(200);
            await("no more than allowed", () -> {
                visitors.goOn();
                return visitors.staying() <= 8;
            });
            assertThat(visitors.staying()).isGreaterThan(4);
        }
    }

    @Test
    void answersThatNobodyReadsLeaveMemory() throws Exception {
        try (Dashboard dashboard = large(
                                new Limits(50, 16 << 10, 4 << 20, Duration.ofMinutes(1), Duration.ofMinutes(1), SHORT))
                        .open();
                var visitors = new Visitors(dashboard.uri())) {
            visitors.come(Visitors.Kind.UNREAD_ANSWER, 5);
            await("no room", () -> status(dashboard, "history") == 503);
            assertThat(status(dashboard, "charts")).isEqualTo(503);
            assertThat(status(dashboard, "")).isEqualTo(200);
            try (Events events = Events.open(dashboard.uri(), "")) { // it waits
                visitors.leave();
                assertThat(events.next().name()).isEqualTo("history");
            }
            assertThat(status(dashboard, "history")).isEqualTo(200);
        }
    }

    @Test
    void halfOfTheFileDescriptorsStaysWithTheRun() {
        assertThat(FileDescriptors.left()).isPositive();
        assertThat(FileDescriptors.share(0)).isZero();
        assertThat(FileDescriptors.share(64)).isZero();
        assertThat(FileDescriptors.share(100)).isEqualTo(36);
        assertThat(FileDescriptors.share(800)).isEqualTo(400);
        assertThat(FileDescriptors.shortage(71)).contains("71 file descriptors", "72", "ulimit -n");
        assertThat(FileDescriptors.shortage(72)).isEmpty();
    }

    @Test
    void aFailureInAListenerEndsThePageAndNothingElse() throws Exception {
        Dashboard dashboard = page(limits(10, 1 << 20)).open();
        int port = dashboard.uri().getPort();
        dashboard.onStart(start(1));
        assertThat(dashboard.isOpen()).isTrue();
        dashboard.onRound(DashboardTest.round(0, 1.0, 2.0)); // of more clients than there are
        await("the page has ended", () -> !dashboard.isOpen());
        dashboard.onRound(DashboardTest.round(1, 1.0, 2.0));
        dashboard.onFailure(new IllegalStateException("of the run"));
        dashboard.close();
        try (var socket = new ServerSocket(port, 1, InetAddress.getLoopbackAddress())) {
            assertThat(socket.isBound()).isTrue();
        }
    }

    @Test
    void aFailureInAnAnswerEndsThePageAndNothingElse() throws Exception {
        Map<String, Double> none = new HashMap<>();
        none.put("train_accuracy", null);
        try (Dashboard dashboard = page(limits(10, 1 << 20)).earlier(0, none).open()) {
            try (Socket socket = socket(dashboard)) {
                send(socket, request(dashboard, "/charts"));
                assertThat(all(socket.getInputStream())).isEmpty();
            }
            await("the page has ended", () -> !dashboard.isOpen());
            dashboard.onStep(1);
            assertThatThrownBy(() -> status(dashboard, "health")).isInstanceOf(IOException.class);
        }
    }

    @Test
    void aPageSaysWhatItWaitsForBeforeAnyEvent() throws Exception {
        try (Dashboard dashboard =
                page(limits(10, 1 << 20)).title("<my> run /*state*/").open()) {
            assertThat(document(dashboard))
                    .contains(
                            "<h1 id=\"title\">&lt;my&gt; run /*state*/</h1>",
                            "class=\"badge waiting\" role=\"status\">waiting<",
                            "Waiting for the run to begin",
                            "<title>waiting · ")
                    .doesNotContain("hidden>Waiting");
            dashboard.onStart(start(1));
            assertThat(document(dashboard)).contains("badge running", "<title>running · ", "hidden>Waiting");
        }
    }

    private static String document(Dashboard dashboard) throws IOException {
        try (InputStream in = dashboard.uri().toURL().openStream()) {
            return new String(in.readAllBytes(), StandardCharsets.UTF_8);
        }
    }

    @Test
    void thereIsRoomAgainWhenBrowsersHaveLeft() throws Exception {
        try (Dashboard dashboard = page(limits(100, 1 << 20)).open()) {
            var open = new ArrayList<Events>();
            for (int i = 0; i < Broadcast.MOST_SUBSCRIBERS; i++) {
                open.add(Events.open(dashboard.uri(), ""));
            }
            assertThat(status(dashboard, "events")).isEqualTo(503);
            open.forEach(Events::close);
            await("they have left", () -> dashboard.subscribers() == 0);
            try (Events events = Events.open(dashboard.uri(), "")) {
                assertThat(events.next().name()).isEqualTo("history");
            }
        }
    }

    @Test
    void nothingSpinsWhereNothingIsAccepted() throws Exception {
        try (Dashboard dashboard = page(limits(1, 1 << 20)).open();
                Events events = Events.open(dashboard.uri(), "");
                var visitors = new Visitors(dashboard.uri())) {
            assertThat(events.next().name()).isEqualTo("history");
            visitors.come(Visitors.Kind.HALF, 50); // the only place is taken
            Thread server = Thread.getAllStackTraces().keySet().stream()
                    .filter(thread -> thread.getName()
                            .equals("dashboard-" + dashboard.uri().getPort()))
                    .findFirst()
                    .orElseThrow();
            await("they are turned away", () -> {
                visitors.goOn();
                return visitors.staying() == 0;
            });
            long before = cpu(server);
            Thread.sleep(500);
            assertThat(Duration.ofNanos(cpu(server) - before)).isLessThan(Duration.ofMillis(250));
        }
    }

    private static long cpu(Thread thread) {
        return ManagementFactory.getThreadMXBean().getThreadCpuTime(thread.threadId());
    }
}
