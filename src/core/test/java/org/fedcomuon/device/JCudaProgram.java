package org.fedcomuon.device;

import java.util.Arrays;
import java.util.List;
import org.fedcomuon.linalg.Exact;
import org.fedcomuon.linalg.Orthogonalizer;
import org.fedcomuon.linalg.ScaleRule;

/**
 * Products and decompositions on {@code cudasim:1}, printed to the last bit. A program of its own, since a process
 * takes one binding and keeps it.
 */
final class JCudaProgram {
    private JCudaProgram() {}

    public static void main(String[] arguments) {
        try (var device = (NativeDevice) Devices.open("cudasim:1", 1, InstructionSet.AUTO);
                var operands = new Operands(device, 11)) {
            System.out.println(describe(device));
            for (ElementType type : List.of(ElementType.FLOAT32, ElementType.FLOAT64)) {
                Matrix a = filled(operands, type, 5, 7);
                Matrix b = filled(operands, type, 4, 7);
                Matrix c = filled(operands, type, 5, 4);
                device.blas().gemm(Blas.Op.NONE, Blas.Op.TRANSPOSE, 1.5, a, b, -0.5, c);
                print("gemm", c);
                Matrix square = filled(operands, type, 5, 5);
                device.blas().syrk(Blas.Triangle.UPPER, Blas.Op.NONE, 2, a, 0.5, square);
                print("syrk", square);
                Matrix product = filled(operands, type, 5, 7);
                device.blas().symm(Blas.Side.LEFT, Blas.Triangle.UPPER, 3, square, a, -1, product);
                print("symm", product);
                for (CusolverSolver.Method method :
                        List.of(CusolverSolver.Method.JACOBI, CusolverSolver.Method.QR)) { // what JCuda can do
                    for (boolean wide : new boolean[] {true, false}) {
                        Matrix x = wide ? filled(operands, type, 5, 8) : filled(operands, type, 8, 5);
                        Matrix u = filled(operands, type, x.rows(), 5);
                        Matrix vt = filled(operands, type, 5, x.cols());
                        Buffer s = operands.allocate("s", type, 5);
                        var solver = (CusolverSolver) device.solver();
                        solver.with(method).svd(x, s, 0, u, vt);
                        print("u by " + method, u);
                        print("vt by " + method, vt);
                        System.out.println("s " + Arrays.toString(s.toDoubles(0, 5)));
                    }
                }
            }
            var libraries = (CublasBlas) device.blas();
            for (Precision precision : Precision.values()) {
                for (boolean together : new boolean[] {false, true}) {
                    Batch a = operands.normal("a", 3, 12);
                    Batch b = operands.normal("b", 3, 20);
                    Batch c = operands.normal("c", 3, 15);
                    libraries.multiply(
                            precision,
                            together,
                            2,
                            MatrixBatch.of(a, 3, 4),
                            MatrixBatch.of(b, 4, 5),
                            -1,
                            MatrixBatch.of(c, 3, 5));
                    System.out.println(precision + " " + Arrays.deepToString(Operands.clients(c)));
                }
            }
            Batch small = operands.normal("small", 1, 2 * 12);
            Buffer s = operands.floats("s", 6);
            var u = MatrixBatch.of(operands.floats("u", 24).batch(2, 12), 4, 3);
            var vt = MatrixBatch.of(operands.floats("vt", 18).batch(2, 9), 3, 3);
            ((CusolverSolver) device.solver())
                    .svd(new MatrixBatch(small.buffer(), small.offset(), 2, 12, 4, 3, 3, 1), s.batch(2, 3), u, vt);
            System.out.println("together " + Arrays.toString(s.toDoubles(0, 6))
                    + Arrays.toString(u.buffer().toDoubles(0, 24)));
            try (Orthogonalizer.Plan plan = new Exact().plan(device, 2, 4, 3, ElementType.FLOAT32, ScaleRule.NONE)) {
                System.out.println("path: " + plan.path());
                Batch m = operands.normal("M", 2, 12);
                plan.orthogonalize(m, m);
                System.out.println("exact " + Arrays.deepToString(Operands.clients(m)));
            }
        }
    }

    private static String describe(NativeDevice device) {
        return "library: %s, %s"
                .formatted(((CublasBlas) device.blas()).title(), ((CusolverSolver) device.solver()).title());
    }

    private static Matrix filled(Operands operands, ElementType type, int rows, int cols) {
        Buffer buffer = operands.allocate("matrix", type, (long) rows * (cols + 1));
        for (int i = 0; i < buffer.length(); i++) {
            double value = operands.normal();
            if (type == ElementType.FLOAT32) {
                buffer.copyIn(i, (float) value);
            } else {
                buffer.copyIn(i, value);
            }
        }
        return new Matrix(buffer, 0, rows, cols, cols + 1);
    }

    private static void print(String name, Matrix matrix) {
        System.out.println(name + " "
                + Arrays.toString(
                        matrix.buffer().toDoubles(0, (int) matrix.buffer().length())));
    }
}
