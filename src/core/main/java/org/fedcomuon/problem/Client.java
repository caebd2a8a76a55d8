package org.fedcomuon.problem;

import java.util.OptionalDouble;

/**
 * One client's part of the problem, {@code f(E[g(W; xi)])}: an oracle of values and derivatives on samples.
 *
 * <p>For example: {@snippet file="org/fedcomuon/SnippetsIT.java" region="client"}
 *
 * <p>Called by one thread at a time, not always the same; different clients are called concurrently. The same arguments
 * must give bit-identical results. Views are valid during the call only, and are memory of the host: on a GPU values
 * are copied before a call and after it, unless the problem has a {@link JointOracle}. An exception or a result that is
 * not finite is a fault of this client, which the federation handles by its policy.
 */
public interface Client {
    /**
     * Evaluates {@code g(w; xi)} and its Jacobian.
     *
     * @param value receives the d components of g
     * @param jacobian receives their gradients
     */
    void inner(Sample xi, Point w, Floats value, Jacobian jacobian) throws Exception;

    /**
     * Evaluates the same at two points on one sample: the same data, the same dropout mask. Override it where the two
     * can share work, such as loading a batch.
     */
    default void innerAtTwo(
            Sample xi, Point w, Floats value, Jacobian jacobian, Point wOld, Floats valueOld, Jacobian jacobianOld)
            throws Exception {
        inner(xi, w, value, jacobian);
        inner(xi, wOld, valueOld, jacobianOld);
    }

    /**
     * Evaluates the gradient of f(y; zeta) with respect to y.
     *
     * @param gradient receives its d components
     */
    void outerGradient(Sample zeta, Floats y, Floats gradient) throws Exception;

    /**
     * Returns {@code f(y; zeta)} where it is known, so that the objective can be reported and the gradient be checked;
     * empty by default. No method needs it.
     */
    default OptionalDouble outerValue(Sample zeta, Floats y) throws Exception {
        return OptionalDouble.empty();
    }
}
