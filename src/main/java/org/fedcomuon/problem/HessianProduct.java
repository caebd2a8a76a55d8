package org.fedcomuon.problem;

/** What a {@link Client} implements as well if exact MAML gradients are to be taken through it. */
public interface HessianProduct {
    /**
     * {@code hess l(w; xi) direction}, where l is the mean of the components of g: the loss itself when d = 1.
     *
     * @param product receives the result
     */
    void hessianProduct(Sample xi, Point w, Point direction, Point product) throws Exception;
}
