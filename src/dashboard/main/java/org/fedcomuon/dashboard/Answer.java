package org.fedcomuon.dashboard;

import java.nio.charset.StandardCharsets;
import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;

/**
 * An answer to a request, after which the connection is closed: so that none is held by somebody who wants nothing.
 *
 * @param events who is sent events after the body, until one of them is the last; empty if nobody
 */
@SuppressWarnings("ArrayRecordComponent") // they are never compared
record Answer(int status, Map<String, String> headers, byte[] body, Optional<Subscriber> events) {
    static final String HTML = "text/html; charset=utf-8";
    static final String TEXT = "text/plain; charset=utf-8";
    static final String JSON = "application/json";
    private static final String EVENTS = "text/event-stream";

    private static final Map<Integer, String> REASONS = Map.of(
            200, "OK",
            400, "Bad Request",
            401, "Unauthorized",
            403, "Forbidden",
            404, "Not Found",
            405, "Method Not Allowed",
            431, "Request Header Fields Too Large",
            503, "Service Unavailable");

    static Answer of(int status, String type, byte[] body) {
        return new Answer(status, Map.of("Content-Type", type), body, Optional.empty());
    }

    static Answer text(int status, String text) {
        return of(status, TEXT, text.getBytes(StandardCharsets.UTF_8));
    }

    /** Events, after a first line for the browser. */
    static Answer events(String first, Subscriber subscriber) {
        return new Answer(
                200,
                Map.of("Content-Type", EVENTS),
                first.getBytes(StandardCharsets.US_ASCII),
                Optional.of(subscriber));
    }

    Answer with(String name, String value) {
        return with(Map.of(name, value));
    }

    Answer with(Map<String, String> more) {
        var all = new LinkedHashMap<>(headers);
        all.putAll(more);
        return new Answer(status, Collections.unmodifiableMap(all), body, events);
    }

    /** What goes before the body. */
    byte[] head() {
        var head = new StringBuilder();
        head.append("HTTP/1.1 %d %s\r\n".formatted(status, REASONS.getOrDefault(status, "Unknown")));
        head.append("Date: %s\r\n"
                .formatted(DateTimeFormatter.RFC_1123_DATE_TIME.format(ZonedDateTime.now(ZoneOffset.UTC))));
        headers.forEach(
                (name, value) -> head.append(name).append(": ").append(value).append("\r\n"));
        if (events.isEmpty()) {
            head.append("Content-Length: %d\r\n".formatted(body.length));
        }
        return head.append("Connection: close\r\n\r\n").toString().getBytes(StandardCharsets.ISO_8859_1);
    }
}
