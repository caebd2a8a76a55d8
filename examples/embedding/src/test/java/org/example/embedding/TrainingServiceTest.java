package org.example.embedding;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Path;
import java.util.List;
import java.util.function.Predicate;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/** Tests the service in its own process over HTTP, where it is killed and started again. */
@Timeout(120)
class TrainingServiceTest {
    private static final String SPEC = "{\"iterations\": 60000, \"tau\": 5, \"seed\": 7, \"shops\": 3}";

    @TempDir
    private Path directory;

    private final HttpClient http = HttpClient.newHttpClient();
    private Process service;
    private String address;

    @BeforeEach
    void start() throws IOException {
        service = new ProcessBuilder(List.of(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "--enable-native-access=ALL-UNNAMED",
                        "--sun-misc-unsafe-memory-access=allow",
                        "-Xmx256m",
                        "-cp",
                        System.getProperty("java.class.path"),
                        TrainingService.class.getName(),
                        "0",
                        directory.toString()))
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
        address = service.inputReader().readLine();
    }

    @AfterEach
    void end() throws InterruptedException {
        http.close();
        service.destroyForcibly().waitFor();
    }

    private HttpResponse<String> ask(String method, String path, String body) throws IOException, InterruptedException {
        return http.send(
                HttpRequest.newBuilder(URI.create(address + path))
                        .method(method, HttpRequest.BodyPublishers.ofString(body))
                        .build(),
                HttpResponse.BodyHandlers.ofString());
    }

    private JsonNode json(String method, String path, String body, int status) throws IOException, InterruptedException {
        HttpResponse<String> response = ask(method, path, body);
        assertEquals(status, response.statusCode(), response.body());
        return JsonMapper.shared().readTree(response.body());
    }

    private JsonNode job(String id) throws IOException, InterruptedException {
        return json("GET", "/jobs/" + id, "", 200);
    }

    private JsonNode await(String id, Predicate<JsonNode> condition) throws IOException, InterruptedException {
        JsonNode job = job(id);
        while (!condition.test(job)) {
            assertTrue(service.isAlive(), "the service has ended");
            Thread.sleep(20);
            job = job(id);
        }
        return job;
    }

    private static Predicate<JsonNode> is(String state) {
        return job -> job.get("state").asString().equals(state);
    }

    private String create() throws IOException, InterruptedException {
        return json("POST", "/jobs", SPEC, 201).get("id").asString();
    }

    @Test
    void aJobThatIsStoppedResumedKilledAndRestartedHasABitIdenticalResult() throws Exception {
        String undisturbed = create();
        String hash = await(undisturbed, is("DONE")).get("sha256").asString();

        String id = create();
        await(id, job -> job.get("step").asLong() > 1000);
        long stopped = json("POST", "/jobs/" + id + "/stop", "", 200).get("step").asLong();
        assertEquals("STOPPED", job(id).get("state").asString());
        assertTrue(stopped > 1000 && stopped < 60_000);
        json("POST", "/jobs/" + id + "/resume", "", 200);
        await(id, job -> job.get("step").asLong() > stopped + 1000);

        service.destroyForcibly().waitFor(); // as by kill -9
        start();
        assertTrue(job(id).get("step").asLong() < 60_000);
        assertEquals(hash, await(id, is("DONE")).get("sha256").asString());
        assertEquals("DONE", job(undisturbed).get("state").asString());
    }

    @Test
    void jobsContinueWhenTheServiceIsRestarted() throws Exception {
        String id = create();
        await(id, job -> job.get("step").asLong() > 100);
        service.destroy(); // as by kill
        assertEquals(143, service.waitFor());
        start();
        assertTrue(List.of("RUNNING", "DONE").contains(job(id).get("state").asString()));
        await(id, is("DONE"));
    }

    @Test
    void healthAndMetersAreServed() throws Exception {
        String id = create();
        assertEquals("UP", json("GET", "/health", "", 200).get("status").asString());
        await(id, is("DONE"));
        String meters = ask("GET", "/metrics", "").body();
        assertTrue(
                meters.contains("fedcomuon_rounds_total{method=\"fedcomuon\",run=\"%s\"} 12000.0".formatted(id)), meters);
    }

    @Test
    void badRequestsAreAnsweredAndNothingBreaks() throws Exception {
        json("POST", "/jobs", "{\"iterations\": 0, \"tau\": 5, \"seed\": 7, \"shops\": 3}", 400);
        json("POST", "/jobs", "{\"iterations\": 10}", 400);
        json("POST", "/jobs", "not JSON", 400);
        json("POST", "/jobs", "[".repeat(20_000), 400);
        json("GET", "/jobs/..%2f..%2fetc", "", 404);
        json("POST", "/jobs/none/stop", "", 404);
        json("DELETE", "/jobs", "", 404);
        assertEquals(0, json("GET", "/jobs", "", 200).size());
    }
}
