package org.fedcomuon.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;
import static org.fedcomuon.cli.CommandRun.assertRefused;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.fedcomuon.device.ElementType;
import org.fedcomuon.format.Npy;
import org.fedcomuon.testing.TestDevices;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

class OrthogonalizeCommandIT {
    @TempDir
    private Path temporary;

    private Path write(String name, boolean fortran, List<Long> shape, float... values) throws IOException {
        Path file = temporary.resolve(name);
        Npy.write(file, new Npy.Array(ElementType.FLOAT32, shape, fortran, MemorySegment.ofArray(values)));
        return file;
    }

    private Path writeDoubles(String name, List<Long> shape, double... values) throws IOException {
        Path file = temporary.resolve(name);
        Npy.write(file, new Npy.Array(ElementType.FLOAT64, shape, false, MemorySegment.ofArray(values)));
        return file;
    }

    private static float[] normal(int count) {
        var random = new Random(1);
        var values = new float[count];
        for (int i = 0; i < count; i++) {
            values[i] = (float) random.nextGaussian();
        }
        return values;
    }

    private static float[] read(Path file, List<Long> shape) throws IOException {
        try (Arena arena = Arena.ofConfined()) {
            Npy.Array array = Npy.read(file, arena);
            assertThat(array.shape()).isEqualTo(shape);
            assertThat(array.type()).isEqualTo(ElementType.FLOAT32);
            assertThat(array.fortranOrder()).isFalse();
            var values = new float[(int) array.elements()];
            MemorySegment.copy(array.data(), ValueLayout.JAVA_FLOAT_UNALIGNED, 0, values, 0, values.length);
            return values;
        }
    }

    @Test
    void aRotationStaysAndAScaledOneComesBack() throws Exception {
        Path in = write("in.npy", false, List.of(2L, 2L), 0, -3, 3, 0);
        Path out = temporary.resolve("out.npy");
        CommandRun result = CommandRun.of("orthogonalize", in, out, "--method", "exact", "--json");
        assertThat(result.exitCode()).as(result.err()).isZero();
        assertThat(read(out, List.of(2L, 2L))).containsExactly(new float[] {0, -1, 1, 0}, within(1e-6f));
        JsonNode json = JsonMapper.shared().readTree(result.out());
        assertThat(json.get("alignment").asDouble()).isCloseTo(1, within(1e-6));
        assertThat(json.get("orthogonality_error").asDouble()).isLessThan(1e-5);
        assertThat(json.get("path").asString()).isEqualTo("eigenvectors of the Gram matrix in double precision");
        CommandRun bySvd = CommandRun.of("orthogonalize", in, out, "--method", "exact-svd", "--json");
        assertThat(JsonMapper.shared().readTree(bySvd.out()).get("path").asString())
                .isEqualTo("gesdd");
        assertThat(read(out, List.of(2L, 2L))).containsExactly(new float[] {0, -1, 1, 0}, within(1e-6f));
    }

    @Test
    void directionsThatAreLeftOutAreShown() throws Exception {
        Path in = write("in.npy", false, List.of(2L, 2L, 2L), 3, 4, 6, 8, 1, 0, 0, 1);
        Path out = temporary.resolve("out.npy");
        for (String method : List.of("exact", "exact-svd")) {
            CommandRun result = CommandRun.of("orthogonalize", in, out, "--method", method, "--json");
            assertThat(result.exitCode()).as(result.err()).isZero();
            JsonNode json = JsonMapper.shared().readTree(result.out());
            assertThat(json.get("directions").asInt()).isEqualTo(2);
            assertThat(json.get("directions_kept").toString()).isEqualTo("[1,2]");
        }
        assertThat(CommandRun.of("orthogonalize", in, out, "--method", "exact").out())
                .contains("directions kept 1 to 2 of 2");
        assertThat(CommandRun.of("orthogonalize", in, out, "--method", "newton-schulz", "--json")
                        .out())
                .doesNotContain("directions");
    }

