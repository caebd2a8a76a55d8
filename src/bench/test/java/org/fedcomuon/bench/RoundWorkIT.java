package org.fedcomuon.bench;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.fedcomuon.device.NewtonSchulzSpec;
import org.fedcomuon.experiment.Configuration;
import org.fedcomuon.experiment.Preset;
import org.fedcomuon.federation.Federation;
import org.fedcomuon.linalg.Auto;
import org.fedcomuon.linalg.Coefficients;
import org.fedcomuon.method.FedCoMuon;
import org.fedcomuon.method.FedCoMuonVr;
import org.fedcomuon.method.Method;
import org.fedcomuon.method.Muon;
import org.fedcomuon.method.Schedule;
import org.fedcomuon.problem.Block;
import org.fedcomuon.problem.Layout;
import org.fedcomuon.testing.CheapProblem;
import org.fedcomuon.testing.Simulator;
import org.fedcomuon.testing.Slow;
import org.fedcomuon.testing.TestDevices;
import org.fedcomuon.testing.Trace;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The launches of a round that the model counts, and the waits, are those of simulated GPUs. */
class RoundWorkIT {
    private static final int CLIENTS = 2;
    private static final int TAU = 3;
    private static final int STEPS = 3; // with a restart of the Gram form

    /** What a simulated GPU has; large matrices are done in passes that fit. */
    private static final double MEMORY = 4L << 30;

    /** A small matrix, one that is too large for its kernel, one for the Gram form, and vectors. */
    private static final Layout LAYOUT = Layout.of(
            Block.matrix("small", 4, 6),
            Block.vector("bias", 6),
            Block.matrix("large", 130, 131),
            Block.vector("shift", 5),
            Block.matrix("long", 260, 129));

    private static final MuonWork.Iteration ITERATION =
            MuonWork.Iteration.of(STEPS, true).on(MEMORY);

    @TempDir
    private Path directory;

    @ParameterizedTest
    @CsvSource({"false, 1", "false, 2", "true, 1", "true, 2"})
    void launchesAndWaitsAreThoseOfARound(boolean reduced, int devices) throws Exception {
        assumeTrue(TestDevices.simulated().findAny().isPresent(), "the simulated devices have not been built");
        // What the second round adds: the first one has to begin, and the last one to end.
        Trace three = traced(LAYOUT, reduced, STEPS, devices, 3);
        Trace two = traced(LAYOUT, reduced, STEPS, devices, 2);
        Map<String, Long> round = three.launches(0);
        two.launches(0).forEach((kernel, count) -> round.merge(kernel, -count, Long::sum));

        var gradient = new GradientWork(new WorkList(List.of()), 0, List.of());
        var work = new RoundWork(Design.CURRENT, LAYOUT, gradient, reduced, CLIENTS, TAU, ITERATION);
        var expected = new TreeMap<String, Long>();
        for (KernelWork each : WorkList.concat(work.round(devices).values()).all()) {
            if (each.name().startsWith("fcm_k_")) {
                expected.merge(each.name(), each.launches(), Long::sum);
            }
        }
        round.values().removeIf(count -> count == 0);
        assertThat(round).isEqualTo(expected);
        // The gradients are of the host, so that all waits are ours.
        assertThat(three.waits(0).size() - two.waits(0).size())
                .isEqualTo(Math.toIntExact(Math.round(TAU * work.waits(devices))));
    }

    /**
     * With all blocks of the models of the presets, which are as small as their operations allow, and one step of
     * Newton-Schulz: more of them are no more waits.
     */
    @Slow
    @ParameterizedTest
    @ValueSource(strings = {"mnist-robust", "cifar-maml-cnn", "cifar-maml-vit", "wikitext2-robust"})
    void waitsAreThoseOfThePresets(String preset) throws Exception {
        assumeTrue(TestDevices.simulated().findAny().isPresent(), "the simulated devices have not been built");
        Layout layout = Configuration.of(Preset.load(preset), Map.of())
                .network(preset.startsWith("wikitext2") ? 33_278 : 10)
                .layout();
        Layout narrow =
                Layout.of(layout.blocks().stream().map(RoundWorkIT::narrow).toArray(Block[]::new));
        int round = traced(narrow, false, 1, 1, 3).waits(0).size()
                - traced(narrow, false, 1, 1, 2).waits(0).size();
        var gradient = new GradientWork(new WorkList(List.of()), 0, List.of());
        var work = new RoundWork(Design.CURRENT, layout, gradient, false, CLIENTS, TAU, ITERATION);
        assertThat(round).isEqualTo(Math.toIntExact(Math.round(TAU * work.waits(1))));
    }

    /** Returns a small block that takes the same operations. */
    private static Block narrow(Block block) {
        if (block.update() == Block.Update.VECTOR) {
            return Block.vector(block.name(), 3);
        }
        boolean large = Math.min(block.rows(), block.cols()) > NewtonSchulzSpec.longestSide();
        int side = large ? NewtonSchulzSpec.longestSide() + 1 : 4;
        return Block.matrix(block.name(), side, side + 1);
    }

    /** What the devices were given in a run of so many rounds. */
    private Trace traced(Layout layout, boolean reduced, int steps, int devices, int rounds) throws Exception {
        Path file = directory.resolve("trace-%d".formatted(rounds));
        var names = new ArrayList<String>();
        for (int i = 0; i < devices; i++) {
            names.add("cudasim:%d".formatted(i));
        }
        Simulator.traced(
                file,
                () -> Federation.of(CheapProblem.of(layout, CLIENTS), method(reduced, steps))
                        .devices(names.toArray(String[]::new))
                        .exchange(Federation.ExchangeKind.PEER)
                        .iterations((long) rounds * TAU)
                        .tau(TAU)
                        .seed(1)
                        .build()
                        .run());
        return Trace.read(file);
    }

    private static Method method(boolean reduced, int steps) {
        Schedule some = Schedule.constant(0.2);
        Muon muon = Muon.with(new Auto(Coefficients.jordan(steps)));
        return reduced ? new FedCoMuonVr(some, some, some, some, some, muon) : new FedCoMuon(some, some, some, muon);
    }
}
