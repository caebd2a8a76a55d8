package org.fedcomuon.device;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;
import static org.fedcomuon.device.Operands.assertRefused;
import static org.fedcomuon.device.OperationTable.assertNear;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.fedcomuon.testing.GpuSuite;
import org.fedcomuon.testing.TestDevices;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.RepetitionInfo;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Every operation of {@link OperationTable} through Panama against its reference, at random odd sizes: what is passed
 * where is what this tests; the arithmetic of the kernels has its own tests beside them. {@code -Dtests.seed} replays a
 * run.
 */
@GpuSuite
@ParameterizedClass
@MethodSource("org.fedcomuon.testing.TestDevices#kinds")
class DeviceOperationsIT {
    private static final long SEED = Long.getLong("tests.seed", System.nanoTime());
    private static final int[] SIZES = {1, 7, 63, 64, 65, 1000};
    private static final int MANY = 20;

    /** Repetitions that are enough for a device that is simulated, a thread at a time. */
    private static final int FEW = 3;

    @Parameter
    private String name;

    private Device device;
    private Operands operands;

    @BeforeEach
    void open() {
        device = TestDevices.open(name);
        operands = new Operands(device, SEED);
    }

    @AfterEach
    void close() {
        if (device != null) { // a GPU may not be there
            operands.close();
            assertThat(device.liveBytes()).isZero();
            device.close();
        }
    }

    /** Runs {@code body} with operands whose seed is in the failure's message. */
    private void random(int repetition, Consumer<Operands> body) {
        try (var random = new Operands(device, SEED + repetition)) {
            body.accept(random);
        } catch (AssertionError | RuntimeException e) {
            throw new AssertionError("replay with -Dtests.seed=" + SEED, e);
        }
    }

    @ParameterizedTest
    @MethodSource("org.fedcomuon.device.OperationTable#operations")
    void isWhatItsReferenceIs(OperationTable.Operation operation) {
        for (int repetition = 1; repetition <= (TestDevices.isSimulated(name) ? FEW : MANY); repetition++) {
            random(
                    repetition,
                    random -> operation
                            .body()
                            .run(device, random, random.choose(1, 2, 3, 5, 10, 17), random.choose(SIZES))
                            .run());
        }
    }

    /** What a projection reads is what storm has left. */
    @Test
    void stormThenProjectAndCompose() {
        int clients = 3;
        int n = 1000;
        int d = 3;
        Batch gNew = operands.normal("Gnew", clients, n * d);
        Batch gOld = operands.normal("Gold", clients, n * d);
        Batch h = operands.normal("H", clients, n * d);
        Batch v = operands.normal("v", clients, d);
        Batch m = operands.normal("M", clients, n);
        Batch norms = operands.doubles("norms", clients).batch(clients, 1);
        double[][] beforeM = Operands.clients(m);
        device.storm(0.3, gNew, gOld, h, norms);
        double[][] tracked = Operands.clients(h);
        double radius = norms.buffer().toDoubles(0, 1)[0] * 0.7;
        device.projectComposeMomentum(radius, norms, 0.2, h, v, m);
        for (int k = 0; k < clients; k++) {
            double[] projected = OperationTable.projected(radius, tracked[k]);
            assertNear(Operands.client(h, k), projected, OperationTable.bound(1));
            double[] expected = OperationTable.compose(0.2, projected, Operands.client(v, k), beforeM[k]);
            assertNear(Operands.client(m, k), expected, OperationTable.bound(2 * d));
        }
        double[][] inside = Operands.clients(h);
        device.project(Double.POSITIVE_INFINITY, norms, h);
        assertThat(Operands.clients(h)).isDeepEqualTo(inside);
    }

    @Test
    void ofEqualMagnitudesTheFirstStay() {
        Buffer x = operands.floats("x", 6);
        x.copyIn(0, 1f, -2f, 2f, -1f, 2f, 0f);
        device.topK(2, x.batch(1, 6), x.batch(1, 6));
        assertThat(x.toFloats(0, 6)).containsExactly(0f, -2f, 2f, 0f, 0f, 0f);
    }

