package org.fedcomuon.device;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Every operation on a GPU against the same operation on the CPU, at sizes of a model: the same operands, and the same
 * bits where no sum is involved. {@link DeviceOperationsIT} has odd sizes and refusals.
 */
@GpuSuite
@ParameterizedClass
@MethodSource("org.fedcomuon.device.TestDevices#gpus")
class OperationsGpuIT {
    private static final int CLIENTS = 3;

    /** Sums in double, in another order than the CPU's, rounded to float once. */
    private static final double ROUNDED = 2 * Math.ulp(1.0f);

    /** The double itself. */
    private static final double SUM = 1e-12;

    /** Chains of float32 products, fused and added in another order. */
    private static final double PRODUCT = 1e-5;

    @Parameter
    private String name;

    /**
     * One call on operands that are made on the way.
     *
     * @param allowed the largest difference to the CPU, relative to the largest result; 0 for the same bits
     */
    record Operation(String name, double allowed, Body body) {
        @Override
        public String toString() {
            return name;
        }
    }

    /** All that it writes must be in buffers of {@code operands}, where it is found. */
    @FunctionalInterface
    interface Body {
        void run(Device device, Operands operands, int n);
    }

    static Stream<Operation> operations() {
        return Stream.of(
                new Operation(
                        "ema",
                        0,
                        (device, operands, n) ->
                                device.ema(0.3, operands.normal("x", CLIENTS, n), operands.normal("y", CLIENTS, n))),
                new Operation(
                        "compose_momentum",
                        0,
                        (device, operands, n) -> device.composeMomentum(
                                0.2,
                                operands.normal("H", CLIENTS, 5 * n),
                                operands.normal("v", CLIENTS, 5),
                                operands.normal("M", CLIENTS, n))),
                new Operation(
                        "storm",
                        SUM,
                        (device, operands, n) -> device.storm(
                                0.9,
                                operands.normal("Gnew", CLIENTS, n),
                                operands.normal("Gold", CLIENTS, n),
                                operands.normal("H", CLIENTS, n),
                                operands.doubles("norms", CLIENTS).batch(CLIENTS, 1))),
                new Operation(
                        "project_compose_momentum",
                        0,
                        (device, operands, n) -> device.projectComposeMomentum(
                                1.5,
                                norms(operands, n),
                                0.2,
                                operands.normal("H", CLIENTS, 2 * n),
                                operands.normal("v", CLIENTS, 2),
                                operands.normal("M", CLIENTS, n))),
                new Operation(
                        "project",
                        0,
                        (device, operands, n) ->
                                device.project(1.5, norms(operands, n), operands.normal("x", CLIENTS, n))),
                new Operation(
                        "norm",
                        SUM,
                        (device, operands, n) -> device.norm(
                                operands.normal("x", CLIENTS, n),
                                operands.doubles("norms", CLIENTS).batch(CLIENTS, 1))),
                new Operation("average", 0, (device, operands, n) -> device.average(operands.normal("x", CLIENTS, n))),
                new Operation(
                        "average, weighted",
                        0,
                        (device, operands, n) ->
                                device.average(operands.normal("x", CLIENTS, n), new double[] {0.5, 0, 1.25})),
                new Operation(
                        "vector_step",
                        0,
                        (device, operands, n) -> device.vectorStep(
                                StepRule.PLAIN,
                                0.1,
                                operands.normal("m", CLIENTS, n),
                                operands.normal("w", CLIENTS, n))),
                new Operation(
                        "vector_step, normalized",
                        ROUNDED,
                        (device, operands, n) -> device.vectorStep(
                                StepRule.NORMALIZED,
                                0.1,
                                operands.normal("m", CLIENTS, n),
                                operands.normal("w", CLIENTS, n))),
                new Operation(
                        "adaptive_step, Adam",
                        0,
                        (device, operands, n) -> adaptive(AdaptiveRule.ADAM, device, operands, n)),
                new Operation(
                        "adaptive_step, Yogi",
                        0,
                        (device, operands, n) -> adaptive(AdaptiveRule.YOGI, device, operands, n)),
                new Operation(
                        "top_k",
                        0,
                        (device, operands, n) -> device.topK(
                                n / 10, operands.normal("x", CLIENTS, n), operands.normal("y", CLIENTS, n))),
                new Operation(
                        "normalize",
                        ROUNDED,
                        (device, operands, n) -> device.normalize(
                                1.02, operands.normal("x", CLIENTS, n), operands.normal("y", CLIENTS, n))),
                new Operation("rearrange", 0, (device, operands, n) -> {
                    int rows = n / 8;
                    device.rearrange(
                            MatrixBatch.of(operands.normal("x", CLIENTS, rows * 8), rows, 8),
                            MatrixBatch.of(operands.normal("y", CLIENTS, rows * 8), 8, rows)
                                    .transpose());
                }),
                new Operation("multiply", PRODUCT, (device, operands, n) -> {
                    int side = side(n);
                    device.multiply(
                            1.5,
                            square(operands, "a", side),
                            square(operands, "b", side).transpose(),
                            -0.5,
                            square(operands, "base", side),
                            false,
                            square(operands, "out", side));
                }),
                new Operation("multiply, symmetric", PRODUCT, (device, operands, n) -> {
                    int side = side(n);
                    MatrixBatch a = square(operands, "a", side);
                    device.multiply(1, a, a.transpose(), true, square(operands, "out", side));
                }),
                new Operation(
                        "newton_schulz_small",
                        PRODUCT,
                        (device, operands, n) -> device.newtonSchulz(
                                lenet(), operands.normal("M", CLIENTS, LENET), operands.normal("O", CLIENTS, LENET))),
                new Operation(
                        "newton_schulz_small, stepping",
                        PRODUCT,
                        (device, operands, n) -> device.newtonSchulzStep(
                                lenet(),
                                operands.normal("M", CLIENTS, LENET),
                                0.1,
                                operands.normal("W", CLIENTS, LENET))),
                new Operation("all_finite", 0, (device, operands, n) -> {
                    Batch x = operands.normal("x", CLIENTS, n);
                    x.buffer().copyIn(x.offset() + x.stride() + n / 2, Float.NaN, Float.NEGATIVE_INFINITY);
                    Place place = device.firstNotFinite(x).orElseThrow();
                    operands.doubles("place", 2).copyIn(0, (double) place.client(), (double) place.index());
                }),
                new Operation(
                        "triad",
                        0,
                        (device, operands, n) -> device.triad(
                                0.5f,
                                operands.normal("b", 1, n),
                                operands.normal("c", 1, n),
                                operands.normal("a", 1, n),
                                false)),
                new Operation("copies", 0, (device, operands, n) -> {
                    Batch x = operands.normal("x", CLIENTS, n);
                    Buffer y = operands.floats("y", x.buffer().length());
                    y.fill(0.1);
                    y.copyFrom(x.buffer(), 1, 2, n);
                    x.buffer().zero();
                }));
    }

