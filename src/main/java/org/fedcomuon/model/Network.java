package org.fedcomuon.model;

import org.bytedeco.pytorch.Tensor;
import org.fedcomuon.problem.Layout;

/**
 * A model written as a function: no state of its own, parameters and input in, logits out. Called by many threads at
 * once.
 */
@SuppressWarnings("exports") // whoever uses tensors has libtorch; others must not need it
public interface Network {
    /** What presets and reports call it. */
    String name();

    /** Its parameters. */
    Layout layout();

    /** How many parameters it has. */
    default long parameters() {
        return layout().length();
    }

    /**
     * About how many floats of activations are in memory at once in a gradient of the loss on {@code batch} examples;
     * see {@link MemoryEstimate}.
     */
    long activations(int batch);

    /**
     * The logits of a batch: the first dimension counts examples, the last classes; between them, if anything, the
     * predictions of an example.
     *
     * @param parameters views of the blocks of {@link #layout}
     * @param input the batch, its first dimension counting examples
     * @param dropout what to leave out; {@link Dropout#none} when the model is judged
     */
    Tensor logits(Parameters parameters, Tensor input, Dropout dropout);

    /** The same, calling the operators that it calls on a GPU wherever it is: for those who count them. */
    default Network asOnGpu() {
        return this;
    }
}
