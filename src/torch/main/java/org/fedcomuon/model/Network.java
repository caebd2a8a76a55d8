package org.fedcomuon.model;

import org.bytedeco.pytorch.Tensor;
import org.fedcomuon.problem.Layout;

/**
 * A model as a function from parameters and input to logits, without state. Called by many threads at the same time.
 */
@SuppressWarnings("exports") // users of tensors have libtorch; others must not need it
public interface Network {
    /** Returns its name in presets and reports. */
    String name();

    /** Returns its parameters. */
    Layout layout();

    /** Returns the number of parameters. */
    default long parameters() {
        return layout().length();
    }

    /**
     * Returns about how many floats of activations are in memory at once in a gradient of the loss on {@code batch}
     * examples; see {@link MemoryEstimate}.
     */
    long activations(int batch);

    /**
     * Returns the logits of a batch: the first dimension counts examples, the last classes; between them, if anything,
     * the predictions of an example.
     *
     * @param parameters views of the blocks of {@link #layout}
     * @param input the batch, its first dimension counting examples
     * @param dropout the masks; {@link Dropout#none} when the model is judged
     */
    Tensor logits(Parameters parameters, Tensor input, Dropout dropout);
}
