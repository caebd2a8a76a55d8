package org.fedcomuon.observe;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Map;
import org.fedcomuon.federation.Federation;
import org.fedcomuon.federation.Result;
import org.fedcomuon.method.ClientFault;
import org.fedcomuon.method.FedAvg;
import org.fedcomuon.method.Schedule;
import org.fedcomuon.problem.Block;
import org.fedcomuon.problem.Layout;
import org.fedcomuon.problem.Loss;
import org.fedcomuon.problem.Problem;
import org.fedcomuon.problem.Risk;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What operators read of a run is what it did. */
class FederationMetersIT {
    private static final int CLIENTS = 4;
    private static final int PARAMETERS = 6;

    @TempDir
    private Path directory;

    private final SimpleMeterRegistry registry = new SimpleMeterRegistry();

    @AfterEach
    void closeRegistry() {
        registry.close();
    }

    /** Losses 1 to 4; the last client fails in its second step. */
    private static Problem problem() {
        var losses = new ArrayList<Loss>();
        for (int k = 0; k < CLIENTS; k++) {
            double loss = k + 1;
            losses.add((xi, w, gradient) -> {
                if (loss == CLIENTS && xi.draw() == 1) {
                    throw new IllegalStateException("out of order");
                }
                gradient.values().fill(0);
                return loss;
            });
        }
        return Problem.ofLosses(Layout.of(Block.matrix("weight", 2, 3)), losses, Risk.mean());
    }

    private Federation.Builder run(String name) {
        return Federation.of(problem(), new FedAvg(Schedule.constant(0.1)))
                .name(name)
                .tau(3)
                .onFault(ClientFault.Policy.DROP)
                .evaluate(3, (step, w) -> Map.of("test_loss", (double) step));
    }

    private double gauge(String run, String name, String... tags) {
        return registry.get(name).tags("run", run).tags(tags).gauge().value();
    }

    private double count(String run, String name, String... tags) {
        return registry.get(name).tags("run", run).tags(tags).counter().count();
    }

    @Test
    void metersSayWhatTheRunDid() throws Exception {
        Federation.Builder builder = run("mine").iterations(9).checkpoints(directory, 1);
        // @start region="meters"
        try (var meters = new FederationMeters(registry)) {
            Result result = builder.listener(meters).build().run();
            // ... until nobody asks for them any more
            // @end
            assertThat(count("mine", "fedcomuon.rounds")).isEqualTo(3);
            assertThat(count("mine", "fedcomuon.client.steps")).isEqualTo(3 * (3 + 4 + 4));
            assertThat(count("mine", "fedcomuon.communicated")).isEqualTo((double) result.communicatedBytes());
            assertThat(result.communicatedBytes()).isEqualTo((3 + 4 + 4) * 2 * PARAMETERS * Float.BYTES);
            assertThat(count("mine", "fedcomuon.faults", "kind", "threw")).isEqualTo(1);
            assertThat(count("mine", "fedcomuon.checkpoints")).isEqualTo(3);
            assertThat(gauge("mine", "fedcomuon.loss")).isCloseTo(2.5, within(1e-9));
            assertThat(gauge("mine", "fedcomuon.client.loss.max")).isEqualTo(4);
            assertThat(gauge("mine", "fedcomuon.step")).isEqualTo(9);
            assertThat(gauge("mine", "fedcomuon.running")).isZero();
            assertThat(gauge("mine", "fedcomuon.evaluation", "metric", "test_loss"))
                    .isEqualTo(9);
            double seconds = registry.get("fedcomuon.seconds").counters().stream()
                    .mapToDouble(each -> each.count())
                    .sum();
            assertThat(seconds).isPositive().isLessThan(result.seconds() * 1.5);
            assertThat(count("mine", "fedcomuon.seconds", "phase", "gradient")).isPositive();
        }
        assertThat(registry.getMeters()).isEmpty();
    }

    @Test
    void whatAnEarlierProcessSentIsNotCountedAgain() throws Exception {
        run("first").iterations(6).checkpoints(directory, 1).build().run();
        try (var meters = new FederationMeters(registry)) {
            run("second")
                    .iterations(9)
                    .resume(directory)
                    .listener(meters)
                    .build()
                    .run();
            assertThat(count("second", "fedcomuon.rounds")).isEqualTo(1);
            assertThat(count("second", "fedcomuon.communicated")).isEqualTo(4 * 2 * PARAMETERS * Float.BYTES);
        }
    }

    @Test
    void severalRunsShareARegistry() throws Exception {
        var first = new FederationMeters(registry);
        var second = new FederationMeters(registry);
        run("a").iterations(3).listener(first).build().run();
        run("b").iterations(6).listener(second).build().run();
        assertThat(count("a", "fedcomuon.rounds")).isEqualTo(1);
        assertThat(count("b", "fedcomuon.rounds")).isEqualTo(2);
        first.close();
        assertThat(registry.getMeters())
                .isNotEmpty()
                .allSatisfy(meter -> assertThat(meter.getId().getTag("run")).isEqualTo("b"));
        second.close();
        assertThat(registry.getMeters()).isEmpty();
    }
}
