package org.fedcomuon.model;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.SplittableRandom;
import java.util.stream.IntStream;
import org.bytedeco.javacpp.PointerScope;
import org.bytedeco.pytorch.Tensor;
import org.fedcomuon.federation.Federation;
import org.fedcomuon.method.FedCoMuon;
import org.fedcomuon.method.Muon;
import org.fedcomuon.method.Schedule;
import org.fedcomuon.problem.Block;
import org.fedcomuon.problem.ExponentialRisk;
import org.fedcomuon.problem.Floats;
import org.fedcomuon.problem.Layout;
import org.fedcomuon.problem.Point;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Networks as lists of layers: what they compute, what they are called, and what is refused. */
class SequentialIT {
    private static Sequential lenet() {
        // @start region="network"
        var network = new Sequential(
                List.of(1, 28, 28), // channels x rows x cols
                List.of(
                        Layer.conv(6, 5),
                        Layer.maxPool(2),
                        Layer.relu(),
                        Layer.conv(16, 5),
                        Layer.maxPool(2),
                        Layer.relu(),
                        Layer.flatten(),
                        Layer.dense(120),
                        Layer.relu(),
                        Layer.dense(10)),
                10);
        // @end
        return network;
    }

    /** The order that most lists have. */
    private static Sequential reluBeforePooling() {
        return new Sequential(
                List.of(1, 28, 28),
                List.of(
                        Layer.conv(6, 5),
                        Layer.relu(),
                        Layer.maxPool(2),
                        Layer.conv(16, 5),
                        Layer.relu(),
                        Layer.maxPool(2),
                        Layer.flatten(),
                        Layer.dense(120),
                        Layer.relu(),
                        Layer.dense(10)),
                10);
    }

    private static Examples images(int count, int... shape) {
        var random = new SplittableRandom(4);
        int size = IntStream.of(shape).reduce(1, (a, b) -> a * b);
        var pixels = new float[count * size];
        for (int i = 0; i < pixels.length; i++) {
            pixels[i] = (float) random.nextGaussian();
        }
        return Examples.of(pixels, random.ints(count, 0, 10).toArray(), shape);
    }

    /** W after 20 steps from the same W0 on the same batches. */
    static float[] trained(Network network, Examples examples, Floats initial) throws Exception {
        List<int[]> clients = IntStream.range(0, 3)
                .mapToObj(k -> IntStream.range(20 * k, 20 * k + 20).toArray())
                .toList();
        var method =
                new FedCoMuon(Schedule.constant(0.02), Schedule.constant(0.3), Schedule.constant(0.2), Muon.standard());
        return Federation.of(new Classification(network, examples, clients, 8, new ExponentialRisk(1)), method)
                .iterations(20)
                .tau(5)
                .seed(3)
                .workers(2)
                .initial(initial)
                .build()
                .run()
                .weights()
                .values()
                .toArray();
    }

    @Test
    void theLayersOfLeNetAreLeNet() throws Exception {
        Examples examples = images(60, 1, 28, 28);
        var lenet = new LeNet();
        assertThat(lenet().layout()).isEqualTo(lenet.layout());
        assertThat(lenet().activations(20)).isEqualTo(lenet.activations(20));
        assertThat(lenet().initial(5).toArray()).isEqualTo(lenet.initial(5).toArray());
        float[] expected = trained(lenet, examples, lenet.initial(5));
        assertThat(trained(lenet(), examples, lenet.initial(5))).containsExactly(expected, within(1e-5f));
        assertThat(trained(reluBeforePooling(), examples, lenet.initial(5))).containsExactly(expected, within(1e-5f));
        assertThat(expected).isNotEqualTo(lenet.initial(5).toArray());
    }

    private static float[] result(Sequential network, double[] w, float... input) {
        Point point = new Point(network.layout(), Floats.zeros(network.layout().length()));
        point.values().set(DoublePrecision.narrowed(w));
        long[] shape = IntStream.concat(
                        IntStream.of(1), network.input().stream().mapToInt(i -> i))
                .asLongStream()
                .toArray();
        Tensor out = network.logits(Parameters.of(point), Tensor.create(input).view(shape), Dropout.none());
        var values = new float[(int) out.numel()];
        out.contiguous().data_ptr_float().get(values);
        return values;
    }

