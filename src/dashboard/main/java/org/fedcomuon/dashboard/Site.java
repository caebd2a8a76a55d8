package org.fedcomuon.dashboard;

import static java.util.stream.Collectors.toSet;

import java.net.URI;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Stream;

/** Answers requests: who may see the page, and what each path is. Confined to the thread of the server. */
final class Site {
    private static final Set<String> LOOPBACK_NAMES = Set.of("localhost", "127.0.0.1", "[::1]");
    private static final String BEARER = "bearer ";
    private static final String BUSY = "too much is being sent at the moment\n";
    private static final String MALFORMED = "this is no request of HTTP/1.1\n";
    private static final String TOO_LARGE = "the header of the request is too large\n";

    private final Broadcast broadcast;
    private final Page page = Page.load();
    private final boolean loopback;
    private final int port;
    private final Optional<byte[]> token;
    private final Map<String, String> everyHeader = Map.of(
            "Cache-Control",
            "no-store",
            "X-Content-Type-Options",
            "nosniff",
            "Referrer-Policy",
            "no-referrer",
            "Cross-Origin-Resource-Policy",
            "same-origin",
            "Content-Security-Policy",
            page.policy());

    Site(Broadcast broadcast, boolean loopback, int port, Optional<String> token) {
        this.broadcast = broadcast;
        this.loopback = loopback;
        this.port = port;
        this.token = token.map(text -> text.getBytes(StandardCharsets.UTF_8));
    }

    /**
     * The answer to a request.
     *
     * @param request empty if what arrived is none
     * @param room whether there is memory for a large answer
     */
    Answer answer(Optional<Request> request, boolean room) {
        return request.map(one -> allowed(one, room))
                .orElseGet(() -> Answer.text(400, MALFORMED))
                .with(everyHeader);
    }

    /** The answer to a request whose header does not end where it must. */
    Answer tooLarge() {
        return Answer.text(431, TOO_LARGE).with(everyHeader);
    }

    private Answer allowed(Request request, boolean room) {
        if (loopback && !isLoopbackName(request)) {
            // DNS rebinding: a foreign name that resolves to this machine, by which a foreign page could read ours.
            return Answer.text(403, "this page is available at localhost only\n");
        }
        if (!request.method().equals("GET") && !request.isHead()) {
            return Answer.text(405, "GET and HEAD only\n").with("Allow", "GET, HEAD");
        }
        if (!isAllowed(request)) {
            return Answer.text(401, "a token is needed: ?token=... or Authorization: Bearer ...\n")
                    .with("WWW-Authenticate", "Bearer");
        }
        String path = request.uri().getPath();
        if (!"/".equals(path) && isFromElsewhere(request)) {
            return Answer.text(403, "requests of other sites are refused\n");
        }
        return switch (path) {
            case "/" -> Answer.of(200, Answer.HTML, broadcast.document(page));
            case "/charts" -> room ? Answer.of(200, Answer.HTML, broadcast.charts(choices(request.uri()))) : busy(BUSY);
            case "/events" -> events(request);
            case "/history" -> room ? Answer.of(200, Answer.JSON, broadcast.whole()) : busy(BUSY);
            case "/health" -> Answer.of(200, Answer.JSON, broadcast.health());
            case null, default -> Answer.text(404, "there is /, /charts, /events, /history and /health\n");
        };
    }

    private static Answer busy(String why) {
        return Answer.text(503, why).with("Retry-After", "1");
    }

    private boolean isLoopbackName(Request request) {
        List<String> hosts = request.values("host");
        if (hosts.size() != 1) {
            return false;
        }
        String host = hosts.getFirst().toLowerCase(Locale.ROOT);
        String suffix = ":" + port;
        return host.endsWith(suffix) && LOOPBACK_NAMES.contains(host.substring(0, host.length() - suffix.length()));
    }

    /** By a browser's header. Another site could not read the answer, but could use up the connections. */
    private static boolean isFromElsewhere(Request request) {
        String site = request.value("sec-fetch-site").orElse("none");
        return !site.equals("none") && !site.equals("same-origin");
    }

    private boolean isAllowed(Request request) {
        return token.map(secret -> given(request)
                        .anyMatch(text -> MessageDigest.isEqual(secret, text.getBytes(StandardCharsets.UTF_8))))
                .orElse(true);
    }

    private static Stream<String> given(Request request) {
        Stream<String> bearer = request.values("authorization").stream()
                .filter(value -> value.toLowerCase(Locale.ROOT).startsWith(BEARER))
                .map(value -> value.substring(BEARER.length()).strip());
        return Stream.concat(bearer, parameter(request.uri(), "token"));
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

    private Answer events(Request request) {
        var subscriber = new Subscriber();
        Answer answer = Answer.events("retry: 1000\n\n", subscriber);
        if (request.isHead()) {
            return answer;
        }
        return broadcast.subscribe(subscriber, request.value("last-event-id").orElse(""))
                ? answer
                : busy("too many browsers are connected\n");
    }
}