    @RepeatedTest(6)
    void newtonSchulzOfMixedShapes(RepetitionInfo repetition) {
        if (TestDevices.isSimulated(name) && repetition.getCurrentRepetition() > FEW) {
            return;
        }
        random(repetition.getCurrentRepetition(), random -> {
            int clients = random.choose(1, 3);
            // Small ones, two beyond the kernel for small ones, and the Gram forms of a small and a large one.
            int[][] shapes = {{6, 25}, {16, 150}, {33, 4}, {1, 7}, {7, 1}, {20, 20}, {64, 65}, {131, 260}, {259, 130}};
            int[][] gramShapes = {{10, 31}, {265, 129}};
            // Each operand keeps the blocks in another order, so that offsets mixed up would show.
            var blocks = new ArrayList<NewtonSchulzSpec.Block>();
            List<int[]> all = Stream.concat(Arrays.stream(shapes), Arrays.stream(gramShapes))
                    .toList();
            int size = all.stream().mapToInt(s -> s[0] * s[1]).sum();
            int forward = 0;
            for (int[] shape : all) {
                int length = shape[0] * shape[1];
                long backward = (long) size - forward - length;
                blocks.add(new NewtonSchulzSpec.Block(
                        shape[0],
                        shape[1],
                        forward,
                        backward,
                        backward,
                        0.5 + blocks.size(),
                        blocks.size() >= shapes.length));
                forward += length;
            }
            var steps = List.of(
                    new NewtonSchulzSpec.Step(4.0848, -6.8946, 2.9270),
                    new NewtonSchulzSpec.Step(3.9505, -6.3029, 2.6377),
                    new NewtonSchulzSpec.Step(3.7418, -5.5913, 2.3037));
            var what = new NewtonSchulzSpec(blocks, steps, 1.02, List.of(2), Precision.FP32);
            Batch m = random.normal("M", clients, size);
            Batch o = random.normal("O", clients, size);
            Batch w = random.normal("W", clients, size);
            double[][] before = Operands.clients(w);
            double eta = random.fraction();

            try (NewtonSchulzSpec.Plan plan = device.plan(what, clients)) {
                plan.orthogonalize(m, o);
                plan.step(m, eta, w);
            }
            for (int k = 0; k < clients; k++) {
                for (NewtonSchulzSpec.Block block : blocks) {
                    int length = (int) (block.rows() * block.cols());
                    double[] momentum = slice(Operands.client(m, k), block.momentumOffset(), length);
                    double[] expected =
                            Reference.newtonSchulz(steps, 1.02, momentum, (int) block.rows(), (int) block.cols());
                    double[] result = slice(Operands.client(o, k), block.resultOffset(), length);
                    assertNear(result, expected, 2e-4);
                    double[] moved = slice(Operands.client(w, k), block.weightOffset(), length);
                    double[] from = slice(before[k], block.weightOffset(), length);
                    double step = eta * block.scale();
                    assertNear(moved, Reference.minus(from, Reference.scaled(step, expected)), 2e-4 * step + 1e-6);
                }
            }

            newtonSchulz(device, new NewtonSchulzSpec(inPlace(blocks), steps, 1.02, List.of(2), Precision.FP32), m, m);
            for (int k = 0; k < clients; k++) {
                for (NewtonSchulzSpec.Block block : blocks) {
                    int length = (int) (block.rows() * block.cols());
                    assertThat(slice(Operands.client(m, k), block.momentumOffset(), length))
                            .isEqualTo(slice(Operands.client(o, k), block.resultOffset(), length));
                }
            }
        });
    }

    private static void newtonSchulz(Device device, NewtonSchulzSpec what, Batch m, Batch o) {
        try (NewtonSchulzSpec.Plan plan = device.plan(what, m.clients())) {
            plan.orthogonalize(m, o);
        }
    }

    private static List<NewtonSchulzSpec.Block> inPlace(List<NewtonSchulzSpec.Block> blocks) {
        return blocks.stream()
                .map(b -> new NewtonSchulzSpec.Block(
                        b.rows(), b.cols(), b.momentumOffset(), b.momentumOffset(), b.momentumOffset(), 1, b.gram()))
                .toList();
    }