    /** One layer followed by a dense one that is the identity, so that its result shows. */
    private static float[] shown(List<Integer> input, int outputs, double[] own, float[] x, Layer... layers) {
        var list = new ArrayList<>(List.of(layers));
        list.add(Layer.flatten());
        list.add(Layer.dense(outputs));
        var w = new double[own.length + outputs * outputs + outputs];
        System.arraycopy(own, 0, w, 0, own.length);
        for (int i = 0; i < outputs; i++) {
            w[own.length + i * outputs + i] = 1;
        }
        return result(new Sequential(input, list, outputs), w, x);
    }

    @Test
    void convolutionsHaveStrideAndPadding() {
        float[] image = {1, 2, 3, 4, 5, 6, 7, 8, 9};
        // Windows around (0, 0), (0, 2), (2, 0) and (2, 2): their upper left and lower right elements.
        double[] kernel = {1, 0, 0, 0, 0, 0, 0, 0, 10, /* bias */ 0.5};
        assertThat(shown(
                        List.of(1, 3, 3),
                        4,
                        kernel,
                        image,
                        Layer.conv(1, 3).stride(2).padding(1)))
                .containsExactly(50.5f, 0.5f, 0.5f, 5.5f);
    }

    @Test
    void poolingLeavesOutWhatDoesNotFill() {
        float[] image = {1, 5, 2, 0, 3, 4, 0, 0, 9};
        List<Integer> shape = List.of(1, 3, 3);
        assertThat(shown(shape, 1, new double[0], image, Layer.maxPool(2))).containsExactly(5);
        assertThat(shown(shape, 1, new double[0], image, Layer.avgPool(2))).containsExactly(2.25f);
        assertThat(shown(shape, 4, new double[0], image, new Layer.MaxPool(2, 1)))
                .containsExactly(5, 5, 3, 9);
        assertThat(shown(shape, 4, new double[0], image, new Layer.AvgPool(2, 1)))
                .containsExactly(2.25f, 3.5f, 0.75f, 4);
        assertThat(shown(shape, 1, new double[0], image, Layer.maxPool(3))).containsExactly(9);
    }

    @Test
    void groupsAreNormalised() {
        float[] x = {1, 3, -2, 4, 0, 6, 10, 12};
        double[] gainsAndShifts = {1, 2, 3, 4, 0.1, 0.2, 0.3, 0.4};
        float[] y = shown(List.of(4, 1, 2), 8, gainsAndShifts, x, Layer.groupNorm(2));
        for (int group = 0; group < 2; group++) {
            double mean = IntStream.range(4 * group, 4 * group + 4)
                    .mapToDouble(i -> x[i])
                    .average()
                    .orElseThrow();
            double variance = IntStream.range(4 * group, 4 * group + 4)
                    .mapToDouble(i -> (x[i] - mean) * (x[i] - mean))
                    .average()
                    .orElseThrow();
            for (int i = 4 * group; i < 4 * group + 4; i++) {
                double normal = (x[i] - mean) / Math.sqrt(variance + 1e-5);
                double expected = gainsAndShifts[i / 2] * normal + gainsAndShifts[4 + i / 2];
                assertThat((double) y[i]).isCloseTo(expected, within(1e-4));
            }
        }
    }

    @Test
    void layersOfTokensTakeThemOneByOne() {
        List<Integer> shape = List.of(2, 2);
        float[] x = {1, 3, 10, 20};
        float[] normal = shown(shape, 4, new double[] {1, 1, 0, 0.5}, x, Layer.layerNorm());
        assertThat(normal).containsExactly(new float[] {-1, 1.5f, -1, 1.5f}, within(1e-4f));
        assertThat(shown(shape, 2, new double[0], x, Layer.meanTokens())).containsExactly(5.5f, 11.5f);
        assertThat(shown(shape, 4, new double[] {1, 2, 3, 4}, x, Layer.positions()))
                .containsExactly(2, 5, 13, 24);
        // W = (1 1), b = 0.5
        assertThat(shown(shape, 2, new double[] {1, 1, 0.5}, x, Layer.dense(1))).containsExactly(4.5f, 30.5f);
    }

    @Test
    void functionsOfElements() {
        float[] x = {-1, 0, 0.5f};
        List<Integer> shape = List.of(3);
        assertThat(shown(shape, 3, new double[0], x, Layer.relu())).containsExactly(0, 0, 0.5f);
        assertThat(shown(shape, 3, new double[0], x, Layer.tanh()))
                .containsExactly(new float[] {(float) Math.tanh(-1), 0, (float) Math.tanh(0.5)}, within(1e-6f));
        assertThat(shown(shape, 3, new double[0], x, Layer.gelu()))
                .containsExactly(new float[] {-0.158655f, 0, 0.345731f}, within(1e-5f));
        assertThat(shown(shape, 3, new double[0], x, Layer.residual(Layer.relu(), Layer.relu())))
                .containsExactly(-1, 0, 1);
    }

