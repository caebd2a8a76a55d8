package org.fedcomuon.model;

import static java.util.stream.Collectors.joining;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Supplier;
import org.bytedeco.pytorch.Scalar;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.global.torch;
import org.fedcomuon.problem.Block;

/** Puts layers at their places: infers shapes, names parameters, and says which layer does not fit where it is. */
final class Stages {
    private static final int IMAGE = 3;
    private static final int TOKENS = 2;

    /** How many layers of each kind there have been, which is what they are named by. */
    private final Map<String, Integer> counts = new HashMap<>();

    /** A layer, where it is in the list, and the shape of its input. */
    private record Place(Layer layer, String position, List<Integer> in) {
        @SuppressWarnings("AnnotateFormatMethod") // the annotation would be a dependency of its own
        IllegalArgumentException wrong(String problem, Object... values) {
            return new IllegalArgumentException("layer %s (%s), whose input is %s: %s"
                    .formatted(position, layer.kind(), describe(in), problem.formatted(values)));
        }

        @SuppressWarnings("AnnotateFormatMethod")
        void require(boolean condition, String problem, Object... values) {
            if (!condition) {
                throw wrong(problem, values);
            }
        }

        void requireImage() {
            require(in.size() == IMAGE, "it takes images of channels x rows x cols");
        }

        void requireTokens() {
            require(in.size() == TOKENS, "it takes tokens, as an embedding makes them: tokens x width");
        }

        void requireProbability(double p) {
            require(p >= 0 && p < 1, "a dropout of %s; from 0 to below 1 is possible", p);
        }

        int last() {
            return in.getLast();
        }
    }

    /** Returns a shape such as {@code 3 x 32 x 32}. */
    static String describe(List<Integer> shape) {
        return shape.stream().map(String::valueOf).collect(joining(" x "));
    }

    static long size(List<Integer> shape) {
        long size = 1;
        for (int side : shape) {
            size = Math.multiplyExact(size, side);
        }
        return size;
    }

    /**
     * Returns the layers of a list at their places.
     *
     * @param prefix of their positions, empty for those of the network itself
     */
    List<Stage> of(List<Layer> layers, String prefix, List<Integer> input) {
        var stages = new ArrayList<Stage>();
        List<Integer> shape = input;
        for (int i = 0; i < layers.size(); i++) {
            var place = new Place(layers.get(i), prefix + (i + 1), shape);
            try {
                stages.add(of(place));
                size(stages.getLast().output());
            } catch (ArithmeticException _) {
                throw place.wrong("its result has too many elements");
            }
            shape = stages.getLast().output();
        }
        return stages;
    }

    private Stage of(Place at) {
        return switch (at.layer()) {
            case Layer.Conv conv -> convolution(conv, at);
            case Layer.Dense dense -> dense(dense, at);
            case Layer.Relu _ -> elementwise(at, (p, x, dropout) -> torch.relu(x));
            case Layer.Gelu _ -> elementwise(at, (p, x, dropout) -> torch.gelu(x));
            case Layer.Tanh _ -> elementwise(at, (p, x, dropout) -> torch.tanh(x));
            case Layer.MaxPool pool -> {
                List<Integer> out = pooled(at, pool.kernel(), pool.stride());
                // The largest elements, and where they are.
                yield new Stage(
                        out,
                        List.of(),
                        2 * size(out),
                        (p, x, dropout) -> Layers.maxPool(x, pool.kernel(), pool.stride()));
            }
            case Layer.AvgPool pool -> {
                List<Integer> out = pooled(at, pool.kernel(), pool.stride());
                yield new Stage(
                        out,
                        List.of(),
                        size(out),
                        (p, x, dropout) -> Layers.averagePool(x, pool.kernel(), pool.stride()));
            }
            case Layer.Flatten _ ->
                new Stage(
                        List.of(Math.toIntExact(size(at.in()))),
                        List.of(),
                        0,
                        (p, x, dropout) -> x.flatten(1, -1)); // a view
            case Layer.LayerNorm _ -> layerNorm(at);
            case Layer.GroupNorm norm -> groupNorm(norm, at);
            case Layer.Dropout drop -> {
                at.requireProbability(drop.p());
                long size = size(at.in());
                // A mask has one byte per element.
                yield new Stage(
                        at.in(),
                        List.of(),
                        drop.p() == 0 ? 0 : size + Math.ceilDiv(size, Float.BYTES),
                        // A tensor of its own: what comes back is released like any other result.
                        (p, x, dropout) -> dropout.apply(new Tensor(x), drop.p()));
            }
            case Layer.Embedding embedding -> embedding(embedding, at);
            case Layer.Positions _ -> {
                at.requireTokens();
                String name = name(at) + ".weight";
                yield new Stage(
                        at.in(),
                        List.of(Block.matrix(name, at.in().getFirst(), at.last())
                                .asVector()),
                        size(at.in()),
                        (p, x, dropout) -> Layers.plus(p, name, x));
            }
            case Layer.Attention attention -> attention(attention, at);
            case Layer.Residual residual -> residual(residual, at);
            case Layer.MeanTokens _ -> {
                at.requireTokens();
                yield new Stage(List.of(at.last()), List.of(), at.last(), (p, x, dropout) -> x.mean(1));
            }
        };
    }

