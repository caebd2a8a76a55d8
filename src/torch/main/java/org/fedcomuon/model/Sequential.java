package org.fedcomuon.model;

import java.util.List;
import java.util.OptionalLong;
import org.bytedeco.pytorch.Tensor;
import org.fedcomuon.problem.Block;
import org.fedcomuon.problem.Layout;

/**
 * A network as a list of layers, for models that need no code of their own.
 *
 * <p>For example: {@snippet file="org/fedcomuon/model/SequentialIT.java" region="network"}
 *
 * <p>The blocks of a layer are named by its kind and its number among the layers of that kind, counted from 1 in the
 * order of the list, into residuals and out of them: {@code conv1.weight}, {@code conv1.bias}, {@code conv2.weight}; so
 * a layer without parameters renames nothing. A dense layer or convolution has {@code .weight} and {@code .bias}, a
 * normalisation {@code .gain} and {@code .shift}, an embedding and positions {@code .weight}, and a block with
 * attention {@code attention1.query.weight} and so on. {@link Initialization} goes by these names.
 *
 * <p>Immutable.
 */
@SuppressWarnings("exports") // users of tensors have libtorch; others must not need it
public final class Sequential implements Network {
    private final List<Integer> input;
    private final List<Layer> layers;
    private final List<Stage> stages;
    private final Layout layout;

    /**
     * Creates a network.
     *
     * @param input the shape of an example: {@code (channels, rows, cols)} of an image, {@code (length)} of a vector or
     *     of a sequence of words, {@code (tokens, width)} of a sequence of vectors
     * @param layers the first takes the input, the last one has a logit per class
     * @param classes number of classes
     * @throws IllegalArgumentException when a layer does not fit where it is; the message has its position, from 1, its
     *     kind, what it takes and what would be possible
     */
    public Sequential(List<Integer> input, List<? extends Layer> layers, int classes) {
        this.input = List.copyOf(input);
        this.layers = List.copyOf(layers);
        if (input.isEmpty() || input.size() > 3 || input.stream().anyMatch(side -> side < 1)) {
            throw new IllegalArgumentException(("an input of the shape %s; it has from one to three dimensions, each at"
                            + " least 1: (length), (tokens, width) or (channels, rows, cols)")
                    .formatted(input));
        }
        if (classes < 1) {
            throw new IllegalArgumentException("%d classes; at least 1 is needed".formatted(classes));
        }
        if (layers.isEmpty()) {
            throw new IllegalArgumentException(
                    "a network without layers; dense(%d) is the shortest list".formatted(classes));
        }
        stages = new Stages().of(this.layers, "", this.input);
        requireClasses(classes);
        List<Block> blocks =
                stages.stream().flatMap(stage -> stage.blocks().stream()).toList();
        if (blocks.isEmpty()) {
            throw new IllegalArgumentException(
                    "none of the %d layers has parameters to train; dense(%d) has".formatted(layers.size(), classes));
        }
        layout = Layout.of(blocks);
    }

    private void requireClasses(int classes) {
        List<Integer> output = output();
        String last = "layer %d (%s) is the last one and has the result %s"
                .formatted(layers.size(), layers.getLast().kind(), Stages.describe(output));
        if (output.size() > 2) {
            throw new IllegalArgumentException(
                    "%s, an image; flatten and dense(%d) after it would fit".formatted(last, classes));
        }
        if (output.getLast() != classes) {
            throw new IllegalArgumentException("%s, but there are %d classes; %s would fit"
                    .formatted(
                            last,
                            classes,
                            layers.getLast() instanceof Layer.Dense
                                    ? "dense(%d)".formatted(classes)
                                    : "dense(%d) after it".formatted(classes)));
        }
    }

    /** Returns the shape of an example. */
    public List<Integer> input() {
        return input;
    }

    /**
     * Returns the shape of the logits of an example: {@code (classes)}, or {@code (tokens, classes)} where every token
     * has a label of its own, as when the next word is predicted.
     */
    public List<Integer> output() {
        return stages.getLast().output();
    }

    /** Returns the layers. */
    public List<Layer> layers() {
        return layers;
    }

    @Override
    public String name() {
        return "sequential";
    }

    @Override
    public Layout layout() {
        return layout;
    }

    @Override
    public boolean takesSeveralClients() {
        return true;
    }

    @Override
    public Tensor logits(Parameters parameters, Tensor examples, Dropout dropout) {
        requireInput(examples);
        return Stages.run(stages, parameters, examples, dropout);
    }

    private void requireInput(Tensor examples) {
        boolean same = examples.dim() == input.size() + 1;
        for (int i = 0; same && i < input.size(); i++) {
            same = examples.size(i + 1) == input.get(i);
        }
        if (!same) {
            throw new IllegalArgumentException("a batch of the shape %s for a network whose examples are %s"
                    .formatted(Torch.shape(examples), Stages.describe(input)));
        }
    }

    /** Returns the number of floats that the layers compute or keep, counted layer by layer. */
    @Override
    public OptionalLong activations(int batch) {
        return OptionalLong.of(
                batch * stages.stream().mapToLong(Stage::activations).sum());
    }

    @Override
    public String toString() {
        return "%s -> %s".formatted(Stages.describe(input), layers);
    }
}
