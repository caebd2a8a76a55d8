package org.example.embedding;

import com.sun.net.httpserver.Headers;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import io.micrometer.prometheusmetrics.PrometheusConfig;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileSystemException;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.stream.Stream;
import org.fedcomuon.device.Devices;

/**
 * A service that runs training jobs, over HTTP on loopback:
 *
 * <pre>
 * POST   /jobs               {"iterations": 100000, "tau": 5, "seed": 42, "shops": 5}
 * GET    /jobs, /jobs/ID     their status
 * POST   /jobs/ID/stop       stops after the current step, with a checkpoint
 * POST   /jobs/ID/resume     continues, with bit-identical results
 * DELETE /jobs/ID            removes a job that does not run, with its directory
 * GET    /health             200 if jobs can run here
 * GET    /metrics            for Prometheus
 * </pre>
 *
 * Jobs are directories. Jobs that were running when the service ended or was killed continue when it starts again.
 */
final class TrainingService implements AutoCloseable {
    private static final int LONGEST_REQUEST = 10_000;

    /** What the JDK's server allows to connections; it reads this once, and without it there are no limits. */
    private static final Map<String, String> LIMITS = Map.of(
            "jdk.httpserver.maxConnections", "100", // more are closed at once
            "sun.net.httpserver.maxReqTime", "5", // seconds for a request to arrive
            "sun.net.httpserver.maxRspTime", "60", // seconds for the answer, with the step that a stop waits for
            "sun.net.httpserver.idleInterval", "10", // seconds without a request
            "sun.net.httpserver.clockTick", "1000", // milliseconds between looks at idle connections
            "sun.net.httpserver.maxReqHeaderSize", "16384");

    private final PrometheusMeterRegistry registry = new PrometheusMeterRegistry(PrometheusConfig.DEFAULT);
    private final Jobs jobs;
    private final HttpServer server;
    private final Set<String> hosts;

    /** As many as there are connections, so that none waits for another; not virtual ones, which call no native code. */
    private final ExecutorService threads = Executors.newCachedThreadPool();

    /** A response. */
    private record Answer(int status, String type, String body) {
        static Answer json(int status, Object value) {
            return new Answer(status, "application/json", Json.write(value));
        }

        static Answer error(int status, String message) {
            return json(status, Map.of("error", message));
        }
    }

    /**
     * Starts the service. Nothing has been touched if it cannot start.
     *
     * @throws IOException when the port or the directory is another's; its message says which
     */
    TrainingService(int port, Path directory) throws IOException {
        server = bind(port);
        try {
            jobs = new Jobs(directory, registry);
        } catch (IOException | RuntimeException e) {
            server.stop(0);
            throw e;
        }
        hosts = Set.of("localhost:" + port(), "127.0.0.1:" + port(), "[::1]:" + port());
        jobs.proceed();
        server.createContext("/", this::serve);
        server.setExecutor(threads);
        server.start();
    }

