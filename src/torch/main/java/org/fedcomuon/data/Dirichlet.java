package org.fedcomuon.data;

import java.util.SplittableRandom;

/**
 * Draws from a symmetric Dirichlet distribution, as gamma variates divided by their sum. All is computed in logarithms,
 * where variates of a small concentration do not vanish, and by {@link StrictMath} and {@code nextLong} alone, so that
 * results depend neither on the machine nor on the JDK.
 */
final class Dirichlet {
    private Dirichlet() {}

    /** Returns {@code count} shares whose sum is 1, up to rounding. */
    static double[] draw(int count, double concentration, SplittableRandom random) {
        var shares = new double[count];
        double largest = Double.NEGATIVE_INFINITY;
        for (int i = 0; i < count; i++) {
            shares[i] = logGamma(concentration, random);
            largest = Math.max(largest, shares[i]);
        }
        double sum = 0;
        for (int i = 0; i < count; i++) {
            shares[i] = StrictMath.exp(shares[i] - largest);
            sum += shares[i];
        }
        for (int i = 0; i < count; i++) {
            shares[i] /= sum;
        }
        return shares;
    }

    /**
     * Returns the logarithm of a gamma variate, by the method of Marsaglia and Tsang (2000). Below 1, a variate of the
     * shape plus 1 is multiplied by a power of a uniform variate.
     */
    static double logGamma(double shape, SplittableRandom random) {
        if (shape < 1) {
            return logGamma(shape + 1, random) + StrictMath.log(uniform(random)) / shape;
        }
        double d = shape - 1.0 / 3;
        double c = 1 / StrictMath.sqrt(9 * d);
        while (true) {
            double x = normal(random);
            double root = 1 + c * x;
            if (root <= 0) {
                continue;
            }
            double v = root * root * root;
            if (StrictMath.log(uniform(random)) < x * x / 2 + d - d * v + d * StrictMath.log(v)) {
                return StrictMath.log(d) + StrictMath.log(v);
            }
        }
    }

    /** Returns a standard normal variate, by the polar method; the second one of each pair is not used. */
    private static double normal(SplittableRandom random) {
        while (true) {
            double x = 2 * uniform(random) - 1;
            double y = 2 * uniform(random) - 1;
            double square = x * x + y * y;
            if (square > 0 && square < 1) {
                return x * StrictMath.sqrt(-2 * StrictMath.log(square) / square);
            }
        }
    }

    /** Returns a number above 0 and below 1, of 53 bits. */
    private static double uniform(SplittableRandom random) {
        return ((random.nextLong() >>> 12) + 0.5) * 0x1p-52;
    }
}
