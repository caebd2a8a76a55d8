package org.fedcomuon.problem;

import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.random.RandomGenerator;

/**
 * Heterogeneous quadratics with a minimum known in closed form, to test methods on:
 *
 * <pre>
 * l_k(W; xi) = 1/2 ||A_k (W - B_k)||^2 + sigma &lt;xi, W&gt;
 * </pre>
 *
 * with diagonal A_k, so that clients disagree on the minimum and on how steep it is, and standard normal xi.
 *
 * <p>Immutable.
 */
public final class MatrixQuadratics implements Problem {
    private final int rows;
    private final int cols;
    private final double noise;
    private final Layout layout;
    private final List<Quadratic> losses = new ArrayList<>();
    private final Problem problem;

    /**
     * @param heterogeneity the distance between the clients' own minima
     * @param noise sigma
     * @param risk f; {@link Risk#mean} for the plain sum
     * @param seed of A and B; a run's samples have a seed of their own
     */
    public MatrixQuadratics(int clients, int rows, int cols, double heterogeneity, double noise, Risk risk, long seed) {
        this.rows = rows;
        this.cols = cols;
        this.noise = noise;
        layout = Layout.of(Block.matrix("W", rows, cols));
        var random = new SplittableRandom(seed);
        double[] common = gaussian(random, rows * cols);
        for (int k = 0; k < clients; k++) {
            var steepness = new double[rows];
            for (int i = 0; i < rows; i++) {
                steepness[i] = random.nextDouble(0.25, 1.0);
            }
            double[] minimum = gaussian(random, rows * cols);
            for (int i = 0; i < minimum.length; i++) {
                minimum[i] = common[i] + heterogeneity * minimum[i];
            }
            losses.add(new Quadratic(steepness, minimum));
        }
        problem = Problem.ofLosses(layout, losses, risk);
    }

    @Override
    public Layout layout() {
        return layout;
    }

    @Override
    public int innerDimension() {
        return 1;
    }

    @Override
    public int clients() {
        return losses.size();
    }

    @Override
    public Client client(int k) {
        return problem.client(k);
    }

    /** Returns the minimum of the mean of the losses. */
    public double[] minimum() {
        var at = new double[rows * cols];
        for (int i = 0; i < at.length; i++) {
            double weighted = 0;
            double weight = 0;
            for (Quadratic loss : losses) {
                weighted += loss.steepness[i / cols] * loss.minimum[i];
                weight += loss.steepness[i / cols];
            }
            at[i] = weighted / weight;
        }
        return at;
    }

    /** Returns the mean of the losses, without noise. */
    public double objective(double[] w) {
        double sum = 0;
        for (Quadratic loss : losses) {
            for (int i = 0; i < w.length; i++) {
                double distance = w[i] - loss.minimum[i];
                sum += 0.5 * loss.steepness[i / cols] * distance * distance;
            }
        }
        return sum / losses.size();
    }

    private static double[] gaussian(RandomGenerator random, int length) {
        var values = new double[length];
        for (int i = 0; i < length; i++) {
            values[i] = random.nextGaussian();
        }
        return values;
    }

    /** One client's; steepness is the diagonal of A^T A. */
    private final class Quadratic implements Loss, HessianProduct {
        private final double[] steepness;
        private final double[] minimum;

        Quadratic(double[] steepness, double[] minimum) {
            this.steepness = steepness;
            this.minimum = minimum;
        }

        @Override
        public double evaluate(Sample xi, Point w, Point gradient) {
            RandomGenerator random = xi.random();
            double value = 0;
            for (int i = 0; i < minimum.length; i++) {
                double at = w.values().get(i);
                double distance = at - minimum[i];
                double push = noise * random.nextGaussian();
                value += 0.5 * steepness[i / cols] * distance * distance + push * at;
                gradient.values().set(i, steepness[i / cols] * distance + push);
            }
            return value;
        }

        @Override
        public void hessianProduct(Sample xi, Point w, Point direction, Point product) {
            for (int i = 0; i < minimum.length; i++) {
                product.values().set(i, steepness[i / cols] * direction.values().get(i));
            }
        }
    }
}
