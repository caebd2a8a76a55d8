package org.fedcomuon.experiment;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.Map;
import org.fedcomuon.model.Layer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What the layers of a YAML file are. */
class LayerListTest {
    /** As a user writes it, in YAML. */
    private static String list(String yaml) {
        return Preset.parse("mine.yaml", "model: {layers: [%s]}".formatted(yaml))
                .settings()
                .get("layers");
    }

    @Test
    void everyKindIsALayer() {
        assertThat(LayerList.parse(list("""
                        conv: {out: 8, kernel: 3}, conv: {out: 8, kernel: 3, stride: 2, padding: 1},
                        dense: 10, dense: {out: 10}, dense: {out: 10, bias: false},
                        relu, gelu, tanh, maxpool: 2, maxpool: {kernel: 3, stride: 1}, avgpool: 2, avgpool: {kernel: 2},
                        flatten, layernorm, groupnorm: 4, groupnorm: {groups: 4}, dropout: 0.5, dropout: {p: 0},
                        embedding: {words: 50, width: 8}, positions, meantokens,
                        attention: 2, attention: {heads: 4, hidden: 32, causal: true, dropout: 0.1},
                        residual: [dense: 4, residual: [relu]], relu: {}
                        """.replace("\n", " "))))
                .containsExactly(
                        Layer.conv(8, 3),
                        Layer.conv(8, 3).stride(2).padding(1),
                        Layer.dense(10),
                        Layer.dense(10),
                        new Layer.Dense(10, false),
                        Layer.relu(),
                        Layer.gelu(),
                        Layer.tanh(),
                        Layer.maxPool(2),
                        new Layer.MaxPool(3, 1),
                        Layer.avgPool(2),
                        Layer.avgPool(2),
                        Layer.flatten(),
                        Layer.layerNorm(),
                        Layer.groupNorm(4),
                        Layer.groupNorm(4),
                        Layer.dropout(0.5),
                        Layer.dropout(0),
                        Layer.embedding(50, 8),
                        Layer.positions(),
                        Layer.meanTokens(),
                        Layer.attention(2),
                        Layer.attention(4).hidden(32).causal(true).dropout(0.1),
                        Layer.residual(Layer.dense(4), Layer.residual(Layer.relu())),
                        Layer.relu());
    }

    /** What {@code config.yaml} and {@code --set} have is the same list, as JSON. */
    @Test
    void theListOfARunIsReadAgain() {
        String json = list("conv: {out: 8, kernel: 3}, residual: [dense: {out: 4, bias: false}, relu], dense: 10");
        assertThat(json).doesNotContain("\n");
        assertThat(LayerList.setting().check(json)).isEqualTo(json);
        Preset again = Preset.parse("config.yaml", "model: layers\nlayers: '%s'\n".formatted(json));
        assertThat(again.settings()).containsEntry("layers", json);
        assertThat(LayerList.parse(json)).hasSize(3);
        Configuration c = Configuration.of(
                Preset.load("mnist-robust"), Map.of("model", "layers", "layers", "[\"flatten\", {\"dense\": 10}]"));
        assertThat(LayerList.parse(c.text("layers"))).containsExactly(Layer.flatten(), Layer.dense(10));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = ';',
            value = {
                "conv: 8;layers[1]: conv: 8",
                "'conv: {out: 8, kernel: -3}';layers[1]: conv needs kernel, a whole number from 1, not -3",
                "'conv: {out: 8, kernel: 0}';layers[1]: ",
                "'dense: 2.5';layers[1]: dense needs out, a whole number from 1, not 2.5",
                "'dense: 99999999999';layers[1]: dense needs out",
                "'dense';layers[1]: dense needs out, a whole number",
                "'dense: [3]';layers[1]: dense: [3]",
                "'dense: {out: 3, bias: 1}';layers[1]: dense: bias is 1",
                "'relu: 1';layers[1]: relu has no sizes",
                "'relu: {slope: 1}';layers[1]: relu has no sizes, but slope is given",
                "'relu, {relu: {}, tanh: {}}';layers[2]: ",
                "'relu, 3';layers[2]: 3 is not a layer",
                "'dropout: 2';layers[1]: ",
                "'dropout: half';layers[1]: dropout needs p, a number",
                "'maxpool: 0';layers[1]: ",
                "'groupnorm: 0';layers[1]: ",
                "'attention: 0';layers[1]: ",
                "'residual: relu';layers[1]: residual needs a list of layers",
                "'residual: []';layers[1]: residual needs a list of layers",
                "'residual: [relu, gellu]';layers[1].residual[2]: no layer is called 'gellu'"
            })
    void whatIsNoLayerIsNamedByItsPlace(String yaml, String message) {
        assertThatThrownBy(() -> LayerList.parse(list(yaml)))
                .isInstanceOf(ConfigurationException.class)
                .hasMessageStartingWith(message);
    }
}
