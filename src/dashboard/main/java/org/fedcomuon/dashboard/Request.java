package org.fedcomuon.dashboard;

import java.net.URI;
import java.net.URISyntaxException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * A request of HTTP/1.0 or 1.1, without its body.
 *
 * @param headers their values by name, which is in lower case
 */
record Request(String method, URI uri, Map<String, List<String>> headers) {
    private static final String TOKEN = "[!#$%&'*+.^_`|~0-9A-Za-z-]+";
    private static final Pattern FIRST_LINE = Pattern.compile("(" + TOKEN + ") ([!-~]+) HTTP/1\\.[01]");
    private static final Pattern HEADER = Pattern.compile("(" + TOKEN + "):([^\\x00-\\x08\\x0A-\\x1F\\x7F]*)");
    private static final Pattern LINE_END = Pattern.compile("\\r?\\n");

    /** The request that these bytes are, up to the empty line; empty if they are none. */
    static Optional<Request> parse(byte[] bytes, int length) {
        String[] lines = LINE_END.split(new String(bytes, 0, length, StandardCharsets.ISO_8859_1).stripTrailing(), -1);
        Matcher first = FIRST_LINE.matcher(lines[0]);
        if (!first.matches()) {
            return Optional.empty();
        }
        Map<String, List<String>> headers = new HashMap<>();
        for (int i = 1; i < lines.length; i++) {
            Matcher header = HEADER.matcher(lines[i]);
            if (!header.matches()) {
                return Optional.empty();
            }
            headers.computeIfAbsent(header.group(1).toLowerCase(Locale.ROOT), _ -> new ArrayList<>())
                    .add(header.group(2).strip());
        }
        try {
            return Optional.of(new Request(first.group(1), new URI(first.group(2)), headers));
        } catch (URISyntaxException e) {
            return Optional.empty();
        }
    }

    boolean isHead() {
        return method.equals("HEAD");
    }

    List<String> values(String name) {
        return headers.getOrDefault(name, List.of());
    }

    /** The first value of a header. */
    Optional<String> value(String name) {
        return values(name).stream().findFirst();
    }
}
