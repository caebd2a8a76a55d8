package org.fedcomuon.dashboard;

import static java.util.stream.Collectors.toSet;

import com.sun.net.httpserver.Headers;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpHandler;
import java.io.IOException;
import java.io.OutputStream;
import java.net.URI;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.List;
import java.util.Locale;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Stream;

/** Answers requests: who may see the page, and what each path is. */
final class Site implements HttpHandler {
    private static final Set<String> LOOPBACK_NAMES = Set.of("localhost", "127.0.0.1", "[::1]");
    private static final String BEARER = "bearer ";
    private static final String HTML = "text/html; charset=utf-8";
    private static final String TEXT = "text/plain; charset=utf-8";
    private static final String JSON = "application/json";

    private final Broadcast broadcast;
    private final Page page = Page.load();
    private final boolean loopback;
    private final int port;
    private final Optional<byte[]> token;

    Site(Broadcast broadcast, boolean loopback, int port, Optional<String> token) {
        this.broadcast = broadcast;
        this.loopback = loopback;
        this.port = port;
        this.token = token.map(text -> text.getBytes(StandardCharsets.UTF_8));
    }

    @Override
    public void handle(HttpExchange exchange) throws IOException {
        try (exchange) {
            Headers headers = exchange.getResponseHeaders();
            headers.set("Cache-Control", "no-store");
            headers.set("X-Content-Type-Options", "nosniff");
            headers.set("Referrer-Policy", "no-referrer");
            headers.set("Cross-Origin-Resource-Policy", "same-origin");
            headers.set("Content-Security-Policy", page.policy());
            String method = exchange.getRequestMethod();
            if (loopback && !isLoopbackName(exchange)) {
                // DNS rebinding: a foreign name that resolves to this machine, by which a foreign page could read ours.
                answer(exchange, 403, TEXT, "this page is available at localhost only\n");
            } else if (!method.equals("GET") && !method.equals("HEAD")) {
                headers.set("Allow", "GET, HEAD");
                answer(exchange, 405, TEXT, "GET and HEAD only\n");
            } else if (!isAllowed(exchange)) {
                headers.set("WWW-Authenticate", "Bearer");
                answer(exchange, 401, TEXT, "a token is needed: ?token=... or Authorization: Bearer ...\n");
            } else {
                serve(exchange);
            }
        }
    }

    private void serve(HttpExchange exchange) throws IOException {
        String path = exchange.getRequestURI().getPath();
        if (!"/".equals(path) && isFromElsewhere(exchange)) {
            answer(exchange, 403, TEXT, "requests of other sites are refused\n");
            return;
        }
        switch (path) {
            case "/" -> answer(exchange, 200, HTML, page.html());
            case "/charts" -> answer(exchange, 200, HTML, broadcast.charts(choices(exchange.getRequestURI())));
            case "/events" -> events(exchange);
            case "/history" -> answer(exchange, 200, JSON, broadcast.whole());
            case "/health" -> answer(exchange, 200, JSON, broadcast.health());
            case null, default -> answer(exchange, 404, TEXT, "there is /, /charts, /events, /history and /health\n");
        }
    }

    private boolean isLoopbackName(HttpExchange exchange) {
        List<String> hosts = exchange.getRequestHeaders().getOrDefault("Host", List.of());
        if (hosts.size() != 1) {
            return false;
        }
        String host = hosts.getFirst().toLowerCase(Locale.ROOT);
        String suffix = ":" + port;
        return host.endsWith(suffix) && LOOPBACK_NAMES.contains(host.substring(0, host.length() - suffix.length()));
    }

    /** By a browser's header. Another site could not read the answer, but could use up the connections. */
    private static boolean isFromElsewhere(HttpExchange exchange) {
        String site = Objects.requireNonNullElse(exchange.getRequestHeaders().getFirst("Sec-Fetch-Site"), "none");
        return !site.equals("none") && !site.equals("same-origin");
    }

    private boolean isAllowed(HttpExchange exchange) {
        return token.map(secret -> given(exchange)
                        .anyMatch(text -> MessageDigest.isEqual(secret, text.getBytes(StandardCharsets.UTF_8))))
                .orElse(true);
    }

    private static Stream<String> given(HttpExchange exchange) {
        Stream<String> bearer = exchange.getRequestHeaders().getOrDefault("Authorization", List.of()).stream()
                .filter(value -> value.toLowerCase(Locale.ROOT).startsWith(BEARER))
                .map(value -> value.substring(BEARER.length()).strip());
        return Stream.concat(bearer, parameter(exchange.getRequestURI(), "token"));
    }

    private static Charts.Choices choices(URI uri) {
        return new Charts.Choices(
                parameter(uri, "log").collect(toSet()),
                parameter(uri, "linear").collect(toSet()),
                parameter(uri, "order").anyMatch("loss"::equals));
    }

    private static Stream<String> parameter(URI uri, String name) {
        return Stream.of(Objects.requireNonNullElse(uri.getRawQuery(), "").split("&"))
                .filter(part -> part.startsWith(name + "="))
                .map(part -> part.substring(name.length() + 1))
                .flatMap(value -> {
                    try {
                        return Stream.of(URLDecoder.decode(value, StandardCharsets.UTF_8));
                    } catch (IllegalArgumentException e) {
                        return Stream.empty();
                    }
                });
    }

    private void events(HttpExchange exchange) throws IOException {
        exchange.getResponseHeaders().set("Content-Type", "text/event-stream");
        if (exchange.getRequestMethod().equals("HEAD")) {
            exchange.sendResponseHeaders(200, -1);
            return;
        }
        String last = Objects.requireNonNullElse(exchange.getRequestHeaders().getFirst("Last-Event-ID"), "");
        var subscriber = new Subscriber();
        if (!broadcast.subscribe(subscriber, last)) {
            answer(exchange, 503, TEXT, "too many browsers are connected, or the run has ended\n");
            return;
        }
        try {
            exchange.sendResponseHeaders(200, 0);
            OutputStream out = exchange.getResponseBody();
            out.write("retry: 1000\n\n".getBytes(StandardCharsets.US_ASCII));
            subscriber.serve(out);
            out.close(); // sends the last chunk before the server is stopped
        } finally {
            broadcast.unsubscribe(subscriber);
        }
    }

    private static void answer(HttpExchange exchange, int status, String type, String text) throws IOException {
        answer(exchange, status, type, text.getBytes(StandardCharsets.UTF_8));
    }

    private static void answer(HttpExchange exchange, int status, String type, byte[] body) throws IOException {
        exchange.getResponseHeaders().set("Content-Type", type);
        if (exchange.getRequestMethod().equals("HEAD")) {
            exchange.getResponseHeaders().set("Content-Length", Integer.toString(body.length));
            exchange.sendResponseHeaders(status, -1);
        } else {
            exchange.sendResponseHeaders(status, body.length);
            exchange.getResponseBody().write(body);
        }
    }
}
