package org.fedcomuon.cluster.spark;

import java.util.Optional;
import org.fedcomuon.bench.ClusterRounds;

/** Rounds to be measured; the first member tells what one took. */
record RoundsProgram(int elements, int rounds) implements Order.Program {
    @Override
    public void run(Member member, Start start) throws InterruptedException {
        double seconds = ClusterRounds.seconds(Optional.of(member), elements, rounds);
        if (member.self() == 0) {
            member.tell(Double.toString(seconds));
        }
    }
}
