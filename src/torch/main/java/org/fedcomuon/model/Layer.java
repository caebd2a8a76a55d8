package org.fedcomuon.model;

import java.util.List;
import java.util.Locale;
import java.util.OptionalInt;

/**
 * A layer of a {@link Sequential} network: what it does and its sizes, but not the shape of its input, which follows
 * from the layers before it. Examples are vectors, tokens (a matrix with a row per token) or images (channels x rows x
 * cols).
 *
 * <p>Immutable. A layer is a description and has no parameters of its own: the same one can be used several times, each
 * with other parameters. Whether its sizes are possible is checked where its position is known, by {@link Sequential}.
 */
public sealed interface Layer {
    /** Returns the name of the kind of layer, such as {@code conv}, as in files and in the names of blocks. */
    default String kind() {
        return getClass().getSimpleName().toLowerCase(Locale.ROOT);
    }

    /**
     * A convolution over images, with a bias.
     *
     * @param out channels of the result
     * @param kernel side of the window, which is square
     * @param stride of the window
     * @param padding zeros that are added on each side of the image
     */
    record Conv(int out, int kernel, int stride, int padding) implements Layer {
        /** Returns the same convolution with another stride. */
        public Conv stride(int value) {
            return new Conv(out, kernel, value, padding);
        }

        /** Returns the same convolution with another padding. */
        public Conv padding(int value) {
            return new Conv(out, kernel, stride, value);
        }
    }

    /**
     * A dense layer: over a vector, or over each token by itself.
     *
     * @param out number of outputs
     * @param bias whether it adds a bias
     */
    record Dense(int out, boolean bias) implements Layer {}

    /** {@code max(x, 0)}. */
    record Relu() implements Layer {}

    /** {@code x P(X <= x)} with a standard normal X. */
    record Gelu() implements Layer {}

    /** The hyperbolic tangent. */
    record Tanh() implements Layer {}

    /**
     * The largest of each window of an image. Rows and columns that do not fill a window are not used.
     *
     * @param kernel side of the window
     * @param stride of the window
     */
    record MaxPool(int kernel, int stride) implements Layer {}

    /**
     * The mean of each window of an image. Rows and columns that do not fill a window are not used.
     *
     * @param kernel side of the window
     * @param stride of the window
     */
    record AvgPool(int kernel, int stride) implements Layer {}

    /** Makes a vector of an image or of tokens. */
    record Flatten() implements Layer {}

    /** Normalises a vector, or each token by itself, with a gain and a shift. */
    record LayerNorm() implements Layer {}

    /**
     * Normalises groups of the channels of an image, with a gain and a shift per channel. Unlike batch normalisation,
     * it does not depend on the other examples of a batch, and so not on what clients hold.
     *
     * @param groups into which the channels are divided; 1 is layer normalisation
     */
    record GroupNorm(int groups) implements Layer {}

    /**
     * Sets elements to zero in training, and scales the others so that the mean stays.
     *
     * @param p the probability of an element
     */
    record Dropout(double p) implements Layer {}

    /**
     * Makes tokens of numbers of words. It is the first layer, and the input is one number per token, of any type.
     *
     * @param words how many there are; their numbers are from 0 to {@code words - 1}
     * @param width of a token
     */
    record Embedding(int words, int width) implements Layer {}

    /**
     * Adds a learned vector to each token, by its position; without it, attention that is not causal does not see the
     * order of tokens.
     */
    record Positions() implements Layer {}

    /**
     * A block of a transformer: attention among tokens, then a perceptron with one hidden layer and GELU, each on
     * normalised input and added to its input.
     *
     * <p>Immutable.
     *
     * @param heads of the attention; they divide the width of the tokens
     * @param hidden units of the perceptron; four times the width of the tokens if empty
     * @param causal whether a token sees only itself and those before it
     * @param dropout probability: of the attention's weights, of hidden units, and of what is added
     */
    record Attention(int heads, OptionalInt hidden, boolean causal, double dropout) implements Layer {
        /** Returns the same block with this many hidden units. */
        public Attention hidden(int units) {
            return new Attention(heads, OptionalInt.of(units), causal, dropout);
        }

        /** Returns the same block, causal or not. */
        public Attention causal(boolean value) {
            return new Attention(heads, hidden, value, dropout);
        }

        /** Returns the same block with another dropout. */
        public Attention dropout(double p) {
            return new Attention(heads, hidden, causal, p);
        }
    }

    /**
     * Adds the result of some layers to their input; both have the same shape.
     *
     * @param layers at least one
     */
    record Residual(List<Layer> layers) implements Layer {
        public Residual {
            layers = List.copyOf(layers);
        }
    }

    /** Makes a vector of tokens: their mean. */
    record MeanTokens() implements Layer {}

    /** Returns a convolution with stride 1 and without padding. */
    static Conv conv(int out, int kernel) {
        return new Conv(out, kernel, 1, 0);
    }

    /** Returns a dense layer with a bias. */
    static Layer dense(int out) {
        return new Dense(out, true);
    }

    /** Returns a ReLU. */
    static Layer relu() {
        return new Relu();
    }

    /** Returns a GELU. */
    static Layer gelu() {
        return new Gelu();
    }

    /** Returns a hyperbolic tangent. */
    static Layer tanh() {
        return new Tanh();
    }

    /** Returns max pooling over windows that touch and do not overlap. */
    static Layer maxPool(int kernel) {
        return new MaxPool(kernel, kernel);
    }

    /** Returns average pooling over windows that touch and do not overlap. */
    static Layer avgPool(int kernel) {
        return new AvgPool(kernel, kernel);
    }

    /** Returns a layer that makes a vector of whatever its input is. */
    static Layer flatten() {
        return new Flatten();
    }

    /** Returns a layer normalisation. */
    static Layer layerNorm() {
        return new LayerNorm();
    }

    /** Returns a group normalisation. */
    static Layer groupNorm(int groups) {
        return new GroupNorm(groups);
    }

    /** Returns a dropout. */
    static Layer dropout(double p) {
        return new Dropout(p);
    }

    /** Returns an embedding. */
    static Layer embedding(int words, int width) {
        return new Embedding(words, width);
    }

    /** Returns learned positions. */
    static Layer positions() {
        return new Positions();
    }

    /** Returns a block with attention that is not causal, four hidden units per element of a token, and no dropout. */
    static Attention attention(int heads) {
        return new Attention(heads, OptionalInt.empty(), false, 0);
    }

    /** Returns layers whose result is added to their input. */
    static Layer residual(Layer... layers) {
        return new Residual(List.of(layers));
    }

    /** Returns the mean over tokens. */
    static Layer meanTokens() {
        return new MeanTokens();
    }
}