    private static double[] slice(double[] values, long from, int length) {
        return Arrays.copyOfRange(values, (int) from, (int) from + length);
    }

    @Test
    void theFirstNaNIsFound() {
        Buffer x = operands.floats("x", 3 * 50_000);
        Batch batch = x.batch(3, 50_000);
        assertThat(device.firstNotFinite(batch)).isEmpty();
        x.copyIn(2 * 50_000 + 17, Float.NEGATIVE_INFINITY);
        x.copyIn(50_000 + 40_001, Float.NaN);
        x.copyIn(50_000 + 40_002, Float.NaN);
        assertThat(device.firstNotFinite(batch)).isEqualTo(Optional.of(new Device.Position(1, -1, 40_001)));
    }

    @Test
    void aMatrixWithNaNIsNamedAndNothingIsWritten() {
        var blocks = List.of(NewtonSchulzSpec.Block.at(0, 4, 5), NewtonSchulzSpec.Block.at(20, 3, 3));
        var what = new NewtonSchulzSpec(
                blocks, Collections.nCopies(5, new NewtonSchulzSpec.Step(3.4445, -4.7750, 2.0315)), 1);
        Buffer m = operands.floats("M", 2 * 29);
        Buffer w = operands.floats("W", 2 * 29);
        float[] ones = new float[2 * 29];
        Arrays.fill(ones, 1);
        m.copyIn(0, ones);
        m.copyIn(29 + 20 + 7, Float.NaN);
        try (NewtonSchulzSpec.Plan plan = device.plan(what, 2)) {
            assertThatThrownBy(() -> {
                        plan.step(m.batch(2, 29), 0.1, w.batch(2, 29));
                        device.synchronize();
                    })
                    .isInstanceOfSatisfying(DeviceException.NotFinite.class, e -> {
                        assertThat(e.position()).isEqualTo(new Device.Position(1, 1, 7));
                        assertThat(e.elementOf(m)).hasValue(29 + 20 + 7);
                        assertThat(e.elementOf(w)).isEmpty();
                    });
        }
        assertThat(w.toFloats(0, 2 * 29)).containsOnly(0f);
    }

    @Test
    void aNormThatIsNotFiniteIsNamed() {
        Buffer h = operands.floats("H", 6);
        Buffer m = operands.floats("M", 6);
        Buffer v = operands.floats("v", 2);
        Buffer norms = operands.doubles("norms", 2);
        norms.copyIn(1, Double.NaN);
        assertThatThrownBy(() -> {
                    device.projectComposeMomentum(
                            1, norms.batch(2, 1), 0.5, h.batch(2, 3), v.batch(2, 1), m.batch(2, 3));
                    device.synchronize();
                })
                .isInstanceOfSatisfying(
                        DeviceException.NotFinite.class,
                        e -> assertThat(e.position().client()).isEqualTo(1));
    }

    @Test
    void aProjectionWithoutANormWritesNothing() {
        Buffer x = operands.floats("x", 6);
        Buffer norms = operands.doubles("norms", 2);
        x.copyIn(0, 1f, 1f, 1f, 1f, 1f, 1f);
        norms.copyIn(0, Math.sqrt(3), Double.POSITIVE_INFINITY);
        assertThatThrownBy(() -> {
                    device.project(0.5, norms.batch(2, 1), x.batch(2, 3));
                    device.synchronize();
                })
                .isInstanceOfSatisfying(
                        DeviceException.NotFinite.class,
                        e -> assertThat(e.position().client()).isEqualTo(1));
        assertThat(x.toFloats(0, 6)).containsOnly(1f);
    }

    @Test
    void theLargestOfWhatIsNotFiniteAreNotTold() {
        Buffer x = operands.floats("x", 6);
        Buffer y = operands.floats("y", 6);
        x.copyIn(0, 1f, 1f, 1f, 1f, 1f, Float.NaN);
        assertThatThrownBy(() -> {
                    device.topK(1, x.batch(2, 3), y.batch(2, 3));
                    device.synchronize();
                })
                .isInstanceOfSatisfying(
                        DeviceException.NotFinite.class,
                        e -> assertThat(e.position()).isEqualTo(new Device.Position(1, -1, 2)));
        assertThat(y.toFloats(0, 6)).containsOnly(0f);
    }

