package org.fedcomuon.linalg;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;
import org.fedcomuon.device.Batch;
import org.fedcomuon.device.Buffer;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.DeviceException;
import org.fedcomuon.device.Devices;
import org.fedcomuon.device.ElementType;
import org.fedcomuon.device.InstructionSet;
import org.fedcomuon.device.Matrix;
import org.fedcomuon.device.MatrixBatch;
import org.fedcomuon.device.Precision;
import org.fedcomuon.testing.GpuSuite;
import org.fedcomuon.testing.TestDevices;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;

/** Every orthogonalizer on matrices whose singular values and polar factor are known. */
@GpuSuite
@ParameterizedClass
@MethodSource("org.fedcomuon.testing.TestDevices#kinds")
class OrthogonalizerIT {
    @Parameter
    private String name;

    private final List<Buffer> buffers = new ArrayList<>();
    private Device device;

    @BeforeEach
    void open() {
        device = TestDevices.open(name);
    }

    /** A GPU decomposes by NVIDIA's libraries, which not every machine has. */
    private void assumePossible(Orthogonalizer how) {
        assumeTrue(!isExact(how) || TestDevices.decomposes(device), "no decompositions on " + name);
        assumeTrue(!isByCublas(how) || (!device.isHost() && TestDevices.decomposes(device)), "no cuBLAS on " + name);
    }

    private static boolean isExact(Orthogonalizer how) {
        return how instanceof Exact || how instanceof ExactSvd;
    }

    /** Shapes for a real device, and fewer that reach the same paths for one that is simulated. */
    private int[][] shapes(int[][] real, int[][] simulated) {
        return TestDevices.isSimulated(name) ? simulated : real;
    }

    @AfterEach
    void close() {
        if (device != null) { // a GPU may not be there
            buffers.forEach(Buffer::close);
            assertThat(device.liveBytes()).isZero();
            device.close();
        }
    }

    private Buffer room(ElementType type, long length) {
        Buffer buffer = device.allocate("test", type, length);
        buffers.add(buffer);
        return buffer;
    }

    private float[] orthogonalize(Orthogonalizer how, int rows, int cols, float[] matrix) {
        assumePossible(how);
        Buffer m = room(ElementType.FLOAT32, matrix.length);
        Buffer o = room(ElementType.FLOAT32, matrix.length);
        m.copyIn(0, matrix);
        int count = matrix.length / (rows * cols);
        try (Orthogonalizer.Plan plan = how.plan(device, count, rows, cols, ElementType.FLOAT32, ScaleRule.NONE)) {
            plan.orthogonalize(m.batch(count, (long) rows * cols), o.batch(count, (long) rows * cols));
        }
        assertThat(m.toFloats(0, matrix.length)).isEqualTo(matrix);
        return o.toFloats(0, matrix.length);
    }

    /** Judged on the CPU, whatever made it. */
    private static double[] singularValues(int rows, int cols, float[] matrix) {
        var wide = new double[matrix.length];
        for (int i = 0; i < wide.length; i++) {
            wide[i] = matrix[i];
        }
        try (Device judge = Devices.open("cpu:1", 1, InstructionSet.AUTO);
                Buffer work = judge.allocate("work", ElementType.FLOAT64, wide.length);
                Buffer s = judge.allocate("s", ElementType.FLOAT64, Math.min(rows, cols))) {
            work.copyIn(0, wide);
            judge.solver().singularValues(Matrix.of(work, 0, rows, cols), s, 0);
            return s.toDoubles(0, Math.min(rows, cols));
        }
    }

    static Stream<Orthogonalizer> all() {
        return Stream.concat(exact(), iterations());
    }

    static Stream<Orthogonalizer> exact() {
        return Stream.of(new Exact(), new ExactSvd());
    }

    /** What a GPU can do by cuBLAS; a CPU refuses it. */
    private static boolean isByCublas(Orthogonalizer how) {
        return switch (how) {
            case NewtonSchulz n -> n.products() == Orthogonalizer.Products.CUBLAS;
            case GramNewtonSchulz g -> g.products() == Orthogonalizer.Products.CUBLAS;
            case Auto a -> a.products() == Orthogonalizer.Products.CUBLAS;
            case Exact _, ExactSvd _ -> false;
        };
    }

