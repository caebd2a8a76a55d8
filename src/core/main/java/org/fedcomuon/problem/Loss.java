package org.fedcomuon.problem;

/**
 * A client's loss on a sample: g with d = 1, the form that most problems have. A loss that implements
 * {@link HessianProduct} as well allows exact MAML gradients.
 *
 * <p>For example: {@snippet file="org/fedcomuon/SnippetsIT.java" region="problem"}
 *
 * <p>Called by one thread at a time for each client; a loss that several clients share is called by several threads.
 */
@FunctionalInterface
public interface Loss {
    /**
     * Returns the loss at {@code w} on the sample {@code xi}.
     *
     * @param gradient receives its gradient, all of it
     */
    double evaluate(Sample xi, Point w, Point gradient) throws Exception;

    /**
     * Returns the loss {@code exp(loss / lambda)}, continued along its tangent where it would overflow; for
     * {@link Risk#logarithm}.
     */
    default Loss exponential(double lambda) {
        var outer = new ExponentialRisk(lambda);
        return (xi, w, gradient) -> {
            double y = evaluate(xi, w, gradient);
            double slope = outer.derivative(y);
            Floats values = gradient.values();
            for (long i = 0, n = values.length(); i < n; i++) {
                values.set(i, slope * values.get(i));
            }
            return outer.value(y);
        };
    }
}
