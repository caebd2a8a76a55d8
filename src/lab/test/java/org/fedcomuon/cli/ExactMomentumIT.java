package org.fedcomuon.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.fedcomuon.device.Blas;
import org.fedcomuon.device.Buffer;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.Devices;
import org.fedcomuon.device.ElementType;
import org.fedcomuon.device.InstructionSet;
import org.fedcomuon.device.Matrix;
import org.fedcomuon.format.SafetensorsFile;
import org.fedcomuon.linalg.Exact;
import org.fedcomuon.linalg.Orthogonalizer;
import org.fedcomuon.linalg.ScaleRule;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * The exact factor of what it is made for: momentum of a training run, whose singular values go on down to nothing, and
 * whose last layer lacks a direction.
 */
class ExactMomentumIT {
    /** Where the matrices of LeNet are in M, and their rows. */
    private record Place(int offset, int rows, int cols) {}

    private static final Map<String, Place> MATRICES = new LinkedHashMap<>();

    static {
        MATRICES.put("conv1", new Place(0, 6, 25));
        MATRICES.put("conv2", new Place(156, 16, 150));
        MATRICES.put("fc1", new Place(2572, 120, 256));
        MATRICES.put("fc2", new Place(33412, 10, 120));
    }

    @TempDir
    private Path temporary;

    private float[] momentum() throws IOException {
        Path out = temporary.resolve("run");
        CommandRun run = CommandRun.of(
                "train",
                "mnist-robust",
                "--iterations",
                "12",
                "--set",
                "largest=200",
                "--set",
                "evaluateEvery=12",
                "--out",
                out.toString());
        assertThat(run.exitCode()).as(run.err()).isZero();
        try (Stream<Path> files = Files.list(out.resolve("checkpoints"))) {
            Path newest = files.filter(file -> file.toString().endsWith(".safetensors"))
                    .max(Path::compareTo)
                    .orElseThrow();
            try (var checkpoint = SafetensorsFile.open(newest)) {
                assertThat(checkpoint.tensors().get("M").shape().getLast()).isEqualTo(34622);
                return checkpoint.floats("M");
            }
        }
    }

    /** Singular values, and the factor of the directions above 1e-6, by an SVD of the very floats in double. */
    @SuppressWarnings("ArrayRecordComponent") // they are never compared
    private record Reference(double[] values, double[] left, double[] factor) {
        static Reference of(Device device, Place place, float[] matrix) {
            int rows = place.rows();
            int cols = place.cols();
            try (Buffer a = device.allocate("A", ElementType.FLOAT64, matrix.length);
                    Buffer s = device.allocate("s", ElementType.FLOAT64, rows);
                    Buffer u = device.allocate("U", ElementType.FLOAT64, (long) rows * rows);
                    Buffer vt = device.allocate("V^T", ElementType.FLOAT64, matrix.length)) {
                a.copyIn(
                        0,
                        IntStream.range(0, matrix.length)
                                .mapToDouble(i -> matrix[i])
                                .toArray());
                device.solver()
                        .svd(
                                Matrix.of(a, 0, rows, cols),
                                s,
                                0,
                                Matrix.of(u, 0, rows, rows),
                                Matrix.of(vt, 0, rows, cols));
                double[] values = s.toDoubles(0, rows);
                int large = count(values, 1e-6);
                device.blas()
                        .gemm(
                                Blas.Op.NONE,
                                Blas.Op.NONE,
                                1,
                                new Matrix(u, 0, rows, large, rows),
                                Matrix.of(vt, 0, large, cols),
                                0,
                                Matrix.of(a, 0, rows, cols));
                return new Reference(values, u.toDoubles(0, rows * rows), a.toDoubles(0, matrix.length));
            }
        }

        static int count(double[] values, double part) {
            return (int) Arrays.stream(values)
                    .filter(value -> value > part * values[0])
                    .count();
        }

        /** The largest difference of an element, in the directions above 1e-6. */
        double error(Place place, float[] factor) {
            int rows = place.rows();
            int cols = place.cols();
            int large = count(values, 1e-6);
            double worst = 0;
            for (int j = 0; j < cols; j++) {
                var along = new double[large];
                for (int i = 0; i < rows; i++) {
                    for (int l = 0; l < large; l++) {
                        along[l] += left[i * rows + l] * factor[i * cols + j];
                    }
                }
                for (int i = 0; i < rows; i++) {
                    double sum = -this.factor[i * cols + j];
                    for (int l = 0; l < large; l++) {
                        sum += left[i * rows + l] * along[l];
                    }
                    worst = Math.max(worst, Math.abs(sum));
                }
            }
            return worst;
        }
    }

    @Test
    void isTheFactorOfMomentum() throws IOException {
        float[] momentum = momentum();
        try (Device device = Devices.open("cpu:0", 1, InstructionSet.AUTO)) {
            for (Map.Entry<String, Place> each : MATRICES.entrySet()) {
                String name = each.getKey();
                Place place = each.getValue();
                int size = place.rows() * place.cols();
                float[] matrix = Arrays.copyOfRange(momentum, place.offset(), place.offset() + size);
                Reference reference = Reference.of(device, place, matrix);
                try (Buffer m = device.allocate("M", ElementType.FLOAT32, size);
                        Orthogonalizer.Plan plan = new Exact()
                                .plan(device, 1, place.rows(), place.cols(), ElementType.FLOAT32, ScaleRule.NONE)) {
                    m.copyIn(0, matrix);
                    plan.orthogonalize(m.batch(1, size), m.batch(1, size));
                    assertThat(reference.error(place, m.toFloats(0, size)))
                            .as(name)
                            .isLessThan(2e-6);
                    assertThat(plan.kept().getFirst())
                            .as(name)
                            .isBetween(
                                    Reference.count(reference.values(), 1.05e-7),
                                    Reference.count(reference.values(), 0.95e-7));
                    if (name.equals("fc2")) { // rows of the gradient of a softmax sum to zero
                        assertThat(plan.kept()).containsExactly(9);
                    }
                }
            }
        }
    }
}