    @Test
    void aCpuHasEveryPrecision() throws Exception {
        Path in = write("in.npy", false, List.of(2L, 2L), 3, 0, 0, 4);
        Path out = temporary.resolve("out.npy");
        var results = new ArrayList<float[]>();
        for (String precision : List.of("fp32", "tf32", "bf16")) {
            CommandRun result = CommandRun.of("orthogonalize", in, out, "--precision", precision, "--json");
            assertThat(result.exitCode()).as(result.err()).isZero();
            assertThat(JsonMapper.shared().readTree(result.out()).get("path").asString())
                    .isEqualTo(precision.equals("fp32") ? "one-call kernel" : "one-call kernel in " + precision);
            results.add(read(out, List.of(2L, 2L)));
        }
        assertThat(results.get(1)).isNotEqualTo(results.get(0)).containsExactly(results.get(0), within(1e-2f));
        assertThat(results.get(2)).isNotEqualTo(results.get(1)).containsExactly(results.get(0), within(1e-1f));
        assertRefused(CommandRun.of("orthogonalize", in, out, "--precision", "fp16"), "'fp16'", "fp32, tf32 and bf16");
        assertRefused(
                CommandRun.of("orthogonalize", in, out, "--method", "exact", "--precision", "bf16"),
                "--precision bf16: exact is always fp32");
    }

    @Test
    void aSimulatedGpuTakesEach() throws Exception {
        assumeTrue(TestDevices.simulated().findAny().isPresent(), "the simulated devices have not been built");
        Path in = write("large.npy", false, List.of(129L, 131L), normal(129 * 131));
        Path out = temporary.resolve("out.npy");
        Map<String, Float> allowed = Map.of("fp32", 1e-5f, "tf32", 1e-2f, "bf16", 1e-1f);
        var before = new ArrayList<float[]>();
        for (String precision : List.of("fp32", "tf32", "bf16")) {
            float[] byKernels = onSimulatedGpu(in, out, precision, "kernels");
            float[] byCublas = onSimulatedGpu(in, out, precision, "cublas");
            assertThat(byCublas).isNotEqualTo(byKernels).containsExactly(byKernels, within(allowed.get(precision)));
            before.forEach(wider -> assertThat(byKernels).isNotEqualTo(wider));
            before.add(byKernels);
        }
        // In fp32 the kernels have the bits of a CPU.
        assertThat(CommandRun.of("orthogonalize", in, out, "--method", "newton-schulz")
                        .exitCode())
                .isZero();
        assertThat(read(out, List.of(129L, 131L))).isEqualTo(before.getFirst());
    }

    private float[] onSimulatedGpu(Path in, Path out, String precision, String products) throws Exception {
        CommandRun result = CommandRun.of(
                "orthogonalize",
                in,
                out,
                "--method",
                "newton-schulz",
                "--device",
                "cudasim:0",
                "--precision",
                precision,
                "--products",
                products,
                "--json");
        assertThat(result.exitCode()).as(result.err()).isZero();
        String kernels = precision.equals("fp32") ? "symmetric products" : "symmetric products in " + precision;
        assertThat(JsonMapper.shared().readTree(result.out()).get("path").asString())
                .isEqualTo(products.equals("kernels") ? kernels : "products by cuBLAS 13.0.0 in " + precision);
        return read(out, List.of(129L, 131L));
    }

    @Test
    void productsThatADeviceDoesNotHaveAreRefused() throws Exception {
        Path in = write("in.npy", false, List.of(2L, 2L), 3, 0, 0, 4);
        Path out = temporary.resolve("out.npy");
        assertRefused(
                CommandRun.of("orthogonalize", in, out, "--products", "openblas"), "'openblas'", "kernels and cublas");
        assertRefused(
                CommandRun.of("orthogonalize", in, out, "--products", "cublas"),
                "cpu:0 multiplies by its own kernels: cuBLAS takes a GPU");
    }