    static Stream<Orthogonalizer> iterations() {
        return Stream.of(
                new NewtonSchulz(Coefficients.jordan(5)),
                new NewtonSchulz(Coefficients.polarExpress(8, 1)),
                new NewtonSchulz(Coefficients.cubic(5)),
                new GramNewtonSchulz(Coefficients.jordan(5)),
                new GramNewtonSchulz(Coefficients.polarExpress(8, 1)),
                new Auto(Coefficients.you(5)),
                new NewtonSchulz(Coefficients.jordan(5), Precision.FP32, Orthogonalizer.Products.CUBLAS),
                new GramNewtonSchulz(Coefficients.jordan(5), Precision.FP32, Orthogonalizer.Products.CUBLAS));
    }

    private static Coefficients coefficientsOf(Orthogonalizer how) {
        return switch (how) {
            case NewtonSchulz n -> n.coefficients();
            case GramNewtonSchulz g -> g.coefficients();
            case Auto a -> a.coefficients();
            case Exact _, ExactSvd _ -> throw new AssertionError(how);
        };
    }

    /** Each singular value must become what the scalar iteration makes of it; shapes reach every code path. */
    @ParameterizedTest
    @MethodSource("iterations")
    void singularValuesFollowTheScalarIteration(Orthogonalizer how) {
        int[][] real = {{40, 60}, {60, 40}, {128, 128}, {150, 150}, {140, 300}, {300, 140}};
        int[][] simulated = {{40, 60}, {60, 40}, {129, 130}};
        for (int[] shape : shapes(real, simulated)) {
            int side = Math.min(shape[0], shape[1]);
            double[] spectrum = Spectrum.logarithmic(side, 1, 100);
            double norm = 0;
            for (double s : spectrum) {
                norm += s * s;
            }
            norm = Math.sqrt(norm);
            float[] o = orthogonalize(
                    how,
                    shape[0],
                    shape[1],
                    Spectrum.of(shape[0], shape[1], spectrum, 3).floats());
            var expected = new double[side];
            for (int i = 0; i < side; i++) {
                expected[i] = coefficientsOf(how).map(spectrum[i] / norm);
            }
            Arrays.sort(expected);
            double[] actual = singularValues(shape[0], shape[1], o);
            for (int i = 0; i < side; i++) {
                assertThat(actual[i])
                        .as("%s, %d x %d, singular value %d", how.name(), shape[0], shape[1], i)
                        .isCloseTo(expected[side - 1 - i], within(2e-3));
            }
        }
    }

    @ParameterizedTest
    @CsvSource({"40,60", "60,40", "50,50", "1,9", "9,1", "4,300", "150,160", "200,130"})
    void exactIsThePolarFactor(int rows, int cols) {
        Spectrum known = Spectrum.of(rows, cols, Spectrum.logarithmic(Math.min(rows, cols), 2, 50), 5);
        exact().forEach(how -> {
            float[] o = orthogonalize(how, rows, cols, known.floats());
            for (int i = 0; i < o.length; i++) {
                assertThat((double) o[i]).isCloseTo(known.polar()[i], within(1e-5));
            }
            Buffer m = room(ElementType.FLOAT64, o.length);
            m.copyIn(0, known.matrix());
            try (Orthogonalizer.Plan plan = how.plan(device, 1, rows, cols, ElementType.FLOAT64, ScaleRule.NONE)) {
                plan.orthogonalize(m.batch(1, o.length), m.batch(1, o.length));
                assertThat(plan.kept()).containsExactly(Math.min(rows, cols));
            }
            double[] wide = m.toDoubles(0, o.length);
            for (int i = 0; i < wide.length; i++) {
                assertThat(wide[i]).isCloseTo(known.polar()[i], within(1e-12));
            }
        });
    }

