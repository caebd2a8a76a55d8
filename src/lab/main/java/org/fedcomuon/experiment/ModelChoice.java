package org.fedcomuon.experiment;

import java.util.List;
import java.util.Locale;
import org.fedcomuon.model.CifarCnn;
import org.fedcomuon.model.LanguageModel;
import org.fedcomuon.model.LeNet;
import org.fedcomuon.model.Network;
import org.fedcomuon.model.VisionTransformer;
import org.fedcomuon.problem.Block;

/**
 * A model.
 *
 * @param input the kind of its examples
 * @param factory makes it
 */
record ModelChoice(String name, List<Setting> settings, Input input, Factory factory) implements Choice {
    /** Makes a network. */
    @FunctionalInterface
    interface Factory {
        /**
         * Makes it.
         *
         * @param classes the number of classes of a prediction
         */
        Network network(Configuration c, int classes);
    }

    private static final Input MNIST = new Input.Image(1, 28, 28);
    private static final Input CIFAR10 = new Input.Image(3, 32, 32);

    private static final Setting DEPTH = Setting.integer("depth", 1, 1000);
    private static final Setting WIDTH = Setting.integer("width", 2, 100_000);
    private static final Setting HEADS = Setting.integer("heads", 1, 1000);

    static final Registry<ModelChoice> ALL = new Registry<>(
            "model",
            new ModelChoice("lenet", List.of(), MNIST, (c, classes) -> new LeNet()),
            new ModelChoice(
                    "cifar-cnn",
                    List.of(
                            Setting.integer("wide", 1, 100_000).withDefault("96"),
                            Setting.integer("wider", 1, 100_000).withDefault("196"),
                            Setting.integer("narrow", 1, 100_000).withDefault("10"),
                            Setting.integer("dense", 1, 100_000).withDefault("1000")),
                    CIFAR10,
                    (c, classes) -> new CifarCnn(new CifarCnn.Sizes(
                            32,
                            c.integer("wide"),
                            c.integer("wider"),
                            c.integer("narrow"),
                            c.integer("dense"),
                            classes))),
            new ModelChoice(
                    "vit",
                    List.of(
                            Setting.integer("patch", 1, 100_000).withDefault("4"),
                            DEPTH.withDefault("12"),
                            WIDTH.withDefault("192"),
                            HEADS.withDefault("3")),
                    CIFAR10,
                    (c, classes) -> new VisionTransformer(new VisionTransformer.Sizes(
                            32,
                            c.integer("patch"),
                            c.integer("depth"),
                            c.integer("width"),
                            c.integer("heads"),
                            classes))),
            new ModelChoice(
                    "transformer",
                    List.of(
                            DEPTH.withDefault("8"),
                            WIDTH.withDefault("768"),
                            HEADS.withDefault("8"),
                            Setting.integer("hidden", 1, 1_000_000).withDefault("1024"),
                            Setting.notNegative("dropout").withDefault("0.1"),
                            update("embeddingUpdate"),
                            update("headUpdate")),
                    new Input.Words(),
                    (c, classes) -> new LanguageModel(
                            new LanguageModel.Sizes(
                                    classes,
                                    c.integer("length"),
                                    c.integer("depth"),
                                    c.integer("width"),
                                    c.integer("heads"),
                                    c.integer("hidden"),
                                    c.number("dropout")),
                            update(c, "embeddingUpdate"),
                            update(c, "headUpdate"))));

    private static Setting update(String name) {
        return Setting.oneOf(name, List.of("orthogonal", "vector")).withDefault("orthogonal");
    }

    private static Block.Update update(Configuration c, String name) {
        return Block.Update.valueOf(c.text(name).toUpperCase(Locale.ROOT));
    }

    /**
     * Returns the network for some data.
     *
     * @throws ConfigurationException when it cannot be trained on them
     */
    Network network(Configuration c, TaskData data) {
        if (!input.equals(data.input())) {
            throw new ConfigurationException("model = %s takes %s, but data = %s has %s"
                    .formatted(name, input, c.text(DataChoice.ALL.kind()), data.input()));
        }
        return factory.network(c, data.classes());
    }
}
