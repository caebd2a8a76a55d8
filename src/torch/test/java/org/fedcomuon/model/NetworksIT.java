package org.fedcomuon.model;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.bytedeco.pytorch.Tensor;
import org.fedcomuon.problem.Block;
import org.fedcomuon.problem.Layout;
import org.junit.jupiter.api.Test;

/** What the networks compute, and of which sizes they are. */
class NetworksIT {
    private static float[] logits(TinyModels model, Tensor input, Dropout dropout) {
        Torch.claim();
        try (Arena arena = Arena.ofShared()) {
            return floats(model.network.logits(Parameters.of(model.start(arena)), input, dropout));
        }
    }

    private static float[] floats(Tensor tensor) {
        var values = new float[Math.toIntExact(tensor.numel())];
        tensor.contiguous().data_ptr_float().get(values);
        return values;
    }

    private static void assertClose(float[] actual, double... expected) {
        assertThat(actual).hasSize(expected.length);
        for (int i = 0; i < expected.length; i++) {
            assertThat((double) actual[i]).isCloseTo(expected[i], within(1e-4));
        }
    }

    @Test
    void theCnnIsWhatItsDefinitionSays() {
        Tensor images = TinyModels.CNN.examples(2).inputs();
        var plainly = new Plainly(TinyModels.CNN.network.layout(), TinyModels.CNN.weights());
        float[] both = logits(TinyModels.CNN, images, Dropout.none());
        assertClose(Arrays.copyOfRange(both, 4, 8), plainly.cnn(DoublePrecision.widened(floats(images.select(0, 1)))));
    }

    @Test
    void theVisionTransformerIsWhatItsDefinitionSays() {
        Tensor images = TinyModels.VIT.examples(2).inputs();
        var plainly = new Plainly(TinyModels.VIT.network.layout(), TinyModels.VIT.weights());
        float[] both = logits(TinyModels.VIT, images, Dropout.none());
        assertClose(
                Arrays.copyOfRange(both, 4, 8),
                plainly.vit(DoublePrecision.widened(floats(images.select(0, 1))), 8, 4, 2, 2));
    }

    @Test
    void theLanguageModelIsWhatItsDefinitionSays() {
        long[][] text = {{1, 2, 3, 4, 5, 6}, {10, 0, 7, 7, 3, 9}};
        var plainly = new Plainly(TinyModels.LANGUAGE.network.layout(), TinyModels.LANGUAGE.weights());
        float[] both = logits(TinyModels.LANGUAGE, tokens(text), Dropout.none());
        double[][] expected = plainly.language(text[1], 8, 2, 2);
        for (int t = 0; t < 6; t++) {
            assertClose(Arrays.copyOfRange(both, (6 + t) * 11, (7 + t) * 11), expected[t]);
        }
        // A shorter sequence has the same beginning.
        float[] start = logits(TinyModels.LANGUAGE, tokens(new long[][] {{10, 0, 7}}), Dropout.none());
        assertClose(start, DoublePrecision.widened(Arrays.copyOfRange(both, 66, 66 + 33)));
    }

    private static Tensor tokens(long[][] text) {
        return Tensor.create(Arrays.stream(text).flatMapToLong(Arrays::stream).toArray())
                .view(text.length, text[0].length);
    }

    @Test
    void noTokenSeesALaterOne() {
        float[] before = logits(TinyModels.LANGUAGE, tokens(new long[][] {{1, 2, 3, 4, 5, 6}}), Dropout.none());
        float[] after = logits(TinyModels.LANGUAGE, tokens(new long[][] {{1, 2, 3, 9, 5, 6}}), Dropout.none());
        assertThat(Arrays.copyOfRange(after, 0, 33)).isEqualTo(Arrays.copyOfRange(before, 0, 33));
        for (int t = 3; t < 6; t++) { // and every one from there on does
            assertThat(Arrays.copyOfRange(after, 11 * t, 11 * t + 11))
                    .isNotEqualTo(Arrays.copyOfRange(before, 11 * t, 11 * t + 11));
        }
    }

    @Test
    void theCnnHasThePapersSizes() {
        var network = new CifarCnn();
        assertThat(network.parameters())
                .isEqualTo((96 * 27 + 96)
                        + (96 * 864 + 96)
                        + (196 * 96 + 196)
                        + (10 * 196 + 10)
                        + (1960 * 1000 + 1000)
                        + (1000 * 1000 + 1000)
                        + (1000 * 10 + 10))
                .isEqualTo(3_078_720);
        assertThat(block(network, "conv2.weight").cols()).isEqualTo(864);
        assertThat(block(network, "dense1.weight").cols()).isEqualTo(1960);
    }

    @Test
    void theVisionTransformerHasThePapersSizes() {
        int block = 2 * 2 * 192 + 4 * (192 * 192 + 192) + (192 * 768 + 768) + (768 * 192 + 192);
        assertThat(new VisionTransformer().parameters())
                .isEqualTo((48 * 192 + 192) + 192 + 65 * 192 + 12 * block + 2 * 192 + (192 * 10 + 10))
                .isEqualTo(5_362_762);
    }

