package org.fedcomuon.method;

import java.util.Arrays;
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
 * The problem that the methods are compared on, twice: in double arrays for the reference, and as a {@link Problem}
 * that rounds the same numbers to floats. All randomness is the sample's, so both see the same noise.
 *
 * <pre>
 * g_i(W; xi) = &lt;A_i, W&gt; + c sin&lt;B_i, W&gt; + nu sum_j xi_ij sin&lt;D_ij, W&gt; + s e_i
 * f(y; zeta) = sum_i (sqrt(1 + (y_i - t_i)^2) - 1) + sigma &lt;zeta, y&gt;
 * </pre>
 */
final class Testbed {
    private static final int J = 2;
    private static final double NU = 0.3;
    private static final double S = 0.5;

    final Layout layout;
    final int n;
    final int d;
    final int clients;
    private final double c;
    private final double sigma;
    private final double[][][] a;
    private final double[][][] b;
    private final double[][][] noise;
    private final double[][] t;

    private Testbed(Layout layout, int d, int clients, double c, double sigma, double[] mask, long seed) {
        this.layout = layout;
        this.n = Math.toIntExact(layout.length());
        this.d = d;
        this.clients = clients;
        this.c = c;
        this.sigma = sigma;
        var random = new SplittableRandom(seed);
        noise = new double[d][J][];
        for (int i = 0; i < d; i++) {
            for (int j = 0; j < J; j++) {
                noise[i][j] = normal(random, mask);
            }
        }
        a = new double[clients][d][];
        b = new double[clients][d][];
        t = new double[clients][d];
        for (int k = 0; k < clients; k++) {
            for (int i = 0; i < d; i++) {
                a[k][i] = normal(random, mask);
                b[k][i] = normal(random, mask);
                t[k][i] = 2 * random.nextGaussian();
            }
        }
    }

    private static double[] normal(RandomGenerator random, double[] mask) {
        var x = new double[mask.length];
        for (int e = 0; e < x.length; e++) {
            x[e] = mask[e] * random.nextGaussian() / Math.sqrt(x.length);
        }
        return x;
    }

    private static double[] everywhere(Layout layout, double value) {
        var mask = new double[Math.toIntExact(layout.length())];
        Arrays.fill(mask, value);
        return mask;
    }

    private static Testbed of(Layout layout, int d, int clients, double c, double sigma, long seed) {
        return new Testbed(layout, d, clients, c, sigma, everywhere(layout, 1), seed);
    }

    /** m = 4, n = 3, d = 5, J = 2, K = 8: where rates are measured. */
    static Testbed rates() {
        return of(Layout.of(Block.matrix("W", 4, 3)), 5, 8, 0.2, 0.3, 11);
    }

    /** The same with an f that has no noise. */
    static Testbed ratesWithPlainF() {
        return of(Layout.of(Block.matrix("W", 4, 3)), 5, 8, 0.2, 0, 11);
    }

    /** The same, of which only the first two rows of W matter: every gradient has rank 2. */
    static Testbed deficient() {
        double[] mask = everywhere(Layout.of(Block.matrix("W", 4, 3)), 1);
        Arrays.fill(mask, 6, 12, 0);
        return new Testbed(Layout.of(Block.matrix("W", 4, 3)), 5, 8, 0.2, 0.3, mask, 17);
    }

    /** A wide matrix, a vector, a tall matrix; d = 2, K = 5, and more curved than the others. */
    static Testbed blocks() {
        return of(blockLayout(), 2, 5, 1.5, 0.3, 12);
    }

    /** The same with a g that does not depend on W. */
    static Testbed flat() {
        return new Testbed(blockLayout(), 2, 5, 1.5, 0.3, everywhere(blockLayout(), 0), 12);
    }

    private static Layout blockLayout() {
        return Layout.of(Block.matrix("first", 3, 5), Block.vector("bias", 4), Block.matrix("second", 5, 2));
    }

    /**
     * d = 1, K = 4, as curved: two blocks of one shape as matrices, a vector, and a matrix that is to move like a
     * vector.
     */
    static Testbed plain() {
        return of(
                Layout.of(
                        Block.matrix("linear", 3, 4),
                        Block.vector("gain", 3),
                        Block.kernel("kernel", 3, 2, 2, 1),
                        Block.matrix("embedding", 2, 3).asVector()),
                1,
                4,
                1.5,
                0.3,
                13);
    }

    /** A matrix too large for the kernel of small ones beside one that is not; d = 2, K = 3. */
    static Testbed large() {
        return of(Layout.of(Block.matrix("large", 130, 136), Block.matrix("small", 6, 5)), 2, 3, 0.2, 0.3, 14);
    }

    private static double dot(double[] x, double[] y) {
        double sum = 0;
        for (int e = 0; e < x.length; e++) {
            sum += x[e] * y[e];
        }
        return sum;
    }

    /** xi_ij in columns 0 to J - 1 of row i, and e_i behind them. */
    private double[][] draw(Sample xi) {
        RandomGenerator random = xi.random();
        var numbers = new double[d][J + 1];
        for (double[] row : numbers) {
            for (int j = 0; j <= J; j++) {
                row[j] = random.nextGaussian();
            }
        }
        return numbers;
    }