    @Test
    void embeddingsTakeNumbersOfWords() {
        // Three words of width 4, scaled by its root.
        double[] table = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
        assertThat(shown(List.of(2), 8, table, new float[] {2, 0}, Layer.embedding(3, 4)))
                .containsExactly(18, 20, 22, 24, 2, 4, 6, 8);
        assertThatThrownBy(() -> shown(List.of(2), 8, table, new float[] {3, 0}, Layer.embedding(3, 4)))
                .hasMessageContaining("index out of range");
    }

    /** A block with attention is the one that {@link LanguageModel} and {@link VisionTransformer} consist of. */
    @Test
    void attentionIsATransformerBlock() {
        var network = new Sequential(
                List.of(3, 4),
                List.of(Layer.attention(2).hidden(5).causal(true), Layer.meanTokens(), Layer.dense(2)),
                2);
        assertThat(network.layout().blocks().subList(0, 16).stream().map(Block::name))
                .contains("attention1.norm1.gain", "attention1.query.weight", "attention1.output.bias");
        assertThat(network.parameters()).isEqualTo((2 * 2 * 4 + 4 * (16 + 4) + (20 + 5) + (20 + 4)) + (8 + 2));
        var usual = new Sequential(List.of(3, 4), List.of(Layer.attention(2), Layer.dense(2)), 2);
        Layout layout = usual.layout();
        assertThat(layout.blocks()
                        .get(layout.position("attention1.hidden.weight"))
                        .rows())
                .isEqualTo(16);
        assertThat(usual.output()).containsExactly(3, 2); // a prediction per token
    }

    @Test
    void blocksAreNamedByKindAndNumber() {
        var network = new Sequential(
                List.of(2, 6, 6),
                List.of(
                        Layer.conv(4, 3),
                        Layer.relu(),
                        Layer.residual(Layer.groupNorm(2), Layer.conv(4, 1)),
                        Layer.conv(3, 3),
                        Layer.flatten(),
                        Layer.layerNorm(),
                        Layer.dense(5)),
                5);
        assertThat(network.layout().blocks().stream().map(Block::name))
                .containsExactly(
                        "conv1.weight",
                        "conv1.bias",
                        "groupnorm1.gain",
                        "groupnorm1.shift",
                        "conv2.weight",
                        "conv2.bias",
                        "conv3.weight",
                        "conv3.bias",
                        "layernorm1.gain",
                        "layernorm1.shift",
                        "dense1.weight",
                        "dense1.bias");
        assertThat(network.input()).containsExactly(2, 6, 6);
        assertThat(network.output()).containsExactly(5);
        assertThat(network.layers()).hasSize(7);
    }

    @Test
    void startsAsIsUsual() {
        var network = new Sequential(
                List.of(7),
                List.of(
                        Layer.embedding(200, 64),
                        Layer.positions(),
                        Layer.layerNorm(),
                        Layer.meanTokens(),
                        Layer.dense(2)),
                2);
        var w = new Point(network.layout(), network.initial(1));
        assertThat(w.block("layernorm1.gain").toArray()).containsOnly(1);
        assertThat(w.block("layernorm1.shift").toArray()).containsOnly(0);
        assertThat(deviation(w.block("embedding1.weight"))).isCloseTo(1.0 / 8, within(0.005));
        assertThat(largest(w.block("embedding1.weight"))).isGreaterThan(3.0 / 8); // normal, not uniform
        assertThat(deviation(w.block("positions1.weight"))).isCloseTo(0.02, within(0.004));
        assertThat(largest(w.block("dense1.weight"))).isBetween(0.1, 1.0 / 8);
        Layout layout = network.layout();
        assertThat(layout.blocks().get(layout.position("positions1.weight")).update())
                .isEqualTo(Block.Update.VECTOR);
    }

    private static double deviation(Floats values) {
        double sum = 0;
        for (float value : values.toArray()) {
            sum += (double) value * value / values.length();
        }
        return Math.sqrt(sum);
    }

    private static double largest(Floats values) {
        double largest = 0;
        for (float value : values.toArray()) {
            largest = Math.max(largest, Math.abs(value));
        }
        return largest;
    }

