package org.fedcomuon.device;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.fedcomuon.device.Operands.assertRefused;
import static org.fedcomuon.device.Reference.assertNear;
import static org.fedcomuon.device.Reference.assertOrthonormal;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.fedcomuon.testing.Simulator;
import org.fedcomuon.testing.Trace;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * What cuBLAS and cuSOLVER have beyond {@link BlasIT}, on a simulated device: every way to decompose, batches, narrow
 * precisions, and failures.
 */
class CudaBlasIT {
    private NativeDevice device;
    private Operands operands;

    @BeforeEach
    void open() {
        device = Simulated.open(1); // not the first: a handle on whatever device is current would be found out
        operands = new Operands(device, 5);
    }

    @AfterEach
    void close() {
        if (device != null) {
            Simulator.inject("clear", 1, 0);
            operands.close();
            assertThat(device.liveBytes()).isZero();
            device.close();
            assertThat(Simulator.liveBytes(1)).isZero();
        }
    }

    private Matrix normal(ElementType type, int rows, int cols) {
        return operands.matrix(type, rows, cols, cols + 3);
    }

    private static double tolerance(ElementType type) {
        return type == ElementType.FLOAT32 ? 1e-4 : 1e-12;
    }

    @ParameterizedTest
    @EnumSource(CusolverSolver.Method.class)
    void svdOfWideTallAndSquareByEveryMethod(CusolverSolver.Method method) {
        int[][] shapes = {{5, 9}, {9, 5}, {6, 6}, {1, 7}, {7, 1}, {40, 70}};
        try (CusolverSolver solver = Simulated.solver(device, method)) {
            for (ElementType type : List.of(ElementType.FLOAT32, ElementType.FLOAT64)) {
                for (int[] shape : shapes) {
                    int rank = Math.min(shape[0], shape[1]);
                    Matrix a = normal(type, shape[0], shape[1]);
                    double[] original = Operands.values(a);
                    Matrix again = Matrix.of(operands.allocate("again", type, original.length), 0, shape[0], shape[1]);
                    device.rearrange(
                            new MatrixBatch(a.buffer(), a.offset(), 1, 0, shape[0], shape[1], a.stride(), 1),
                            new MatrixBatch(again.buffer(), 0, 1, original.length, shape[0], shape[1], shape[1], 1));
                    Matrix u = normal(type, shape[0], rank);
                    Matrix vt = normal(type, rank, shape[1]);
                    Buffer s = operands.allocate("s", type, rank + 1);
                    solver.svd(a, s, 1, u, vt);
                    double[] singular = s.toDoubles(1, rank);
                    double[] scaled = Operands.values(u);
                    for (int i = 0; i < scaled.length; i++) {
                        scaled[i] *= singular[i % rank];
                    }
                    double bound = 10 * tolerance(type);
                    assertNear(
                            Reference.product(scaled, Operands.values(vt), shape[0], rank, shape[1]), original, bound);
                    assertOrthonormal(Reference.transpose(Operands.values(u), shape[0], rank), rank, shape[0], bound);
                    assertOrthonormal(Operands.values(vt), rank, shape[1], bound);
                    Buffer alone = operands.allocate("alone", type, rank);
                    solver.singularValues(again, alone, 0);
                    assertNear(alone.toDoubles(0, rank), singular, bound);
                    for (int i = 1; i < rank; i++) {
                        assertThat(singular[i]).isBetween(0.0, singular[i - 1]);
                    }
                }
            }
        }
    }

    @Test
    void manySmallDecompositionsInOneCall() {
        try (CusolverSolver solver = Simulated.solver(device, CusolverSolver.Method.AUTO)) {
            for (int[] shape : new int[][] {{4, 6}, {6, 4}, {32, 32}}) {
                int rows = shape[0];
                int cols = shape[1];
                int rank = Math.min(rows, cols);
                int count = 5;
                Batch a = operands.normal("a", 1, count * rows * cols);
                double[] original = Operands.client(a, 0);
                var matrices = new MatrixBatch(a.buffer(), a.offset(), count, (long) rows * cols, rows, cols, cols, 1);
                Buffer s = operands.floats("s", (long) count * rank);
                var u = MatrixBatch.of(
                        operands.floats("u", (long) count * rows * rank).batch(count, (long) rows * rank), rows, rank);
                var vt = MatrixBatch.of(
                        operands.floats("vt", (long) count * rank * cols).batch(count, (long) rank * cols), rank, cols);
                solver.svd(matrices, s.batch(count, rank), u, vt);
                for (int k = 0; k < count; k++) {
                    double[] scaled = u.buffer().toDoubles((long) k * rows * rank, rows * rank);
                    double[] singular = s.toDoubles((long) k * rank, rank);
                    for (int i = 0; i < scaled.length; i++) {
                        scaled[i] *= singular[i % rank];
                    }
                    double[] right = vt.buffer().toDoubles((long) k * rank * cols, rank * cols);
                    double[] expected = java.util.Arrays.copyOfRange(original, k * rows * cols, (k + 1) * rows * cols);
                    assertNear(Reference.product(scaled, right, rows, rank, cols), expected, 1e-4);
                }
            }
            Batch large = operands.normal("large", 1, 33 * 2);
            var together = new MatrixBatch(large.buffer(), large.offset(), 1, 66, 33, 2, 2, 1);
            assertRefused(
                    () -> solver.svd(together, operands.floats("s", 2).batch(1, 2), together, together), "together");
        }
    }

