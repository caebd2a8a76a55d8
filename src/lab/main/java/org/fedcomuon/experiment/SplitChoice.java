package org.fedcomuon.experiment;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import org.fedcomuon.data.ExampleSet;
import org.fedcomuon.data.Partition;

/**
 * How the training set is divided among the clients.
 *
 * <p>Immutable.
 *
 * @param train divides it
 * @param test divides the test set in the same way, where a client's test set depends on its training set; otherwise
 *     all clients have the whole test set
 */
public record SplitChoice(String name, List<Setting> settings, Divider train, Optional<Divider> test)
        implements Choice {
    /** Divides a set. Called by many threads. */
    @FunctionalInterface
    public interface Divider {
        /**
         * Returns the examples of each client.
         *
         * @throws IllegalArgumentException when the data cannot be divided as the settings say
         */
        Partition divide(Configuration c, TaskData data);
    }

    static final Registry<SplitChoice> ALL = new Registry<>(
            "split",
            ChoiceProvider::splits,
            new SplitChoice(
                    "iid",
                    List.of(),
                    (c, data) -> Partition.iid(data.trainCount(), c.integer("clients"), c.seed()),
                    Optional.empty()),
            new SplitChoice(
                    "dirichlet",
                    List.of(Setting.number("concentration", 0, 1e6).withDefault("0.5")),
                    (c, data) -> Partition.dirichlet(
                            labelled(data.labelledTrain(), "dirichlet"),
                            c.integer("clients"),
                            c.number("concentration"),
                            c.seed()),
                    Optional.empty()),
            new SplitChoice(
                    "by-column",
                    List.of(Setting.integer("clients", 1, 100_000).optional()), // as many as there are values
                    (c, data) -> Partition.byGroup(labelled(data.labelledTrain(), "by-column"), c.clients()),
                    Optional.empty()),
            new SplitChoice(
                    "positive-shares",
                    List.of(Setting.count("perClient").withDefault("500"), shares()),
                    (c, data) -> Partition.byShares(
                            labelled(data.labelledTrain(), "positive-shares"),
                            c.integer("clients"),
                            c.integer("perClient"),
                            Arrays.stream(c.text("shares").split(",", -1))
                                    .map(Double::valueOf)
                                    .toList(),
                            c.seed()),
                    Optional.empty()),
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
                    List.of(Setting.share("share").withDefault("0.5")),
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

    /** Returns the shares of positive examples, one per client, from the beginning again after the last one. */
    private static Setting shares() {
        return new Setting("shares", "a list of numbers between 0 and 1, such as 0.01,0.5", text -> {
                    var shares = new ArrayList<String>();
                    for (String share : text.split(",", -1)) {
                        double number = Double.parseDouble(share);
                        if (!(number > 0 && number < 1)) {
                            throw new IllegalArgumentException("out of range");
                        }
                        shares.add(Double.toString(number));
                    }
                    return String.join(",", shares);
                })
                .withDefault("0.5");
    }

    private static ExampleSet labelled(Optional<ExampleSet> examples, String split) {
        return examples.orElseThrow(() -> new ConfigurationException(
                "split = %s needs classes, which a text does not have; iid, one-large or imbalanced is possible"
                        .formatted(split)));
    }

    private static Partition dominant(Configuration c, Optional<ExampleSet> examples, String size) {
        return Partition.dominant(
                labelled(examples, "dominant"), c.integer("clients"), c.integer(size), c.number("chi"), c.seed());
    }
}