    /** Returns the name of the next layer of this kind, such as {@code conv2}. */
    private String name(Place at) {
        String kind = at.layer().kind();
        return kind + counts.merge(kind, 1, Integer::sum);
    }

    private static Stage elementwise(Place at, Stage.Forward forward) {
        return new Stage(at.in(), List.of(), size(at.in()), forward);
    }

    private Stage convolution(Layer.Conv conv, Place at) {
        at.requireImage();
        at.require(conv.out() >= 1, "%d channels; at least 1 is possible", conv.out());
        at.require(
                conv.padding() >= 0 && conv.padding() < Math.max(conv.kernel(), 1),
                "a padding of %d; from 0 to %d is possible with a kernel of %d",
                conv.padding(),
                conv.kernel() - 1,
                conv.kernel());
        List<Integer> sides = windows(at, conv.kernel(), conv.stride(), conv.padding());
        List<Integer> out = List.of(conv.out(), sides.getFirst(), sides.getLast());
        String name = name(at);
        return new Stage(
                out,
                blocks(at, () -> Layers.convolutionBlocks(name, at.in().getFirst(), conv.out(), conv.kernel())),
                2 * size(out), // the result, and its gradient while the layer is differentiated
                (p, x, dropout) -> Layers.convolution(p, name, x, conv.stride(), conv.padding()));
    }

    private static List<Integer> pooled(Place at, int kernel, int stride) {
        at.requireImage();
        List<Integer> sides = windows(at, kernel, stride, 0);
        return List.of(at.in().getFirst(), sides.getFirst(), sides.getLast());
    }

    /** Returns how many windows there are in a column and in a row of an image. */
    private static List<Integer> windows(Place at, int kernel, int stride, int padding) {
        at.require(kernel >= 1, "a kernel of %d; at least 1 is possible", kernel);
        at.require(stride >= 1, "a stride of %d; at least 1 is possible", stride);
        var sides = new ArrayList<Integer>();
        for (int side : at.in().subList(1, IMAGE)) {
            long padded = side + 2L * padding;
            at.require(
                    kernel <= padded,
                    "a kernel of %d is larger than the image%s; up to %d is possible",
                    kernel,
                    padding == 0 ? "" : " with a padding of " + padding,
                    padded);
            sides.add(Math.toIntExact((padded - kernel) / stride + 1));
        }
        return sides;
    }

    private Stage dense(Layer.Dense dense, Place at) {
        at.require(
                at.in().size() != IMAGE,
                "it takes a vector, or tokens one by one; flatten before it makes a vector of %s",
                elements(at.in()));
        at.require(dense.out() >= 1, "%d outputs; at least 1 is possible", dense.out());
        var out = new ArrayList<>(at.in());
        out.set(out.size() - 1, dense.out());
        String name = name(at);
        return new Stage(
                List.copyOf(out),
                blocks(
                        at,
                        () -> dense.bias()
                                ? Layers.denseBlocks(name, at.last(), dense.out())
                                : List.of(Block.matrix(name + ".weight", dense.out(), at.last()))),
                size(out),
                (p, x, dropout) -> Layers.linear(
                        p, name + ".weight", dense.bias() ? Optional.of(name + ".bias") : Optional.empty(), x));
    }

