package org.fedcomuon.federation;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import jdk.jfr.Recording;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordingFile;
import org.fedcomuon.method.ClientFault;
import org.fedcomuon.method.ClientFaultException;
import org.fedcomuon.method.Clients;
import org.fedcomuon.method.FedAvg;
import org.fedcomuon.method.Schedule;
import org.fedcomuon.problem.Block;
import org.fedcomuon.problem.Layout;
import org.fedcomuon.problem.Loss;
import org.fedcomuon.problem.MatrixQuadratics;
import org.fedcomuon.problem.Problem;
import org.fedcomuon.problem.Risk;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Runs in the background, and what they tell those who watch. */
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class FederationRunIT {
    private static final int CLIENTS = 4;

    @TempDir
    private Path directory;

    private static Federation.Builder quadratics() {
        return Federation.of(new MatrixQuadratics(CLIENTS, 3, 4, 1, 0.1, Risk.mean(), 1), AllMethods.fedCoMuon())
                .tau(5)
                .seed(42);
    }

    private static Federation.Builder endless() {
        return quadratics().iterations(1_000_000_000);
    }

    /** A listener that lets a test wait for a round. */
    private static final class Rounds implements Listener {
        final CountDownLatch first = new CountDownLatch(1);
        final List<String> told = Collections.synchronizedList(new ArrayList<>());

        @Override
        public void onStart(Start start) {
            told.add("start " + start.name());
        }

        @Override
        public void onRound(Round round) {
            first.countDown();
        }

        @Override
        public void onEnd(Result result) {
            told.add("end " + result.stopped());
        }

        @Override
        public void onFailure(Throwable failure) {
            told.add("failure " + failure.getMessage());
        }
    }

    @Test
    void aRunInTheBackgroundEndsAsOneInTheForeground() throws Exception {
        String expected = quadratics().iterations(20).build().run().sha256();
        Federation federation = quadratics().iterations(20).build();
        List<String> hashes = new CopyOnWriteArrayList<>();
        // @start region="background"
        try (FederationRun run = federation.start()) {
            CompletableFuture<Void> told = run.result().thenAccept(done -> hashes.add(done.sha256())); // by its thread
            Result result = run.result().get(1, TimeUnit.MINUTES); // run.stop() would end it after the step it is in
            told.join();
            hashes.add(result.sha256());
        }
        // @end
        assertThat(hashes).containsExactly(expected, expected);
    }

    @Test
    void stoppingCompletesTheResult() throws Exception {
        var rounds = new Rounds();
        try (FederationRun run = endless()
                .name("mine")
                .listener(rounds)
                .checkpoints(directory, 1_000_000)
                .build()
                .start()) {
            rounds.first.await();
            assertThat(run.isRunning()).isTrue();
            run.stop();
            Result result = run.result().get();
            assertThat(result.stopped()).isTrue();
            assertThat(result.checkpoint()).isPresent();
        }
        assertThat(rounds.told).containsExactly("start mine", "end true");
    }

    @Test
    void cancellingStops() throws Exception {
        var rounds = new Rounds();
        FederationRun run = endless().listener(rounds).build().start();
        rounds.first.await();
        run.result().cancel(true);
        assertThatThrownBy(() -> run.result().get()).isInstanceOf(CancellationException.class);
        run.close();
        assertThat(run.isRunning()).isFalse();
        assertThat(rounds.told).endsWith("end true");
    }

    @Test
    void closingStopsAndWaits() throws Exception {
        var rounds = new Rounds();
        FederationRun run = endless().listener(rounds).build().start();
        rounds.first.await();
        run.close();
        assertThat(run.isRunning()).isFalse();
        assertThat(run.result()).isCompleted();
        run.close(); // again
        assertThat(Thread.getAllStackTraces().keySet().stream().map(Thread::getName))
                .noneMatch(name -> name.startsWith("federation-"));
    }

    @Test
    void whatDependsOnTheResultMayClose() throws Exception {
        var rounds = new Rounds();
        FederationRun run = endless().listener(rounds).build().start();
        CompletableFuture<Void> closed = run.result().thenRun(run::close); // by the run's own thread
        rounds.first.await();
        run.stop();
        closed.get();
        run.close(); // waits
        assertThat(run.isRunning()).isFalse();
    }

    @Test
    void listenersAndEvaluatorsMayClose() throws Exception {
        var started = new CompletableFuture<FederationRun>();
        var listener = new Listener() {
            @Override
            public void onRound(Round round) {
                started.join().close();
            }
        };
        started.complete(
                endless().devices("cpu:0", "cpu:1").listener(listener).build().start());
        assertThat(started.get().result().get().step()).isEqualTo(5);
        var other = new CompletableFuture<FederationRun>();
        other.complete(endless()
                .evaluate(1, (step, average) -> {
                    other.join().close();
                    return Map.of();
                })
                .build()
                .start());
        assertThat(other.get().result().get().stopped()).isTrue();
    }

    @Test
    void anEvaluationKeepsWhatItWasTold() {
        var metrics = new LinkedHashMap<>(Map.of("loss", 1.0));
        var evaluation = new Evaluation(1, 1, metrics, List.of(), 0, 0, 0, 0, 0, 0, 0);
        metrics.put("loss", 2.0);
        assertThat(evaluation.metrics()).isEqualTo(Map.of("loss", 1.0)).isUnmodifiable();
    }

    @Test
    void aFailureIsTheResults() throws Exception {
        var rounds = new Rounds();
        try (FederationRun run = Federation.of(losses(2), new FedAvg(Schedule.constant(0.1)))
                .iterations(10)
                .listener(rounds)
                .build()
                .start()) {
            assertThatThrownBy(() -> run.result().get())
                    .isInstanceOf(ExecutionException.class)
                    .hasCauseInstanceOf(ClientFaultException.class);
        }
        assertThat(rounds.told).hasSize(2).last().asString().startsWith("failure client 2 failed in step 1");
    }

    @Test
    void aFederationStartsOnce() throws Exception {
        Federation federation = quadratics().iterations(5).build();
        try (FederationRun first = federation.start()) {
            first.result().get();
            try (FederationRun second = federation.start()) {
                assertThatThrownBy(() -> second.result().get()).hasMessageContaining("runs once");
            }
        }
    }

    /** Losses k + 1 everywhere, but that of a client, which fails. */
    private static Problem losses(int broken) {
        var losses = new ArrayList<Loss>();
        for (int k = 0; k < CLIENTS; k++) {
            int client = k;
            losses.add((xi, w, gradient) -> {
                if (client == broken && xi.draw() > 0) {
                    throw new IllegalStateException("broken");
                }
                gradient.values().fill(0);
                return client + 1 + xi.draw();
            });
        }
        return Problem.ofLosses(Layout.of(Block.matrix("weight", 2, 2)), losses, Risk.mean());
    }

    private static Listener into(List<Round> rounds) {
        return new Listener() {
            @Override
            public void onRound(Round round) {
                rounds.add(round);
            }
        };
    }

    @Test
    void aRoundHasTheMeanOfEachClientsSamples() throws Exception {
        var rounds = new ArrayList<Round>();
        Federation.of(losses(-1), new FedAvg(Schedule.constant(0.1)))
                .devices("cpu:0", "cpu:1")
                .iterations(6)
                .tau(3)
                .listener(into(rounds))
                .build()
                .run();
        // The draws 0, 1, 2 and then 3, 4, 5.
        assertThat(rounds.get(0).clientLosses()).containsExactly(2.0, 3.0, 4.0, 5.0);
        assertThat(rounds.get(1).clientLosses()).containsExactly(5.0, 6.0, 7.0, 8.0);
        assertThat(rounds.get(1).meanLoss()).isCloseTo(6.5, within(1e-12));
        assertThat(rounds.get(1).deviceSeconds())
                .hasSize(2)
                .allSatisfy(phases -> assertThat(phases.get(Clients.Phase.STEP)).isPositive());
    }

    @Test
    void lossesAreOfThoseWhoTakePart() throws Exception {
        var rounds = new ArrayList<Round>();
        Federation.of(losses(-1), new FedAvg(Schedule.constant(0.1)))
                .participation(0.5)
                .iterations(8)
                .tau(2)
                .listener(into(rounds))
                .build()
                .run();
        assertThat(rounds)
                .hasSize(4)
                .allSatisfy(round -> assertThat(round.clients()).hasSize(2))
                .allSatisfy(round -> assertThat(round.clientLosses()).hasSize(2).doesNotContain(Double.NaN));
    }

    @Test
    void aFlightRecordingHasRoundsEvaluationsCheckpointsAndFaults() throws Exception {
        Path file = directory.resolve("run.jfr");
        try (var recording = new Recording()) {
            recording.enable("org.fedcomuon.Round");
            recording.enable("org.fedcomuon.Evaluation");
            recording.enable("org.fedcomuon.Checkpoint");
            recording.enable("org.fedcomuon.ClientFault");
            recording.start();
            Federation.of(losses(1), new FedAvg(Schedule.constant(0.1)))
                    .name("recorded")
                    .onFault(ClientFault.Policy.DROP)
                    .iterations(6)
                    .tau(3)
                    .evaluate(3, (step, average) -> Map.of("loss", (double) step))
                    .checkpoints(directory.resolve("checkpoints"), 1)
                    .build()
                    .run();
            recording.stop();
            recording.dump(file);
        }
        List<RecordedEvent> events = RecordingFile.readAllEvents(file).stream()
                .filter(event -> event.getString("run").equals("recorded"))
                .toList();
        assertThat(values(events, "Round", "step")).containsExactly(3L, 6L);
        assertThat(values(events, "Round", "dropped")).containsExactly(1, 1);
        assertThat(values(events, "Evaluation", "metrics")).containsExactly("{loss=0.0}", "{loss=3.0}", "{loss=6.0}");
        assertThat(values(events, "Checkpoint", "step")).containsExactly(3L, 6L);
        assertThat(values(events, "ClientFault", "client")).containsExactly(1, 1);
        assertThat(events.stream()
                        .filter(event -> event.getEventType().getName().endsWith("Round")))
                .allSatisfy(event -> assertThat(event.getDuration()).isPositive());
    }

    private static List<Object> values(List<RecordedEvent> events, String type, String field) {
        return events.stream()
                .filter(event -> event.getEventType().getName().equals("org.fedcomuon." + type))
                .<Object>map(event -> event.getValue(field))
                .toList();
    }
}