    @Test
    void thePolarFactorIsThatOfTheDecomposition() {
        try (CusolverSolver solver = Simulated.solver(device, CusolverSolver.Method.AUTO)) {
            assertThat(solver.hasPolarFactor()).isTrue();
            for (int[] shape : new int[][] {{5, 8}, {8, 5}, {6, 6}}) {
                Matrix a = normal(ElementType.FLOAT64, shape[0], shape[1]);
                int rank = Math.min(shape[0], shape[1]);
                double[] original = Operands.values(a);
                solver.polarFactor(a);
                double[] factor = Operands.values(a);
                boolean wide = shape[0] <= shape[1];
                assertOrthonormal(
                        wide ? factor : Reference.transpose(factor, shape[0], shape[1]),
                        rank,
                        Math.max(shape[0], shape[1]),
                        1e-12);
                Matrix b = operands.matrix(ElementType.FLOAT64, shape[0], shape[1], shape[1]);
                b.buffer().copyIn(2, original);
                Matrix u = normal(ElementType.FLOAT64, shape[0], rank);
                Matrix vt = normal(ElementType.FLOAT64, rank, shape[1]);
                solver.svd(b, operands.doubles("s", rank), 0, u, vt);
                assertNear(
                        factor,
                        Reference.product(Operands.values(u), Operands.values(vt), shape[0], rank, shape[1]),
                        1e-11);
            }
        }
    }

    @Test
    void productsOfManyClientsAloneAndTogether() {
        int rows = 12;
        int cols = 9;
        int depth = 20;
        Batch a = operands.normal("a", 3, rows * depth);
        Batch b = operands.normal("b", 3, depth * cols);
        Batch c = operands.normal("c", 3, rows * cols);
        double[][] before = Operands.clients(c);
        var left = MatrixBatch.of(a, rows, depth);
        var out = MatrixBatch.of(c, rows, cols);
        // The right one as the transpose of what is stored.
        var right = MatrixBatch.of(b, cols, depth).transpose();
        try (CublasBlas blas = Simulated.blas(device)) {
            var errors = new ArrayList<Double>();
            for (Precision precision : Precision.values()) {
                for (boolean together : new boolean[] {false, true}) {
                    for (int k = 0; k < 3; k++) {
                        c.buffer().copyIn(c.offset() + k * c.stride(), floats(before[k]));
                    }
                    blas.multiply(precision, together, 2, left, right, -1, out);
                    double worst = 0;
                    for (int k = 0; k < 3; k++) {
                        double[] expected = Reference.minus(
                                Reference.scaled(
                                        2,
                                        Reference.product(
                                                Operands.client(a, k),
                                                Reference.transpose(Operands.client(b, k), cols, depth),
                                                rows,
                                                depth,
                                                cols)),
                                before[k]);
                        double[] actual = Operands.client(c, k);
                        for (int i = 0; i < expected.length; i++) {
                            worst = Math.max(worst, Math.abs(expected[i] - actual[i]));
                        }
                    }
                    errors.add(worst);
                }
            }
            assertThat(errors.get(0)).isEqualTo(errors.get(1)).isLessThan(1e-5);
            assertThat(errors.get(2)).isEqualTo(errors.get(3)).isBetween(1e-4, 2e-2);
            assertThat(errors.get(4)).isEqualTo(errors.get(5)).isBetween(2e-3, 2e-1);
            assertRefused(
                    () -> blas.multiply(
                            Precision.FP32,
                            false,
                            1,
                            new MatrixBatch(a.buffer(), 0, 1, 0, 2, 2, 7, 3),
                            new MatrixBatch(b.buffer(), 0, 1, 0, 2, 2, 2, 1),
                            0,
                            new MatrixBatch(c.buffer(), 0, 1, 0, 2, 2, 2, 1)),
                    "contiguous");
        }
    }

