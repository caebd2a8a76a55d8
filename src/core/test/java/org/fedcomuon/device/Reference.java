package org.fedcomuon.device;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

/** Vectors and matrices in double precision, for the references of several tests. Nothing here is fast. */
final class Reference {
    private Reference() {}

    static double norm(double[] x) {
        double sum = 0;
        for (double value : x) {
            sum += value * value;
        }
        return Math.sqrt(sum);
    }

    static double[] scaled(double factor, double[] x) {
        var result = new double[x.length];
        for (int j = 0; j < x.length; j++) {
            result[j] = factor * x[j];
        }
        return result;
    }

    static double[] minus(double[] x, double[] y) {
        var result = new double[x.length];
        for (int j = 0; j < x.length; j++) {
            result[j] = x[j] - y[j];
        }
        return result;
    }

    /** C = A B, row-major; a is rows x inner. */
    static double[] product(double[] a, double[] b, int rows, int inner, int cols) {
        var result = new double[rows * cols];
        for (int i = 0; i < rows; i++) {
            for (int j = 0; j < cols; j++) {
                for (int k = 0; k < inner; k++) {
                    result[i * cols + j] += a[i * inner + k] * b[k * cols + j];
                }
            }
        }
        return result;
    }

    static double[] transpose(double[] a, int rows, int cols) {
        var result = new double[a.length];
        for (int i = 0; i < rows; i++) {
            for (int j = 0; j < cols; j++) {
                result[j * rows + i] = a[i * cols + j];
            }
        }
        return result;
    }

    /** X = M / (||M|| divisor), then X = a X + b (X X^T) X + c (X X^T)^2 X for every step. */
    static double[] newtonSchulz(
            Iterable<NewtonSchulzSpec.Step> steps, double divisor, double[] m, int rows, int cols) {
        double norm = norm(m);
        double[] x = scaled(norm == 0 ? 0 : 1 / (norm * divisor), m);
        for (NewtonSchulzSpec.Step step : steps) {
            double[] gram = product(x, transpose(x, rows, cols), rows, cols, rows);
            double[] once = product(gram, x, rows, rows, cols);
            double[] twice = product(gram, once, rows, rows, cols);
            for (int j = 0; j < x.length; j++) {
                x[j] = step.a() * x[j] + step.b() * once[j] + step.c() * twice[j];
            }
        }
        return x;
    }

    static void assertNear(double[] actual, double[] expected, double bound) {
        for (int i = 0; i < expected.length; i++) {
            assertThat(actual[i]).as("element %d", i).isCloseTo(expected[i], within(bound));
        }
    }

    static void assertOrthonormal(double[] rows, int count, int length, double bound) {
        double[] gram = product(rows, transpose(rows, count, length), count, length, count);
        for (int i = 0; i < count; i++) {
            for (int j = 0; j < count; j++) {
                assertThat(gram[i * count + j]).isCloseTo(i == j ? 1 : 0, within(bound));
            }
        }
    }
}
