package org.fedcomuon.federation;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.fedcomuon.linalg.Coefficients;
import org.fedcomuon.linalg.NewtonSchulz;
import org.fedcomuon.method.FedCoMuon;
import org.fedcomuon.method.FedCoMuonVr;
import org.fedcomuon.method.Method;
import org.fedcomuon.method.Muon;
import org.fedcomuon.method.Schedule;
import org.fedcomuon.problem.Block;
import org.fedcomuon.problem.Layout;
import org.fedcomuon.testing.CheapProblem;
import org.fedcomuon.testing.Simulator;
import org.fedcomuon.testing.TestDevices;
import org.fedcomuon.testing.Trace;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * What a step costs besides its arithmetic: how often the host waits for a GPU, and how much is submitted to it. Both
 * are counted from traces of simulated GPUs, and neither depends on the number of clients.
 */
class StepBudgetIT {
    private static final int TAU = 3;

    /** W and u have to come to the host, where the oracles of these tests compute. */
    private static final int MOST_WAITS = 2;

    private static final int MOST_OPERATIONS = 40;

    @TempDir
    private Path directory;

    @BeforeEach
    void requireSimulator() {
        assumeTrue(TestDevices.simulated().findAny().isPresent(), "the simulated devices have not been built");
    }

    /** A step of the first device, on average over a round. */
    private record Cost(double waits, double operations) {}

    @ParameterizedTest
    @CsvSource({"lenet, false", "lenet, true", "vit, false", "vit, true"})
    void aStepIsWithinItsBudget(String model, boolean reduced) throws Exception {
        Cost two = cost(layout(model), method(reduced), 2, 1);
        Cost ten = cost(layout(model), method(reduced), 10, 1);
        assertThat(ten).isEqualTo(two);
        assertThat(ten.waits()).isLessThanOrEqualTo(MOST_WAITS);
        assertThat(ten.operations()).isLessThanOrEqualTo(MOST_OPERATIONS);
    }

    /** Before devices read each other's values, each waits once until it knows that its own are sound. */
    @Test
    void anExchangeBetweenDevicesIsOneMoreWait() throws Exception {
        Cost cost = cost(layout("lenet"), method(false), 10, 2);
        assertThat(cost.waits() * TAU).isLessThanOrEqualTo(MOST_WAITS * TAU + 1);
    }

    /** What a round adds to a run: the first one has to begin, and the last one to end. */
    private Cost cost(Layout layout, Method method, int clients, int devices) throws Exception {
        Trace longer = traced(layout, method, clients, devices, 3);
        Trace shorter = traced(layout, method, clients, devices, 2);
        return new Cost(
                (double) (longer.waits(0).size() - shorter.waits(0).size()) / TAU,
                (double) (operations(longer) - operations(shorter)) / TAU);
    }

    private static long operations(Trace trace) {
        return trace.work().stream().filter(work -> work.device() == 0).count();
    }

    private Trace traced(Layout layout, Method method, int clients, int devices, int rounds) throws Exception {
        Path file = directory.resolve("trace-%d-%d".formatted(clients, rounds));
        var names = new ArrayList<String>();
        for (int i = 0; i < devices; i++) {
            names.add("cudasim:" + i);
        }
        Simulator.traced(
                file,
                () -> Federation.of(CheapProblem.of(layout, clients), method)
                        .devices(names.toArray(String[]::new))
                        .iterations((long) rounds * TAU)
                        .tau(TAU)
                        .seed(1)
                        .build()
                        .run());
        return Trace.read(file);
    }

    private static Method method(boolean reduced) {
        Schedule some = Schedule.constant(0.2);
        Muon muon = Muon.with(new NewtonSchulz(Coefficients.jordan(1))); // more steps are no more launches
        return reduced ? new FedCoMuonVr(some, some, some, some, some, muon) : new FedCoMuon(some, some, some, muon);
    }

    /** The blocks of the two models, those of the transformer narrow enough for the kernel of small matrices. */
    private static Layout layout(String model) {
        if (model.equals("lenet")) {
            return Layout.of(
                    Block.kernel("conv1.weight", 6, 1, 5, 5),
                    Block.vector("conv1.bias", 6),
                    Block.kernel("conv2.weight", 16, 6, 5, 5),
                    Block.vector("conv2.bias", 16),
                    Block.matrix("dense1.weight", 30, 64),
                    Block.vector("dense1.bias", 30),
                    Block.matrix("dense2.weight", 10, 30),
                    Block.vector("dense2.bias", 10));
        }
        int width = 8;
        var blocks = new ArrayList<Block>();
        blocks.add(Block.matrix("patch.weight", width, 48));
        blocks.add(Block.vector("patch.bias", width));
        blocks.add(Block.vector("class.token", width));
        blocks.add(Block.matrix("positions", 65, width).asVector());
        for (int i = 1; i <= 12; i++) {
            String block = "block%d.".formatted(i);
            for (String norm : List.of("norm1", "norm2")) {
                blocks.add(Block.vector(block + norm + ".gain", width));
                blocks.add(Block.vector(block + norm + ".shift", width));
            }
            for (String part : List.of("query", "key", "value", "projection")) {
                blocks.add(Block.matrix(block + part + ".weight", width, width));
                blocks.add(Block.vector(block + part + ".bias", width));
            }
            blocks.add(Block.matrix(block + "hidden.weight", 4 * width, width));
            blocks.add(Block.vector(block + "hidden.bias", 4 * width));
            blocks.add(Block.matrix(block + "output.weight", width, 4 * width));
            blocks.add(Block.vector(block + "output.bias", width));
        }
        return Layout.of(blocks);
    }
}