    /** Counted by hand. */
    @Test
    void activationsAreCountedLayerByLayer() {
        var images = new Sequential(
                List.of(2, 8, 8),
                List.of(
                        Layer.conv(4, 3), // 4 x 6 x 6: the result and its gradient
                        Layer.groupNorm(2), // the result, two means and two deviations
                        Layer.gelu(),
                        Layer.residual(Layer.tanh()), // the result and the sum
                        Layer.avgPool(2), // 4 x 3 x 3
                        Layer.maxPool(3), // 4 elements and 4 places
                        Layer.flatten(), // nothing
                        Layer.layerNorm(), // 4, a mean and a deviation
                        Layer.dropout(0.5), // 4, and a mask of 4 bytes
                        Layer.dense(3)),
                3);
        long each = 2 * 144 + (144 + 4) + 144 + 2 * 144 + 36 + (4 + 4) + (4 + 2) + (4 + 1) + 3;
        assertThat(images.activations(1)).hasValue(each);
        assertThat(images.activations(7)).hasValue(7 * each);
        var tokens = new Sequential(
                List.of(6),
                List.of(
                        Layer.embedding(9, 4),
                        Layer.positions(),
                        Layer.attention(2),
                        Layer.meanTokens(),
                        Layer.dense(3)),
                3);
        long block = 6 * (8 * 4 + 2 * 16 + 2 * 6);
        assertThat(tokens.activations(1)).hasValue(24 + 24 + block + 4 + 3);
    }

    /** A layer that returns its input must not take it along when its scope ends. */
    @Test
    void theInputOutlivesTheEvaluation() {
        var network = new Sequential(List.of(4), List.of(Layer.dropout(0.5), Layer.dense(2)), 2);
        Parameters w = Parameters.of(new Point(network.layout(), network.initial(1)));
        Tensor input = images(3, 4).inputs();
        float before = input.data_ptr_float().get(5);
        for (int repeat = 0; repeat < 3; repeat++) {
            try (var _ = new PointerScope()) {
                network.logits(w, input, Dropout.none());
            }
        }
        assertThat(input.isNull()).isFalse();
        assertThat(input.data_ptr_float().get(5)).isEqualTo(before);
    }

    @Test
    void batchesOfAnotherShapeAreRefused() {
        Parameters w = Parameters.of(new Point(lenet().layout(), lenet().initial(1)));
        for (Examples wrong : List.of(images(2, 1, 28, 27), images(2, 784))) {
            assertThatThrownBy(() -> lenet().logits(w, wrong.inputs(), Dropout.none()))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("for a network whose examples are 1 x 28 x 28");
        }
    }

    private static void assertRefused(String message, List<Integer> input, Layer... layers) {
        assertThatThrownBy(() -> new Sequential(input, List.of(layers), 10))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage(message);
    }

