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
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/** The service in a process of its own, over HTTP. */
final class ServiceProcess implements AutoCloseable {
    /** A job of a second or so. */
    static final String SPEC = "{\"iterations\": 60000, \"tau\": 5, \"seed\": 7, \"shops\": 3}";

    /** A job that is done at once. */
    static final String SHORT = "{\"iterations\": 5000, \"tau\": 5, \"seed\": 7, \"shops\": 3}";

    /** A job that does not end by itself during a test. */
    static final String ENDLESS = "{\"iterations\": 1000000000, \"tau\": 5, \"seed\": 7, \"shops\": 3}";

    private final HttpClient http = HttpClient.newHttpClient();
    private final Process process;
    private final String address;

    private ServiceProcess(Process process) throws IOException {
        this.process = process;
        address = process.inputReader().readLine(); // null if it could not start
    }

    static ServiceProcess start(Path directory) throws IOException {
        return new ServiceProcess(
                launcher(0, directory).redirectError(ProcessBuilder.Redirect.INHERIT).start());
    }

    static ProcessBuilder launcher(int port, Path directory) {
        return launcher(Integer.toString(port), directory);
    }

    static ProcessBuilder launcher(String port, Path directory) {
        var launcher = new ProcessBuilder(List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "--enable-native-access=ALL-UNNAMED",
                "--sun-misc-unsafe-memory-access=allow",
                "-Xms64m", // all of it from the start, so that memory that grows is not the heap; and that has an end
                "-Xmx64m",
                "-XX:+AlwaysPreTouch",
                "-XX:TieredStopAtLevel=1", // the optimizing compiler takes memory at times of its own
                "-cp",
                System.getProperty("java.class.path"),
                TrainingService.class.getName(),
                port,
                directory.toString()));
        launcher.environment().put("MALLOC_ARENA_MAX", "1"); // not one for each thread that has ever been
        return launcher;
    }

    Process process() {
        return process;
    }

    int port() {
        return URI.create(address).getPort();
    }

    HttpResponse<String> ask(String method, String path, String body, String... headers)
            throws IOException, InterruptedException {
        HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(address + path))
                .method(method, HttpRequest.BodyPublishers.ofString(body));
        if (headers.length > 0) {
            request.headers(headers);
        }
        return http.send(request.build(), HttpResponse.BodyHandlers.ofString());
    }

    JsonNode json(String method, String path, String body, int status) throws IOException, InterruptedException {
        HttpResponse<String> response = ask(method, path, body);
        assertEquals(status, response.statusCode(), response.body());
        return JsonMapper.shared().readTree(response.body());
    }

    JsonNode job(String id) throws IOException, InterruptedException {
        return json("GET", "/jobs/" + id, "", 200);
    }

    String create(String spec) throws IOException, InterruptedException {
        return json("POST", "/jobs", spec, 201).get("id").asString();
    }

    JsonNode await(String id, Predicate<JsonNode> condition) throws IOException, InterruptedException {
        JsonNode job = job(id);
        while (!condition.test(job)) {
            assertTrue(process.isAlive(), "the service has ended");
            Thread.sleep(20);
            job = job(id);
        }
        return job;
    }

    static Predicate<JsonNode> is(String state) {
        return job -> job.get("state").asString().equals(state);
    }

    /** As by {@code kill -9}. */
    void kill() {
        process.destroyForcibly().onExit().join();
    }

    @Override
    public void close() {
        http.close();
        kill();
    }
}