    private static float[] floats(double[] values) {
        var result = new float[values.length];
        for (int i = 0; i < values.length; i++) {
            result[i] = (float) values[i];
        }
        return result;
    }

    @Test
    void largeProductsOfADeviceAreCublas() {
        int side = 104; // over a million multiplications
        Batch a = operands.normal("a", 2, side * side);
        Batch base = operands.normal("base", 2, side * side);
        Buffer out = operands.floats("out", 2L * side * side);
        var matrices = MatrixBatch.of(a, side, side);
        var result = MatrixBatch.of(out.batch(2, (long) side * side), side, side);
        device.blas(); // a fault would hit its start otherwise
        Simulator.inject("cublas", 1, 1);
        assertThatThrownBy(() -> device.multiply(1, matrices, matrices, false, result))
                .isInstanceOf(DeviceException.Fault.class)
                .hasMessageContaining("cudasim:1")
                .hasMessageContaining("104 x 104 by 104 x 104")
                .hasMessageContaining("launch");
        device.multiply(0.5, matrices, matrices.transpose(), 2, MatrixBatch.of(base, side, side), true, result);
        for (int k = 0; k < 2; k++) {
            double[] x = Operands.client(a, k);
            double[] expected = Reference.minus(
                    Reference.scaled(0.5, Reference.product(x, Reference.transpose(x, side, side), side, side, side)),
                    Reference.scaled(-2, Operands.client(base, k)));
            assertNear(out.toDoubles((long) k * side * side, side * side), expected, 1e-3);
        }
        assertRefused(() -> device.multiply(1, matrices, matrices, false, MatrixBatch.of(a.client(0), side, side)), "");
        assertRefused(() -> device.multiply(1, result, result, false, result), "overlaps");
    }

    @Test
    void nanIsRefused() {
        for (ElementType type : List.of(ElementType.FLOAT32, ElementType.FLOAT64)) {
            Matrix a = normal(type, 3, 3);
            if (type == ElementType.FLOAT32) {
                a.buffer().copyIn(a.offset() + 1, Float.NaN);
            } else {
                a.buffer().copyIn(a.offset() + 1, Double.POSITIVE_INFINITY);
            }
            Buffer s = operands.allocate("s", type, 3);
            assertThatThrownBy(() -> device.solver().svd(a, s, 0, normal(type, 3, 3), normal(type, 3, 3)))
                    .isInstanceOf(DeviceException.NotFinite.class);
        }
    }

    @Test
    void shapesThatDoNotFitAreRefused() {
        Matrix a = normal(ElementType.FLOAT32, 3, 4);
        Matrix c = normal(ElementType.FLOAT32, 3, 3);
        assertRefused(() -> device.blas().gemm(Blas.Op.NONE, Blas.Op.NONE, 1, a, a, 0, c), "do not fit");
        assertRefused(() -> device.blas().symm(Blas.Side.LEFT, Blas.Triangle.UPPER, 1, c, c, 0, c), "overlaps");
        assertRefused(
                () -> device.solver().singularValues(a, c.buffer(), c.buffer().length() - 2), "no 3 elements");
        try (NativeDevice other = Simulated.open(0)) {
            assertRefused(
                    () -> other.blas().gemm(Blas.Op.NONE, Blas.Op.NONE, 1, c, c, 0, normal(ElementType.FLOAT32, 3, 3)),
                    "not on cudasim:0");
        }
    }

    @Test
    void twoDevicesOnOneThreadDoNotMixUp() {
        try (NativeDevice other = Simulated.open(0);
                var others = new Operands(other, 6)) {
            Buffer there = others.floats("there", 4);
            there.copyIn(0, 1, 2, 3, 4);
            Matrix x = Matrix.of(there, 0, 2, 2);
            Matrix y = Matrix.of(others.floats("result", 4), 0, 2, 2);
            Buffer here = operands.floats("here", 4);
            here.copyIn(0, 1, 2, 3, 4);
            Matrix z = Matrix.of(here, 0, 2, 2);
            Matrix w = Matrix.of(operands.floats("result", 4), 0, 2, 2);
            for (int i = 0; i < 3; i++) {
                other.blas().gemm(Blas.Op.NONE, Blas.Op.NONE, 1, x, x, i, y);
                device.blas().gemm(Blas.Op.NONE, Blas.Op.NONE, 1, z, z, i, w);
            }
            assertThat(w.buffer().toFloats(0, 4)).isEqualTo(y.buffer().toFloats(0, 4));
            other.solver().singularValues(x, y.buffer(), 0);
            device.solver().singularValues(z, w.buffer(), 0);
            assertThat(w.buffer().toFloats(0, 4)).isEqualTo(y.buffer().toFloats(0, 4));
        }
    }

