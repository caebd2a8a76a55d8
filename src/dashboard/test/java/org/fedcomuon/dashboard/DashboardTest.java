package org.fedcomuon.dashboard;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.HttpURLConnection;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.fedcomuon.federation.Evaluation;
import org.fedcomuon.federation.Round;
import org.fedcomuon.federation.Start;
import org.fedcomuon.method.ClientFault;
import org.fedcomuon.method.Clients;
import org.fedcomuon.testing.Events;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/** What the page is sent, and who is sent anything. No run is behind it: the calls are those of one. */
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class DashboardTest {
    private static final String TOKEN = "0123456789abcdef";
    private static final int TAU = 5;

    private static Dashboard.Builder quick() {
        return Dashboard.builder().period(Duration.ofMillis(2));
    }

    private static Start start(int clients, long step, long iterations) {
        List<Integer> all = IntStream.range(0, clients).boxed().toList();
        return new Start(
                "trial",
                "fedcomuon",
                7,
                step,
                iterations,
                TAU,
                42,
                0,
                all.size(),
                all.size(),
                0,
                List.of("cpu:0"),
                List.of(all));
    }

    static Round round(long number, Double... losses) {
        return new Round(
                number,
                (number + 1) * TAU,
                losses.length,
                0,
                100 * (number + 1),
                number + 1,
                50 * (number + 1),
                1,
                1,
                0.5,
                0.25,
                0.125,
                IntStream.range(0, losses.length).boxed().toList(),
                List.of(losses),
                List.of(Map.of(
                        Clients.Phase.STEP,
                        1.0,
                        Clients.Phase.GRADIENT,
                        0.5,
                        Clients.Phase.ORTHOGONALIZE,
                        0.25,
                        Clients.Phase.EXCHANGE,
                        0.125)));
    }

    private static void go(Dashboard dashboard, long from, long to, Double... losses) {
        for (long number = from; number < to; number++) {
            for (int i = 1; i <= TAU; i++) {
                dashboard.onStep(number * TAU + i);
            }
            dashboard.onRound(round(number, losses));
        }
    }

    private static Evaluation evaluation(long step, double value) {
        return new Evaluation(step, step / TAU, Map.of("train_loss", value), List.of(), 0, 0, 0, 0, 0, 0, 0);
    }

    private static JsonNode history(Dashboard dashboard) throws IOException {
        Answer answer = get(dashboard.uri().resolve("history"));
        assertThat(answer.status()).isEqualTo(200);
        return JsonMapper.shared().readTree(answer.body());
    }

    private record Answer(int status, Map<String, List<String>> headers, String body) {}

    private static Answer get(URI uri) throws IOException {
        return ask(uri, "GET", Map.of());
    }

    private static Answer ask(URI uri, String method, Map<String, String> headers) throws IOException {
        var connection = (HttpURLConnection) uri.toURL().openConnection();
        connection.setRequestMethod(method);
        headers.forEach(connection::setRequestProperty);
        int status = connection.getResponseCode();
        try (var body = status < 400 ? connection.getInputStream() : connection.getErrorStream()) {
            String text = body == null ? "" : new String(body.readAllBytes(), StandardCharsets.UTF_8);
            var lower = new TreeMap<String, List<String>>();
            connection.getHeaderFields().forEach((name, values) -> {
                if (name != null) { // which the status line has
                    lower.put(name.toLowerCase(Locale.ROOT), values);
                }
            });
            return new Answer(status, lower, text);
        }
    }

    /** The status line of an answer to exactly this. */
    private static String raw(Dashboard dashboard, String request) throws IOException {
        try (var socket =
                new Socket(InetAddress.getLoopbackAddress(), dashboard.uri().getPort())) {
            socket.getOutputStream().write(request.getBytes(StandardCharsets.US_ASCII));
            return new String(socket.getInputStream().readAllBytes(), StandardCharsets.US_ASCII)
                    .lines()
                    .findFirst()
                    .orElse("");
        }
    }

    @Test
    void aBrowserIsSentAllThatWasAndThenWhatComes() throws Exception {
        try (Dashboard dashboard =
                quick().title("my run").fact("preset", "mine").open()) {
            dashboard.onWarning("doubtful");
            dashboard.onStart(start(2, 0, 1000));
            dashboard.onEvaluation(evaluation(0, 3));
            go(dashboard, 0, 3, 1.0, 2.0);
            dashboard.onClientFault(new ClientFault(1, 12, ClientFault.Kind.THREW, "no power"));
            dashboard.onCheckpoint(15, Path.of("somewhere", "secret", "checkpoint-15.safetensors"));
            try (Events events = Events.open(dashboard.uri(), "")) {
                Events.Message first = events.next();
                assertThat(first.name()).isEqualTo("history");
                JsonNode all = first.data();
                assertThat(all.at("/about/title").asString()).isEqualTo("my run");
                assertThat(all.at("/about/facts/preset").asString()).isEqualTo("mine");
                assertThat(all.at("/about/devices/0/clients").toString()).isEqualTo("[0,1]");
                assertThat(all.get("state").asString()).isEqualTo("running");
                assertThat(all.at("/rounds/points").toString())
                        .isEqualTo("[[5,1.5,1.0,2.0],[10,1.5,1.0,2.0],[15,1.5,1.0,2.0]]");
                assertThat(all.at("/evaluations/points").toString()).isEqualTo("[[0,{\"train_loss\":3.0}]]");
                assertThat(all.at("/losses/last").toString()).isEqualTo("[1.0,2.0]");
                assertThat(all.at("/devices/0/other").asDouble()).isEqualTo(0.125);
                assertThat(all.at("/faults/0/reason").asString()).isEqualTo("no power");
                assertThat(all.get("warnings").toString()).contains("doubtful");
                assertThat(all.at("/checkpoint/file").asString()).isEqualTo("checkpoint-15.safetensors");
                assertThat(all.toString()).doesNotContain("secret");

                go(dashboard, 3, 4, 0.5, 1.5);
                var heard = new ArrayList<JsonNode>();
                while (heard.stream()
                        .noneMatch(data -> data.at("/rounds/points").size() > 0)) {
                    Events.Message update = events.next();
                    assertThat(update.name()).isEqualTo("update");
                    heard.add(update.data());
                }
                assertThat(heard.getLast().at("/rounds/points").toString()).isEqualTo("[[20,1.0,0.5,1.5]]");
                assertThat(heard.getLast().get("bytes").asLong()).isEqualTo(400);
            }
        }
    }

    @Test
    void aReconnectingBrowserReceivesExactlyTheMissedEvents() throws Exception {
        try (Dashboard dashboard = quick().open()) {
            dashboard.onStart(start(1, 0, 1000));
            String last;
            try (Events events = Events.open(dashboard.uri(), "")) {
                last = events.next().id();
            }
            var steps = new ArrayList<Long>();
            for (int i = 0; i < 3; i++) {
                go(dashboard, i, i + 1, 1.0);
                Thread.sleep(20);
            }
            try (Events events = Events.open(dashboard.uri(), last)) {
                while (steps.size() < 3) {
                    Events.Message message = events.next();
                    assertThat(message.name()).isEqualTo("update");
                    message.data()
                            .at("/rounds/points")
                            .forEach(point -> steps.add(point.get(0).asLong()));
                }
            }
            assertThat(steps).containsExactly(5L, 10L, 15L);
            for (String foreign : List.of("0123456789abcdef-1", last + "99", "-1", "nonsense")) {
                try (Events events = Events.open(dashboard.uri(), foreign)) {
                    assertThat(events.next().name()).as(foreign).isEqualTo("history");
                }
            }
        }
    }

    @Test
    void whatIsNoNumberIsStillJson() throws Exception {
        try (Dashboard dashboard = quick().open()) {
            dashboard.onStart(start(3, 0, 1000));
            dashboard.onEvaluation(evaluation(0, Double.POSITIVE_INFINITY));
            go(dashboard, 0, 1, Double.NaN, Double.POSITIVE_INFINITY, 1.0);
            go(dashboard, 1, 2, Double.NaN, Double.NaN, Double.NaN);
            JsonNode all = history(dashboard);
            assertThat(all.at("/rounds/points/0/3").asString()).isEqualTo("Infinity");
            assertThat(all.at("/rounds/points/1/1").asString()).isEqualTo("NaN");
            assertThat(all.at("/losses/last").toString()).isEqualTo("[\"NaN\",\"Infinity\",1.0]");
            assertThat(all.at("/losses/age").toString()).isEqualTo("[-1,1,1]");
            assertThat(all.at("/evaluation/1/train_loss").asString()).isEqualTo("Infinity");
        }
    }

    @Test
    void aLongRunTakesNoMoreRoomAndKeepsItsBeginning() throws Exception {
        try (Dashboard dashboard = quick().open()) {
            dashboard.onStart(start(100, 0, 10_000_000));
            Double[] losses = Collections.nCopies(100, 1.0).toArray(Double[]::new);
            for (int i = 0; i < 60_000; i++) {
                dashboard.onRound(round(i, losses));
                dashboard.onEvaluation(evaluation((i + 1L) * TAU, i));
                dashboard.onClientFault(new ClientFault(1, i, ClientFault.Kind.THREW, "x".repeat(5000)));
            }
            JsonNode all = history(dashboard);
            assertThat(all.at("/rounds/points").size()).isBetween(History.MOST_POINTS / 2 - 1, History.MOST_POINTS);
            assertThat(all.at("/rounds/points/0/0").asLong()).isLessThanOrEqualTo(64L * TAU);
            assertThat(all.at("/evaluations/points/0/0").asLong()).isEqualTo(TAU);
            assertThat(all.at("/evaluation/0").asLong()).isEqualTo(60_000L * TAU);
            assertThat(all.at("/columns/points").size()).isLessThanOrEqualTo(240);
            assertThat(all.get("faults")).hasSize(History.MOST_LINES);
            assertThat(all.get("faultCount").asLong()).isEqualTo(60_000);
            assertThat(all.toString().length()).isLessThan(1_000_000);
        }
    }

    @Test
    void manyClientsShareRowsThatShowTheWorst() throws Exception {
        try (Dashboard dashboard = quick().open()) {
            int clients = 2500;
            dashboard.onStart(start(clients, 0, 1000));
            Double[] losses = Collections.nCopies(clients, 1.0).toArray(Double[]::new);
            losses[1000] = 9.0;
            dashboard.onRound(round(0, losses));
            JsonNode all = history(dashboard);
            assertThat(all.at("/losses/group").asInt()).isEqualTo(3);
            assertThat(all.at("/losses/last").size()).isEqualTo(834);
            assertThat(all.at("/losses/last/333").asDouble()).isEqualTo(9);
        }
    }

    @Test
    void aBrowserThatDoesNotReadIsLeftAndTheRunNeverWaits() throws Exception {
        try (Dashboard dashboard = quick().open();
                var socket = new Socket(
                        InetAddress.getLoopbackAddress(), dashboard.uri().getPort())) {
            int clients = 1000;
            dashboard.onStart(start(clients, 0, 1_000_000));
            socket.getOutputStream()
                    .write("GET /events HTTP/1.1\r\nHost: localhost:%d\r\n\r\n"
                            .formatted(dashboard.uri().getPort())
                            .getBytes(StandardCharsets.US_ASCII));
            while (dashboard.subscribers() == 0) {
                Thread.sleep(1);
            }
            Double[] losses = Collections.nCopies(clients, 1.0 / 3).toArray(Double[]::new);
            long worst = 0;
            long number = 0;
            while (dashboard.subscribers() > 0) {
                Round round = round(number++, losses);
                long before = System.nanoTime();
                dashboard.onRound(round);
                worst = Math.max(worst, System.nanoTime() - before);
                Thread.sleep(1);
            }
            assertThat(worst).isLessThan(TimeUnit.SECONDS.toNanos(1));
            assertThat(history(dashboard).get("round").asLong()).isEqualTo(number);
        }
    }

    @Test
    void thereIsRoomForSoManyBrowsers() throws Exception {
        try (Dashboard dashboard = quick().open()) {
            var open = new ArrayList<Events>();
            for (int i = 0; i < Broadcast.MOST_SUBSCRIBERS; i++) {
                open.add(Events.open(dashboard.uri(), ""));
            }
            assertThat(get(dashboard.uri().resolve("events")).status()).isEqualTo(503);
            open.forEach(Events::close);
        }
    }

    @Test
    void thePageIsOneDocumentThatLoadsNothing() throws Exception {
        try (Dashboard dashboard = quick().open()) {
            Answer page = get(dashboard.uri());
            assertThat(page.status()).isEqualTo(200);
            assertThat(page.body()).contains("<!DOCTYPE html>", "EventSource", "prefers-color-scheme: dark", "</html>");
            assertThat(page.body()).doesNotContain("/*style*/", "/*script*/", "src=\"", "@import");
            assertThat(page.headers()
                            .getOrDefault("content-security-policy", List.of(""))
                            .getFirst())
                    .contains("default-src 'none'", "script-src 'sha256-", "style-src 'sha256-", "connect-src 'self'")
                    .doesNotContain("unsafe");
            assertThat(page.headers())
                    .containsEntry("cache-control", List.of("no-store"))
                    .containsEntry("x-content-type-options", List.of("nosniff"))
                    .containsEntry("referrer-policy", List.of("no-referrer"))
                    .doesNotContainKey("access-control-allow-origin");
        }
    }

    @Test
    void onlyGetAndHeadAndWhatThereIs() throws Exception {
        try (Dashboard dashboard = quick().open()) {
            for (String path : List.of("", "charts", "events", "history", "health")) {
                Answer head = ask(dashboard.uri().resolve(path), "HEAD", Map.of());
                assertThat(head.status()).as(path).isEqualTo(200);
                assertThat(head.body()).isEmpty();
                for (String method : List.of("POST", "PUT", "DELETE", "OPTIONS")) {
                    Answer refused = ask(dashboard.uri().resolve(path), method, Map.of());
                    assertThat(refused.status()).as(method + " /" + path).isEqualTo(405);
                    assertThat(refused.headers()).containsEntry("allow", List.of("GET, HEAD"));
                }
            }
            for (String path : List.of("nothing", "history/", "page.js", "../etc/passwd", "events.")) {
                assertThat(get(dashboard.uri().resolve(path)).status()).as(path).isEqualTo(404);
            }
            assertThat(get(dashboard.uri().resolve("health")).body()).contains("\"state\":\"waiting\"");
        }
    }

    @ParameterizedTest
    @CsvSource({
        "localhost, 200",
        "LOCALHOST, 200",
        "127.0.0.1, 200",
        "[::1], 200",
        "evil.example, 403",
        "localhost.evil.example, 403",
        "192.168.0.1, 403"
    })
    void onLoopbackOnlyItsNamesAreAnswered(String host, int status) throws Exception {
        try (Dashboard dashboard = quick().open()) {
            int port = dashboard.uri().getPort();
            String request = "GET /health HTTP/1.1\r\nHost: %s:%d\r\nConnection: close\r\n\r\n";
            assertThat(raw(dashboard, request.formatted(host, port))).contains(" " + status + " ");
            assertThat(raw(dashboard, request.formatted(host, port == 1 ? 2 : port - 1)))
                    .contains(" 403 ");
            assertThat(raw(dashboard, "GET /health HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n".formatted(host)))
                    .contains(" 403 ");
        }
    }

    @Test
    void pagesOfOtherSitesTakeUpNoRoom() throws Exception {
        try (Dashboard dashboard = quick().open()) {
            String request = "GET %s HTTP/1.1\r\nHost: localhost:%d\r\nSec-Fetch-Site: %s\r\nConnection: close\r\n\r\n";
            int port = dashboard.uri().getPort();
            assertThat(raw(dashboard, request.formatted("/events", port, "cross-site")))
                    .contains(" 403 ");
            assertThat(raw(dashboard, request.formatted("/health", port, "same-origin")))
                    .contains(" 200 ");
            assertThat(raw(dashboard, request.formatted("/", port, "cross-site")))
                    .contains(" 200 "); // a link
        }
    }

    @Test
    void elsewhereATokenIsNeeded() throws Exception {
        InetAddress everywhere = InetAddress.getByName("0.0.0.0");
        assertThatThrownBy(() -> quick().host(everywhere).open()).hasMessageContaining("token");
        assertThatThrownBy(() -> quick().host(everywhere).token("short").open()).hasMessageContaining("16");
        try (Dashboard dashboard = quick().host(everywhere).token(TOKEN).open()) {
            URI uri =
                    URI.create("http://127.0.0.1:%d/".formatted(dashboard.uri().getPort()));
            for (String path : List.of("", "charts", "events", "history", "health", "nothing")) {
                for (String query :
                        List.of("", "?token=", "?token=0123456789abcdeX", "?token=%zz", "?tokens=" + TOKEN)) {

                    assertThat(raw(
                                    dashboard,
                                    "GET /%s%s HTTP/1.1\r\nHost: any.example\r\nConnection: close\r\n\r\n"
                                            .formatted(path, query)))
                            .as(path + query)
                            .containsAnyOf(" 401 ", query.contains("%zz") ? " 400 " : " 401 ");
                }
            }
            assertThat(ask(uri.resolve("health"), "GET", Map.of("Authorization", "Bearer " + TOKEN + "x"))
                            .status())
                    .isEqualTo(401);
            assertThat(ask(uri.resolve("health"), "GET", Map.of("Authorization", "Bearer " + TOKEN))
                            .status())
                    .isEqualTo(200);
            Answer page = get(uri.resolve("?token=" + TOKEN));
            assertThat(page.status()).isEqualTo(200);
            assertThat(page.body()).doesNotContain(TOKEN);
            assertThat(dashboard.uri().toString()).doesNotContain(TOKEN);
        }
    }

    @Test
    void closingSaysHowItEndedAndFreesAll() throws Exception {
        Dashboard dashboard = quick().open();
        int port = dashboard.uri().getPort();
        dashboard.onStart(start(1, 0, 100));
        go(dashboard, 0, 1, 1.0);
        try (Events events = Events.open(dashboard.uri(), "")) {
            events.next();
            dashboard.onFailure(new IllegalStateException("out of luck"));
            dashboard.onFailure(new IllegalStateException("again"));
            dashboard.close();
            Events.Message message = events.next();
            JsonNode state = message.data();
            while (message.name().equals("update")) {
                state = message.data();
                message = events.next();
            }
            assertThat(message.name()).isEqualTo("bye");
            assertThat(state.get("state").asString()).isEqualTo("failed");
            assertThat(state.get("reason").asString()).isEqualTo("out of luck");
            assertThat(events.next().name()).isEmpty();
        }
        dashboard.close();
        try (var socket = new ServerSocket(port, 1, InetAddress.getLoopbackAddress())) {
            assertThat(socket.isBound()).isTrue();
        }
        String name = "dashboard-" + port;
        assertThat(Thread.getAllStackTraces().keySet())
                .noneMatch(thread -> thread.getName().equals(name));
    }

    @ParameterizedTest
    @ValueSource(longs = {5, 100})
    void aRunWithoutAnEndEventHasGoneOrIsDone(long iterations) throws Exception {
        Dashboard dashboard = quick().iterations(iterations).open(); // as of an engine that tells steps alone
        dashboard.onStep(5);
        try (Events events = Events.open(dashboard.uri(), "")) {
            assertThat(events.next().data().get("iterations").asLong()).isEqualTo(iterations);
            dashboard.close();
            Events.Message message = events.next();
            String state = "";
            while (message.name().equals("update")) {
                state = message.data().get("state").asString();
                message = events.next();
            }
            assertThat(state).isEqualTo(iterations == 5 ? "done" : "gone");
        }
    }

    @Test
    void aPortThatIsTakenIsSaid() throws Exception {
        try (Dashboard dashboard = quick().open()) {
            int port = dashboard.uri().getPort();
            assertThatThrownBy(() -> quick().port(port).open())
                    .isInstanceOf(UncheckedIOException.class)
                    .hasMessageContaining(":" + port);
        }
        assertThatThrownBy(() -> quick().port(65_536).open()).hasMessageContaining("65535");
    }

    @Test
    void anotherRunTakesThePlaceOfOneThatHasEnded() throws Exception {
        try (Dashboard dashboard = quick().open()) {
            dashboard.onStart(start(1, 0, 10));
            go(dashboard, 0, 2, 1.0);
            dashboard.onFailure(new IllegalStateException("first"));
            dashboard.onWarning("of the second");
            dashboard.onStart(start(2, 0, 20));
            go(dashboard, 0, 1, 1.0, 2.0);
            JsonNode all = history(dashboard);
            assertThat(all.get("state").asString()).isEqualTo("running");
            assertThat(all.get("reason").asString()).isEmpty();
            assertThat(all.get("warnings").toString()).isEqualTo("[\"of the second\"]");
            assertThat(all.at("/rounds/points").size()).isEqualTo(1);
            assertThat(all.get("iterations").asLong()).isEqualTo(20);
        }
    }

    @Test
    void whatARunThatGoesOnHadMeasuredIsThere() throws Exception {
        try (Dashboard dashboard = quick().earlier(0, Map.of("train_loss", 3.0))
                .earlier(10, Map.of("train_loss", 2.0))
                .earlier(12, Map.of("train_loss", 1.0))
                .open()) {
            dashboard.onStart(start(1, 10, 20));
            JsonNode all = history(dashboard);
            assertThat(all.at("/evaluations/points").toString())
                    .isEqualTo("[[0,{\"train_loss\":3.0}],[10,{\"train_loss\":2.0}]]");
            assertThat(all.get("from").asLong()).isEqualTo(10);
        }
    }
}