    @Test
    void theLanguageModelHasThePapersSizes() {
        long block = 2 * 2 * 768 + 4 * (768 * 768 + 768) + (768 * 1024 + 1024) + (1024 * 768 + 768);
        long vocabulary = 33_278;
        assertThat(new LanguageModel(LanguageModel.Sizes.paper(33_278)).parameters())
                .isEqualTo(vocabulary * 768 + 8 * block + 2 * 768 + vocabulary * 768 + vocabulary)
                .isEqualTo(82_670_590);
    }

    @Test
    void tokensAndPositionsAreNotMatrices() {
        var vit = new VisionTransformer();
        assertThat(block(vit, "positions").update()).isEqualTo(Block.Update.VECTOR);
        assertThat(block(vit, "class.token").update()).isEqualTo(Block.Update.VECTOR);
        assertThat(block(vit, "patch.weight").update()).isEqualTo(Block.Update.ORTHOGONAL);
        assertThat(block(vit, "block12.query.weight").update()).isEqualTo(Block.Update.ORTHOGONAL);
        var sizes = LanguageModel.Sizes.paper(100);
        assertThat(block(new LanguageModel(sizes), "embedding").update()).isEqualTo(Block.Update.ORTHOGONAL);
        assertThat(block(new LanguageModel(sizes), "head.weight").update()).isEqualTo(Block.Update.ORTHOGONAL);
        var chosen = new LanguageModel(sizes, Block.Update.VECTOR, Block.Update.ORTHOGONAL);
        assertThat(block(chosen, "embedding").update()).isEqualTo(Block.Update.VECTOR);
        assertThat(block(chosen, "head.weight").update()).isEqualTo(Block.Update.ORTHOGONAL);
    }

    private static Block block(Network network, String name) {
        Layout layout = network.layout();
        return layout.blocks().get(layout.position(name));
    }

    @Test
    void sizesThatCannotBeAreRefused() {
        for (Runnable impossible : List.<Runnable>of(
                () -> new CifarCnn.Sizes(4, 1, 1, 1, 1, 1),
                () -> new CifarCnn.Sizes(32, 1, 1, 1, 0, 10),
                () -> new VisionTransformer.Sizes(32, 5, 1, 8, 2, 10),
                () -> new VisionTransformer.Sizes(32, 4, 1, 8, 3, 10),
                () -> new VisionTransformer.Sizes(32, 4, 0, 8, 2, 10),
                () -> new LanguageModel.Sizes(1, 8, 1, 8, 2, 8, 0),
                () -> new LanguageModel.Sizes(9, 8, 1, 9, 3, 8, 0),
                () -> new LanguageModel.Sizes(9, 8, 1, 8, 2, 8, 1))) {
            assertThatThrownBy(impossible::run).isInstanceOf(IllegalArgumentException.class);
        }
        assertThatThrownBy(() -> logits(TinyModels.LANGUAGE, tokens(new long[1][7]), Dropout.none()))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("7 tokens");
    }

    @Test
    void startsAsIsUsual() {
        var sizes = new LanguageModel.Sizes(300, 6, 2, 64, 2, 12, 0.1);
        Layout layout = new LanguageModel(sizes).layout();
        float[] w = Initialization.uniform(layout, 1).toArray();
        assertThat(Initialization.uniform(layout, 1).toArray()).isEqualTo(w);
        assertThat(Initialization.uniform(layout, 2).toArray()).isNotEqualTo(w);
        assertThat(part(layout, w, "block2.norm1.gain")).containsOnly(1f);
        assertThat(part(layout, w, "norm.shift")).containsOnly(0f);
        assertThat(deviation(part(layout, w, "embedding"))).isCloseTo(1.0 / 8, within(0.005));
        assertThat(part(layout, w, "embedding")).anyMatch(value -> value > 3.0 / 8); // normal, not uniform
        assertThat(deviation(part(layout, w, "head.weight"))).isCloseTo(1 / Math.sqrt(3 * 64), within(0.005));

        layout = new VisionTransformer().layout();
        w = Initialization.uniform(layout, 1).toArray();
        assertThat(deviation(part(layout, w, "positions"))).isCloseTo(0.02, within(0.001));
        assertThat(deviation(part(layout, w, "class.token"))).isCloseTo(0.02, within(0.004));
    }

    private static List<Float> part(Layout layout, float[] w, String name) {
        int block = layout.position(name);
        int from = Math.toIntExact(layout.offset(block));
        var list = new ArrayList<Float>();
        for (int i = from; i < from + layout.blocks().get(block).size(); i++) {
            list.add(w[i]);
        }
        return list;
    }

    private static double deviation(List<Float> values) {
        return Math.sqrt(values.stream().mapToDouble(v -> v * v).average().orElseThrow());
    }
}
