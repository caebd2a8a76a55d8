package org.fedcomuon.dashboard;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import org.fedcomuon.testing.Mutations;
import org.fedcomuon.testing.Soak;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What is a request, and what is none. */
class RequestTest {
    private static final long SEED = Long.getLong("tests.seed", 19_11_2026L);
    private static final int MUTATIONS = Soak.mutations(3_000);

    private static final String REQUEST =
            "GET /charts?log=rounds&order=loss HTTP/1.1\r\nHost: localhost:8080\r\nAccept: */*\r\nCookie: a=b; c=d\r\n\r\n";

    private static final List<String> PIECES = List.of(
            "\r\n",
            "\n",
            "\r",
            ":",
            ": ",
            " ",
            "\t",
            "\u0000",
            "\u00ff",
            "%",
            "%zz",
            "?",
            "#",
            "/",
            "//",
            "\\",
            "[",
            "]",
            "http://a:b@c:d/",
            "HTTP/1.1",
            "HTTP/9.9",
            "GET ",
            "Host: localhost",
            "Host",
            ";",
            "\"",
            "..");

    private static final class Refusal extends Exception {
        private static final long serialVersionUID = 1L;

        Refusal() {
            super("no request");
        }
    }

    private static Optional<Request> parse(String text) {
        byte[] bytes = text.getBytes(StandardCharsets.ISO_8859_1);
        return Request.parse(bytes, bytes.length);
    }

    @Test
    void aRequestIsItsMethodItsPathAndItsHeaders() {
        assertThat(parse(REQUEST)).hasValueSatisfying(request -> {
            assertThat(request.method()).isEqualTo("GET");
            assertThat(request.uri().getPath()).isEqualTo("/charts");
            assertThat(request.uri().getRawQuery()).isEqualTo("log=rounds&order=loss");
            assertThat(request.values("host")).containsExactly("localhost:8080");
            assertThat(request.value("cookie")).hasValue("a=b; c=d");
            assertThat(request.isHead()).isFalse();
        });
        assertThat(parse("HEAD / HTTP/1.0\n\n"))
                .hasValueSatisfying(request -> assertThat(request.isHead()).isTrue());
        assertThat(parse("GET / HTTP/1.1\r\nA: 1\r\na:2\r\nB:\r\n\r\n")).hasValueSatisfying(request -> {
            assertThat(request.values("a")).containsExactly("1", "2");
            assertThat(request.values("b")).containsExactly("");
        });
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                "GET",
                "GET /",
                "GET / HTTP/2",
                "GET  / HTTP/1.1",
                "GET / HTTP/1.1 ",
                " GET / HTTP/1.1",
                "GET /%zz HTTP/1.1",
                "GET /a b HTTP/1.1",
                "G(T / HTTP/1.1",
                "GET / HTTP/1.1\r\nHost",
                "GET / HTTP/1.1\r\nHost : a",
                "GET / HTTP/1.1\r\nHost: a\r\n folded",
                "GET / HTTP/1.1\r\n: a",
                "GET / HTTP/1.1\r\nHost: a\u0000b",
                "\u0016\u0003\u0001" // the beginning of TLS
            })
    void otherThingsAreNone(String text) {
        assertThat(parse(text + (text.endsWith(" ") ? "x" : "") + "\r\n\r\n")).isEmpty();
    }

    @Test
    @Tag(Soak.TAG)
    void whateverArrivesIsARequestOrNone() {
        var random = new Random(SEED);
        try (var mutations = new Mutations("requests of HTTP", SEED, Refusal.class)) {
            for (int i = 0; i < MUTATIONS; i++) {
                byte[] input = Mutations.text(REQUEST, PIECES, random).getBytes(StandardCharsets.ISO_8859_1);
                mutations.feed(
                        input,
                        "no request",
                        () -> Request.parse(input, input.length).orElseThrow(Refusal::new));
            }
            mutations.end(0.05, 0.8);
        }
    }
}