    /** The first client is inside the ball, the others are not. */
    private static Batch norms(Operands operands, int n) {
        Buffer norms = operands.doubles("norms", CLIENTS);
        norms.copyIn(0, 1, Math.sqrt(n), 2.25);
        return norms.batch(CLIENTS, 1);
    }

    private static void adaptive(AdaptiveRule rule, Device device, Operands operands, int n) {
        Batch v = operands.normal("v", CLIENTS, n);
        v.buffer().fill(0.75); // never negative
        device.adaptiveStep(
                rule,
                0.9,
                0.99,
                1e-3,
                0.1,
                operands.normal("delta", CLIENTS, n),
                operands.normal("m", CLIENTS, n),
                v,
                operands.normal("w", CLIENTS, n));
    }

    private static int side(int n) {
        return (int) Math.sqrt(n);
    }

    private static MatrixBatch square(Operands operands, String label, int side) {
        return MatrixBatch.of(operands.normal(label, CLIENTS, side * side), side, side);
    }

    private static final int LENET = 6 * 25 + 16 * 150 + 120 * 256;

    private static SmallSchulz lenet() {
        return new SmallSchulz(
                List.of(
                        MatrixBlock.at(0, 6, 25),
                        MatrixBlock.at(6 * 25, 16, 150),
                        MatrixBlock.at(6 * 25 + 16 * 150, 120, 256)),
                Collections.nCopies(5, new SchulzStep(3.4445, -4.7750, 2.0315)),
                1);
    }

    @BeforeEach
    void assumeItIsHere() {
        TestDevices.open(name).close();
    }

    @ParameterizedTest
    @MethodSource("operations")
    void isWhatTheCpuMakesOfIt(Operation operation) {
        int n = TestDevices.isSimulated(name) ? 11_003 : 1_000_003;
        double[][] expected = results("cpu:0", operation, n);
        double[][] actual = results(name, operation, n);
        assertThat(actual.length).isEqualTo(expected.length);
        double worst = 0;
        for (int i = 0; i < expected.length; i++) {
            worst = Math.max(worst, difference(actual[i], expected[i]));
        }
        GpuReport.ofThisRun().accuracy(name, operation.name(), worst, operation.allowed());
        assertThat(worst).isLessThanOrEqualTo(operation.allowed());
    }

    /** Everything in every buffer, gaps included: nothing may be written there. */
    private static double[][] results(String device, Operation operation, int n) {
        try (Device on = TestDevices.open(device);
                var operands = new Operands(on, 23)) {
            operation.body().run(on, operands, n);
            return operands.contents();
        }
    }

    /** The largest, relative to the largest number there is; the same bits are no difference, NaN or not. */
    private static double difference(double[] actual, double[] expected) {
        assertThat(actual).hasSameSizeAs(expected);
        double scale = Arrays.stream(expected)
                .filter(Double::isFinite)
                .map(Math::abs)
                .max()
                .orElse(1);
        double worst = 0;
        for (int i = 0; i < expected.length; i++) {
            if (Double.doubleToLongBits(actual[i]) != Double.doubleToLongBits(expected[i])) {
                double difference = Math.abs(actual[i] - expected[i]) / scale;
                worst = Math.max(worst, Double.isNaN(difference) ? Double.POSITIVE_INFINITY : difference);
            }
        }
        return worst;
    }
}
