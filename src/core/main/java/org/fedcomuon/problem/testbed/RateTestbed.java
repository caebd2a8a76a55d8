package org.fedcomuon.problem.testbed;

import java.util.OptionalDouble;
import java.util.SplittableRandom;
import java.util.random.RandomGenerator;
import org.fedcomuon.problem.Block;
import org.fedcomuon.problem.Client;
import org.fedcomuon.problem.Floats;
import org.fedcomuon.problem.HessianProduct;
import org.fedcomuon.problem.Jacobian;
import org.fedcomuon.problem.Layout;
import org.fedcomuon.problem.Point;
import org.fedcomuon.problem.Problem;
import org.fedcomuon.problem.Sample;

/**
 * A small heterogeneous problem with d = 5 whose gradient is known in closed form, to measure rates of convergence:
 *
 * <pre>
 * g_i(W; xi) = &lt;A_i, W&gt; + c sin&lt;B_i, W&gt; + nu sum_j xi_ij sin&lt;D_ij, W&gt; + s e_i
 * f(y; zeta) = sum_i (sqrt(1 + (y_i - t_i)^2) - 1) + sigma &lt;zeta, y&gt;
 * </pre>
 *
 * with standard normal xi, e and zeta, and A, B, t of each client's own.
 *
 * <p>Immutable.
 */
public final class RateTestbed implements Problem {
    /** Rows of W. */
    public static final int ROWS = 4;

    /** Columns of W. */
    public static final int COLS = 3;

    /** d. */
    public static final int DIMENSION = 5;

    private static final int SIZE = ROWS * COLS;
    private static final int NOISES = 2; // J
    private static final double CURVATURE = 0.2; // c
    private static final double JACOBIAN_NOISE = 0.3; // nu
    private static final double VALUE_NOISE = 0.5; // s
    private static final double OUTER_NOISE = 0.3; // sigma

    private final Layout layout = Layout.of(Block.matrix("W", ROWS, COLS));
    private final Analytic[] analytic;

    /**
     * @param clients K
     * @param seed of the constants A, B, D and t; a run's samples have a seed of their own
     */
    public RateTestbed(int clients, long seed) {
        if (clients < 1) {
            throw new IllegalArgumentException("%d clients; at least 1 is needed".formatted(clients));
        }
        var random = new SplittableRandom(seed);
        double[][][] noise =
                new double[DIMENSION][NOISES][]; // D is shared: the noise is the sample's, not the client's
        for (double[][] row : noise) {
            for (int j = 0; j < NOISES; j++) {
                row[j] = direction(random);
            }
        }
        analytic = new Analytic[clients];
        for (int k = 0; k < clients; k++) {
            analytic[k] = new Analytic(random.split(), noise);
        }
    }

    @Override
    public Layout layout() {
        return layout;
    }

    @Override
    public int innerDimension() {
        return DIMENSION;
    }

    @Override
    public int clients() {
        return analytic.length;
    }

    @Override
    public Client client(int k) {
        return analytic[k];
    }

    /** Returns F(W), without noise. */
    public double objective(double[] w) {
        double sum = 0;
        for (Analytic client : analytic) {
            double[] y = client.meanInner(w);
            for (int i = 0; i < DIMENSION; i++) {
                sum += Math.sqrt(1 + square(y[i] - client.target[i])) - 1;
            }
        }
        return sum / analytic.length;
    }

    /** Returns the gradient of F at W, without noise. */
    public double[] gradient(double[] w) {
        var sum = new double[SIZE];
        for (Analytic client : analytic) {
            double[] y = client.meanInner(w);
            for (int i = 0; i < DIMENSION; i++) {
                double outer = pull(y[i] - client.target[i]);
                double slope = CURVATURE * Math.cos(dot(client.bend[i], w));
                for (int e = 0; e < SIZE; e++) {
                    sum[e] += outer * (client.slope[i][e] + slope * client.bend[i][e]) / analytic.length;
                }
            }
        }
        return sum;
    }

    private static double pull(double distance) {
        return distance / Math.sqrt(1 + square(distance));
    }

    private static double square(double x) {
        return x * x;
    }

    private static double dot(double[] a, double[] w) {
        double sum = 0;
        for (int e = 0; e < SIZE; e++) {
            sum += a[e] * w[e];
        }
        return sum;
    }

    private static double[] direction(RandomGenerator random) {
        var values = new double[SIZE];
        for (int e = 0; e < SIZE; e++) {
            values[e] = random.nextGaussian() / Math.sqrt(SIZE);
        }
        return values;
    }

    /** One client, in closed form. */
    private static final class Analytic implements Client, HessianProduct {
        private final double[][] slope = new double[DIMENSION][]; // A
        private final double[][] bend = new double[DIMENSION][]; // B
        private final double[][][] noise; // D
        private final double[] target = new double[DIMENSION]; // t

        Analytic(RandomGenerator random, double[][][] noise) {
            this.noise = noise;
            for (int i = 0; i < DIMENSION; i++) {
                slope[i] = direction(random);
                bend[i] = direction(random);
                target[i] = random.nextGaussian();
            }
        }

