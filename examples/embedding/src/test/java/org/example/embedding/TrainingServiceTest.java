package org.example.embedding;

import static org.example.embedding.ServiceProcess.ENDLESS;
import static org.example.embedding.ServiceProcess.SHORT;
import static org.example.embedding.ServiceProcess.SPEC;
import static org.example.embedding.ServiceProcess.is;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.UUID;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.node.ObjectNode;

/** Tests the life of the service: what it does with its jobs, its directory and its port when it starts and ends. */
@Timeout(120)
class TrainingServiceTest {
    @TempDir
    private Path directory;

    private ServiceProcess service;

    @BeforeEach
    void start() throws IOException {
        service = ServiceProcess.start(directory);
    }

    @AfterEach
    void end() {
        service.close();
    }

    private void restart() throws Exception {
        service.close();
        start();
    }

    private List<String> files() throws IOException {
        try (Stream<Path> found = Files.list(directory)) {
            return found.map(path -> path.getFileName().toString()).sorted().toList();
        }
    }

    @Test
    void aJobThatIsStoppedResumedKilledAndRestartedHasABitIdenticalResult() throws Exception {
        String undisturbed = service.create(SPEC);
        String hash = service.await(undisturbed, is("DONE")).get("sha256").asString();

        String id = service.create(SPEC);
        service.await(id, job -> job.get("step").asLong() > 1000);
        long stopped = service.json("POST", "/jobs/" + id + "/stop", "", 200).get("step").asLong();
        assertEquals("STOPPED", service.job(id).get("state").asString());
        assertTrue(stopped > 1000 && stopped < 60_000);
        service.json("POST", "/jobs/" + id + "/resume", "", 200);
        service.await(id, job -> job.get("step").asLong() > stopped + 1000);

        service.kill();
        restart();
        assertTrue(service.job(id).get("step").asLong() < 60_000);
        assertEquals(hash, service.await(id, is("DONE")).get("sha256").asString());
        assertEquals("DONE", service.job(undisturbed).get("state").asString());
    }

    @Test
    void jobsContinueWhenTheServiceIsRestarted() throws Exception {
        String id = service.create(SPEC);
        service.await(id, job -> job.get("step").asLong() > 100);
        service.process().destroy(); // as by kill
        assertEquals(143, service.process().waitFor());
        restart();
        assertTrue(List.of("RUNNING", "DONE").contains(service.job(id).get("state").asString()));
        service.await(id, is("DONE"));
    }

    @Test
    void healthAndMetersAreServed() throws Exception {
        String id = service.create(SPEC);
        assertEquals("UP", service.json("GET", "/health", "", 200).get("status").asString());
        service.await(id, is("DONE"));
        String meters = service.ask("GET", "/metrics", "").body();
        assertTrue(
                meters.contains("fedcomuon_rounds_total{method=\"fedcomuon\",run=\"%s\"} 12000.0".formatted(id)), meters);
    }

    /** A service that cannot have the port or the directory says so in a line, and starts no job of the directory. */
    @Test
    void aSecondServiceOnThePortOrOnTheDirectoryEndsAtOnce() throws Exception {
        String id = service.create(ENDLESS);
        service.await(id, job -> job.get("step").asLong() > 0);
        Path copy = Files.createDirectories(directory.resolve("other").resolve(id)); // of a job that was running
        Files.copy(directory.resolve(id).resolve("job.json"), copy.resolve("job.json"));
        String before = Files.readString(copy.resolve("job.json"));
        assertTrue(before.contains("RUNNING"));

        assertRefused(ServiceProcess.launcher(service.port(), copy.getParent()), "port " + service.port());
        assertRefused(ServiceProcess.launcher(0, directory), "another service has the jobs in " + directory);
        assertEquals(before, Files.readString(copy.resolve("job.json")));
        assertEquals(List.of("job.json"), Stream.of(copy.toFile().list()).sorted().toList());
        long step = service.job(id).get("step").asLong();
        service.await(id, job -> job.get("step").asLong() > step);
    }

    private static void assertRefused(ProcessBuilder second, String reason) throws Exception {
        Process process = second.redirectErrorStream(true).start();
        List<String> said = process.inputReader().readAllLines();
        assertEquals(1, process.waitFor(), said::toString);
        assertEquals(1, said.size(), said::toString);
        assertTrue(said.getFirst().startsWith("the service cannot start: "), said::toString);
        assertTrue(said.getFirst().contains(reason), said::toString);
    }

    @Test
    void aJobIsDeletedWithItsDirectory() throws Exception {
        String id = service.create(ENDLESS);
        service.await(id, job -> job.get("step").asLong() > 1000);
        service.json("DELETE", "/jobs/" + id, "", 409);
        service.json("POST", "/jobs/" + id + "/stop", "", 200);
        service.json("DELETE", "/jobs/" + id, "", 200);
        service.json("GET", "/jobs/" + id, "", 404);
        assertEquals(List.of("lock"), files());
    }

    /** What a kill leaves behind while a job is made, deleted or saved; and what is not the service's stays. */
    @Test
    void leftoversAreRemoved() throws Exception {
        String id = service.create(SHORT);
        service.await(id, is("DONE"));
        service.kill();
        Path half = Files.createDirectories(directory.resolve(UUID.randomUUID() + ".new").resolve("checkpoints"));
        Files.writeString(half.resolve("checkpoint-0000000100.safetensors"), "half");
        Files.writeString(directory.resolve(id).resolve("job.json.new"), "{\"id\": ");
        Files.createDirectories(directory.resolve("mine.new"));
        Files.writeString(directory.resolve("notes"), "mine");
        restart();
        assertEquals("DONE", service.job(id).get("state").asString());
        assertEquals(Stream.of(id, "lock", "mine.new", "notes").sorted().toList(), files());
        assertTrue(Files.notExists(directory.resolve(id).resolve("job.json.new")));
    }

    @Test
    void thereAreOnlySoManyJobs() throws Exception {
        for (int i = 0; i < Jobs.MOST_RUNNING; i++) {
            service.create(ENDLESS);
        }
        String refused = service.json("POST", "/jobs", ENDLESS, 429).get("error").asString();
        assertTrue(refused.contains("jobs are running"), refused);
        assertEquals(Jobs.MOST_RUNNING, service.json("GET", "/jobs", "", 200).size());

        service.close();
        String id = files().getFirst();
        String text = Files.readString(directory.resolve(id).resolve("job.json"));
        var status = (ObjectNode) JsonMapper.shared().readTree(text);
        for (int i = 0; i < Jobs.MOST; i++) {
            String other = UUID.randomUUID().toString();
            status.put("id", other).put("state", "STOPPED");
            Files.writeString(
                    Files.createDirectories(directory.resolve(other)).resolve("job.json"), status.toString());
        }
        restart();
        service.json("GET", "/jobs", "", 200).forEach(job -> {
            if (job.get("state").asString().equals("RUNNING")) {
                stop(job.get("id").asString());
            }
        });
        String full = service.json("POST", "/jobs", SPEC, 429).get("error").asString();
        assertTrue(full.contains("delete one"), full);
    }

    private void stop(String id) {
        try {
            service.json("POST", "/jobs/" + id + "/stop", "", 200);
        } catch (IOException | InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    @Test
    void whatIsNoPortIsAUsageError() throws Exception {
        for (String port : List.of("x", "65536")) {
            Process process = ServiceProcess.launcher(port, directory).redirectErrorStream(true).start();
            assertEquals(List.of("usage: TrainingService PORT DIRECTORY"), process.inputReader().readAllLines());
            assertEquals(2, process.waitFor());
        }
    }
}
