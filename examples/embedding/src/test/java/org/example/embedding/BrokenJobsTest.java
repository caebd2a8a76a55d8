package org.example.embedding;

import static org.example.embedding.ServiceProcess.ENDLESS;
import static org.example.embedding.ServiceProcess.SHORT;
import static org.example.embedding.ServiceProcess.is;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.JsonNode;

/** What is wrong with the directory of a job is the failure of that job: the service starts, and the others run. */
@Timeout(120)
class BrokenJobsTest {
    @TempDir
    private Path directory;

    @Test
    void aBrokenJobFailsAndTheOthersRun() throws Exception {
        String good;
        String text;
        try (ServiceProcess service = ServiceProcess.start(directory)) {
            good = service.create(ENDLESS);
            service.await(good, job -> job.get("step").asLong() > 300);
            service.kill();
            text = Files.readString(directory.resolve(good).resolve("job.json"));
        }
        Map<String, String> broken = new LinkedHashMap<>(); // IDs by what is wrong
        broken.put("empty", job(""));
        broken.put("truncated", job(text.substring(0, text.length() / 2)));
        broken.put("not JSON", job("\u0000\u0001 no"));
        broken.put("null", job("null"));
        broken.put("a list", job("[]"));
        broken.put("of another job", job(text));
        broken.put("too long", job(" ".repeat(20_000) + text));
        broken.put("deep", job("[".repeat(9_000)));
        for (Map.Entry<String, String> edit : Map.of(
                        "\"state\":\"RUNNING\"", "\"state\":\"WALKING\"",
                        "\"tau\":5", "\"tau\":null",
                        "\"shops\":3", "\"shops\":\"3\"",
                        "\"step\":", "\"steps\":",
                        "\"sha256\":\"\"", "\"sha256\":null",
                        "\"iterations\":1000000000", "\"iterations\":0",
                        "\"spec\":", "\"step\":1,\"spec\":")
                .entrySet()) {
            assertTrue(text.contains(edit.getKey()), text);
            broken.put(edit.getValue(), own(text.replace(edit.getKey(), edit.getValue()), good));
        }
        broken.put("state by number", own(text.replace("\"RUNNING\"", "0"), good));
        broken.put("no file", UUID.randomUUID().toString());
        Files.createDirectories(directory.resolve(broken.get("no file")).resolve("checkpoints"));
        broken.put("a directory", UUID.randomUUID().toString());
        Files.createDirectories(directory.resolve(broken.get("a directory")).resolve("job.json"));
        broken.put("a loop", UUID.randomUUID().toString());
        Path loop = Files.createDirectories(directory.resolve(broken.get("a loop"))).resolve("job.json");
        Files.createSymbolicLink(loop, loop);

        try (ServiceProcess service = ServiceProcess.start(directory)) {
            long step = service.job(good).get("step").asLong();
            service.await(good, job -> job.get("step").asLong() > step);
            assertEquals(broken.size() + 1, service.json("GET", "/jobs", "", 200).size());
            for (Map.Entry<String, String> each : broken.entrySet()) {
                JsonNode job = service.job(each.getValue());
                assertEquals("FAILED", job.get("state").asString(), each.getKey());
                String reason = job.get("failure").asString();
                assertTrue(reason.startsWith("job.json cannot be read: "), each.getKey() + ": " + reason);
                assertFalse(reason.contains("\n"), each.getKey() + ": " + reason);
                for (String what : new String[] {"stop", "resume"}) {
                    String path = "/jobs/%s/%s".formatted(each.getValue(), what);
                    String error = service.json("POST", path, "", 409).get("error").asString();
                    assertTrue(error.contains(reason), each.getKey() + ": " + error);
                }
            }
            service.json("POST", "/jobs/" + good + "/stop", "", 200);
            assertIdle(service);
            service.json("DELETE", "/jobs/" + broken.get("truncated"), "", 200);
            service.json("GET", "/jobs/" + broken.get("truncated"), "", 404);
        }
    }

    private String job(String text) throws IOException {
        String id = UUID.randomUUID().toString();
        Files.writeString(Files.createDirectories(directory.resolve(id)).resolve("job.json"), text);
        return id;
    }

    /** The same with its own ID in the text, so that it is not refused for that. */
    private String own(String text, String other) throws IOException {
        String id = job("");
        Files.writeString(directory.resolve(id).resolve("job.json"), text.replace(other, id));
        return id;
    }

    /** A service without running jobs takes next to no time of the processor. */
    private static void assertIdle(ServiceProcess service) throws InterruptedException {
        Duration before = service.process().info().totalCpuDuration().orElseThrow();
        Thread.sleep(1000);
        Duration used = service.process().info().totalCpuDuration().orElseThrow().minus(before);
        assertTrue(used.toMillis() < 500, used::toString);
    }

    @Test
    void aBrokenCheckpointFailsTheJobAndTheServiceStaysUp() throws Exception {
        try (ServiceProcess service = ServiceProcess.start(directory)) {
            String id = service.create(ENDLESS);
            service.await(id, job -> job.get("step").asLong() > 300);
            service.json("POST", "/jobs/" + id + "/stop", "", 200);
            damage(directory.resolve(id).resolve("checkpoints"));
            service.ask("POST", "/jobs/" + id + "/resume", "");
            String reason = service.await(id, is("FAILED")).get("failure").asString();
            assertTrue(reason.contains("damaged"), reason);
            assertIdle(service);
            String other = service.create(ENDLESS);
            service.await(other, job -> job.get("step").asLong() > 300);
            service.kill();
            damage(directory.resolve(other).resolve("checkpoints"));
            try (ServiceProcess next = ServiceProcess.start(directory)) {
                next.await(other, is("FAILED"));
                assertEquals("FAILED", next.job(id).get("state").asString());
                next.await(next.create(SHORT), is("DONE"));
            }
        }
    }

    private static void damage(Path checkpoints) throws IOException {
        try (Stream<Path> all = Files.list(checkpoints)) {
            List<Path> files =
                    all.filter(file -> file.toString().endsWith(".safetensors")).toList(); // not those of the lock
            assertTrue(!files.isEmpty(), "no checkpoints");
            for (Path each : files) {
                byte[] bytes = Files.readAllBytes(each);
                bytes[bytes.length - 1] ^= 1;
                Files.write(each, bytes);
            }
        }
    }
}
