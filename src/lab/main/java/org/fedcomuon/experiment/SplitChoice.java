package org.fedcomuon.experiment;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import org.fedcomuon.data.ImageSet;
import org.fedcomuon.data.Partition;

/**
 * How the training set is divided among the clients.
 *
 * @param train divides it
 * @param test divides the test set in the same way, where a client's test set depends on its training set; otherwise
 *     all clients have the whole test set
 */
record SplitChoice(String name, List<Setting> settings, Divider train, Optional<Divider> test) implements Choice {
    /** Divides a set. */
    @FunctionalInterface
    interface Divider {
        Partition divide(Configuration c, TaskData data);
    }

    static final Registry<SplitChoice> ALL = new Registry<>(
            "split",
            new SplitChoice(
                    "imbalanced",
                    List.of(Setting.count("largest"), Setting.count("others")),
                    (c, data) -> {
                        var sizes = new ArrayList<>(Collections.nCopies(c.integer("clients"), c.integer("others")));
                        sizes.set(0, c.integer("largest"));
                        return Partition.imbalanced(data.trainCount(), sizes, c.seed());
                    },
                    Optional.empty()),
            new SplitChoice(
                    "one-large",
                    List.of(Setting.number("share", 0, 1).withDefault("0.5")),
                    (c, data) ->
                            Partition.oneLarge(data.trainCount(), c.integer("clients"), c.number("share"), c.seed()),
                    Optional.empty()),
            new SplitChoice(
                    "dominant",
                    List.of(
                            Setting.number("chi", 0, 1),
                            Setting.count("perClient").withDefault("5000"),
                            Setting.integer("testPerClient", 2, Setting.MANY).withDefault("1000")),
                    (c, data) -> dominant(c, data.labelledTrain(), "perClient"),
                    Optional.of((c, data) -> dominant(c, data.labelledTest(), "testPerClient"))));

    private static Partition dominant(Configuration c, Optional<ImageSet> labelled, String size) {
        ImageSet images = labelled.orElseThrow(() -> new ConfigurationException(
                "split = dominant needs classes, which a text does not have; one-large or imbalanced is possible"));
        return Partition.dominant(images, c.integer("clients"), c.integer(size), c.number("chi"), c.seed());
    }
}
