package org.fedcomuon.model;

import java.util.List;
import org.bytedeco.pytorch.Tensor;
import org.fedcomuon.problem.Block;

/**
 * A layer of a {@link Sequential} network at its place.
 *
 * @param output the shape of its result, without the dimension that counts examples
 * @param blocks its parameters
 * @param activations floats that the backward pass needs per example
 * @param forward what it computes
 */
record Stage(List<Integer> output, List<Block> blocks, long activations, Forward forward) {
    /** A function of parameters and input. */
    @FunctionalInterface
    interface Forward {
        Tensor apply(Parameters p, Tensor x, Dropout dropout);
    }
}
