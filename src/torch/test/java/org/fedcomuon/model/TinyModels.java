package org.fedcomuon.model;

import java.lang.foreign.Arena;
import java.util.List;
import java.util.SplittableRandom;
import org.bytedeco.pytorch.Tensor;
import org.fedcomuon.data.TextBlocks;
import org.fedcomuon.problem.Block;
import org.fedcomuon.problem.Floats;
import org.fedcomuon.problem.Layout;
import org.fedcomuon.problem.Point;
import org.fedcomuon.problem.Sample;

/** Every network, so small that all its derivatives can be differenced, with examples to go with it. */
@SuppressWarnings("ImmutableEnumChecker") // networks have no state
enum TinyModels {
    CNN(new CifarCnn(new CifarCnn.Sizes(9, 4, 5, 3, 6, 4))) {
        @Override
        Examples examples(int count) {
            return images(count, 9, 4);
        }
    },
    VIT(new VisionTransformer(new VisionTransformer.Sizes(8, 4, 2, 8, 2, 4))) {
        @Override
        Examples examples(int count) {
            return images(count, 8, 4);
        }
    },
    LANGUAGE(new LanguageModel(new LanguageModel.Sizes(11, 6, 2, 8, 2, 12, 0.1))) {
        @Override
        Examples examples(int count) {
            var random = new SplittableRandom(6);
            var tokens = new int[6 * count + 1];
            for (int i = 0; i < tokens.length; i++) {
                tokens[i] = random.nextInt(11);
            }
            return Examples.of(new TextBlocks(tokens, 6));
        }
    },
    LAYERS(new Sequential(
            List.of(3, 9, 9),
            List.of(
                    Layer.conv(4, 3).padding(1).stride(2),
                    Layer.groupNorm(2),
                    Layer.gelu(),
                    Layer.residual(Layer.conv(4, 3).padding(1), Layer.tanh(), Layer.conv(4, 1)),
                    new Layer.MaxPool(3, 1),
                    Layer.conv(6, 2),
                    new Layer.AvgPool(2, 1),
                    Layer.flatten(),
                    Layer.layerNorm(),
                    Layer.dense(7),
                    Layer.relu(),
                    Layer.dense(4)),
            4)) {
        @Override
        Examples examples(int count) {
            return images(count, 9, 4);
        }
    },
    TOKENS(new Sequential(
            List.of(5),
            List.of(
                    Layer.embedding(11, 8),
                    Layer.positions(),
                    Layer.dropout(0.2),
                    Layer.attention(2).hidden(6).dropout(0.1),
                    Layer.attention(4).causal(true),
                    Layer.layerNorm(),
                    Layer.meanTokens(),
                    Layer.dense(4)),
            4)) {
        @Override
        Examples examples(int count) {
            var random = new SplittableRandom(7);
            var words = new float[5 * count]; // numbers of any type
            for (int i = 0; i < words.length; i++) {
                words[i] = random.nextInt(11);
            }
            return Examples.of(words, random.ints(count, 0, 4).toArray(), 5);
        }
    };

    final Network network;

    TinyModels(Network network) {
        this.network = network;
    }

    abstract Examples examples(int count);

    static Examples images(int count, int side, int classes) {
        var random = new SplittableRandom(5);
        var pixels = new float[count * 3 * side * side];
        var labels = new long[count];
        for (int i = 0; i < pixels.length; i++) {
            pixels[i] = (float) random.nextGaussian();
        }
        for (int i = 0; i < count; i++) {
            labels[i] = random.nextInt(classes);
        }
        return new Examples(Tensor.create(pixels).view(count, 3, side, side), Tensor.create(labels));
    }

    static Sample sample(long draw) {
        return new Sample(1, 0, Sample.Stream.INNER, draw);
    }

    /** W0, with gains and shifts that are not what they start with, and larger than usual so that all layers count. */
    float[] weights() {
        Layout layout = network.layout();
        float[] w = Initialization.uniform(layout, 3).toArray();
        var random = new SplittableRandom(9);
        int at = 0;
        for (Block block : layout.blocks()) {
            for (long i = 0; i < block.size(); i++, at++) {
                w[at] = (float) (1.5 * w[at] + 0.1 * random.nextGaussian());
            }
        }
        return w;
    }

    Point point(Arena arena) {
        Layout layout = network.layout();
        return new Point(layout, Floats.of(arena.allocate(layout.length() * Float.BYTES, 64)));
    }

    Point start(Arena arena) {
        Point w = point(arena);
        w.values().set(weights());
        return w;
    }
}
