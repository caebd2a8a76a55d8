package org.fedcomuon.device;

import java.util.Arrays;

/** The weights of the clients in a mean, as its steps take them. Thread-safe. */
public final class MeanWeights {
    /** The most terms that a mean may have: its sum then fits 63 bits with 42 bits for each. */
    public static final long MOST_TERMS = 1L << 20;

    private MeanWeights() {}

    /**
     * Returns the weights times the power of two that brings the largest into (1/2, 1]. Products with them are exact
     * where those with the given ones are, and the mean is the same. All clients of a mean are scaled together.
     *
     * @param weights not negative, with a positive sum
     * @throws DeviceException.InvalidOperand when they are not
     */
    public static double[] scaled(double... weights) {
        double largest = 0;
        for (int k = 0; k < weights.length; k++) {
            if (!(weights[k] >= 0 && Double.isFinite(weights[k]))) {
                throw new DeviceException.InvalidOperand("weight %d is %s, not a number >= 0".formatted(k, weights[k]));
            }
            largest = Math.max(largest, weights[k]);
        }
        if (largest == 0) {
            throw new DeviceException.InvalidOperand("the weights sum to 0");
        }
        int exponent = exponentAbove(largest);
        return Arrays.stream(weights)
                .map(weight -> Math.scalb(weight, -exponent))
                .toArray();
    }

    /** Returns the smallest e with {@code value <= 2^e}. */
    private static int exponentAbove(double value) {
        boolean subnormal = value < Double.MIN_NORMAL;
        double normal = subnormal ? value * 0x1p60 : value;
        int exponent = Math.getExponent(normal) + (normal == Math.scalb(1.0, Math.getExponent(normal)) ? 0 : 1);
        return subnormal ? exponent - 60 : exponent;
    }

    /** Returns the sum of the weights, in the order of the clients, by which the last step divides. */
    public static double total(double... weights) {
        double total = 0;
        for (double weight : weights) {
            total += weight;
        }
        return total;
    }
}
