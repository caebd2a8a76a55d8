package org.fedcomuon.bench;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.fedcomuon.cli.UsageException;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.DeviceException;
import org.fedcomuon.device.Devices;
import org.fedcomuon.testing.ChildJvm;
import org.fedcomuon.testing.Simulator;
import org.fedcomuon.testing.Slow;
import org.fedcomuon.testing.TestDevices;
import org.fedcomuon.testing.Trace;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import picocli.CommandLine;

/** {@code bench --device} with a GPU, on a simulated one: what is measured and what is left out, not how fast it is. */
class GpuBenchIT {
    private static final String DEVICE = "cudasim:0";

    @TempDir
    private Path directory;

    @BeforeEach
    void requireSimulated() {
        assumeTrue(TestDevices.simulated().findAny().isPresent(), "the simulated devices have not been built");
    }

    /** Runs the command in this process; exceptions are those that the command line would print in a line. */
    private static String bench(String... args) throws Exception {
        var out = new StringWriter();
        var thrown = new ArrayList<Exception>();
        int status = new CommandLine(new BenchCommand())
                .setOut(new PrintWriter(out))
                .setErr(new PrintWriter(new StringWriter()))
                .setExecutionExceptionHandler((failure, command, result) -> {
                    thrown.add(failure);
                    return 1;
                })
                .execute(args);
        if (!thrown.isEmpty()) {
            throw thrown.getFirst();
        }
        assertThat(status).isZero();
        return out.toString();
    }

    /** The names of the contenders of each report in a file, whose figures must be finite and positive. */
    private static Map<String, List<String>> contenders(Path json) {
        var names = new LinkedHashMap<String, List<String>>();
        for (BenchReport report : BenchFile.read(json).reports()) {
            assertThat(report.device()).startsWith(DEVICE);
            for (BenchReport.Row row : report.rows()) {
                assertThat(row.seconds()).isFinite().isPositive();
                assertThat(row.ratio()).isFinite().isPositive();
                assertThat(row.spread()).isFinite().isNotNegative();
            }
            names.put(
                    report.suite(),
                    report.rows().stream().map(BenchReport.Row::name).toList());
        }
        return names;
    }

    @Slow
    @Test
    void withoutASuiteAllThatMeasureAGpuAreRun() throws Exception {
        Path json = directory.resolve("all.json");
        String out = bench("--device", DEVICE, "--json", json.toString());
        assertThat(out)
                .startsWith("cudasim:0 is simulated: small sizes, and times that say nothing about a GPU.")
                .contains("libtorch is left out: it does not compute on cudasim:0");
        Map<String, List<String>> all = contenders(json);
        assertThat(all).containsOnlyKeys("compose", "orthogonalize", "exact-vs-ns", "round");
        for (int d : new int[] {1, 8}) {
            String what = "2e+04 elements, d = %d: ".formatted(d);
            assertThat(all.get("compose"))
                    .contains(
                            what + "triad",
                            what + "storm + project_compose_momentum, projecting",
                            what + "storm + project_compose_momentum, inside the ball",
                            what + "compose_momentum");
        }
        assertThat(all.get("compose")).contains("2e+04 elements, d = 1: mean").hasSize(16); // no non-temporal stores
        assertThat(all.get("orthogonalize"))
                .contains(
                        "LeNet x 2 clients: fedcomuon, one call",
                        "LeNet x 2 clients: cuBLAS loop, gemm",
                        "LeNet x 2 clients: cuBLAS sgemm of 64",
                        "ViT x 2 clients: fedcomuon, all matrices",
                        "ViT x 2 clients: fedcomuon in bf16, all matrices",
                        "ViT x 2 clients: cuBLAS, all matrices",
                        "ViT x 2 clients: cuBLAS in bf16, all matrices",
                        "130 x 130: fedcomuon, symmetric products",
                        "130 x 130: fedcomuon in bf16, symmetric products in bf16",
                        "130 x 130: cuBLAS, products by cuBLAS 13.0.0 in fp32",
                        "130 x 130: cuBLAS in bf16, products by cuBLAS 13.0.0 in bf16",
                        "130 x 270: fedcomuon, Gram form, symmetric products",
                        "130 x 270: cuBLAS, Gram form, products by cuBLAS 13.0.0 in fp32",
                        "LeNet x 2 clients, exact: fedcomuon, exact",
                        "130 x 130 x 2 clients, exact: fedcomuon, exact-svd")
                .hasSize(4 + 3 * 5 + 2 * 2); // with sgemm, and LeNet without a loop in bf16
        for (String shape : List.of("16 x 16", "24 x 40", "130 x 270")) {
            for (String contender : List.of("auto", "polar-express", "exact")) {
                assertThat(all.get("exact-vs-ns")).anyMatch(name -> name.startsWith(shape + ", " + contender));
            }
        }
        assertThat(all.get("round"))
                .containsExactly(
                        "mnist, fedcomuon: fedcomuon",
                        "mnist, fedcomuon-vr: fedcomuon",
                        "cifar-cnn, fedcomuon: fedcomuon",
                        "cifar-cnn, fedcomuon-vr: fedcomuon");
    }

