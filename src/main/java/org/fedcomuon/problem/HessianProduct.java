package org.fedcomuon.problem;

/**
 * What a {@link Client} implements as well if exact MAML gradients are to be taken through it. Called by the thread
 * that would call the client, never beside another call of it.
 */
public interface HessianProduct {
    /**
     * {@code hess l(w; xi) direction}, where l is the mean of the components of g: the loss itself when d = 1.
     *
     * @param product receives the result
     */
    void hessianProduct(Sample xi, Point w, Point direction, Point product) throws Exception;
}