    @Test
    void operandsThatDoNotFitAreRefused() {
        Buffer x = operands.floats("x", 100);
        Buffer y = operands.floats("y", 100);
        Buffer doubles = operands.doubles("doubles", 100);
        Batch whole = x.batch(10, 10);

        assertRefused(() -> device.ema(0.5, x.batch(5, 10), y.batch(10, 10)), "clients");
        assertRefused(() -> device.ema(0.5, x.batch(10, 9), y.batch(10, 10)), "elements");
        assertRefused(() -> device.ema(1.5, whole, y.batch(10, 10)), "a = 1.5");
        assertRefused(() -> device.ema(Double.NaN, whole, y.batch(10, 10)), "a = ");
        assertRefused(() -> device.ema(0.5, whole, x.batch(10, 10)), "overlaps");
        assertRefused(() -> device.ema(0.5, doubles.batch(10, 10), y.batch(10, 10)), "FLOAT64");
        assertRefused(() -> device.composeMomentum(0.5, whole, y.batch(10, 3), y.batch(10, 3)), "times");
        assertRefused(() -> device.storm(0.5, whole, whole, y.batch(10, 10), x.batch(10, 1)), "FLOAT64");
        assertRefused(
                () -> device.norm(whole, operands.doubles("few", 9).batch(9, 1)),
                "9 norms of 1 elements, 1 apart, not one for each of 10 clients");
        assertRefused(
                () -> device.project(1, operands.doubles("few", 9).batch(9, 1), whole),
                "9 norms of 1 elements, 1 apart, not one for each of 10 clients");
        assertRefused(() -> device.project(1, y.batch(10, 1), whole), "FLOAT64");
        assertRefused(() -> device.project(0, doubles.batch(10, 1), whole), "radius = 0");
        assertRefused(() -> device.topK(11, whole, y.batch(10, 10)), "k = 11");
        assertRefused(() -> device.topK(-1, whole, y.batch(10, 10)), "k = -1");
        assertRefused(() -> device.topK(1, x.batch(10, 9), y.batch(10, 10)), "elements");
        assertRefused(() -> device.topK(1, whole, new Batch(x, 1, 9, 10, 10)), "clients");
        assertRefused(() -> device.topK(1, x.batch(9, 10), new Batch(x, 1, 9, 10, 10)), "overlaps");
        Batch m = operands.floats("m", 100).batch(10, 10);
        Batch v = operands.floats("v", 100).batch(10, 10);
        assertRefused(() -> adaptive(0.9, 0.99, 1e-3, 1, x.batch(10, 9), m, v, y.batch(10, 10)), "elements");
        assertRefused(() -> adaptive(0.9, 0.99, 1e-3, 1, whole, y.batch(5, 10), v, y.batch(10, 10)), "clients");
        assertRefused(() -> adaptive(0.9, 0.99, 1e-3, 1, whole, m, v.buffer().batch(10, 9), m), "elements");
        assertRefused(() -> adaptive(1, 0.99, 1e-3, 1, whole, m, v, y.batch(10, 10)), "beta1 = 1");
        assertRefused(() -> adaptive(0.9, -1, 1e-3, 1, whole, m, v, y.batch(10, 10)), "beta2 = -1");
        assertRefused(() -> adaptive(0.9, 0.99, 0, 1, whole, m, v, y.batch(10, 10)), "epsilon = 0");
        assertRefused(() -> adaptive(0.9, 0.99, 1e-3, Double.NaN, whole, m, v, y.batch(10, 10)), "eta = ");
        assertRefused(() -> adaptive(0.9, 0.99, 1e-3, 1, whole, m, v, m), "overlaps");
        assertRefused(() -> device.average(whole, new double[] {1, 2}, 10), "2 weights");
        assertRefused(() -> device.average(whole, new double[10], 10), "sum to 0");
        double[] ones = new double[10];
        Arrays.fill(ones, 1);
        assertRefused(() -> device.average(whole, ones, 9), "terms = 9");
        assertRefused(() -> device.average(whole, ones, MeanWeights.MOST_TERMS + 1), "terms = 1048577");
        Batch exponents = operands.vector("exponents", ElementType.UINT8, 10);
        Batch sums = operands.vector("sums", ElementType.INT64, 10);
        assertRefused(() -> device.meanExponents(whole, new double[9], exponents), "9 weights");
        assertRefused(() -> device.meanExponents(whole, ones, sums), "INT64, not UINT8");
        assertRefused(() -> device.meanExponents(x.batch(10, 9), ones, exponents), "not one of 9");
        assertRefused(() -> device.meanExponents(sums, ones, exponents), "10 weights for the 1 clients");
        double[] two = ones.clone();
        two[7] = 2;
        assertRefused(() -> device.meanExponents(whole, two, exponents), "weight 7 is 2");
        assertRefused(() -> device.meanSums(whole, ones, 9, exponents, sums), "terms = 9");
        assertRefused(() -> device.meanSums(whole, ones, 10, sums, sums), "INT64, not UINT8");
        assertRefused(() -> device.meanSums(whole, ones, 10, exponents, exponents), "UINT8, not INT64");
        assertRefused(() -> device.combineExponents(List.of(), exponents), "parts = 0");
        assertRefused(() -> device.combineExponents(List.of(exponents, sums), exponents), "INT64, not UINT8");
        List<Batch> rows = List.of(x.batch(1, 10));
        assertRefused(() -> device.finishMean(List.of(), exponents, 1, 1, rows), "parts = 0");
        assertRefused(() -> device.finishMean(List.of(sums), exponents, 1, 0, rows), "sum to 0");
        assertRefused(() -> device.finishMean(List.of(sums), exponents, 1, 1, List.of(x.batch(1, 9))), "not one of 10");
        assertRefused(() -> device.finishMean(List.of(exponents), exponents, 1, 1, rows), "UINT8, not INT64");
        var outside = new NewtonSchulzSpec(List.of(NewtonSchulzSpec.Block.at(5, 2, 3)), List.of(), 1);
        assertRefused(() -> newtonSchulz(device, outside, whole, y.batch(10, 10)), "outside");
        var beyond = new VectorStepSpec(List.of(new VectorStepSpec.Block(6, 5, 0, 1)), Device.StepRule.PLAIN);
        try (VectorStepSpec.Plan plan = device.plan(beyond, 10)) {
            assertRefused(() -> plan.step(whole, 1, y.batch(10, 10)), "outside");
        }
        var late = new NewtonSchulzSpec(
                List.of(new NewtonSchulzSpec.Block(2, 3, 0, 0, 0, 1, true)),
                List.of(new NewtonSchulzSpec.Step(1, 1, 1)),
                1,
                List.of(1),
                Precision.FP32);
        assertRefused(() -> newtonSchulz(device, late, whole, y.batch(10, 10)), "restart 0 is after step 1");
    }