    @Test
    void whatDoesNotFitIsNamed() {
        List<Integer> image = List.of(8, 4, 6);
        List<Integer> vector = List.of(12);
        List<Integer> tokens = List.of(5, 12);
        assertRefused(
                "layer 2 (conv), whose input is 8 x 4 x 6: a kernel of 5 is larger than the image; up to 4 is possible",
                image,
                Layer.relu(),
                Layer.conv(3, 5));
        assertRefused(
                "layer 1 (conv), whose input is 8 x 4 x 6: a kernel of 9 is larger than the image with a padding of 1;"
                        + " up to 6 is possible",
                image,
                Layer.conv(3, 9).padding(1));
        assertRefused(
                "layer 1 (conv), whose input is 8 x 4 x 6: a padding of 3; from 0 to 2 is possible with a kernel of 3",
                image,
                Layer.conv(3, 3).padding(3));
        assertRefused(
                "layer 1 (conv), whose input is 8 x 4 x 6: a stride of 0; at least 1 is possible",
                image,
                Layer.conv(3, 3).stride(0));
        assertRefused(
                "layer 1 (conv), whose input is 8 x 4 x 6: 0 channels; at least 1 is possible",
                image,
                Layer.conv(0, 3));
        assertRefused(
                "layer 1 (conv), whose input is 12: it takes images of channels x rows x cols",
                vector,
                Layer.conv(3, 3));
        assertRefused(
                "layer 1 (maxpool), whose input is 8 x 4 x 6: a kernel of 5 is larger than the image; up to 4 is possible",
                image,
                Layer.maxPool(5));
        assertRefused(
                "layer 1 (avgpool), whose input is 8 x 4 x 6: a kernel of 0; at least 1 is possible",
                image,
                Layer.avgPool(0));
        assertRefused(
                "layer 1 (dense), whose input is 8 x 4 x 6: it takes a vector, or tokens one by one; flatten before it"
                        + " makes a vector of 192 elements",
                image,
                Layer.dense(10));
        assertRefused(
                "layer 1 (dense), whose input is 12: -1 outputs; at least 1 is possible", vector, Layer.dense(-1));
        assertRefused(
                "layer 1 (groupnorm), whose input is 8 x 4 x 6: 3 groups do not divide 8 channels; 1 and 8 do",
                image,
                Layer.groupNorm(3));
        assertRefused(
                "layer 1 (layernorm), whose input is 8 x 4 x 6: it takes a vector, or tokens one by one; groupnorm"
                        + " normalises images, in one group or in several",
                image,
                Layer.layerNorm());
        assertRefused(
                "layer 1 (attention), whose input is 5 x 12: 5 heads do not divide a width of 12",
                tokens,
                Layer.attention(5));
        assertRefused(
                "layer 1 (attention), whose input is 5 x 12: 0 hidden units; at least 1 is possible",
                tokens,
                Layer.attention(3).hidden(0));
        assertRefused(
                "layer 1 (attention), whose input is 12: it takes tokens, as an embedding makes them: tokens x width",
                vector,
                Layer.attention(3));
        assertRefused(
                "layer 1 (dropout), whose input is 12: a dropout of 1.0; from 0 to below 1 is possible",
                vector,
                Layer.dropout(1));
        assertRefused(
                "layer 2 (embedding), whose input is 12: it takes the numbers of words, one per token, and is the first"
                        + " layer",
                vector,
                Layer.relu(),
                Layer.embedding(100, 4));
        assertRefused(
                "layer 1 (embedding), whose input is 12: 0 words of width 4; at least 1 of each is possible",
                vector,
                Layer.embedding(0, 4));
        assertRefused(
                "layer 2 (residual), whose input is 8 x 4 x 6: its layers make 3 x 4 x 6 of it, which cannot be added to"
                        + " it; the same shape is needed",
                image,
                Layer.relu(),
                Layer.residual(Layer.relu(), Layer.conv(3, 1)));
        assertRefused(
                "layer 2.3 (groupnorm), whose input is 8 x 4 x 6: 5 groups do not divide 8 channels; 1 and 8 do",
                image,
                Layer.relu(),
                Layer.residual(Layer.relu(), Layer.relu(), Layer.groupNorm(5)));
        assertRefused(
                "layer 1 (residual), whose input is 12: it has no layers; at least one is needed",
                vector,
                Layer.residual());
        assertRefused(
                "layer 1 (flatten), whose input is 65536 x 65536: its result has too many elements",
                List.of(1 << 16, 1 << 16),
                Layer.flatten());
        assertRefused(
                "layer 1 (conv), whose input is 8 x 65536 x 65536: block 'conv1.weight' has 34359738368 columns; 2^31-1"
                        + " are possible",
                List.of(8, 1 << 16, 1 << 16),
                Layer.conv(1, 1 << 16));
    }

    @Test
    void theLastLayerHasALogitPerClass() {
        assertRefused(
                "layer 1 (dense) is the last one and has the result 12, but there are 10 classes; dense(10) would fit",
                List.of(4),
                Layer.dense(12));
        assertRefused(
                "layer 2 (relu) is the last one and has the result 12, but there are 10 classes; dense(10) after it would"
                        + " fit",
                List.of(4),
                Layer.dense(12),
                Layer.relu());
        assertRefused(
                "layer 1 (conv) is the last one and has the result 10 x 2 x 2, an image; flatten and dense(10) after it"
                        + " would fit",
                List.of(1, 4, 4),
                Layer.conv(10, 3));
        assertRefused("none of the 1 layers has parameters to train; dense(10) has", List.of(10), Layer.relu());
        assertRefused("a network without layers; dense(10) is the shortest list", List.of(10));
        assertThatThrownBy(() -> new Sequential(List.of(4), List.of(Layer.dense(1)), 0))
                .hasMessageContaining("0 classes");
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 4})
    void inputsHaveFromOneToThreeDimensions(int dimensions) {
        assertThatThrownBy(() -> new Sequential(Collections.nCopies(dimensions, 5), List.of(Layer.dense(10)), 10))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("from one to three dimensions");
        assertThatThrownBy(() -> new Sequential(List.of(3, 0), List.of(Layer.dense(10)), 10))
                .hasMessageContaining("[3, 0]");
    }
}
