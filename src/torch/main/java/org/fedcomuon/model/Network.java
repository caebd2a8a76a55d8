package org.fedcomuon.model;

import java.util.OptionalLong;
import org.bytedeco.pytorch.Tensor;
import org.fedcomuon.problem.Floats;
import org.fedcomuon.problem.Layout;

/**
 * A model as a function from parameters and input to logits, without state. A network of one's own is a layout and
 * {@link #logits}, written with {@link Layers} and libtorch's functions; {@link Sequential} makes one of a list of
 * layers, and {@link TorchScriptNetwork} of a file.
 *
 * <p>Called by many threads at the same time.
 */
@SuppressWarnings("exports") // users of tensors have libtorch; others must not need it
public interface Network {
    /** Returns its name in reports and messages; that of its class by default. */
    default String name() {
        return getClass().getSimpleName();
    }

    /** Returns its parameters. */
    Layout layout();

    /** Returns the number of parameters. */
    default long parameters() {
        return layout().length();
    }

    /**
     * Returns about how many floats of activations are in memory at once in a gradient of the loss on {@code batch}
     * examples, from which the memory of a run is estimated. Empty, as it is by default, where nobody has counted them:
     * then estimates are lower bounds, and say so; see {@link MemoryEstimate#complete}.
     */
    default OptionalLong activations(int batch) {
        return OptionalLong.empty();
    }

    /**
     * Returns W0: by default {@link Initialization#uniform}, by the names of the blocks.
     *
     * @param seed determines what is random of it
     */
    default Floats initial(long seed) {
        return Initialization.uniform(layout(), seed);
    }

    /**
     * Returns whether {@link #logits} takes parameters of several {@linkplain Parameters#clients clients}, so that all
     * clients of a GPU are differentiated at once; false by default, and then they are one by one. Such a network is
     * given the examples of all clients one after the other, as many of each, and evaluates each with the parameters of
     * its own client. It does so by itself if it is written with {@link Layers} and with functions that treat every
     * example alone, as activations and pooling do, and never asks for a block by {@link Parameters#get}.
     */
    default boolean takesSeveralClients() {
        return false;
    }

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