    private static HttpServer bind(int port) throws IOException {
        try {
            return HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), port), 0);
        } catch (IOException e) {
            throw new IOException("port %d: %s".formatted(port, e.getMessage()), e);
        }
    }

    int port() {
        return server.getAddress().getPort();
    }

    private void serve(HttpExchange exchange) throws IOException {
        try (exchange) {
            Answer answer;
            try {
                requireOurPage(exchange);
                answer = answer(exchange);
            } catch (Refused e) {
                answer = Answer.error(e.status(), e.getMessage());
            } catch (IOException | RuntimeException e) {
                answer = Answer.error(500, e.toString());
            }
            byte[] body = answer.body().getBytes(StandardCharsets.UTF_8);
            exchange.getResponseHeaders().set("Content-Type", answer.type());
            if (exchange.getRequestMethod().equals("HEAD")) {
                exchange.sendResponseHeaders(answer.status(), -1);
            } else {
                exchange.sendResponseHeaders(answer.status(), body.length);
                exchange.getResponseBody().write(body);
            }
        }
    }

    /**
     * Refuses what pages of others let a browser on this machine send. A name of theirs may resolve to this machine, so
     * the host has to be ours; and without that they can still send requests, but not without saying where from.
     */
    private void requireOurPage(HttpExchange exchange) {
        Headers headers = exchange.getRequestHeaders();
        List<String> host = headers.getOrDefault("Host", List.of());
        if (host.size() != 1 || !hosts.contains(host.getFirst())) {
            throw new Refused(403, "the host is not one of " + hosts);
        }
        boolean ours = Set.of("http://" + host.getFirst()).containsAll(headers.getOrDefault("Origin", List.of()))
                && Set.of("same-origin", "none").containsAll(headers.getOrDefault("Sec-Fetch-Site", List.of()));
        if (!exchange.getRequestMethod().equals("GET") && !ours) {
            throw new Refused(403, "pages of others may not do this");
        }
    }

    private Answer answer(HttpExchange exchange) throws IOException {
        String path = exchange.getRequestURI().getPath();
        List<String> parts = Stream.of(path.split("/")).filter(part -> !part.isEmpty()).toList();
        return switch (exchange.getRequestMethod() + " " + (parts.isEmpty() ? "" : parts.getFirst()) + " " + parts.size()) {
            case "GET health 1" -> health();
            case "GET metrics 1" -> new Answer(200, "text/plain; version=0.0.4; charset=utf-8", registry.scrape());
            case "GET jobs 1" -> Answer.json(200, jobs.statuses());
            case "POST jobs 1" -> Answer.json(201, jobs.create(specification(exchange)).status());
            case "GET jobs 2" -> Answer.json(200, jobs.get(parts.get(1)).status());
            case "POST jobs 3" -> Answer.json(200, change(parts.get(1), parts.get(2)).status());
            case "DELETE jobs 2" -> {
                jobs.delete(parts.get(1));
                yield Answer.json(200, Map.of("deleted", parts.get(1)));
            }
            default -> throw new Refused(404, "no such resource: " + exchange.getRequestMethod() + " " + path);
        };
    }

    private Answer health() {
        boolean up = Devices.list().stream().anyMatch(device -> device.name().equals("cpu:0") && device.available());
        return Answer.json(up ? 200 : 503, Map.of("status", up ? "UP" : "DOWN", "running", jobs.running()));
    }

    /** Reads JSON whatever type is stated, since curl states another one. */
    private static JobSpec specification(HttpExchange exchange) throws IOException {
        byte[] body = exchange.getRequestBody().readNBytes(LONGEST_REQUEST + 1);
        if (body.length > LONGEST_REQUEST) {
            throw new Refused(413, "a request has at most %d bytes".formatted(LONGEST_REQUEST));
        }
        try {
            return Json.read(body, JobSpec.class);
        } catch (IllegalArgumentException e) {
            throw new Refused(400, e.getMessage());
        }
    }

    private Job change(String id, String what) {
        return switch (what) {
            case "stop" -> jobs.stop(id);
            case "resume" -> jobs.resume(id);
            default -> throw new Refused(404, "a job can stop or resume");
        };
    }

    /** Stops all jobs with a checkpoint each; they continue when the service starts again. */
    @Override
    public void close() {
        server.stop(1);
        threads.close();
        try {
            jobs.close();
        } catch (IOException e) {
            System.err.println("the lock is left to the end of the process: " + e);
        }
        registry.close();
    }

    public static void main(String[] arguments) {
        if (arguments.length != 2 || !arguments[0].matches("[0-9]{1,5}") || Integer.parseInt(arguments[0]) > 65_535) {
            System.err.println("usage: TrainingService PORT DIRECTORY");
            System.exit(2);
        }
        System.getProperties().putAll(LIMITS);
        try {
            var service = new TrainingService(Integer.parseInt(arguments[0]), Path.of(arguments[1]));
            Runtime.getRuntime().addShutdownHook(Thread.ofPlatform().unstarted(service::close));
            System.out.println("http://localhost:" + service.port());
        } catch (IOException e) {
            System.err.println("the service cannot start: " + (e instanceof FileSystemException ? e : e.getMessage()));
            System.exit(1);
        }
    }
}
