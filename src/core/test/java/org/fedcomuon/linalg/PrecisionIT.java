package org.fedcomuon.linalg;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import java.util.function.DoubleUnaryOperator;
import org.fedcomuon.device.Buffer;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.Devices;
import org.fedcomuon.device.ElementType;
import org.fedcomuon.device.InstructionSet;
import org.fedcomuon.device.NewtonSchulzSpec;
import org.fedcomuon.device.Precision;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * Newton-Schulz on the CPU in tf32 and bf16, against the same roundings in double precision. The native tests compare
 * every bit of the kernels; this is what users call.
 */
class PrecisionIT {
    private static final Coefficients JORDAN = Coefficients.jordan(5);
    /** After more steps, sums that round to another neighbour have made two computations independent of each other. */
    private static final Coefficients FEW = Coefficients.jordan(1);

    /** A small matrix, a large one, and Gram forms of a wide and a tall one. */
    @ParameterizedTest
    @CsvSource({
        "40,60,false,tf32",
        "40,60,false,bf16",
        "150,131,false,tf32",
        "150,131,false,bf16",
        "60,130,true,tf32",
        "60,130,true,bf16",
        "270,133,true,bf16"
    })
    void resultsAreThoseOfTheRoundings(int rows, int cols, boolean gram, String name) {
        Precision precision = Precision.parse(name);
        float[] matrix = matrix(rows, cols);
        double[] wanted = reference(matrix, rows, cols, gram, precision);
        double[] single = reference(matrix, rows, cols, gram, Precision.FP32);
        double[] actual = orthogonalized(how(FEW, gram, precision), rows, cols, matrix, 2, InstructionSet.AUTO);
        double rounding = distance(wanted, single);
        // The reference rounds where the CPU does. Sums in float32 round on, and now and then to another neighbour.
        assertThat(distance(actual, wanted)).as("of %g", rounding).isLessThan(rounding / 4);
        assertThat(distance(actual, single)).isBetween(rounding / 2, 2 * rounding);
        if (precision == Precision.BF16) {
            for (double value : actual) {
                assertThat(Float.floatToIntBits((float) value) & 0xffff).isZero();
            }
        }
    }

    @Test
    void bitsAreTheSameForAnyThreadsAndInstructionSets() {
        for (Precision precision : List.of(Precision.TF32, Precision.BF16)) {
            for (boolean gram : new boolean[] {false, true}) {
                for (int[] shape : new int[][] {{40, 61}, {131, 140}}) {
                    float[] matrix = matrix(shape[0], shape[1]);
                    Orthogonalizer how = how(JORDAN, gram, precision);
                    double[] first = orthogonalized(how, shape[0], shape[1], matrix, 1, InstructionSet.AUTO);
                    for (int threads : new int[] {2, 3}) {
                        assertThat(orthogonalized(how, shape[0], shape[1], matrix, threads, InstructionSet.AUTO))
                                .isEqualTo(first);
                    }
                    for (InstructionSet set : fused()) {
                        assertThat(orthogonalized(how, shape[0], shape[1], matrix, 2, set))
                                .as("%s in %s", set, precision)
                                .isEqualTo(first);
                    }
                }
            }
        }
    }

    /** The sets of this CPU that have fused multiply-add. */
    private static List<InstructionSet> fused() {
        try (Device device = Devices.open("cpu:0", 1, InstructionSet.AUTO)) {
            InstructionSet best = device.instructionSet();
            return List.of(InstructionSet.values()).stream()
                    .filter(set -> set.compareTo(InstructionSet.AVX2) >= 0 && set.compareTo(best) <= 0)
                    .toList();
        }
    }

    /** The weights of a method move by the rounded direction, computed in float32. */
    @Test
    void aStepIsInFloat32() {
        int rows = 33;
        int cols = 20;
        float[] matrix = matrix(rows, cols);
        var how = new NewtonSchulz(JORDAN, Precision.BF16);
        double[] direction = orthogonalized(how, rows, cols, matrix, 1, InstructionSet.AUTO);
        List<NewtonSchulzSpec.Block> blocks = List.of(NewtonSchulzSpec.Block.at(0, rows, cols));
        try (Device device = Devices.open("cpu:0", 1, InstructionSet.AUTO);
                Buffer m = device.allocate("M", ElementType.FLOAT32, matrix.length);
                Buffer w = device.allocate("W", ElementType.FLOAT32, matrix.length);
                MuonPlan plan = MuonPlan.of(how, device, 1, blocks, ScaleRule.NONE)) {
            m.copyIn(0, matrix);
            w.copyIn(0, matrix);
            plan.step(m.batch(1, matrix.length), 0.25, w.batch(1, matrix.length));
            float[] stepped = w.toFloats(0, matrix.length);
            for (int i = 0; i < stepped.length; i++) {
                assertThat(stepped[i]).isEqualTo(matrix[i] - 0.25f * (float) direction[i]);
            }
        }
    }

