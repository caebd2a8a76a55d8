package org.fedcomuon.experiment;

import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import java.util.stream.Stream;
import org.fedcomuon.model.Layer;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/**
 * Layers as they are written in a preset: a name, or a name with sizes, such as {@code relu}, {@code dense: 10} or
 * {@code conv: {out: 8, kernel: 3}}.
 */
final class LayerList {
    /** A kind of layer: the size that may stand alone, and how it is made. */
    private record Kind(String name, String only, List<String> sizes, Function<Sizes, Layer> make) {}

    private static final String PADDING = "padding";

    private static final List<Kind> KINDS = List.of(
            new Kind(
                    "conv",
                    "",
                    List.of("out", "kernel", "stride", PADDING),
                    sizes -> Layer.conv(sizes.whole("out"), sizes.whole("kernel"))
                            .stride(sizes.whole("stride", 1))
                            .padding(sizes.whole(PADDING, 0))),
            new Kind(
                    "dense",
                    "out",
                    List.of("out", "bias"),
                    sizes -> new Layer.Dense(sizes.whole("out"), sizes.flag("bias", true))),
            new Kind("relu", "", List.of(), sizes -> Layer.relu()),
            new Kind("gelu", "", List.of(), sizes -> Layer.gelu()),
            new Kind("tanh", "", List.of(), sizes -> Layer.tanh()),
            new Kind(
                    "maxpool",
                    "kernel",
                    List.of("kernel", "stride"),
                    sizes -> new Layer.MaxPool(sizes.whole("kernel"), sizes.whole("stride", sizes.whole("kernel")))),
            new Kind(
                    "avgpool",
                    "kernel",
                    List.of("kernel", "stride"),
                    sizes -> new Layer.AvgPool(sizes.whole("kernel"), sizes.whole("stride", sizes.whole("kernel")))),
            new Kind("flatten", "", List.of(), sizes -> Layer.flatten()),
            new Kind("layernorm", "", List.of(), sizes -> Layer.layerNorm()),
            new Kind("groupnorm", "groups", List.of("groups"), sizes -> Layer.groupNorm(sizes.whole("groups"))),
            new Kind("dropout", "p", List.of("p"), sizes -> Layer.dropout(sizes.share("p"))),
            new Kind(
                    "embedding",
                    "",
                    List.of("words", "width"),
                    sizes -> Layer.embedding(sizes.whole("words"), sizes.whole("width"))),
            new Kind("positions", "", List.of(), sizes -> Layer.positions()),
            new Kind("attention", "heads", List.of("heads", "hidden", "causal", "dropout"), LayerList::attention),
            new Kind("meantokens", "", List.of(), sizes -> Layer.meanTokens()));

    private static final String RESIDUAL = "residual";

    private LayerList() {}

    private static Layer attention(Sizes sizes) {
        Layer.Attention block = Layer.attention(sizes.whole("heads"))
                .causal(sizes.flag("causal", false))
                .dropout(sizes.has("dropout") ? sizes.share("dropout") : 0);
        return sizes.has("hidden") ? block.hidden(sizes.whole("hidden")) : block;
    }

    /** The setting that lists the layers of a model. */
    static Setting setting() {
        return new Setting(
                ModelChoice.LAYERS,
                "a list of layers such as [conv: {out: 8, kernel: 3}, relu, maxpool: 2, flatten, dense: 10]",
                text -> {
                    parse(text);
                    return text;
                });
    }

    /**
     * Returns the layers.
     *
     * @param text as JSON
     * @throws ConfigurationException naming every layer that is not possible, by its position
     */
    static List<Layer> parse(String text) {
        JsonNode root;
        try {
            root = JsonMapper.shared().readTree(text);
        } catch (JacksonException e) {
            throw new IllegalArgumentException(e);
        }
        if (!root.isArray() || root.isEmpty()) {
            throw new IllegalArgumentException("no list");
        }
        var mistakes = new ArrayList<String>();
        List<Layer> layers = layers(root, ModelChoice.LAYERS, mistakes);
        if (!mistakes.isEmpty()) {
            throw ConfigurationException.of(ModelChoice.LAYERS, mistakes);
        }
        return layers;
    }

