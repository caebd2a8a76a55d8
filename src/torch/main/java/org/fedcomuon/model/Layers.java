package org.fedcomuon.model;

import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.stream.LongStream;
import org.bytedeco.pytorch.DeviceOptional;
import org.bytedeco.pytorch.LongOptional;
import org.bytedeco.pytorch.Scalar;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.TensorOptional;
import org.bytedeco.pytorch.TensorOptionalList;
import org.bytedeco.pytorch.TensorOptionalVector;
import org.bytedeco.pytorch.TensorOptions;
import org.bytedeco.pytorch.global.torch;
import org.fedcomuon.problem.Block;

/**
 * Layers as functions of parameters, to write a {@link Network} with. A layer is known by its name: those with
 * parameters have a function that returns their blocks, {@code name.weight} and so on, for the layout, and one that
 * applies them. All have derivatives of second order. Layers without parameters that are not here, such as
 * {@code torch.relu}, are libtorch's.
 *
 * <p>With parameters of several {@linkplain Parameters#clients clients}, their examples are one after the other in the
 * first dimension of {@code x}, as many of each, and every example meets the parameters of its own client. The number
 * of operations of libtorch does not depend on the number of clients.
 *
 * <p>For example: {@snippet file="org/fedcomuon/model/OwnNetworkIT.java" region="network"}
 *
 * <p>Thread-safe.
 */
@SuppressWarnings("exports") // users of tensors have libtorch; others must not need it
public final class Layers {
    /** The usual value: far below any variance and far above rounding errors. */
    private static final double EPSILON = 1e-5;

    private Layers() {}

    /** Returns the blocks of {@link #dense}: a matrix of {@code out x in} and a bias. */
    public static List<Block> denseBlocks(String layer, int in, int out) {
        return List.of(Block.matrix(layer + ".weight", out, in), Block.vector(layer + ".bias", out));
    }

    /** Returns {@code x W^T + b} over the last dimension. */
    public static Tensor dense(Parameters p, String layer, Tensor x) {
        return linear(p, layer + ".weight", Optional.of(layer + ".bias"), x);
    }

    /** Returns {@code x W^T + b} over the last dimension; a kernel counts as the matrix that it is updated as. */
    static Tensor linear(Parameters p, String weight, Optional<String> bias, Tensor x) {
        Tensor w = p.get(weight);
        if (p.clients().isEmpty()) {
            Tensor matrix = w.dim() > 2 ? w.flatten(1, -1) : w;
            return bias.map(b -> torch.linear(x, matrix, p.get(b))).orElseGet(() -> torch.linear(x, matrix));
        }
        Tensor transposed = w.flatten(2, -1).transpose(1, 2);
        Tensor rows = x.reshape(p.clients().getAsInt(), -1, x.size(-1));
        Tensor result = bias.map(b -> torch.baddbmm(p.get(b).unsqueeze(1), rows, transposed))
                .orElseGet(() -> rows.bmm(transposed));
        long[] shape = shape(x);
        shape[shape.length - 1] = w.size(1);
        return result.view(shape);
    }

    private static long[] shape(Tensor x) {
        return LongStream.range(0, x.dim()).map(x::size).toArray();
    }

    /** Returns the blocks of {@link #convolution}: a kernel of {@code out x in x kernel x kernel} and a bias. */
    public static List<Block> convolutionBlocks(String layer, int in, int out, int kernel) {
        return List.of(Block.kernel(layer + ".weight", out, in, kernel, kernel), Block.vector(layer + ".bias", out));
    }

    /** Applies a convolution to images of {@code examples x channels x rows x cols}. */
    public static Tensor convolution(Parameters p, String layer, Tensor x, int stride, int padding) {
        Tensor kernel = p.get(layer + ".weight");
        if (p.clients().isEmpty()) {
            var bias = new TensorOptional(p.get(layer + ".bias"));
            return torch.conv2d(x, kernel, bias, square(stride), square(padding), square(1), 1);
        }
        // As a product of windows and kernels: the derivative of second order of a convolution in groups, one for each
        // client, has a loop over groups.
        Tensor padded = padding == 0
                ? x
                : torch.constant_pad_nd(x, new long[] {padding, padding, padding, padding}, new Scalar(0f));
        Tensor windows = padded.unfold(2, kernel.size(3), stride)
                .unfold(3, kernel.size(4), stride)
                .permute(0, 2, 3, 1, 4, 5)
                .flatten(3, 5);
        return dense(p, layer, windows).permute(0, 3, 1, 2);
    }

    /** Returns the blocks of {@link #norm} and {@link #groupNorm}: a gain, which is initially one, and a shift. */
    public static List<Block> normBlocks(String layer, int width) {
        return List.of(Block.vector(layer + ".gain", width), Block.vector(layer + ".shift", width));
    }

