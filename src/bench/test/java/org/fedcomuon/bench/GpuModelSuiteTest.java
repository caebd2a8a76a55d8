package org.fedcomuon.bench;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

class GpuModelSuiteTest {
    @TempDir
    private Path directory;

    @Test
    void writesWhatItPrintsAsJson() {
        Path file = directory.resolve("model.json");
        var out = new StringWriter();
        GpuModelSuite.run(List.of("mnist-robust"), new PrintWriter(out), Optional.of(file));
        assertThat(out.toString()).contains(GpuModel.LABEL).contains("| mnist-robust | fedcomuon-vr | 500 |");

        JsonNode all = JsonMapper.builder().build().readTree(file.toFile());
        JsonNode model = all.get(0);
        assertThat(model.get("suite").stringValue()).isEqualTo("gpu-model");
        assertThat(model.get("label").stringValue()).isEqualTo(GpuModel.LABEL);
        assertThat(model.get("measured").booleanValue()).isFalse();
        assertThat(model.get("gpus")).hasSize(3);
        assertThat(model.get("cases")).hasSize(2);
        JsonNode plain = model.get("cases").get(0);
        assertThat(plain.get("preset").stringValue()).isEqualTo("mnist-robust");
        assertThat(plain.get("parameters").intValue()).isEqualTo(34_622);
        for (String part : List.of("gradient", "track", "orthogonalize")) {
            assertThat(plain.get("step_of_one_client").get(part).get("launches").intValue())
                    .isPositive();
        }
        assertThat(plain.get("round_on_2").get("average").get("link_bytes").doubleValue())
                .isEqualTo(2 * 7 * 34_622); // W and M, a byte of exponents, half of the sums and half of the mean
        JsonNode times = plain.get("times").get("RTX 4090");
        assertThat(times.get("run_seconds_on_2").doubleValue())
                .isEqualTo(100 * times.get("round_seconds_on_2").doubleValue());
    }

    @Test
    void isASuiteByItsName() {
        var command = new CommandLine(new BenchCommand());
        assertThat(command.parseArgs("gpu-model").errors()).isEmpty();
        assertThat(command.getUsageMessage()).contains("gpu-model");
    }
}