    /** Small is not zero: only what rounding leaves of a missing direction may be dropped. */
    @ParameterizedTest
    @CsvSource({"60,1024,60,1e4", "60,1024,37,1e4", "300,310,300,1e4", "300,310,150,1e4", "40,40,40,1e5", "40,40,11,10"
    })
    void exactKeepsSmallDirectionsAndDropsMissingOnes(int rows, int cols, int rank, double condition) {
        float[] matrix = Spectrum.of(rows, cols, Spectrum.logarithmic(rank, 1, condition), 13)
                .floats();
        exact().forEach(how -> {
            double[] values = singularValues(rows, cols, orthogonalize(how, rows, cols, matrix));
            for (int i = 0; i < values.length; i++) {
                assertThat(values[i]).as("%s, singular value %d", how, i).isCloseTo(i < rank ? 1 : 0, within(1e-5));
            }
        });
    }

    @Test
    void newtonSchulzInDoublePrecision() {
        assumePossible(new ExactSvd()); // the same libraries multiply doubles
        double[] spectrum = Spectrum.logarithmic(30, 1e200, 10);
        Spectrum known = Spectrum.of(30, 45, spectrum, 6);
        Buffer m = room(ElementType.FLOAT64, 30 * 45);
        m.copyIn(0, known.matrix());
        var how = new NewtonSchulz(Coefficients.polarExpress(12, 1));
        try (Orthogonalizer.Plan plan = how.plan(device, 1, 30, 45, ElementType.FLOAT64, ScaleRule.NONE)) {
            plan.orthogonalize(m.batch(1, 30 * 45), m.batch(1, 30 * 45));
        }
        double[] o = m.toDoubles(0, 30 * 45);
        for (int i = 0; i < o.length; i++) {
            assertThat(o[i]).isCloseTo(known.polar()[i], within(1e-12));
        }
        assertThatThrownBy(() -> new GramNewtonSchulz(Coefficients.jordan(5))
                        .plan(device, 1, 30, 45, ElementType.FLOAT64, ScaleRule.NONE))
                .isInstanceOf(IllegalArgumentException.class);
    }

    @ParameterizedTest
    @MethodSource("all")
    void rankOneAndZero(Orthogonalizer how) {
        for (int[] shape : shapes(new int[][] {{5, 8}, {150, 170}}, new int[][] {{5, 8}, {129, 131}})) {
            Spectrum one = Spectrum.of(shape[0], shape[1], new double[] {3}, 7);
            double gain = isExact(how) ? 1 : coefficientsOf(how).map(1);
            float[] o = orthogonalize(how, shape[0], shape[1], one.floats());
            for (int i = 0; i < o.length; i++) {
                assertThat((double) o[i]).isCloseTo(gain * one.polar()[i], within(3e-4));
            }
            assertThat(orthogonalize(how, shape[0], shape[1], new float[shape[0] * shape[1]]))
                    .containsOnly(0f);
        }
    }

    @ParameterizedTest
    @MethodSource("all")
    void theSizeOfTheInputDoesNotMatter(Orthogonalizer how) {
        for (int[] shape : shapes(new int[][] {{6, 9}, {140, 135}}, new int[][] {{6, 9}})) {
            Spectrum known = Spectrum.of(shape[0], shape[1], Spectrum.logarithmic(6, 1, 4), 8);
            float[] usual = orthogonalize(how, shape[0], shape[1], known.floats());
            for (float factor : new float[] {1e-30f, 1e30f}) {
                float[] scaled = known.floats();
                for (int i = 0; i < scaled.length; i++) {
                    scaled[i] *= factor;
                }
                float[] o = orthogonalize(how, shape[0], shape[1], scaled);
                for (int i = 0; i < o.length; i++) {
                    assertThat(o[i]).isCloseTo(usual[i], within(2e-4f));
                }
            }
        }
    }