    private static Orthogonalizer how(Coefficients coefficients, boolean gram, Precision precision) {
        return gram ? new GramNewtonSchulz(coefficients, precision) : new NewtonSchulz(coefficients, precision);
    }

    private static float[] matrix(int rows, int cols) {
        return Spectrum.of(rows, cols, Spectrum.logarithmic(Math.min(rows, cols), 3, 30), 7)
                .floats();
    }

    private static double[] orthogonalized(
            Orthogonalizer how, int rows, int cols, float[] matrix, int threads, InstructionSet set) {
        try (Device device = Devices.open("cpu:0", threads, set);
                Buffer m = device.allocate("M", ElementType.FLOAT32, matrix.length);
                Buffer o = device.allocate("O", ElementType.FLOAT32, matrix.length);
                Orthogonalizer.Plan plan = how.plan(device, 1, rows, cols, ElementType.FLOAT32, ScaleRule.NONE)) {
            m.copyIn(0, matrix);
            plan.orthogonalize(m.batch(1, matrix.length), o.batch(1, matrix.length));
            assertThat(plan.path()).endsWith(" in " + how.precision());
            return o.toDoubles(0, matrix.length);
        }
    }

    private static double distance(double[] from, double[] to) {
        double difference = 0;
        double whole = 0;
        for (int i = 0; i < from.length; i++) {
            difference += (from[i] - to[i]) * (from[i] - to[i]);
            whole += from[i] * from[i];
        }
        return Math.sqrt(difference / whole);
    }

    // The iteration in double precision, with what is stored and what is multiplied rounded.

    private static double[] reference(float[] m, int rows, int cols, boolean gram, Precision precision) {
        boolean wide = rows <= cols;
        int side = Math.min(rows, cols);
        int length = Math.max(rows, cols);
        double norm = 0;
        for (float value : m) {
            norm += (double) value * value;
        }
        var x = new double[side][length];
        for (int i = 0; i < side; i++) {
            for (int j = 0; j < length; j++) {
                x[i][j] = stored(precision, m[wide ? i * cols + j : j * cols + i] / Math.sqrt(norm));
            }
        }
        for (NewtonSchulzSpec.Step step : FEW.steps()) {
            double[][] a = product(precision, 1, x, transposed(x), 0, x);
            double[][] b = product(precision, step.c(), a, a, step.b(), a);
            if (gram) {
                for (int i = 0; i < side; i++) {
                    b[i][i] = stored(precision, b[i][i] + step.a());
                }
            }
            x = product(precision, 1, b, x, gram ? 0 : step.a(), x);
        }
        var result = new double[m.length];
        for (int i = 0; i < side; i++) {
            for (int j = 0; j < length; j++) {
                result[wide ? i * cols + j : j * cols + i] = x[i][j];
            }
        }
        return result;
    }

    /** Returns {@code baseFactor base + factor a b}; the base is not used if its factor is 0. */
    private static double[][] product(
            Precision precision, double factor, double[][] a, double[][] b, double baseFactor, double[][] base) {
        DoubleUnaryOperator rounded = precision == Precision.TF32 ? PrecisionIT::toTf32 : value -> value;
        var out = new double[a.length][b[0].length];
        for (int i = 0; i < a.length; i++) {
            for (int k = 0; k < b.length; k++) {
                double left = rounded.applyAsDouble(a[i][k]);
                for (int j = 0; j < out[i].length; j++) {
                    out[i][j] += left * rounded.applyAsDouble(b[k][j]);
                }
            }
            for (int j = 0; j < out[i].length; j++) {
                double value = factor * out[i][j] + (baseFactor == 0 ? 0 : baseFactor * base[i][j]);
                out[i][j] = stored(precision, value);
            }
        }
        return out;
    }

    private static double[][] transposed(double[][] x) {
        var y = new double[x[0].length][x.length];
        for (int i = 0; i < x.length; i++) {
            for (int j = 0; j < y.length; j++) {
                y[j][i] = x[i][j];
            }
        }
        return y;
    }

    private static double stored(Precision precision, double value) {
        return precision == Precision.BF16 ? toBf16(value) : value;
    }

    /** Rounds to 8 bits, ties to even. */
    private static double toBf16(double value) {
        double unit = Math.scalb(1.0, Math.getExponent(value) - 7);
        return Math.rint(value / unit) * unit;
    }

    /** Rounds to 11 bits, ties away from zero. */
    private static double toTf32(double value) {
        double unit = Math.scalb(1.0, Math.getExponent(value) - 10);
        return Math.copySign(Math.floor(Math.abs(value) / unit + 0.5), value) * unit;
    }
}