        double[] meanInner(double[] w) {
            var y = new double[DIMENSION];
            for (int i = 0; i < DIMENSION; i++) {
                y[i] = dot(slope[i], w) + CURVATURE * Math.sin(dot(bend[i], w));
            }
            return y;
        }

        @Override
        public void inner(Sample xi, Point w, Floats value, Jacobian jacobian) {
            double[] at = doubles(w);
            double[] y = meanInner(at);
            var draw = new Draw(xi);
            for (int i = 0; i < DIMENSION; i++) {
                Floats gradient = jacobian.component(i).values();
                double outer = CURVATURE * Math.cos(dot(bend[i], at));
                double shift = VALUE_NOISE * draw.value[i];
                var total = new double[SIZE];
                for (int e = 0; e < SIZE; e++) {
                    total[e] = slope[i][e] + outer * bend[i][e];
                }
                for (int j = 0; j < NOISES; j++) {
                    double angle = dot(noise[i][j], at);
                    double strength = JACOBIAN_NOISE * draw.jacobian[i][j];
                    shift += strength * Math.sin(angle);
                    for (int e = 0; e < SIZE; e++) {
                        total[e] += strength * Math.cos(angle) * noise[i][j][e];
                    }
                }
                value.set(i, y[i] + shift);
                for (int e = 0; e < SIZE; e++) {
                    gradient.set(e, total[e]);
                }
            }
        }

        @Override
        public void outerGradient(Sample zeta, Floats y, Floats gradient) {
            RandomGenerator random = zeta.random();
            for (int i = 0; i < DIMENSION; i++) {
                gradient.set(i, pull(y.get(i) - target[i]) + OUTER_NOISE * random.nextGaussian());
            }
        }

        @Override
        public OptionalDouble outerValue(Sample zeta, Floats y) {
            RandomGenerator random = zeta.random();
            double sum = 0;
            for (int i = 0; i < DIMENSION; i++) {
                sum += Math.sqrt(1 + square(y.get(i) - target[i])) - 1 + OUTER_NOISE * random.nextGaussian() * y.get(i);
            }
            return OptionalDouble.of(sum);
        }

        @Override
        public void hessianProduct(Sample xi, Point w, Point direction, Point product) {
            double[] at = doubles(w);
            double[] along = doubles(direction);
            double[] y = meanInner(at);
            var draw = new Draw(xi);
            var total = new double[SIZE];
            for (int i = 0; i < DIMENSION; i++) {
                // Of sum_i f_i(g_i): f_i' hess g_i + f_i'' grad g_i grad g_i^T; the noise of f is linear.
                double[] slopes = slopes(i, at, draw);
                double distance = y[i] + VALUE_NOISE * draw.value[i] - target[i];
                for (int j = 0; j < NOISES; j++) {
                    distance += JACOBIAN_NOISE * draw.jacobian[i][j] * Math.sin(dot(noise[i][j], at));
                }
                double outer = pull(distance);
                bend(total, -CURVATURE * outer, bend[i], at, along);
                for (int j = 0; j < NOISES; j++) {
                    bend(total, -JACOBIAN_NOISE * draw.jacobian[i][j] * outer, noise[i][j], at, along);
                }
                double curve = Math.pow(1 + square(distance), -1.5) * dot(slopes, along);
                for (int e = 0; e < SIZE; e++) {
                    total[e] += curve * slopes[e];
                }
            }
            for (int e = 0; e < SIZE; e++) {
                product.values().set(e, total[e]);
            }
        }

        /** Returns the gradient of component {@code i} of g. */
        private double[] slopes(int i, double[] at, Draw draw) {
            var total = new double[SIZE];
            double outer = CURVATURE * Math.cos(dot(bend[i], at));
            for (int e = 0; e < SIZE; e++) {
                total[e] = slope[i][e] + outer * bend[i][e];
            }
            for (int j = 0; j < NOISES; j++) {
                double strength = JACOBIAN_NOISE * draw.jacobian[i][j] * Math.cos(dot(noise[i][j], at));
                for (int e = 0; e < SIZE; e++) {
                    total[e] += strength * noise[i][j][e];
                }
            }
            return total;
        }

        /** Adds the Hessian of {@code -strength sin<a, W>} times {@code along}. */
        private static void bend(double[] total, double strength, double[] a, double[] at, double[] along) {
            double factor = strength * Math.sin(dot(a, at)) * dot(a, along);
            for (int e = 0; e < SIZE; e++) {
                total[e] += factor * a[e];
            }
        }

        private static double[] doubles(Point point) {
            var values = new double[SIZE];
            for (int e = 0; e < SIZE; e++) {
                values[e] = point.values().get(e);
            }
            return values;
        }
    }

    /** xi and e of one sample. */
    private static final class Draw {
        private final double[][] jacobian = new double[DIMENSION][NOISES];
        private final double[] value = new double[DIMENSION];

        Draw(Sample sample) {
            RandomGenerator random = sample.random();
            for (int i = 0; i < DIMENSION; i++) {
                for (int j = 0; j < NOISES; j++) {
                    jacobian[i][j] = random.nextGaussian();
                }
                value[i] = random.nextGaussian();
            }
        }
    }
}
