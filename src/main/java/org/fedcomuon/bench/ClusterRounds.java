package org.fedcomuon.bench;

import java.util.Arrays;
import java.util.Optional;
import org.fedcomuon.cluster.Cluster;
import org.fedcomuon.federation.Federation;
import org.fedcomuon.federation.Listener;
import org.fedcomuon.federation.Round;
import org.fedcomuon.method.FedCoMuon;
import org.fedcomuon.method.Muon;
import org.fedcomuon.method.Schedule;
import org.fedcomuon.problem.Block;
import org.fedcomuon.problem.Layout;

/**
 * Rounds of FedCoMuon in which next to nothing is computed, so that what they take is what it takes to meet: ten
 * clients, tau = 1, and one vector as the weights, which is not orthogonalized.
 */
public final class ClusterRounds {
    static final int CLIENTS = 10;

    private ClusterRounds() {}

    /**
     * Runs them in this process, alone or as one member.
     *
     * @param elements of the weights
     * @param rounds that count; one more comes before them
     * @return seconds of a round, the median
     */
    public static double seconds(Optional<Cluster> cluster, int elements, int rounds) throws InterruptedException {
        var ends = new double[rounds + 1];
        Schedule rate = Schedule.constant(0.1);
        Federation.Builder run = Federation.of(
                        new ScaleProblem(Layout.of(Block.vector("W", elements)), CLIENTS, 1),
                        new FedCoMuon(rate, rate, rate, Muon.standard()))
                .threads(1)
                .workers(1)
                .iterations(rounds + 1)
                .listener(new Listener() {
                    @Override
                    public void onRound(Round round) {
                        ends[(int) round.number()] = round.seconds();
                    }
                });
        cluster.ifPresent(run::cluster);
        run.build().run();
        var each = new double[rounds];
        Arrays.setAll(each, i -> ends[i + 1] - ends[i]);
        return Timing.of(each).median();
    }
}
