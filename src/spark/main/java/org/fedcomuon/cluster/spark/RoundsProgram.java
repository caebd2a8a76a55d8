package org.fedcomuon.cluster.spark;

import java.util.Optional;
import org.fedcomuon.bench.ClusterRounds;

/** Rounds of a benchmark; every member reports what it has measured. */
record RoundsProgram(int clients, int elements, int rounds, boolean computes) implements RunSpec.Program {
    static RoundsProgram of(ClusterRounds.Work work) {
        return new RoundsProgram(work.clients(), work.elements(), work.rounds(), work.computes());
    }

    @Override
    public void run(Member member, StartPoint start) throws InterruptedException {
        ClusterRounds.Measured sample =
                ClusterRounds.run(Optional.of(member), new ClusterRounds.Work(clients, elements, rounds, computes));
        member.report("%d %s".formatted(member.self(), sample));
    }
}