    @Test
    void batchesStayInsideTheirBuffer() {
        Buffer x = operands.floats("x", 100);
        assertRefused(() -> x.batch(10, 11), "do not fit");
        assertRefused(() -> new Batch(x, 1, 10, 10, 10), "do not fit");
        assertRefused(() -> new Batch(x, -1, 1, 1, 1), "negative");
        assertRefused(() -> new Batch(x, 0, 3, 1, Long.MAX_VALUE / 2), "do not fit");
        assertRefused(() -> new Batch(x, Long.MAX_VALUE, 1, 1, 1), "do not fit");
        assertThat(new Batch(x, 0, 0, 1000, 1000).clients()).isZero();
        assertThat(new Batch(x, 99, 7, 1, 0).client(6).offset()).isEqualTo(99);
    }

    private void adaptive(
            double beta1, double beta2, double epsilon, double eta, Batch delta, Batch m, Batch v, Batch w) {
        device.adaptiveStep(Device.AdaptiveRule.ADAM, beta1, beta2, epsilon, eta, delta, m, v, w);
    }

    /** Pages that are never touched cost nothing, so the buffers may be larger than what the test uses. */
    @Test
    void offsetsAndStridesBeyondTwoToThe31() {
        long far = (1L << 31) + 5;
        assumeTrue(!TestDevices.isSimulated(name), "a simulated device has no such memory");
        assumeTrue(
                Devices.list().stream()
                        .anyMatch(info -> info.name().equals(name) && info.memoryBytes() > 20_000_000_000L),
                "the address space of two such buffers");
        Buffer x = operands.floats("x", far + 3);
        Buffer y = operands.floats("y", far + 3);
        x.copyIn(0, 1f, 2f, 3f);
        x.copyIn(far, 4f, 5f, 6f);
        Batch batchX = new Batch(x, 0, 2, 3, far);
        Batch batchY = new Batch(y, 0, 2, 3, far);
        device.ema(0.5, batchX, batchY);
        assertThat(y.toFloats(far, 3)).containsExactly(2f, 2.5f, 3f);
        assertThat(y.toFloats(0, 4)).containsExactly(0.5f, 1f, 1.5f, 0f);
        device.average(batchX);
        assertThat(x.toFloats(far, 3)).containsExactly(2.5f, 3.5f, 4.5f);
        y.copyIn(far + 1, Float.NaN);
        assertThat(device.firstNotFinite(batchY)).contains(new Device.Position(1, -1, 1));
        var what = new NewtonSchulzSpec(List.of(NewtonSchulzSpec.Block.at(0, 1, 3)), List.of(), 1);
        newtonSchulz(device, what, batchX, batchX);
        double norm = Math.sqrt(2.5 * 2.5 + 3.5 * 3.5 + 4.5 * 4.5);
        assertThat(x.toFloats(far + 2, 1)[0]).isCloseTo((float) (4.5 / norm), within(1e-6f));
    }

