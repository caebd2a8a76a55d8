package org.fedcomuon.device;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;
import static org.fedcomuon.device.Operands.assertRefused;
import static org.fedcomuon.device.Reference.assertNear;
import static org.fedcomuon.device.Reference.assertOrthonormal;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import org.fedcomuon.testing.GpuSuite;
import org.fedcomuon.testing.TestDevices;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * A device's matrix library through Panama, OpenBLAS or cuBLAS and cuSOLVER, row-major, in both precisions, against
 * plain loops.
 */
@GpuSuite
@ParameterizedClass
@MethodSource("org.fedcomuon.testing.TestDevices#names")
class BlasIT {
    @Parameter
    private String name;

    private Device device;
    private Operands operands;

    @BeforeEach
    void open() {
        device = TestDevices.open(name);
        operands = new Operands(device, 5);
        assumeTrue(TestDevices.decomposes(device), "no libraries for " + name);
    }

    @AfterEach
    void close() {
        if (device != null) { // a GPU may not be there
            operands.close();
            assertThat(device.liveBytes()).isZero();
            device.close();
        }
    }

    private Matrix normal(ElementType type, int rows, int cols) {
        return operands.matrix(type, rows, cols, cols + 3);
    }

    private static double tolerance(ElementType type) {
        return type == ElementType.FLOAT32 ? 1e-4 : 1e-12;
    }

    @ParameterizedTest
    @EnumSource(value = ElementType.class, names = "FLOAT.*", mode = EnumSource.Mode.MATCH_ANY)
    void gemmInAllFourOrientations(ElementType type) {
        for (Blas.Op opA : Blas.Op.values()) {
            for (Blas.Op opB : Blas.Op.values()) {
                Matrix a = opA == Blas.Op.NONE ? normal(type, 5, 7) : normal(type, 7, 5);
                Matrix b = opB == Blas.Op.NONE ? normal(type, 7, 4) : normal(type, 4, 7);
                Matrix c = normal(type, 5, 4);
                double[] left =
                        opA == Blas.Op.NONE ? Operands.values(a) : Reference.transpose(Operands.values(a), 7, 5);
                double[] right =
                        opB == Blas.Op.NONE ? Operands.values(b) : Reference.transpose(Operands.values(b), 4, 7);
                double[] expected = Reference.minus(
                        Reference.scaled(1.5, Reference.product(left, right, 5, 7, 4)),
                        Reference.scaled(0.5, Operands.values(c)));
                device.blas().gemm(opA, opB, 1.5, a, b, -0.5, c);
                assertNear(Operands.values(c), expected, tolerance(type));
            }
        }
    }

    @ParameterizedTest
    @EnumSource(value = ElementType.class, names = "FLOAT.*", mode = EnumSource.Mode.MATCH_ANY)
    void syrkWritesOneTriangle(ElementType type) {
        for (Blas.Op op : Blas.Op.values()) {
            for (Blas.Triangle triangle : Blas.Triangle.values()) {
                Matrix a = normal(type, 5, 6);
                int side = op == Blas.Op.NONE ? 5 : 6;
                Matrix c = normal(type, side, side);
                double[] before = Operands.values(c);
                double[] flipped = Reference.transpose(Operands.values(a), 5, 6);
                double[] full = op == Blas.Op.NONE
                        ? Reference.product(Operands.values(a), flipped, 5, 6, 5)
                        : Reference.product(flipped, Operands.values(a), 6, 5, 6);
                device.blas().syrk(triangle, op, 2, a, 0.5, c);
                double[] after = Operands.values(c);
                for (int i = 0; i < side; i++) {
                    for (int j = 0; j < side; j++) {
                        boolean written = triangle == Blas.Triangle.UPPER ? j >= i : j <= i;
                        int at = i * side + j;
                        double expected = written ? 2 * full[at] + 0.5 * before[at] : before[at];
                        assertThat(after[at]).isCloseTo(expected, within(tolerance(type)));
                    }
                }
            }
        }
    }

