package org.fedcomuon.federation;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.util.Optional;
import org.fedcomuon.device.Device;
import org.fedcomuon.method.FedCoMuon;
import org.fedcomuon.method.FedCoMuonVr;
import org.fedcomuon.method.Method;
import org.fedcomuon.method.Muon;
import org.fedcomuon.method.Schedule;
import org.fedcomuon.problem.Block;
import org.fedcomuon.problem.Layout;
import org.fedcomuon.testing.CheapProblem;
import org.fedcomuon.testing.GpuReport;
import org.fedcomuon.testing.GpuSuite;
import org.fedcomuon.testing.Simulator;
import org.fedcomuon.testing.TestDevices;
import org.fedcomuon.testing.Trace;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Figures for the report: a step of a small federation, whose gradients cost next to nothing. How long it takes is not
 * asserted; that the host does not wait more often for more clients is.
 */
@GpuSuite
@ParameterizedClass
@MethodSource("org.fedcomuon.testing.TestDevices#gpus")
class StepGpuIT {
    private static final int TAU = 5;
    private static final int CLIENTS = 10;

    /** The blocks of LeNet. */
    private static final Layout LAYOUT = Layout.of(
            Block.matrix("conv1", 6, 25),
            Block.vector("conv1.bias", 6),
            Block.matrix("conv2", 16, 150),
            Block.vector("conv2.bias", 16),
            Block.matrix("dense1", 120, 256),
            Block.vector("dense1.bias", 120),
            Block.matrix("dense2", 10, 120),
            Block.vector("dense2.bias", 10));

    @TempDir
    private Path directory;

    @Parameter
    private String name;

    @Test
    void aStepOfFedCoMuon() throws Exception {
        Schedule some = Schedule.constant(0.1);
        report(new FedCoMuon(some, some, some, Muon.standard()));
    }

    @Test
    void aStepOfFedCoMuonVr() throws Exception {
        Schedule some = Schedule.constant(0.1);
        report(new FedCoMuonVr(some, some, some, some, some, Muon.standard()));
    }

    private void report(Method method) throws Exception {
        try (Device _ = TestDevices.open(name)) { // or the test is skipped
            double seconds = secondsPerStep(method);
            assertThat(seconds).isPositive();
            Optional<GpuReport.StepCounts> counts = Optional.empty();
            if (TestDevices.isSimulated(name)) {
                GpuReport.StepCounts all = counts(method, CLIENTS);
                GpuReport.StepCounts few = counts(method, 2);
                assertThat(all.launches()).isPositive();
                assertThat(all.waits()).isPositive().isEqualTo(few.waits());
                counts = Optional.of(all);
            }
            GpuReport.ofThisRun()
                    .step(
                            name,
                            "%s, the blocks of LeNet, %d clients".formatted(method.name(), CLIENTS),
                            seconds,
                            counts);
        }
    }

    /** Returns the shortest time of a step in the rounds after the first. */
    private double secondsPerStep(Method method) throws InterruptedException {
        int rounds = TestDevices.isSimulated(name) ? 2 : 20;
        var ends = new double[rounds];
        federation(method, CLIENTS, rounds)
                .listener(new Listener() {
                    @Override
                    public void onRound(Round round) {
                        ends[Math.toIntExact(round.number())] = round.seconds();
                    }
                })
                .build()
                .run();
        double shortest = Double.POSITIVE_INFINITY;
        for (int i = 1; i < rounds; i++) {
            shortest = Math.min(shortest, (ends[i] - ends[i - 1]) / TAU);
        }
        return shortest;
    }

    /** Returns what a round adds to a run, per step: start and end of a run are not counted. */
    private GpuReport.StepCounts counts(Method method, int clients) throws Exception {
        Trace three = traced(method, clients, 3);
        Trace two = traced(method, clients, 2);
        int device = Integer.parseInt(name.substring(name.indexOf(':') + 1));
        return new GpuReport.StepCounts(
                (double) (launches(three, device) - launches(two, device)) / TAU,
                (double) (three.waits(device).size() - two.waits(device).size()) / TAU);
    }

    private static long launches(Trace trace, int device) {
        return trace.launches(device).values().stream()
                .mapToLong(Long::longValue)
                .sum();
    }

    private Trace traced(Method method, int clients, int rounds) throws Exception {
        Path file = directory.resolve("%s-%d-%d".formatted(method.name(), clients, rounds));
        Simulator.traced(file, () -> federation(method, clients, rounds).build().run());
        return Trace.read(file);
    }

    private Federation.Builder federation(Method method, int clients, int rounds) {
        return Federation.of(CheapProblem.of(LAYOUT, clients), method)
                .devices(name)
                .iterations((long) rounds * TAU)
                .tau(TAU)
                .seed(1);
    }
}
