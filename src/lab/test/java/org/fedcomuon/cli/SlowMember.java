package org.fedcomuon.cli;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.fedcomuon.cluster.mpi.MpiCluster;
import org.fedcomuon.federation.Federation;
import org.fedcomuon.method.FedCoMuon;
import org.fedcomuon.method.Muon;
import org.fedcomuon.method.Schedule;
import org.fedcomuon.problem.Block;
import org.fedcomuon.problem.Layout;
import org.fedcomuon.problem.Loss;
import org.fedcomuon.problem.Problem;
import org.fedcomuon.problem.Risk;

/** A program that {@code mpirun} starts: a step of a member takes longer than the silence that is allowed. */
final class SlowMember {
    private static final Duration SILENCE = Duration.ofSeconds(1);

    private SlowMember() {}

    public static void main(String[] arguments) throws InterruptedException {
        int self;
        try (MpiCluster cluster = MpiCluster.join(SILENCE, failure -> {
            System.err.println(failure.getMessage());
            Runtime.getRuntime().halt(1);
        })) {
            self = cluster.self();
            var slept = new AtomicBoolean();
            Loss slow = (sample, w, gradient) -> {
                if (!slept.getAndSet(true)) {
                    rest(SILENCE.multipliedBy(2 + self)); // process 0 waits for process 1
                }
                gradient.block("w").fill(0);
                return 1;
            };
            Problem problem = Problem.ofLosses(Layout.of(Block.matrix("w", 2, 2)), List.of(slow, slow), Risk.mean());
            var method = new FedCoMuon(
                    Schedule.constant(0.1), Schedule.constant(0.1), Schedule.constant(0.1), Muon.standard());
            Federation.of(problem, method)
                    .cluster(cluster)
                    .iterations(2)
                    .build()
                    .run();
            if (self == 0) {
                rest(SILENCE.multipliedBy(2)); // as in an evaluation
            }
        }
        System.out.printf("process %d has ended%n", self);
    }

    private static void rest(Duration duration) {
        try {
            TimeUnit.MILLISECONDS.sleep(duration.toMillis());
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }
}
