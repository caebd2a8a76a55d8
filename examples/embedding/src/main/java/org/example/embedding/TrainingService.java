package org.example.embedding;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import io.micrometer.prometheusmetrics.PrometheusConfig;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.stream.Stream;
import org.fedcomuon.device.Devices;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.DeserializationFeature;
import tools.jackson.databind.json.JsonMapper;

/**
 * A service that runs training jobs, over HTTP on loopback:
 *
 * <pre>
 * POST /jobs               {"iterations": 100000, "tau": 5, "seed": 42, "shops": 5}
 * GET  /jobs, /jobs/ID     their status
 * POST /jobs/ID/stop       stops after the current step, with a checkpoint
 * POST /jobs/ID/resume     continues, with bit-identical results
 * GET  /health             200 if jobs can run here
 * GET  /metrics            for Prometheus
 * </pre>
 *
 * Jobs are directories. Jobs that were running when the service ended or was killed continue when it starts again.
 */
final class TrainingService implements AutoCloseable {
    private static final JsonMapper JSON = JsonMapper.builder()
            .enable(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES, DeserializationFeature.FAIL_ON_MISSING_CREATOR_PROPERTIES)
            .build();
    private static final int LONGEST_REQUEST = 10_000;

    private final PrometheusMeterRegistry registry = new PrometheusMeterRegistry(PrometheusConfig.DEFAULT);
    private final Map<String, Job> jobs = new ConcurrentSkipListMap<>();
    private final Path directory;
    private final HttpServer server;
    private final ExecutorService threads = Executors.newFixedThreadPool(4);

    /** A response. */
    private record Answer(int status, String type, String body) {
        static Answer json(int status, Object value) {
            return new Answer(status, "application/json", JSON.writeValueAsString(value));
        }

        static Answer error(int status, String message) {
            return json(status, Map.of("error", message));
        }
    }

    TrainingService(int port, Path directory) throws IOException {
        this.directory = Files.createDirectories(directory);
        try (Stream<Path> found = Files.list(directory)) {
            for (Path each : found.filter(path -> Files.exists(path.resolve("job.json"))).toList()) {
                jobs.put(each.getFileName().toString(), Job.open(each, registry));
            }
        }
        server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), port), 0);
        server.createContext("/", this::serve);
        server.setExecutor(threads);
        server.start();
    }

    int port() {
        return server.getAddress().getPort();
    }

    private void serve(HttpExchange exchange) throws IOException {
        try (exchange) {
            Answer answer;
            try {
                answer = answer(exchange);
            } catch (IllegalArgumentException | JacksonException e) {
                answer = Answer.error(400, String.valueOf(e.getMessage()).lines().findFirst().orElse("bad request"));
            } catch (IOException | RuntimeException e) {
                answer = Answer.error(500, e.toString());
            }
            byte[] body = answer.body().getBytes(StandardCharsets.UTF_8);
            exchange.getResponseHeaders().set("Content-Type", answer.type());
            exchange.sendResponseHeaders(answer.status(), body.length);
            exchange.getResponseBody().write(body);
        }
    }

    private Answer answer(HttpExchange exchange) throws IOException {
        String path = exchange.getRequestURI().getPath();
        List<String> parts = Stream.of(path.split("/")).filter(part -> !part.isEmpty()).toList();
        return switch (exchange.getRequestMethod() + " " + (parts.isEmpty() ? "" : parts.getFirst()) + " " + parts.size()) {
            case "GET health 1" -> health();
            case "GET metrics 1" -> new Answer(200, "text/plain; version=0.0.4; charset=utf-8", registry.scrape());
            case "GET jobs 1" -> Answer.json(200, jobs.values().stream().map(Job::status).toList());
            case "POST jobs 1" -> create(exchange);
            case "GET jobs 2" -> ofJob(parts.get(1), "");
            case "POST jobs 3" -> ofJob(parts.get(1), parts.get(2));
            default -> Answer.error(404, "no such resource: " + exchange.getRequestMethod() + " " + path);
        };
    }

    private Answer health() {
        boolean up = Devices.list().stream().anyMatch(device -> device.name().equals("cpu:0") && device.available());
        long running = jobs.values().stream().filter(job -> job.status().state() == Job.State.RUNNING).count();
        return Answer.json(up ? 200 : 503, Map.of("status", up ? "UP" : "DOWN", "running", running));
    }

    private Answer create(HttpExchange exchange) throws IOException {
        byte[] body = exchange.getRequestBody().readNBytes(LONGEST_REQUEST);
        JobSpec spec = JSON.readValue(body, JobSpec.class);
        String id = UUID.randomUUID().toString();
        Job job = Job.create(directory.resolve(id), registry, id, spec);
        jobs.put(id, job);
        return Answer.json(201, job.status());
    }

    private Answer ofJob(String id, String what) throws IOException {
        Job job = jobs.get(id); // an unknown id is never used as a path
        if (job == null) {
            return Answer.error(404, "there is no job " + id);
        }
        switch (what) {
            case "" -> {}
            case "stop" -> job.stop();
            case "resume" -> job.start();
            default -> {
                return Answer.error(404, "a job can stop or resume");
            }
        }
        return Answer.json(200, job.status());
    }

    /** Stops all jobs with a checkpoint each; they continue when the service starts again. */
    @Override
    public void close() {
        server.stop(1);
        threads.close();
        jobs.values().forEach(Job::close);
        registry.close();
    }

    public static void main(String[] arguments) throws IOException {
        if (arguments.length != 2) {
            System.err.println("usage: TrainingService PORT DIRECTORY");
            System.exit(2);
        }
        var service = new TrainingService(Integer.parseInt(arguments[0]), Path.of(arguments[1]));
        Runtime.getRuntime().addShutdownHook(Thread.ofPlatform().unstarted(service::close));
        System.out.println("http://localhost:" + service.port());
    }
}