    private static String elements(List<Integer> shape) {
        return size(shape) + " elements";
    }

    private Stage layerNorm(Place at) {
        at.require(
                at.in().size() != IMAGE,
                "it takes a vector, or tokens one by one; groupnorm normalises images, in one group or in several");
        String name = name(at);
        long size = size(at.in());
        // Besides the result, a mean and a deviation of each vector.
        return new Stage(
                at.in(),
                blocks(at, () -> Layers.normBlocks(name, at.last())),
                size + 2 * size / at.last(),
                (p, x, dropout) -> Layers.norm(p, name, x));
    }

    private Stage groupNorm(Layer.GroupNorm norm, Place at) {
        at.requireImage();
        int channels = at.in().getFirst();
        int groups = norm.groups();
        at.require(
                groups >= 1 && channels % groups == 0,
                "%d groups do not divide %d channels; 1 and %d do",
                groups,
                channels,
                channels);
        String name = name(at);
        return new Stage(
                at.in(),
                blocks(at, () -> Layers.normBlocks(name, channels)),
                size(at.in()) + 2L * groups,
                (p, x, dropout) -> Layers.groupNorm(p, name, x, groups));
    }

    private Stage embedding(Layer.Embedding embedding, Place at) {
        at.require(
                at.position().equals("1") && at.in().size() == 1,
                "it takes the numbers of words, one per token, and is the first layer");
        at.require(
                embedding.words() >= 1 && embedding.width() >= 1,
                "%d words of width %d; at least 1 of each is possible",
                embedding.words(),
                embedding.width());
        String name = name(at) + ".weight";
        List<Integer> out = List.of(at.last(), embedding.width());
        // As large as other activations are: an embedding starts with a variance of 1/width.
        var scale = Math.sqrt(embedding.width());
        return new Stage(
                out,
                blocks(at, () -> List.of(Block.matrix(name, embedding.words(), embedding.width()))),
                size(out),
                (p, x, dropout) ->
                        Layers.embedding(p, name, x.to(torch.ScalarType.Long)).mul(new Scalar(scale)));
    }

    private Stage attention(Layer.Attention attention, Place at) {
        at.requireTokens();
        int width = at.last();
        at.require(
                attention.heads() >= 1 && width % attention.heads() == 0,
                "%d heads do not divide a width of %d",
                attention.heads(),
                width);
        int hidden = attention.hidden().orElseGet(() -> Math.multiplyExact(4, width));
        at.require(hidden >= 1, "%d hidden units; at least 1 is possible", hidden);
        at.requireProbability(attention.dropout());
        var block = new TransformerBlock(
                name(at), width, attention.heads(), hidden, torch::gelu, attention.dropout(), attention.causal());
        return new Stage(
                at.in(), blocks(at, block::blocks), block.activations(at.in().getFirst()), block::apply);
    }

    private Stage residual(Layer.Residual residual, Place at) {
        at.require(!residual.layers().isEmpty(), "it has no layers; at least one is needed");
        List<Stage> stages = of(residual.layers(), at.position() + ".", at.in());
        List<Integer> out = stages.getLast().output();
        at.require(
                out.equals(at.in()),
                "its layers make %s of it, which cannot be added to it; the same shape is needed",
                describe(out));
        return new Stage(
                out,
                stages.stream().flatMap(stage -> stage.blocks().stream()).toList(),
                size(out) + stages.stream().mapToLong(Stage::activations).sum(),
                (p, x, dropout) -> x.add(run(stages, p, x, dropout)));
    }

    /** Applies layers one after the other. */
    static Tensor run(List<Stage> stages, Parameters p, Tensor input, Dropout dropout) {
        Tensor x = input;
        for (Stage stage : stages) {
            Tensor in = x;
            x = Torch.part(() -> stage.forward().apply(p, in, dropout));
        }
        return x;
    }

    private static List<Block> blocks(Place at, Supplier<List<Block>> blocks) {
        try {
            return blocks.get();
        } catch (IllegalArgumentException e) {
            throw at.wrong("%s", e.getMessage());
        }
    }
}