    @ParameterizedTest
    @MethodSource("all")
    void aBatchIsItsMatricesAndInPlaceIsTheSame(Orthogonalizer how) {
        for (int[] shape : shapes(new int[][] {{9, 7}, {130, 131}}, new int[][] {{9, 7}})) {
            int size = shape[0] * shape[1];
            long stride = size + 3L;
            Buffer m = room(ElementType.FLOAT32, 3 * stride + 1);
            var alone = new float[3][];
            for (int k = 0; k < 3; k++) {
                float[] matrix = Spectrum.of(shape[0], shape[1], Spectrum.logarithmic(5, k + 1, 3), k)
                        .floats();
                alone[k] = orthogonalize(how, shape[0], shape[1], matrix);
                m.copyIn(1 + k * stride, matrix);
            }
            Batch batch = new Batch(m, 1, 3, size, stride);
            try (Orthogonalizer.Plan plan =
                    how.plan(device, 3, shape[0], shape[1], ElementType.FLOAT32, ScaleRule.NONE)) {
                plan.orthogonalize(batch, batch);
            }
            for (int k = 0; k < 3; k++) {
                assertThat(m.toFloats(1 + k * stride, size)).isEqualTo(alone[k]);
            }
            assertThat(m.toFloats(0, 1)).containsOnly(0f);
        }
    }

    @ParameterizedTest
    @MethodSource("all")
    void columnMajorAndPaddedInputIsTheSame(Orthogonalizer how) {
        for (int[] shape : shapes(new int[][] {{9, 7}, {130, 140}}, new int[][] {{9, 7}})) {
            int rows = shape[0];
            int cols = shape[1];
            float[] matrix =
                    Spectrum.of(rows, cols, Spectrum.logarithmic(5, 2, 3), 17).floats();
            float[] expected = orthogonalize(how, rows, cols, matrix);
            int pitch = cols + 5;
            Buffer padded = room(ElementType.FLOAT32, (long) rows * pitch);
            Buffer columns = room(ElementType.FLOAT32, (long) rows * cols);
            for (int i = 0; i < rows; i++) {
                padded.copyIn((long) i * pitch, Arrays.copyOfRange(matrix, i * cols, (i + 1) * cols));
            }
            var in = new MatrixBatch(padded, 0, 1, 0, rows, cols, pitch, 1);
            var out = new MatrixBatch(columns, 0, 1, 0, rows, cols, 1, rows);
            try (Orthogonalizer.Plan plan = how.plan(device, 1, rows, cols, ElementType.FLOAT32, ScaleRule.NONE)) {
                plan.orthogonalize(in, out);
                float[] turned = columns.toFloats(0, rows * cols);
                for (int i = 0; i < rows; i++) {
                    for (int j = 0; j < cols; j++) {
                        assertThat(turned[j * rows + i]).isEqualTo(expected[i * cols + j]);
                    }
                }
                assertThat(padded.toFloats(cols, 5)).containsOnly(0f);
                assertThatThrownBy(() -> plan.orthogonalize(in.transpose(), out.transpose()))
                        .isInstanceOf(DeviceException.InvalidOperand.class);
            }
        }
    }

    @ParameterizedTest
    @MethodSource("all")
    void theStepMovesWeightsByTheScaledDirection(Orthogonalizer how) {
        for (int[] shape : shapes(new int[][] {{16, 4}, {150, 140}}, new int[][] {{16, 4}, {131, 129}})) {
            int size = shape[0] * shape[1];
            Spectrum known = Spectrum.of(shape[0], shape[1], Spectrum.logarithmic(4, 1, 3), 9);
            float[] o = orthogonalize(how, shape[0], shape[1], known.floats());
            Buffer m = room(ElementType.FLOAT32, size);
            Buffer w = room(ElementType.FLOAT32, size);
            m.copyIn(0, known.floats());
            try (Orthogonalizer.Plan plan =
                    how.plan(device, 1, shape[0], shape[1], ElementType.FLOAT32, ScaleRule.ASPECT)) {
                plan.step(m.batch(1, size), 0.5, w.batch(1, size));
            }
            double factor = 0.5 * Math.sqrt((double) shape[0] / shape[1]);
            float[] moved = w.toFloats(0, size);
            for (int i = 0; i < size; i++) {
                assertThat((double) moved[i]).isCloseTo(-factor * o[i], within(1e-6));
            }
        }
    }