    /** g(w; xi) of client k. */
    double[] inner(int k, Sample xi, double[] w) {
        double[][] draw = draw(xi);
        var y = new double[d];
        for (int i = 0; i < d; i++) {
            y[i] = dot(a[k][i], w) + c * Math.sin(dot(b[k][i], w)) + S * draw[i][J];
            for (int j = 0; j < J; j++) {
                y[i] += NU * draw[i][j] * Math.sin(dot(noise[i][j], w));
            }
        }
        return y;
    }

    /** The gradients of the components of g(w; xi), one a row. */
    double[][] jacobian(int k, Sample xi, double[] w) {
        double[][] draw = draw(xi);
        var gradients = new double[d][n];
        for (int i = 0; i < d; i++) {
            double slope = c * Math.cos(dot(b[k][i], w));
            for (int e = 0; e < n; e++) {
                gradients[i][e] = a[k][i][e] + slope * b[k][i][e];
            }
            for (int j = 0; j < J; j++) {
                double factor = NU * draw[i][j] * Math.cos(dot(noise[i][j], w));
                for (int e = 0; e < n; e++) {
                    gradients[i][e] += factor * noise[i][j][e];
                }
            }
        }
        return gradients;
    }

    /** The gradient of f(y; zeta). */
    double[] outerGradient(int k, Sample zeta, double[] y) {
        RandomGenerator random = zeta.random();
        var gradient = new double[d];
        for (int i = 0; i < d; i++) {
            gradient[i] = pull(k, i, y) + sigma * random.nextGaussian();
        }
        return gradient;
    }

    /** f(y; zeta): a sum of square roots, and noise that is linear in y. */
    double outer(int k, Sample zeta, double[] y) {
        RandomGenerator random = zeta.random();
        double sum = 0;
        for (int i = 0; i < d; i++) {
            double distance = y[i] - t[k][i];
            sum += Math.sqrt(1 + distance * distance) - 1 + sigma * random.nextGaussian() * y[i];
        }
        return sum;
    }

    /** The gradient of f at {@code y}, without its noise. */
    private double pull(int k, int i, double[] y) {
        double distance = y[i] - t[k][i];
        return distance / Math.sqrt(1 + distance * distance);
    }

    /**
     * The Hessian of the loss of a sample, times {@code direction}: of g(w; xi) if d = 1, of f(g(w; xi)) without the
     * noise of f otherwise.
     */
    double[] hessianProduct(int k, Sample xi, double[] w, double[] direction) {
        double[][] draw = draw(xi);
        double[] y = inner(k, xi, w);
        double[][] gradients = jacobian(k, xi, w);
        var product = new double[n];
        for (int i = 0; i < d; i++) {
            double outer = d == 1 ? 1 : pull(k, i, y);
            double curve = -c * Math.sin(dot(b[k][i], w)) * dot(b[k][i], direction);
            for (int e = 0; e < n; e++) {
                product[e] += outer * curve * b[k][i][e];
            }
            for (int j = 0; j < J; j++) {
                double noisy = -NU * draw[i][j] * Math.sin(dot(noise[i][j], w)) * dot(noise[i][j], direction);
                for (int e = 0; e < n; e++) {
                    product[e] += outer * noisy * noise[i][j][e];
                }
            }
            if (d > 1) {
                double distance = y[i] - t[k][i];
                double second = Math.pow(1 + distance * distance, -1.5) * dot(gradients[i], direction);
                for (int e = 0; e < n; e++) {
                    product[e] += second * gradients[i][e];
                }
            }
        }
        return product;
    }

    /** A common start of normal numbers that are floats. */
    double[] start() {
        var random = new SplittableRandom(5);
        var w = new double[n];
        for (int e = 0; e < n; e++) {
            w[e] = (float) random.nextGaussian();
        }
        return w;
    }

    /** The same in floats. */
    Problem problem() {
        return Problem.of(layout, d, clients, this::client);
    }

    Client client(int k) {
        return new InFloats(k);
    }

    private final class InFloats implements Client, HessianProduct {
        private final int k;

        InFloats(int k) {
            this.k = k;
        }

        @Override
        public void inner(Sample xi, Point w, Floats value, Jacobian jacobian) {
            double[] at = read(w.values());
            write(Testbed.this.inner(k, xi, at), value);
            double[][] gradients = jacobian(k, xi, at);
            for (int i = 0; i < d; i++) {
                write(gradients[i], jacobian.component(i).values());
            }
        }

        @Override
        public void outerGradient(Sample zeta, Floats y, Floats gradient) {
            write(Testbed.this.outerGradient(k, zeta, read(y)), gradient);
        }

        @Override
        public OptionalDouble outerValue(Sample zeta, Floats y) {
            return OptionalDouble.of(Testbed.this.outer(k, zeta, read(y)));
        }

        @Override
        public void hessianProduct(Sample xi, Point w, Point direction, Point product) {
            write(Testbed.this.hessianProduct(k, xi, read(w.values()), read(direction.values())), product.values());
        }
    }

    private static double[] read(Floats floats) {
        var values = new double[Math.toIntExact(floats.length())];
        for (int i = 0; i < values.length; i++) {
            values[i] = floats.get(i);
        }
        return values;
    }

    private static void write(double[] values, Floats floats) {
        for (int i = 0; i < values.length; i++) {
            floats.set(i, values[i]);
        }
    }
}
