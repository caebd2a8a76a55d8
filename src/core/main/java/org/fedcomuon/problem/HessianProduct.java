package org.fedcomuon.problem;

/**
 * Implemented by a {@link Client} that allows exact MAML gradients. Called by one thread at a time, as the client is.
 */
public interface HessianProduct {
    /**
     * Evaluates {@code hess l(w; xi) direction}, where l is the loss that single-level methods descend on: g itself
     * when d = 1, {@code f(g(w; xi))} with the noise of f averaged out when d > 1.
     *
     * @param product receives the result
     */
    void hessianProduct(Sample xi, Point w, Point direction, Point product) throws Exception;
}