    @Test
    void failuresOfTheLibrariesHaveTypesAndNames() {
        Matrix a = normal(ElementType.FLOAT32, 3, 4);
        Matrix c = normal(ElementType.FLOAT32, 3, 3);
        device.blas().gemm(Blas.Op.NONE, Blas.Op.TRANSPOSE, 1, a, a, 0, c);
        Simulator.inject("cublas", 1, 1);
        assertThatThrownBy(() -> device.blas().gemm(Blas.Op.NONE, Blas.Op.TRANSPOSE, 1, a, a, 0, c))
                .isInstanceOf(DeviceException.Fault.class)
                .hasMessage("cudasim:1: sgemm of 3 x 4 by 4 x 3: cuBLAS says: the function failed to launch on the GPU"
                        + " (status 13)");
        Buffer s = operands.floats("s", 3);
        device.solver().singularValues(normal(ElementType.FLOAT32, 3, 4), s, 0);
        Simulator.inject("cusolver", 1, 1);
        assertThatThrownBy(() -> device.solver().singularValues(normal(ElementType.FLOAT32, 3, 4), s, 0))
                .isInstanceOf(DeviceException.Fault.class)
                .hasMessage("cudasim:1: gesvdj of 3 x 4: cuSOLVER says: internal error (status 7)");
    }

    @Test
    void aLibraryThatHasNoRoomToStart() {
        try (NativeDevice other = Simulated.open(2)) {
            Simulator.inject("cublas", 2, 1);
            assertThatThrownBy(other::blas)
                    .isInstanceOf(DeviceException.OutOfMemory.class)
                    .hasMessageContaining("cudasim:2");
            other.blas(); // and then it has
            Buffer s = other.allocate("s", ElementType.FLOAT32, 4);
            other.solver();
            Simulator.inject("malloc", 2, 1);
            assertThatThrownBy(() -> other.solver().singularValues(Matrix.of(s, 0, 2, 2), s, 0))
                    .isInstanceOf(DeviceException.OutOfMemory.class);
            s.close();
            assertThat(other.liveBytes()).isZero();
        }
        assertThat(Simulator.liveBytes(2)).isZero();
    }

    /** In the default mode environment variables decide what single precision is. */
    @Test
    void productsAreInPedanticModeUnlessANarrowPrecisionIsAskedFor(@TempDir Path directory) throws Exception {
        int side = 4;
        var a = MatrixBatch.of(operands.normal("a", 2, side * side), side, side);
        var out = MatrixBatch.of(operands.normal("out", 2, side * side), side, side);
        Matrix single = normal(ElementType.FLOAT32, side, side);
        Matrix result = normal(ElementType.FLOAT32, side, side);
        try (CublasBlas blas = Simulated.blas(device)) {
            var modes = new ArrayList<String>();
            for (Precision precision : Precision.values()) {
                for (boolean together : new boolean[] {false, true}) {
                    Path trace = directory.resolve(precision + "-" + together);
                    Simulator.traced(trace, () -> {
                        blas.multiply(precision, together, 1, a, a, 0, out);
                        blas.gemm(Blas.Op.NONE, Blas.Op.NONE, 1, single, single, 0, result);
                        blas.syrk(Blas.Triangle.UPPER, Blas.Op.NONE, 1, single, 0, result);
                        blas.symm(Blas.Side.LEFT, Blas.Triangle.UPPER, 1, single, single, 0, result);
                        device.synchronize();
                        return true;
                    });
                    for (Trace.Work work : Trace.read(trace).work()) {
                        if (work.what().endsWith(" math")) {
                            boolean narrow = work.what().contains("Ex,") && precision != Precision.FP32;
                            assertThat(work.what()).endsWith(narrow ? ", default math" : ", pedantic math");
                            modes.add(work.what());
                        }
                    }
                }
            }
            assertThat(modes).hasSize(3 * (2 + 3) + 3 * (1 + 3));
        }
    }

    @Test
    void titlesSayWhatComputes() {
        try (CublasBlas blas = Simulated.blas(device);
                CusolverSolver solver = Simulated.solver(device, CusolverSolver.Method.AUTO)) {
            assertThat(List.of(blas.title(), solver.title())).containsExactly("cuBLAS 13.0.0", "cuSOLVER 12.2.0");
        }
    }
}