    @ParameterizedTest
    @EnumSource(value = ElementType.class, names = "FLOAT.*", mode = EnumSource.Mode.MATCH_ANY)
    void symmReadsOneTriangle(ElementType type) {
        for (Blas.Side side : Blas.Side.values()) {
            for (Blas.Triangle triangle : Blas.Triangle.values()) {
                int n = side == Blas.Side.LEFT ? 4 : 6;
                Matrix a = normal(type, n, n); // not symmetric: the other triangle must not be read
                Matrix b = normal(type, 4, 6);
                Matrix c = normal(type, 4, 6);
                double[] whole = Operands.values(a);
                for (int i = 0; i < n; i++) {
                    for (int j = 0; j < i; j++) {
                        if (triangle == Blas.Triangle.UPPER) {
                            whole[i * n + j] = whole[j * n + i];
                        } else {
                            whole[j * n + i] = whole[i * n + j];
                        }
                    }
                }
                double[] product = side == Blas.Side.LEFT
                        ? Reference.product(whole, Operands.values(b), 4, 4, 6)
                        : Reference.product(Operands.values(b), whole, 4, 6, 6);
                double[] expected = Reference.minus(Reference.scaled(3, product), Operands.values(c));
                device.blas().symm(side, triangle, 3, a, b, -1, c);
                assertNear(Operands.values(c), expected, tolerance(type));
            }
        }
    }

    @ParameterizedTest
    @EnumSource(value = ElementType.class, names = "FLOAT.*", mode = EnumSource.Mode.MATCH_ANY)
    void svdOfWideTallAndSquare(ElementType type) {
        int[][] shapes = {{5, 9}, {9, 5}, {6, 6}, {1, 7}, {7, 1}, {40, 70}};
        for (int[] shape : shapes) {
            int rank = Math.min(shape[0], shape[1]);
            Matrix a = normal(type, shape[0], shape[1]);
            double[] original = Operands.values(a);
            Matrix u = normal(type, shape[0], rank);
            Matrix vt = normal(type, rank, shape[1]);
            Buffer s = operands.allocate("s", type, rank + 1);
            device.solver().svd(a, s, 1, u, vt);
            double[] singular = Operands.values(new Matrix(s, 1, 1, rank, rank));
            double[] scaled = Operands.values(u);
            for (int i = 0; i < scaled.length; i++) {
                scaled[i] *= singular[i % rank];
            }
            double bound = 10 * tolerance(type);
            assertNear(Reference.product(scaled, Operands.values(vt), shape[0], rank, shape[1]), original, bound);
            assertOrthonormal(Reference.transpose(Operands.values(u), shape[0], rank), rank, shape[0], bound);
            assertOrthonormal(Operands.values(vt), rank, shape[1], bound);
            for (int i = 1; i < rank; i++) {
                assertThat(singular[i]).isBetween(0.0, singular[i - 1]);
            }
        }
    }

    @Test
    void svdRefusesNaN() {
        Matrix a = normal(ElementType.FLOAT32, 3, 3);
        a.buffer().copyIn(a.offset(), Float.NaN);
        Buffer s = operands.floats("s", 3);
        assertThatThrownBy(() -> device.solver()
                        .svd(a, s, 0, normal(ElementType.FLOAT32, 3, 3), normal(ElementType.FLOAT32, 3, 3)))
                .isInstanceOf(DeviceException.NotFinite.class);
    }

    @Test
    void shapesThatDoNotFitAndOverlapAreRefused() {
        Matrix a = normal(ElementType.FLOAT32, 3, 4);
        Matrix b = normal(ElementType.FLOAT32, 4, 3);
        Matrix c = normal(ElementType.FLOAT32, 3, 3);
        assertRefused(() -> device.blas().gemm(Blas.Op.NONE, Blas.Op.NONE, 1, a, a, 0, c), "do not fit");
        assertRefused(
                () -> device.blas().gemm(Blas.Op.NONE, Blas.Op.NONE, 1, a, b, 0, normal(ElementType.FLOAT64, 3, 3)),
                "FLOAT");
        assertRefused(() -> device.blas().symm(Blas.Side.LEFT, Blas.Triangle.UPPER, 1, c, c, 0, c), "overlaps");
        Buffer small = operands.floats("small", 8);
        assertRefused(() -> Matrix.of(small, 0, 3, 3), "needs more");
        assertRefused(() -> new Matrix(small, 0, 2, 3, 2), "apart");
        // Two halves of the columns of one matrix are apart, though their rows interleave.
        Buffer square = operands.floats("square", 64);
        assertThat(new Matrix(square, 0, 8, 4, 8).overlaps(new Matrix(square, 4, 8, 4, 8)))
                .isFalse();
        assertThat(new Matrix(square, 0, 8, 4, 8).overlaps(new Matrix(square, 3, 8, 4, 8)))
                .isTrue();
        assertThat(new Matrix(square, 8, 7, 4, 8).overlaps(new Matrix(square, 7, 7, 4, 8)))
                .isTrue();
    }
}