    @ParameterizedTest
    @MethodSource("all")
    void nanNamesItsMatrixAndNothingIsWritten(Orthogonalizer how) {
        assumePossible(how);
        for (int side : new int[] {6, 140}) {
            int size = side * side;
            Buffer m = room(ElementType.FLOAT32, 3L * size);
            Buffer o = room(ElementType.FLOAT32, 3L * size);
            m.copyIn(2L * size + 5, Float.POSITIVE_INFINITY);
            try (Orthogonalizer.Plan plan = how.plan(device, 3, side, side, ElementType.FLOAT32, ScaleRule.NONE)) {
                assertThatThrownBy(() -> {
                            plan.orthogonalize(m.batch(3, size), o.batch(3, size));
                            device.synchronize();
                        })
                        .isInstanceOfSatisfying(
                                DeviceException.NotFinite.class,
                                e -> assertThat(e.position().client()).isEqualTo(2));
            }
            assertThat(o.toFloats(0, 3 * size)).containsOnly(0f);
        }
    }

    @Test
    void coefficientsThatDivergeAreAnError() {
        var how = new NewtonSchulz(Coefficients.parse("9,9,9", Optional.empty()));
        Coefficients many = Coefficients.custom(
                Collections.nCopies(40, how.coefficients().steps().getFirst()));
        for (int side : new int[] {6, 140}) {
            float[] matrix = Spectrum.of(side, side, new double[] {1, 1}, 4).floats();
            assertThatThrownBy(() -> orthogonalize(new NewtonSchulz(many), side, side, matrix))
                    .isInstanceOf(DeviceException.NotFinite.class)
                    .hasMessageContaining("out of range");
        }
    }

    @Test
    void theShapePicksThePath() {
        var auto = new Auto(Coefficients.jordan(5));
        String products = "symmetric products";
        assertThat(path(auto, 120, 256)).isEqualTo("one-call kernel");
        assertThat(path(auto, 129, 256)).isEqualTo(products);
        assertThat(path(auto, 129, 258)).isEqualTo("Gram form, " + products);
        assertThat(path(auto, 258, 129)).isEqualTo("Gram form, " + products);
        assertThat(path(new NewtonSchulz(Coefficients.jordan(5)), 129, 258)).isEqualTo(products);
        assumePossible(new ExactSvd());
        assertThat(path(new ExactSvd(), 3, 3)).isEqualTo(device.isHost() ? "gesdd" : "gesvdj");
        assertThat(path(new ExactSvd(), 600, 513)).isEqualTo(device.isHost() ? "gesdd" : "gesvd");
    }

    @Test
    void thePathNamesThePrecision() {
        Coefficients jordan = Coefficients.jordan(5);
        var narrow = List.of(
                new NewtonSchulz(jordan, Precision.TF32),
                new GramNewtonSchulz(jordan, Precision.BF16),
                new Auto(jordan, Precision.TF32));
        for (Orthogonalizer how : narrow) {
            assertThat(how.name()).endsWith(" in " + how.precision());
            for (int side : new int[] {5, 150}) {
                assertThat(path(how, side, side)).endsWith(" in " + how.precision());
            }
        }
        assertThatThrownBy(() -> narrow.getFirst().plan(device, 1, 5, 5, ElementType.FLOAT64, ScaleRule.NONE))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("tf32 is for float32; float64 is computed as it is");
    }