    @Test
    void aBatchIsEachOfItsMatrices() throws Exception {
        float[] values = normal(3 * 4 * 5);
        Path in = write("batch.npy", false, List.of(3L, 4L, 5L), values);
        Path out = temporary.resolve("out.npy");
        assertThat(CommandRun.of("orthogonalize", in, out).exitCode()).isZero();
        float[] whole = read(out, List.of(3L, 4L, 5L));
        for (int k = 0; k < 3; k++) {
            Path one = write("one.npy", false, List.of(4L, 5L), Arrays.copyOfRange(values, 20 * k, 20 * k + 20));
            assertThat(CommandRun.of("orthogonalize", one, out).exitCode()).isZero();
            assertThat(read(out, List.of(4L, 5L))).isEqualTo(Arrays.copyOfRange(whole, 20 * k, 20 * k + 20));
        }
    }

    @Test
    void fortranOrderIsTheSameMatrices() throws Exception {
        float[] values = normal(2 * 3 * 4);
        var turned = new float[values.length];
        for (int k = 0; k < 2; k++) {
            for (int i = 0; i < 3; i++) {
                for (int j = 0; j < 4; j++) {
                    turned[k + 2 * (i + 3 * j)] = values[(k * 3 + i) * 4 + j];
                }
            }
        }
        Path out = temporary.resolve("out.npy");
        List<Long> shape = List.of(2L, 3L, 4L);
        assertThat(CommandRun.of("orthogonalize", write("c.npy", false, shape, values), out)
                        .exitCode())
                .isZero();
        float[] expected = read(out, shape);
        assertThat(CommandRun.of("orthogonalize", write("f.npy", true, shape, turned), out)
                        .exitCode())
                .isZero();
        assertThat(read(out, shape)).isEqualTo(expected);
    }

    @Test
    void coefficientsOfAUser() throws Exception {
        // One step x -> 2x - x^3 of a matrix with the singular values 3/5 and 4/5 after division by its norm.
        Path in = write("in.npy", false, List.of(2L, 2L), 3, 0, 0, 4);
        Path out = temporary.resolve("out.npy");
        CommandRun result =
                CommandRun.of("orthogonalize", in, out, "--method", "newton-schulz", "--coefficients", "2,-1,0");
        assertThat(result.exitCode()).as(result.err()).isZero();
        assertThat(read(out, List.of(2L, 2L)))
                .containsExactly(new float[] {1.2f - 0.216f, 0, 0, 1.6f - 0.512f}, within(1e-5f));
        assertThat(result.out()).contains("newton-schulz 2.0,-1.0,0.0");
    }

    @Test
    void asManyStepsAsAnErrorTakes() throws Exception {
        var values = new float[20 * 30];
        for (int i = 0; i < 20; i++) {
            values[31 * i] = (float) Math.pow(10, -3.0 * i / 19); // 1e-3 at the least, 4e-4 of the norm
        }
        Path in = write("in.npy", false, List.of(20L, 30L), values);
        Path out = temporary.resolve("out.npy");
        CommandRun result = CommandRun.of("orthogonalize", in, out, "--until", "1e-5", "--json");
        assertThat(result.exitCode()).as(result.err()).isZero();
        JsonNode json = JsonMapper.shared().readTree(result.out());
        assertThat(json.get("method").asString()).isEqualTo("auto polar-express-until:1e-5@1e-4 x 9");
        assertThat(json.get("until").asDouble()).isEqualTo(1e-5);
        assertThat(json.get("smallest_singular_value").asDouble()).isCloseTo(1, within(1e-5));
        assertThat(json.get("largest_singular_value").asDouble()).isCloseTo(1, within(1e-5));
        assertThat(CommandRun.of("orthogonalize", in, out, "--until", "1e-5").out())
                .doesNotContain("not reached");
        assertThat(CommandRun.of("orthogonalize", in, out, "--until", "1e-2", "--lower-bound", "0.1")
                        .out())
                .contains("polar-express-until:0.01@0.1 x 3", "the wanted error of 0.01 is not reached");
        assertThat(CommandRun.of("orthogonalize", in, out, "--coefficients", "polar-express-until:1e-5@3e-4")
                        .out())
                .contains("polar-express-until:1e-5@3e-4");
        assertRefused(CommandRun.of("orthogonalize", in, out, "--until", "2"), "an error of 2.0", "0.5");
        assertRefused(
                CommandRun.of("orthogonalize", in, out, "--until", "1e-3", "--lower-bound", "1"),
                "a lower bound of 1.0");
        assertRefused(CommandRun.of("orthogonalize", in, out, "--lower-bound", "1e-3"), "--lower-bound", "--until");
        assertRefused(CommandRun.of("orthogonalize", in, out, "--until", "1e-3", "--steps", "5"), "--steps");
        assertRefused(
                CommandRun.of("orthogonalize", in, out, "--until", "1e-3", "--coefficients", "you"), "--coefficients");
        assertRefused(
                CommandRun.of("orthogonalize", in, out, "--until", "1e-3", "--method", "exact"),
                "--until: exact takes no steps");
    }