    @Test
    void resultsAreBitIdenticalWithOneTwoAndFourThreads() {
        assumeTrue(device.isHost(), "a GPU has its own threads");
        var results = new ArrayList<float[]>();
        for (int threads : new int[] {1, 2, 4}) {
            try (Device other = Devices.open("cpu:1", threads, InstructionSet.AUTO);
                    var same = new Operands(other, 7)) {
                int n = 50_021;
                Batch h = same.normal("H", 5, 2 * n);
                Batch m = same.normal("M", 5, n);
                Buffer norms = same.doubles("norms", 5);
                other.storm(0.3, same.normal("a", 5, 2 * n), same.normal("b", 5, 2 * n), h, norms.batch(5, 1));
                other.projectComposeMomentum(
                        norms.toDoubles(0, 1)[0] / 2, norms.batch(5, 1), 0.2, h, same.normal("v", 5, 2), m);
                other.average(m);
                Batch w = same.normal("w", 5, n);
                Batch second = same.floats("second", 5L * n).batch(5, n);
                other.adaptiveStep(
                        Device.AdaptiveRule.YOGI,
                        0.9,
                        0.99,
                        1e-3,
                        0.1,
                        m,
                        w,
                        second,
                        h.buffer().batch(5, n));
                other.topK(n / 3, h.buffer().batch(5, n), w);
                results.add(w.buffer().toFloats(0, (int) w.buffer().length()));
                var blocks =
                        List.of(NewtonSchulzSpec.Block.at(0, 120, 256), NewtonSchulzSpec.Block.at(120 * 256, 16, 150));
                newtonSchulz(
                        other,
                        new NewtonSchulzSpec(
                                blocks, Collections.nCopies(5, new NewtonSchulzSpec.Step(3.4445, -4.775, 2.0315)), 1),
                        m,
                        m);
                results.add(m.buffer().toFloats(0, (int) m.buffer().length()));
            }
        }
        for (int i = 2; i < results.size(); i++) {
            assertThat(results.get(i)).isEqualTo(results.get(i - 2));
        }
    }
}
