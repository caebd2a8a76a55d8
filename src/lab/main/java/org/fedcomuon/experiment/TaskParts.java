package org.fedcomuon.experiment;

import java.util.List;
import java.util.function.ToDoubleFunction;
import java.util.stream.IntStream;
import org.fedcomuon.data.Partition;
import org.fedcomuon.device.Device;
import org.fedcomuon.federation.Evaluator;
import org.fedcomuon.model.ClassificationJudge;
import org.fedcomuon.model.Examples;
import org.fedcomuon.model.Network;
import org.fedcomuon.problem.Point;

/**
 * The parts from which an objective makes a problem.
 *
 * <p>Immutable, provided that the arrays are not changed.
 *
 * @param train the examples that clients have, those of a client one after the other
 * @param clients the indices into {@code train} of each client's examples
 * @param partition the same as numbers of examples of the training set
 * @param validation the examples of each client that are held back for validation; no client's where there are none
 * @param threads that judge models
 */
public record TaskParts(
        Configuration configuration,
        TaskData data,
        Network network,
        Examples train,
        List<int[]> clients,
        Partition partition,
        List<Examples> validation,
        int threads) {
    public TaskParts {
        clients = List.copyOf(clients);
        validation = List.copyOf(validation);
    }

    /** Returns the parameters of the network, which come first among those of a problem, as a view. */
    public Point ofNetwork(Point w) {
        return new Point(network.layout(), w.values().slice(0, network.layout().length()));
    }

    /** Returns an evaluation of the parameters of the network, for an evaluation of those of a problem. */
    Evaluator.OnDevices ofNetwork(Evaluator.OnDevices evaluator) {
        return new Evaluator.OnDevices() {
            @Override
            public double[] share(Device device, int share, int shares, Point average) throws Exception {
                return evaluator.share(device, share, shares, ofNetwork(average));
            }

            @Override
            public Evaluator.Scores scores(long step, List<double[]> shares) throws Exception {
                return evaluator.scores(step, shares);
            }
        };
    }

    /** Returns the numbers that a client's examples have in the training set. */
    public int[] originals(int k) {
        return partition.indices(k);
    }

    /** Returns the examples of a client, as a view. */
    public Examples ofClient(int k) {
        int[] own = clients.get(k);
        return train.range(own[0], own[0] + own.length);
    }

    /** Returns the examples of a client that are held back for validation, which may be none. */
    public Examples validation(int k) {
        return validation.isEmpty() ? train.range(0, 0) : validation.get(k);
    }

    /** Returns the examples that are held back for validation, of each client that has some. */
    public List<Examples> validationSets() {
        return validation.stream().filter(held -> held.count() > 0).toList();
    }

    /**
     * Returns what makes the metrics of a network whose clients have losses.
     *
     * @param objective returns what is minimized, from the losses of all clients
     */
    ClassificationJudge.Metrics metrics(ToDoubleFunction<double[]> objective) {
        return new ClassificationJudge.Metrics(
                clients.stream().map(own -> own.length).toList(), data.hasPerplexity(), objective);
    }

    /** Returns how the test set is divided among clients; empty where all clients have the whole test set. */
    List<int[]> testSets() {
        return configuration
                .chosen(SplitChoice.ALL)
                .test()
                .map(divider -> divider.divide(configuration, data))
                .map(TaskParts::indices)
                .orElse(List.of());
    }

    private static List<int[]> indices(Partition partition) {
        return IntStream.range(0, partition.clients())
                .mapToObj(partition::indices)
                .toList();
    }

    /** Returns {@code count}, limited to {@code most}; 0 means no limit. */
    static int limited(int count, int most) {
        return most == 0 ? count : Math.min(count, most);
    }
}