    @Test
    void aSampleWaitsForTheDeviceAtItsStartAndAtItsEndOnly() throws Exception {
        Path file = directory.resolve("trace");
        var calls = new ArrayList<String>();
        Simulator.traced(file, () -> {
            try (Device device = Devices.open(DEVICE)) {
                new Interleaved("contest", device::synchronize, TurnListener.NONE)
                        .add("nothing", () -> calls.add("called"))
                        .measure(2);
                return calls;
            }
        });
        Path closing = directory.resolve("closing");
        Simulator.traced(closing, () -> {
            Devices.open(DEVICE).close();
            return calls;
        });
        long others = synchronizations(Trace.read(closing));
        // Three samples of a call to warm up; twice a call before the sample, and the sample.
        assertThat(synchronizations(Trace.read(file)) - others).isEqualTo(2 * (3 + 2 * (1 + 1)));
        assertThat(calls).hasSizeGreaterThan(1000); // as many calls as fill a sample
    }

    private static long synchronizations(Trace trace) {
        return trace.waits(0).stream()
                .filter(wait -> wait.function().equals("cudaStreamSynchronize"))
                .count();
    }

    @ParameterizedTest
    @ValueSource(strings = {"cudasim:9", "gpu:0", "cudasim:x"})
    void aDeviceThatIsNotThereIsRefusedInALine(String name) {
        assertThatThrownBy(() -> bench("--device", name))
                .isInstanceOf(DeviceException.Unavailable.class)
                .hasMessageContaining(name)
                .hasMessageNotContaining("\n");
    }

    @ParameterizedTest
    @ValueSource(strings = {"scale", "ffi", "cluster", "gpu-model", "kernels"})
    void suitesOfTheCpuAreRefused(String suite) {
        assertThatThrownBy(() -> bench(suite, "--device", DEVICE))
                .isInstanceOf(UsageException.class)
                .hasMessage("--device cudasim:0: bench %s is for the CPU".formatted(suite));
        assertThatThrownBy(() -> bench(suite, "--small"))
                .isInstanceOf(UsageException.class)
                .hasMessage("--small is not an option of bench %s".formatted(suite));
    }

    @Slow
    @Test
    void withoutLibrariesOfNvidiaTheirContendersAreLeftOut() throws Exception {
        Path json = directory.resolve("without.json");
        Path empty = Files.createDirectory(directory.resolve("empty"));
        for (String suite : List.of("orthogonalize", "exact-vs-ns")) {
            Process child = new ProcessBuilder(ChildJvm.command(
                            List.of("-Dfedcomuon.cudasim.libraries=" + empty),
                            Command.class,
                            List.of(suite, "--device", DEVICE, "--json", json.toString())))
                    .redirectError(ProcessBuilder.Redirect.DISCARD)
                    .start();
            String out = new String(child.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
            assertThat(child.waitFor()).as(out).isZero();
            assertThat(out).contains("exact factors are left out: cudasim:0 has no ");
            List<String> names = contenders(json).get(suite);
            assertThat(names).isNotEmpty().noneMatch(name -> name.contains("exact") || name.contains("cuBLAS"));
            if (suite.equals("orthogonalize")) {
                assertThat(out)
                        .contains(
                                "products by cuBLAS, loops over BLAS and sgemm are left out: cudasim:0 has no matrix library");
                assertThat(names).hasSize(4 * 2); // LeNet, ViT and two shapes, in fp32 and in bf16
            }
        }
    }

    /** The benchmark in a JVM of its own. */
    static final class Command {
        private Command() {}

        public static void main(String[] args) {
            System.exit(new CommandLine(new BenchCommand()).execute(args));
        }
    }
}
