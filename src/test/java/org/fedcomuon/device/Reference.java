package org.fedcomuon.device;

import java.util.Comparator;
import java.util.stream.IntStream;

/** The update rules in double precision, one client at a time, as they stand in the paper. Nothing here is fast. */
final class Reference {
    private Reference() {}

    static double[] ema(double a, double[] x, double[] y) {
        var result = new double[y.length];
        for (int j = 0; j < y.length; j++) {
            result[j] = a * x[j] + (1 - a) * y[j];
        }
        return result;
    }

    /** M = (1-b) M + b sum_i v_i H_i. */
    static double[] compose(double b, double[] h, double[] v, double[] m) {
        var result = new double[m.length];
        for (int j = 0; j < m.length; j++) {
            double sum = 0;
            for (int i = 0; i < v.length; i++) {
                sum += v[i] * h[i * m.length + j];
            }
            result[j] = (1 - b) * m[j] + b * sum;
        }
        return result;
    }

    static double[] storm(double g, double[] gNew, double[] gOld, double[] h) {
        var result = new double[h.length];
        for (int j = 0; j < h.length; j++) {
            result[j] = gNew[j] + (1 - g) * (h[j] - gOld[j]);
        }
        return result;
    }

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

    /** The second moment after a change of {@code delta}. */
    static double[] secondMoment(AdaptiveRule rule, double beta2, double[] delta, double[] v) {
        var result = new double[v.length];
        for (int j = 0; j < v.length; j++) {
            double square = delta[j] * delta[j];
            result[j] = switch (rule) {
                case ADAM -> beta2 * v[j] + (1 - beta2) * square;
                case YOGI -> v[j] - (1 - beta2) * square * Math.signum(v[j] - square);
            };
        }
        return result;
    }

    /** w + eta m / (sqrt(v) + epsilon), with the moments after the change. */
    static double[] adaptiveStep(double epsilon, double eta, double[] m, double[] v, double[] w) {
        var result = new double[w.length];
        for (int j = 0; j < w.length; j++) {
            result[j] = w[j] + eta * m[j] / (Math.sqrt(v[j]) + epsilon);
        }
        return result;
    }

    static double[] topK(int k, double[] x) {
        var result = new double[x.length];
        IntStream.range(0, x.length)
                .boxed()
                .sorted(Comparator.comparingDouble((Integer j) -> -Math.abs(x[j]))
                        .thenComparing(j -> j))
                .limit(k)
                .forEach(j -> result[j] = x[j]);
        return result;
    }

    static double[] mean(double[] weights, double[][] x) {
        var result = new double[x[0].length];
        double total = 0;
        for (int k = 0; k < x.length; k++) {
            total += weights[k];
            for (int j = 0; j < result.length; j++) {
                result[j] += weights[k] * x[k][j];
            }
        }
        return scaled(1 / total, result);
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
    static double[] newtonSchulz(Iterable<SchulzStep> steps, double divisor, double[] m, int rows, int cols) {
        double norm = norm(m);
        double[] x = scaled(norm == 0 ? 0 : 1 / (norm * divisor), m);
        for (SchulzStep step : steps) {
            double[] gram = product(x, transpose(x, rows, cols), rows, cols, rows);
            double[] once = product(gram, x, rows, rows, cols);
            double[] twice = product(gram, once, rows, rows, cols);
            for (int j = 0; j < x.length; j++) {
                x[j] = step.a() * x[j] + step.b() * once[j] + step.c() * twice[j];
            }
        }
        return x;
    }
}
