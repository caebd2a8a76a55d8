package org.fedcomuon.testing;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

class GpuReportTest {
    @TempDir
    private Path directory;

    private JsonNode written() throws Exception {
        var report = new GpuReport();
        report.accuracy("cpu:1", "ema", 0, 1e-7);
        report.memory("cpu:1", "compose", 4000, 9000);
        report.bytes("cpu:1", "triad", 3_000_000_000L, 0.5);
        report.operations("cpu:1", "newton-schulz", 4e9, 0.25);
        report.step("cpu:1", "a federation", 0.125, Optional.of(new GpuReport.StepCounts(40, 2.5)));
        report.step("cpu:1", "the same", 0.25, Optional.empty());
        report.passed();
        report.passed();
        report.failed("ema()", new AssertionError("off by one"));
        report.skipped("no GPU");
        report.skipped("no GPU");
        Path file = directory.resolve("report.json");
        report.write(file);
        assertThat(directory).isDirectoryNotContaining(entry -> !entry.equals(file));
        return JsonMapper.shared().readTree(Files.readString(file));
    }

    @Test
    void holdsWhatABugReportNeeds() throws Exception {
        JsonNode json = written();
        assertThat(json.get("library").asString()).startsWith("fedcomuon ");
        assertThat(json.get("devices")
                        .valueStream()
                        .map(device -> device.get("name").asString()))
                .contains("cpu:0");
        assertThat(json.get("vendor_libraries").get("cuda").size()).isEqualTo(3);
        JsonNode tests = json.get("tests");
        assertThat(tests.get("passed").asInt()).isEqualTo(2);
        assertThat(tests.get("failed").asInt()).isEqualTo(1);
        assertThat(tests.get("skipped").asInt()).isEqualTo(2);
        assertThat(tests.get("failures").get(0).get("message").asString()).contains("off by one");
        assertThat(tests.get("skipped_because").get("no GPU").asInt()).isEqualTo(2);
        assertThat(json.get("memory").get(0).get("peak_bytes").asLong()).isEqualTo(9000);
        assertThat(json.get("speed").get(0).get("gigabytes_per_second").asDouble())
                .isEqualTo(6);
        assertThat(json.get("speed").get(1).get("gigaflops").asDouble()).isEqualTo(16);
        JsonNode traced = json.get("steps").get(0);
        assertThat(traced.get("seconds").asDouble()).isEqualTo(0.125);
        assertThat(traced.get("launches").asDouble()).isEqualTo(40);
        assertThat(traced.get("waits").asDouble()).isEqualTo(2.5);
        assertThat(json.get("steps").get(1).get("waits").asString()).isEqualTo("not counted");
        assertThat(json.get("accuracy").get(0).get("device").asString()).isEqualTo("cpu:1");
    }

    @Test
    void everyFieldIsExplained() throws Exception {
        String page = Files.readString(Repository.root().resolve("docs/gpu-report.md"));
        written().propertyNames().forEach(field -> assertThat(page).contains("`" + field + "`"));
        for (String section : new String[] {"tests", "accuracy", "memory", "speed", "steps"}) {
            JsonNode entries = written().get(section);
            for (JsonNode entry : entries.isArray() ? entries : java.util.List.of(entries)) {
                entry.propertyNames()
                        .forEach(field -> assertThat(page).containsPattern("`" + Pattern.quote(field) + "`"));
            }
        }
    }
}