    @Test
    void aSimulatedGpuTakesAsManySteps() throws Exception {
        assumeTrue(TestDevices.simulated().findAny().isPresent(), "the simulated devices have not been built");
        Path in = write("in.npy", false, List.of(12L, 20L), normal(12 * 20));
        Path out = temporary.resolve("out.npy");
        var results = new ArrayList<float[]>();
        for (String device : List.of("cpu:0", "cudasim:0")) {
            CommandRun result = CommandRun.of(
                    "orthogonalize", in, out, "--method", "newton-schulz", "--until", "1e-5", "--device", device);
            assertThat(result.exitCode()).as(result.err()).isZero();
            assertThat(result.out())
                    .contains("polar-express-until:1e-5@1e-4 x 9")
                    .doesNotContain("not reached");
            results.add(read(out, List.of(12L, 20L)));
        }
        assertThat(results.get(1)).containsExactly(results.get(0), within(1e-5f));
    }

    @Test
    void doublePrecision() throws Exception {
        Path in = writeDoubles("in.npy", List.of(2L, 3L), 1, 0, 0, 0, 1e-9, 0);
        Path out = temporary.resolve("out.npy");
        assertThat(CommandRun.of("orthogonalize", in, out, "--method", "exact").exitCode())
                .isZero();
        try (Arena arena = Arena.ofConfined()) {
            Npy.Array array = Npy.read(out, arena);
            assertThat(array.type()).isEqualTo(ElementType.FLOAT64);
            assertThat(array.data().get(ValueLayout.JAVA_DOUBLE_UNALIGNED, 4 * 8))
                    .isCloseTo(1, within(1e-12));
        }
        assertRefused(CommandRun.of("orthogonalize", in, out, "--method", "gram"), "float32");
    }

    @Test
    void whatCannotBeIsRefused() throws Exception {
        Path out = temporary.resolve("out.npy");
        Path in = write("in.npy", false, List.of(2L, 2L), 1, 2, 3, 4);
        assertRefused(CommandRun.of("orthogonalize", temporary.resolve("none.npy"), out), "none.npy", "no such file");
        Path text = Files.writeString(temporary.resolve("text.npy"), "hello");
        assertRefused(CommandRun.of("orthogonalize", text, out), "text.npy");
        assertRefused(
                CommandRun.of("orthogonalize", write("flat.npy", false, List.of(4L), 1, 2, 3, 4), out), "1 dimensions");
        assertRefused(CommandRun.of("orthogonalize", write("empty.npy", false, List.of(0L, 4L)), out), "empty");
        Path nan = write("nan.npy", false, List.of(2L, 1L, 2L), 1, 2, 3, Float.NaN);
        assertRefused(CommandRun.of("orthogonalize", nan, out), "nan.npy", "matrix 1", "element 1");
        assertRefused(CommandRun.of("orthogonalize", in, out, "--coefficients", "jordn"), "jordn", "jordan");
        assertRefused(
                CommandRun.of("orthogonalize", in, out, "--coefficients", "you", "--steps", "9"),
                "you has 5 steps, not 9");
        assertRefused(CommandRun.of("orthogonalize", in, out, "--method", "qr"), "--method", "qr");
        assertRefused(CommandRun.of("orthogonalize", in, out, "--device", "tpu"), "'tpu'");
        assertThat(out).doesNotExist();
        assertRefused(CommandRun.of("orthogonalize", in, temporary.resolve("no/such/out.npy")), "out.npy");
        assertRefused(CommandRun.of("orthogonalize", in), "OUT.npy");
    }
}
