package org.fedcomuon.problem;

import java.util.function.DoubleUnaryOperator;

/**
 * The outer function f of one variable, the same for all clients, which is applied to a client's expected loss. An
 * increasing derivative gives clients with larger losses a larger weight. {@link ExponentialRisk} is the paper's.
 * Functions of more than one inner value are {@link OuterFunction}s.
 *
 * <p>Called by many threads concurrently.
 */
public interface Risk extends OuterFunction {
    /** Returns f(y). */
    double value(double y);

    /** Returns f'(y). */
    double derivative(double y);

    @Override
    default int dimension() {
        return 1;
    }

    @Override
    default double value(double[] y) {
        return value(y[0]);
    }

    @Override
    default void gradient(double[] y, double[] into) {
        into[0] = derivative(y[0]);
    }

    /** Returns the risk {@code f(y) = y}: the plain mean over clients. */
    static Risk mean() {
        return named("mean", y -> y, y -> 1);
    }

    /**
     * Returns the risk {@code f(y) = y^power / power} for losses that are not negative: fairness as in q-FFL, with
     * power = q + 1.
     */
    static Risk power(double power) {
        if (!(power >= 1 && power < 100)) {
            throw new IllegalArgumentException("power = %s; from 1 to 100 is possible".formatted(power));
        }
        return named(
                "power(%s)".formatted(power),
                y -> Math.pow(Math.max(y, 0), power) / power,
                y -> Math.pow(Math.max(y, 0), power - 1));
    }

    /**
     * Returns the risk {@code f(y) = lambda log y}, which with {@link Loss#exponential} inside is the KL-regularised
     * worst case over a client's own samples.
     */
    static Risk logarithm(double lambda) {
        ExponentialRisk.requireLambda(lambda);
        // g is positive; an estimate of it need not be.
        return named(
                "logarithm(%s)".formatted(lambda),
                y -> lambda * Math.log(Math.max(y, Float.MIN_NORMAL)),
                y -> lambda / Math.max(y, Float.MIN_NORMAL));
    }

    /** Returns a risk given by its value and its derivative. */
    static Risk of(DoubleUnaryOperator value, DoubleUnaryOperator derivative) {
        return named("custom", value, derivative);
    }

    private static Risk named(String name, DoubleUnaryOperator value, DoubleUnaryOperator derivative) {
        return new Risk() {
            @Override
            public double value(double y) {
                return value.applyAsDouble(y);
            }

            @Override
            public double derivative(double y) {
                return derivative.applyAsDouble(y);
            }

            @Override
            public String toString() {
                return name;
            }
        };
    }
}
