package org.fedcomuon.dashboard;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Map;
import java.util.concurrent.CountDownLatch;
import org.fedcomuon.federation.Federation;
import org.fedcomuon.federation.FederationRun;
import org.fedcomuon.federation.Listener;
import org.fedcomuon.federation.Result;
import org.fedcomuon.federation.Round;
import org.fedcomuon.federation.Start;
import org.fedcomuon.method.FedAvg;
import org.fedcomuon.method.Method;
import org.fedcomuon.method.Schedule;
import org.fedcomuon.problem.MatrixQuadratics;
import org.fedcomuon.problem.Problem;
import org.fedcomuon.problem.Risk;
import org.fedcomuon.testing.Events;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** A page about real runs. */
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class DashboardIT {
    private static Problem problem() {
        return new MatrixQuadratics(4, 3, 4, 1, 0.1, Risk.mean(), 1);
    }

    private static Method method() {
        return new FedAvg(Schedule.constant(0.01));
    }

    @Test
    void aProgramOfOnesOwn() throws Exception {
        Problem problem = problem();
        Method method = method();
        // @start region="embedded"
        try (Dashboard dashboard = Dashboard.builder().port(0).title("my run").open()) {
            System.out.println(dashboard.uri());
            Result result = Federation.of(problem, method)
                    .iterations(500)
                    .tau(5)
                    .listener(dashboard)
                    .build()
                    .run();
            // @end
            assertThat(result.step()).isEqualTo(500);
            try (Events events = Events.open(dashboard.uri(), "")) {
                var all = events.next().data();
                assertThat(all.get("state").asString()).isEqualTo("done");
                assertThat(all.at("/rounds/points").size()).isEqualTo(100);
                assertThat(all.at("/rounds/points/0/0").asLong()).isEqualTo(5);
                assertThat(all.get("bytes").asLong()).isEqualTo(result.communicatedBytes());
            }
        }
    }

    /** Results are bit-identical and no step waits while a browser is connected all the time. */
    @Test
    void aRunIsTheSameWithAPage() throws Exception {
        String alone = Federation.of(problem(), method())
                .iterations(2000)
                .tau(5)
                .build()
                .run()
                .sha256();
        try (Dashboard dashboard = Dashboard.builder().open();
                Events events = Events.open(dashboard.uri(), "")) {
            Result watched = Federation.of(problem(), method())
                    .iterations(2000)
                    .tau(5)
                    .devices("cpu:0", "cpu:1")
                    .evaluate(100, (step, average) -> Map.of("train_loss", Double.NaN))
                    .listener(dashboard)
                    .build()
                    .run();
            assertThat(watched.sha256()).isEqualTo(alone);
            assertThat(events.next().name()).isEqualTo("history");
        }
    }

    /** A failure in the dashboard itself ends the page, and the run goes on as it would without one. */
    @Test
    void aPageThatFailsIsNotTheRunsFault() throws Exception {
        String alone = Federation.of(problem(), method())
                .iterations(100)
                .tau(5)
                .build()
                .run()
                .sha256();
        try (Dashboard dashboard = Dashboard.builder().open()) {
            Result watched = Federation.of(problem(), method())
                    .iterations(100)
                    .tau(5)
                    .listener(dashboard)
                    .listener(new Listener() {
                        @Override
                        public void onStart(Start start) {
                            dashboard.onStart(withOneClient(start)); // so that losses of others have no place
                        }
                    })
                    .build()
                    .run();
            assertThat(watched.sha256()).isEqualTo(alone);
            assertThat(dashboard.isOpen()).isFalse();
        }
    }

    private static Start withOneClient(Start start) {
        return new Start(
                start.name(),
                start.method(),
                start.parameters(),
                start.step(),
                start.iterations(),
                start.tau(),
                start.seed(),
                start.communicatedBytes(),
                1,
                1,
                start.keptBytes(),
                start.devices(),
                start.placement());
    }

    @Test
    void aRunThatIsStoppedSaysSo() throws Exception {
        var round = new CountDownLatch(1);
        try (Dashboard dashboard = Dashboard.builder().open()) {
            try (FederationRun run = Federation.of(problem(), method())
                    .iterations(1_000_000_000)
                    .tau(5)
                    .listener(dashboard)
                    .listener(new Listener() {
                        @Override
                        public void onRound(Round done) {
                            round.countDown();
                        }
                    })
                    .build()
                    .start()) {
                round.await();
                run.stop();
                run.result().join();
            }
            try (Events events = Events.open(dashboard.uri(), "")) {
                assertThat(events.next().data().get("state").asString()).isEqualTo("stopped");
            }
        }
    }
}
