package org.fedcomuon.problem;

/**
 * One participant's part of the problem: {@code f(E[g(W; xi)])}, by its values and derivatives on samples.
 *
 * <p>For example: {@snippet file="org/fedcomuon/SnippetsIT.java" region="client"}
 *
 * <p>Called by one thread at a time, not always the same; different clients are called at the same time. The same
 * arguments must give the same bits. Views are valid during the call only. An exception or a result that is not finite
 * is a fault of this client, and what happens then is the federation's policy.
 */
public interface Client {
    /**
     * Whether points (W, gradients, directions: not the d values of g and f) may be memory of {@code device}, such as
     * {@code cuda:0}, for a library that computes there; everything written must be done when the call returns. All
     * clients of a device must agree, or none is given any. By default points are copied to the host before a call and
     * from it after; on {@code cpu:N} all memory is the host's, and nobody is asked.
     */
    default boolean acceptsMemoryOf(String device) {
        return false;
    }

    /**
     * {@code g(w; xi)} and its Jacobian.
     *
     * @param value receives the d components of g
     * @param jacobian receives their gradients
     */
    void inner(Sample xi, Point w, Floats value, Jacobian jacobian) throws Exception;

    /**
     * The same at two points on one sample: the same data, the same dropout mask. Override it where the two can share
     * work, such as loading a batch.
     */
    default void innerAtTwo(
            Sample xi, Point w, Floats value, Jacobian jacobian, Point wOld, Floats valueOld, Jacobian jacobianOld)
            throws Exception {
        inner(xi, w, value, jacobian);
        inner(xi, wOld, valueOld, jacobianOld);
    }

    /**
     * The gradient of f(y; zeta) with respect to y.
     *
     * @param gradient receives its d components
     */
    void outerGradient(Sample zeta, Floats y, Floats gradient) throws Exception;
}
