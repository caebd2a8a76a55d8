package org.fedcomuon.model;

import org.bytedeco.pytorch.Tensor;
import org.fedcomuon.problem.Layout;

/** A model written as a function: no state of its own, parameters and input in, logits out. Of any thread. */
@SuppressWarnings("exports") // whoever uses tensors has libtorch; others must not need it
public interface Network {
    /** What presets and reports call it. */
    String name();

    /** Its parameters. */
    Layout layout();

    /**
     * The logits of a batch.
     *
     * @param parameters views of the blocks of {@link #layout}
     * @param input the batch, its first dimension counting examples
     * @param dropout what to leave out; {@link Dropout#none} when the model is judged
     */
    Tensor logits(Parameters parameters, Tensor input, Dropout dropout);
}
