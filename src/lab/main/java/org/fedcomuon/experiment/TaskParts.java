package org.fedcomuon.experiment;

import java.util.List;
import java.util.stream.IntStream;
import org.fedcomuon.data.Partition;
import org.fedcomuon.model.Examples;
import org.fedcomuon.model.Network;
import org.fedcomuon.problem.Risk;

/**
 * The parts from which an objective makes a problem.
 *
 * @param risk the function of a client's loss
 * @param train the examples that clients have, those of a client one after the other
 * @param clients the indices into {@code train} of each client's examples
 * @param threads that judge models
 */
record TaskParts(
        Configuration configuration,
        TaskData data,
        Network network,
        Risk risk,
        Examples train,
        List<int[]> clients,
        int threads) {
    /** Returns the examples of a client, as a view. */
    Examples ofClient(int k) {
        int[] own = clients.get(k);
        return train.range(own[0], own[0] + own.length);
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
