package org.fedcomuon.problem;

/**
 * {@code f(y) = exp(y / lambda)}: minimising its mean over clients is minimising the KL-regularised worst case over
 * clients, {@code lambda log mean exp(y_k / lambda)}; see {@link #worstCase}.
 *
 * <p>Beyond {@code exponentCap} the function continues along its tangent: the worst client keeps the largest weight,
 * but the weight does not grow further, and nothing overflows. A cap of 2 lets methods without orthogonalized steps
 * train where the literal exponential makes them diverge.
 *
 * @param lambda large values approach the mean, small ones the worst client
 * @param exponentCap the largest exponent that is taken literally
 */
public record ExponentialRisk(double lambda, double exponentCap) implements Risk {
    /** Far beyond any useful weight, and still a float after being multiplied by a gradient. */
    public static final double LARGEST_EXPONENT = 60;

    public ExponentialRisk {
        requireLambda(lambda);
        if (!(exponentCap > 0 && exponentCap <= LARGEST_EXPONENT)) {
            throw new IllegalArgumentException(
                    "exponentCap = %s; more than 0 and up to %s is possible".formatted(exponentCap, LARGEST_EXPONENT));
        }
    }

    /** Creates one whose exponent is capped at {@link #LARGEST_EXPONENT}. */
    public ExponentialRisk(double lambda) {
        this(lambda, LARGEST_EXPONENT);
    }

    @Override
    public double value(double y) {
        double exponent = y / lambda;
        return exponent <= exponentCap ? Math.exp(exponent) : Math.exp(exponentCap) * (1 + exponent - exponentCap);
    }

    @Override
    public double derivative(double y) {
        return Math.exp(Math.min(y / lambda, exponentCap)) / lambda;
    }

    /** Returns {@code lambda log mean exp(y_k / lambda)} over the clients' losses, for losses of any size. */
    public double worstCase(double... losses) {
        double largest = Double.NEGATIVE_INFINITY;
        for (double loss : losses) {
            largest = Math.max(largest, loss);
        }
        double sum = 0;
        for (double loss : losses) {
            sum += Math.exp((loss - largest) / lambda);
        }
        return largest + lambda * Math.log(sum / losses.length);
    }

    static void requireLambda(double lambda) {
        if (!(lambda >= 1e-6 && lambda <= 1e6)) {
            throw new IllegalArgumentException("lambda = %s; from 1e-6 to 1e6 is possible".formatted(lambda));
        }
    }
}
