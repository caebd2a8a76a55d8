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
 * Rounds of FedCoMuon with almost no computation, so that their time is the time of the exchange: ten clients, tau = 1,
 * and one vector as the weights, which is not orthogonalized.
 */
public final class ClusterRounds {
    static final int CLIENTS = 10;

    private ClusterRounds() {}

    /**
     * Runs the rounds in this process, alone or as one member.
     *
     * @param elements the number of elements of the weights
     * @param rounds the number of measured rounds; one more precedes them
     * @return the median of the seconds per round
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
