package org.fedcomuon.problem;

import java.util.Arrays;

/**
 * A deterministic outer function {@code f: R^d -> R} with its gradient, the same for all clients. It is the part of a
 * compositional problem that is known in closed form, so that {@code f(E[g])} can be reported and not only its gradient
 * followed. {@link Risk} is the case d = 1.
 *
 * <p>For example, the area under the ROC curve of a score: g has four components, and {@link #areaUnderCurve} combines
 * them.
 *
 * <p>Called by many threads concurrently.
 */
public interface OuterFunction {
    /** Returns d. */
    int dimension();

    /**
     * Returns f(y).
     *
     * @param y d values
     */
    double value(double[] y);

    /**
     * Evaluates the gradient of f at {@code y}.
     *
     * @param y d values
     * @param into receives the d partial derivatives
     */
    void gradient(double[] y, double[] into);

    /**
     * Evaluates the Hessian of f at {@code y} times {@code direction}, which methods of meta learning need. By default
     * it is a central difference of gradients: exact for a quadratic f but for rounding, and otherwise with a relative
     * error of about 1e-10, where floats, which g and W are, have 6e-8.
     *
     * @param y d values
     * @param direction d values
     * @param into receives the d values of the product
     */
    default void hessianProduct(double[] y, double[] direction, double[] into) {
        double size = 0;
        double length = 0;
        for (int i = 0; i < y.length; i++) {
            size = Math.max(size, Math.abs(y[i]));
            length = Math.max(length, Math.abs(direction[i]));
        }
        if (length == 0) {
            Arrays.fill(into, 0);
            return;
        }
        double h = Math.cbrt(Math.ulp(1.0)) * Math.max(size, 1) / length;
        var ahead = new double[y.length];
        var behind = new double[y.length];
        for (int i = 0; i < y.length; i++) {
            ahead[i] = y[i] + h * direction[i];
            behind[i] = y[i] - h * direction[i];
        }
        var before = new double[y.length];
        gradient(ahead, into);
        gradient(behind, before);
        for (int i = 0; i < y.length; i++) {
            into[i] = (into[i] - before[i]) / (2 * h);
        }
    }

    /**
     * Returns the square surrogate of one minus the area under the ROC curve, d = 4. With a score h and examples of a
     * positive and a negative class, {@code g = (E+[h], E-[h], E+[h^2], E-[h^2])} and
     *
     * <pre>
     * f(y) = (y3 - y1^2) + (y4 - y2^2) + (margin - y1 + y2)^2,
     * </pre>
     *
     * <p>which is the mean of {@code (margin - h(x) + h(x'))^2} over all pairs of a positive x and a negative x'. A
     * sample needs examples of both classes.
     *
     * @param margin by which a positive example is to score higher; usually 1
     */
    static OuterFunction areaUnderCurve(double margin) {
        return new AreaUnderCurve(margin);
    }

    /**
     * Returns the mean-variance objective of a portfolio, d = 2: with a return r, {@code g = (E[r], E[r^2])} and
     * {@code f(y) = -y1 + aversion (y2 - y1^2)}.
     *
     * @param aversion to risk: the price of a unit of variance
     */
    static OuterFunction meanVariance(double aversion) {
        return new MeanVariance(aversion);
    }

    /**
     * Returns the squared distance of the two halves of y, d = 2 {@code half}. In policy evaluation the first half are
     * the values of the states and the second half the expected rewards plus discounted values of the states that
     * follow.
     *
     * @param half number of elements of a half
     */
    static OuterFunction squaredDistance(int half) {
        return new SquaredDistance(half);
    }

    /**
     * Returns the dual form of the KL-regularised worst case over clients, d = 2: {@code y = (l, t)} with a client's
     * loss l and a parameter t that all clients share, and {@code f(l, t) = t + lambda (exp((l - t) / lambda) - 1)}.
     *
     * <p>The mean over clients is smallest at {@code t = lambda log mean exp(l_k / lambda)}, where it has the same
     * value: {@link ExponentialRisk#worstCase}. There the weights {@code exp((l_k - t) / lambda)} of the clients have
     * mean one, whatever the size of the losses. Those of {@link ExponentialRisk} do not: they grow and shrink with
     * them.
     *
     * @param lambda large values approach the mean, small ones the worst client
     * @param exponentCap beyond it the exponential continues along its tangent, as in {@link ExponentialRisk}
     */
    static OuterFunction klDual(double lambda, double exponentCap) {
        return new KlDual(new ExponentialRisk(lambda, exponentCap));
    }

    /**
     * Returns the dual form of the conditional value at risk over clients, d = 2: {@code y = (l, t)} with a client's
     * loss l and a parameter t that all clients share, and {@code f(l, t) = t + softplus(l - t) / (1 - level)}.
     * Minimised over t, its mean over clients is the mean of the largest losses, a share of {@code 1 - level} of all; t
     * is then the smallest of them.
     *
     * @param level from 0, the mean, to below 1, the worst client
     * @param smoothing s of {@code softplus(x) = s log(1 + exp(x / s))}, which exceeds max(x, 0) by s log 2 at most;
     *     small compared with losses
     */
    static OuterFunction cvarDual(double level, double smoothing) {
        return new CvarDual(level, smoothing);
    }
}
