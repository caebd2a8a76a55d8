package org.example.embedding;

import static org.example.embedding.ServiceProcess.SPEC;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.InetAddress;
import java.net.Socket;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Requests that the service does not carry out: each has an answer, and makes no job. */
@Timeout(60)
class RequestsTest {
    @TempDir
    private static Path directory;

    private static ServiceProcess service;

    @BeforeAll
    static void start() throws IOException {
        service = ServiceProcess.start(directory);
    }

    @AfterAll
    static void end() {
        service.close();
    }

    @AfterEach
    void nothingHasHappened() throws Exception {
        assertEquals(0, service.json("GET", "/jobs", "", 200).size());
        assertEquals(List.of("lock"), List.of(directory.toFile().list()));
    }

    @Test
    void aSpecificationIsReadStrictly() throws Exception {
        String spec = "{\"iterations\": 10, \"tau\": 5, \"seed\": 7, \"shops\": 3}";
        for (String wrong : List.of("null", "1.5", "1.0", "1e1", "\"5\"", "\"\"", "true", "[5]", "{}", "NaN")) {
            assertBad(spec.replace("\"tau\": 5", "\"tau\": " + wrong));
        }
        for (String wrong : List.of("0", "-1", "1001", "99999999999", "9".repeat(100))) {
            assertBad(spec.replace("\"tau\": 5", "\"tau\": " + wrong));
        }
        for (String wrong : List.of("null", "0.5", "\"7\"", "9223372036854775808")) {
            assertBad(spec.replace("\"seed\": 7", "\"seed\": " + wrong));
        }
        assertBad(spec.replace("\"tau\": 5", "\"tau\": 5, \"tau\": 6"));
        assertBad(spec.replace("\"tau\": 5", "\"tau\": 5, \"rate\": 6"));
        assertBad(spec.replace("\"tau\": 5, ", ""));
        for (String wrong : List.of("", "null", "5", "[]", "[" + spec + "]", spec + spec, spec + " x", spec.substring(1))) {
            assertBad(wrong);
        }
        for (String wrong : List.of("not JSON", "[".repeat(9000))) {
            assertBad(wrong);
        }
    }

    private static void assertBad(String body) throws Exception {
        HttpResponse<String> response = service.ask("POST", "/jobs", body);
        assertEquals(400, response.statusCode(), () -> body + ": " + response.body());
        assertTrue(response.body().startsWith("{\"error\":\"") && response.body().length() > 20, response.body());
        assertFalse(response.body().contains("Exception"), response.body());
    }

    @Test
    void aBodyHasABound() throws Exception {
        String error = service.json("POST", "/jobs", SPEC + " ".repeat(20_000), 413).get("error").asString();
        assertTrue(error.contains("10000 bytes"), error);
    }

    @Test
    void whatIsNotThereIsNotFound() throws Exception {
        service.json("GET", "/", "", 404);
        service.json("GET", "/jobs/..%2f..%2fetc", "", 404);
        service.json("POST", "/jobs/none/stop", "", 404);
        service.json("DELETE", "/jobs", "", 404);
        service.json("DELETE", "/jobs/none", "", 404);
        service.json("PUT", "/jobs", "", 404);
        assertEquals(404, service.ask("HEAD", "/none", "").statusCode());
    }

    /** A name that somebody else owns may resolve to this machine. */
    @Test
    void theHostHasToBeThisOne() throws Exception {
        String ours = ":" + service.port();
        for (String host : List.of("localhost" + ours, "127.0.0.1" + ours, "[::1]" + ours)) {
            assertEquals(200, raw("GET /jobs HTTP/1.1\r\nHost: %s\r\n".formatted(host)), host);
        }
        for (String host : List.of("evil.example" + ours, "localhost.evil.example" + ours, "localhost", "localhost:1", "")) {
            assertEquals(403, raw("GET /jobs HTTP/1.1\r\nHost: %s\r\n".formatted(host)), host);
        }
        assertEquals(403, raw("GET /jobs HTTP/1.1\r\nHost: localhost%s\r\nHost: evil.example\r\n".formatted(ours)));
        assertEquals(403, raw("GET /jobs HTTP/1.0\r\n"));
        assertEquals(403, raw("GET http://localhost%s/jobs HTTP/1.1\r\nHost: evil.example\r\n".formatted(ours)));
    }

    private static int raw(String request) throws IOException {
        try (var socket = new Socket(InetAddress.getLoopbackAddress(), service.port())) {
            byte[] all = (request + "Connection: close\r\n\r\n").getBytes(StandardCharsets.US_ASCII);
            socket.getOutputStream().write(all);
            String answer = new String(socket.getInputStream().readAllBytes(), StandardCharsets.US_ASCII);
            assertTrue(answer.startsWith("HTTP/1.1 "), answer);
            return Integer.parseInt(answer.substring(9, 12));
        }
    }

    /** A page of somebody else can have a browser send a form here; the browser says where it is from. */
    @Test
    void aPageOfOthersChangesNothing() throws Exception {
        for (String[] header : new String[][] {
            {"Origin", "http://evil.example"},
            {"Origin", "null"},
            {"Origin", "https://localhost:" + service.port()},
            {"Origin", "http://localhost:1"},
            {"Origin", "http://127.0.0.1:" + service.port()}, // not the name that the page itself has
            {"Sec-Fetch-Site", "cross-site"},
            {"Sec-Fetch-Site", "same-site"}
        }) {
            for (String method : List.of("POST", "DELETE", "PUT")) {
                assertEquals(403, service.ask(method, "/jobs", SPEC, header).statusCode(), String.join(" ", header));
            }
        }
        HttpResponse<String> read = service.ask("GET", "/jobs", "", "Origin", "http://evil.example");
        assertTrue(read.headers().firstValue("Access-Control-Allow-Origin").isEmpty()); // so that it cannot read this
        // From a page of this address; and by hand with curl -d, which states this type.
        String own = "http://localhost:" + service.port();
        for (String[] headers : new String[][] {
            {"Origin", own, "Sec-Fetch-Site", "same-origin"}, {"Content-Type", "application/x-www-form-urlencoded"}
        }) {
            assertEquals(404, service.ask("POST", "/jobs/none/stop", "", headers).statusCode());
        }
    }
}