    private static List<Layer> layers(JsonNode list, String where, List<String> mistakes) {
        var layers = new ArrayList<Layer>();
        for (int i = 0; i < list.size(); i++) {
            String at = "%s[%d]".formatted(where, i + 1);
            try {
                layers.add(layer(list.get(i), at, mistakes));
            } catch (IllegalArgumentException e) {
                mistakes.add("%s: %s".formatted(at, e.getMessage()));
            }
        }
        return layers;
    }

    private static Layer layer(JsonNode node, String where, List<String> mistakes) {
        boolean named = node.isString();
        if (!named && !(node.isObject() && node.size() == 1)) {
            throw new IllegalArgumentException("%s is not a layer; a name, or a name with sizes is".formatted(node));
        }
        String name =
                named ? node.stringValue() : node.propertyNames().iterator().next();
        JsonNode value = named ? JsonMapper.shared().createObjectNode() : node.get(name);
        if (name.equals(RESIDUAL)) {
            if (!value.isArray() || value.isEmpty()) {
                throw new IllegalArgumentException("residual needs a list of layers");
            }
            return new Layer.Residual(layers(value, where + "." + RESIDUAL, mistakes));
        }
        Kind kind = KINDS.stream()
                .filter(each -> each.name.equals(name))
                .findFirst()
                .orElseThrow(() -> new IllegalArgumentException(Nearest.unknown("layer", name, names())));
        if (value.isValueNode() && !kind.only.isEmpty()) {
            value = JsonMapper.shared().createObjectNode().set(kind.only, value);
        }
        if (!value.isObject()) {
            throw new IllegalArgumentException(
                    kind.sizes.isEmpty()
                            ? "%s has no sizes".formatted(name)
                            : "%s: %s; %s are needed".formatted(name, value, String.join(", ", kind.sizes)));
        }
        for (String size : value.propertyNames()) {
            if (!kind.sizes.contains(size)) {
                throw new IllegalArgumentException(
                        kind.sizes.isEmpty()
                                ? "%s has no sizes, but %s is given".formatted(name, size)
                                : "%s: %s".formatted(name, Nearest.unknown("size", size, kind.sizes)));
            }
        }
        return kind.make.apply(new Sizes(name, value));
    }

    /** Returns the names of all kinds of layers. */
    static List<String> names() {
        return Stream.concat(KINDS.stream().map(Kind::name), Stream.of(RESIDUAL))
                .toList();
    }

    /** The sizes of a layer. */
    private record Sizes(String layer, JsonNode values) {
        boolean has(String name) {
            return values.has(name);
        }

        int whole(String name) {
            JsonNode value = values.path(name);
            int least = name.equals(PADDING) ? 0 : 1;
            if (!value.isIntegralNumber() || !value.canConvertToInt() || value.intValue() < least) {
                throw new IllegalArgumentException(
                        "%s needs %s, a whole number from %d%s".formatted(layer, name, least, given(value)));
            }
            return value.intValue();
        }

        int whole(String name, int other) {
            return has(name) ? whole(name) : other;
        }

        double share(String name) {
            JsonNode value = values.path(name);
            if (!value.isNumber() || !(value.doubleValue() >= 0 && value.doubleValue() < 1)) {
                throw new IllegalArgumentException(
                        "%s needs %s, a number from 0 to less than 1%s".formatted(layer, name, given(value)));
            }
            return value.doubleValue();
        }

        boolean flag(String name, boolean other) {
            JsonNode value = values.path(name);
            if (has(name) && !value.isBoolean()) {
                throw new IllegalArgumentException(
                        "%s: %s is %s; true or false is possible".formatted(layer, name, value));
            }
            return has(name) ? value.booleanValue() : other;
        }

        private static String given(JsonNode value) {
            return value.isMissingNode() ? "" : ", not " + value;
        }
    }
}
