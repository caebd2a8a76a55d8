package org.fedcomuon.experiment;

import java.util.Locale;
import org.fedcomuon.model.CifarCnn;
import org.fedcomuon.model.LanguageModel;
import org.fedcomuon.model.LeNet;
import org.fedcomuon.model.Network;
import org.fedcomuon.model.VisionTransformer;
import org.fedcomuon.problem.Block;

/** The network that a configuration describes, for whoever wants it without data. */
public final class Networks {
    private Networks() {}

    /**
     * Makes it.
     *
     * @param classes how many a prediction chooses from: those of images, or the vocabulary
     */
    @SuppressWarnings("exports") // whoever uses networks has libtorch; others must not need it
    public static Network of(Configuration c, int classes) {
        String model = c.text("model");
        return switch (model) {
            case "lenet" -> new LeNet();
            case "cifar-cnn" ->
                new CifarCnn(new CifarCnn.Sizes(
                        32, c.integer("wide"), c.integer("wider"), c.integer("narrow"), c.integer("dense"), classes));
            case "vit" ->
                new VisionTransformer(new VisionTransformer.Sizes(
                        32, c.integer("patch"), c.integer("depth"), c.integer("width"), c.integer("heads"), classes));
            case "transformer" ->
                new LanguageModel(
                        new LanguageModel.Sizes(
                                classes,
                                c.integer("length"),
                                c.integer("depth"),
                                c.integer("width"),
                                c.integer("heads"),
                                c.integer("hidden"),
                                c.number("dropout")),
                        update(c, "embeddingUpdate"),
                        update(c, "headUpdate"));
            default -> throw new IllegalStateException("no such model: " + model);
        };
    }

    private static Block.Update update(Configuration c, String name) {
        return Block.Update.valueOf(c.text(name).toUpperCase(Locale.ROOT));
    }
}