    @Test
    void cublasIsAnotherPathOfAGpuAndNoneOfACpu() {
        Coefficients jordan = Coefficients.jordan(5);
        var plain = new NewtonSchulz(jordan, Precision.FP32, Orthogonalizer.Products.CUBLAS);
        var gram = new GramNewtonSchulz(jordan, Precision.BF16, Orthogonalizer.Products.CUBLAS);
        var auto = new Auto(jordan, Precision.TF32, Orthogonalizer.Products.CUBLAS);
        assertThat(plain.name()).isEqualTo("newton-schulz jordan x 5 by cublas");
        assertThat(gram.name()).isEqualTo("gram jordan x 5 in bf16 by cublas");
        assertThat(auto.name()).isEqualTo("auto jordan x 5 in tf32 by cublas");
        if (device.isHost()) {
            for (Orthogonalizer how : List.of(plain, gram, auto)) {
                assertThatThrownBy(() -> path(how, 150, 150))
                        .isInstanceOf(DeviceException.Unsupported.class)
                        .hasMessage("cpu:0 multiplies by its own kernels: cuBLAS takes a GPU");
            }
            return;
        }
        assumePossible(new ExactSvd()); // the same libraries
        assertThat(path(plain, 120, 256)).isEqualTo("one-call kernel");
        assertThat(path(plain, 150, 300)).startsWith("products by cuBLAS").endsWith(" in fp32");
        assertThat(path(gram, 150, 300))
                .startsWith("Gram form, products by cuBLAS")
                .endsWith(" in bf16");
        assertThat(path(auto, 150, 300))
                .startsWith("Gram form, products by cuBLAS")
                .endsWith(" in tf32");
        assertThat(path(auto, 150, 299)).startsWith("products by cuBLAS").endsWith(" in tf32");
    }

    private String path(Orthogonalizer how, int rows, int cols) {
        try (Orthogonalizer.Plan plan = how.plan(device, 1, rows, cols, ElementType.FLOAT32, ScaleRule.NONE)) {
            return plan.path();
        }
    }

    @Test
    void theGramFormRefusesLongRuns() {
        assertThat(new GramNewtonSchulz(Coefficients.jordan(5)).restarts()).containsExactly(2);
        assertThat(new GramNewtonSchulz(Coefficients.polarExpress(8, 1)).restarts())
                .containsExactly(2, 5);
        assertThatThrownBy(() -> new GramNewtonSchulz(Coefficients.jordan(5), List.of()))
                .hasMessageContaining("5 steps without a restart");
        assertThatThrownBy(() -> new GramNewtonSchulz(Coefficients.jordan(5), List.of(1)))
                .hasMessageContaining("4 steps without a restart");
        assertThatThrownBy(() -> new GramNewtonSchulz(Coefficients.jordan(5), List.of(3, 2)))
                .hasMessageContaining("ascend");
    }

    @Test
    void resultsAreBitIdenticalForAnyNumberOfThreads() {
        assumeTrue(device.isHost(), "a GPU has its own threads");
        float[] matrix =
                Spectrum.of(200, 450, Spectrum.logarithmic(50, 1, 30), 11).floats();
        for (Orthogonalizer how : all().filter(one -> !isByCublas(one)).toList()) {
            var results = new ArrayList<float[]>();
            for (int threads : new int[] {1, 2, 4}) {
                device.close();
                device = Devices.open("cpu:0", threads, InstructionSet.AUTO);
                results.add(orthogonalize(how, 200, 450, matrix));
                buffers.forEach(Buffer::close);
                buffers.clear();
            }
            assertThat(results.get(1)).as(how.name()).isEqualTo(results.get(0));
            assertThat(results.get(2)).as(how.name()).isEqualTo(results.get(0));
        }
    }

    @Test
    void shapesThatDoNotFitAreRefused() {
        Buffer m = room(ElementType.FLOAT32, 12);
        try (Orthogonalizer.Plan plan = new ExactSvd().plan(device, 1, 3, 4, ElementType.FLOAT32, ScaleRule.NONE)) {
            assertThatThrownBy(() -> plan.orthogonalize(m.batch(2, 6), m.batch(2, 6)))
                    .isInstanceOf(DeviceException.InvalidOperand.class);
        }
        try (Orthogonalizer.Plan plan =
                new Auto(Coefficients.jordan(5)).plan(device, 0, 3, 4, ElementType.FLOAT32, ScaleRule.NONE)) {
            plan.orthogonalize(new Batch(m, 0, 0, 12, 12), new Batch(m, 0, 0, 12, 12));
        }
    }
}