    /** Applies layer normalisation over the last dimension. */
    public static Tensor norm(Parameters p, String layer, Tensor x) {
        Tensor gain = p.get(layer + ".gain");
        Tensor shift = p.get(layer + ".shift");
        long[] width = {gain.size(-1)};
        if (p.clients().isEmpty()) {
            return torch.layer_norm(x, width, new TensorOptional(gain), new TensorOptional(shift), EPSILON, false);
        }
        Tensor normalised = torch.layer_norm(x, width, new TensorOptional(), new TensorOptional(), EPSILON, false);
        Tensor rows = normalised.reshape(p.clients().getAsInt(), -1, width[0]);
        return torch.addcmul(shift.unsqueeze(1), rows, gain.unsqueeze(1)).reshape(shape(x));
    }

    /** Applies group normalisation; the second dimension has the channels, which {@code groups} divides. */
    public static Tensor groupNorm(Parameters p, String layer, Tensor x, int groups) {
        Tensor gain = p.get(layer + ".gain");
        Tensor shift = p.get(layer + ".shift");
        if (p.clients().isEmpty()) {
            return torch.group_norm(x, groups, new TensorOptional(gain), new TensorOptional(shift), EPSILON, false);
        }
        Tensor normalised = torch.group_norm(x, groups, new TensorOptional(), new TensorOptional(), EPSILON, false);
        Tensor channels = normalised.reshape(p.clients().getAsInt(), -1, x.size(1), x.numel() / x.size(0) / x.size(1));
        return torch.addcmul(perChannel(shift), channels, perChannel(gain)).reshape(shape(x));
    }

    /** Returns a block of clients x channels in the dimensions of clients x examples x channels x pixels. */
    private static Tensor perChannel(Tensor block) {
        return block.unsqueeze(1).unsqueeze(-1);
    }

    /**
     * Returns the rows of a matrix that numbers of words stand for.
     *
     * @param block the matrix, a row per word
     * @param words whole numbers, in any shape that begins with the examples
     */
    public static Tensor embedding(Parameters p, String block, Tensor words) {
        Tensor rows = p.get(block);
        if (p.clients().isEmpty()) {
            return torch.embedding(rows, words);
        }
        int clients = p.clients().getAsInt();
        // By two indices, client and word: as rows of one matrix the tables of all clients would have to be copied.
        Tensor client = torch.arange(
                        new Scalar(clients),
                        new TensorOptions(torch.ScalarType.Long).device(new DeviceOptional(rows.device())))
                .unsqueeze(1);
        var indices =
                new TensorOptionalVector(new TensorOptional(client), new TensorOptional(words.reshape(clients, -1)));
        long[] shape = Arrays.copyOf(shape(words), Math.toIntExact(words.dim()) + 1);
        shape[shape.length - 1] = rows.size(-1);
        return torch.index(rows, new TensorOptionalList(indices)).view(shape);
    }

    /** Adds a block to every example, such as what depends on positions; it has the shape of an example. */
    public static Tensor plus(Parameters p, String block, Tensor x) {
        Tensor added = p.get(block);
        if (p.clients().isEmpty()) {
            return x.add(added);
        }
        long clients = p.clients().getAsInt();
        long[] shape = shape(x);
        var byClient = new long[shape.length + 1];
        byClient[0] = clients;
        byClient[1] = shape[0] / clients;
        System.arraycopy(shape, 1, byClient, 2, shape.length - 1);
        return x.reshape(byClient).add(added.unsqueeze(1)).reshape(shape);
    }

    /** Returns a vector once for each example, as a token: {@code examples x 1 x width}. */
    static Tensor token(Parameters p, String block, long examples) {
        Tensor vector = p.get(block);
        long width = vector.size(-1);
        if (p.clients().isEmpty()) {
            return vector.expand(examples, 1, width);
        }
        long clients = p.clients().getAsInt();
        return vector.unsqueeze(1).expand(clients, examples / clients, width).reshape(examples, 1, width);
    }

    /** Takes the largest of each window of {@code kernel x kernel}; rows and columns left over are not used. */
    public static Tensor maxPool(Tensor x, int kernel, int stride) {
        if (kernel == 2 && stride == 2) {
            return MaxPool.of(x);
        }
        return torch.max_pool2d(x, square(kernel), square(stride), square(0), square(1), false);
    }

    /** Takes the mean of each window of {@code kernel x kernel}; rows and columns left over are not used. */
    public static Tensor averagePool(Tensor x, int kernel, int stride) {
        return torch.avg_pool2d(x, square(kernel), square(stride), square(0), false, true, new LongOptional());
    }

    private static long[] square(int side) {
        return new long[] {side, side};
    }

    /**
     * Returns the mean cross entropy over all predictions.
     *
     * @param logits the last dimension counts classes
     * @param labels class numbers, one for each prediction
     */
    public static Tensor crossEntropy(Tensor logits, Tensor labels) {
        return CrossEntropy.mean(logits, labels);
    }
}
