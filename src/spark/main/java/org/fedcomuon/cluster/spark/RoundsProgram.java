package org.fedcomuon.cluster.spark;

import java.util.Optional;
import org.fedcomuon.bench.ClusterRounds;

/** Rounds of a benchmark; the first member reports the seconds per round. */
record RoundsProgram(int elements, int rounds) implements RunSpec.Program {
    @Override
    public void run(Member member, StartPoint start) throws InterruptedException {
        double seconds = ClusterRounds.seconds(Optional.of(member), elements, rounds);
        if (member.self() == 0) {
            member.report(Double.toString(seconds));
        }
    }
}
