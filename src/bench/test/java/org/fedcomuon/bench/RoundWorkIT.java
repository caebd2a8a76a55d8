package org.fedcomuon.bench;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.fedcomuon.federation.Federation;
import org.fedcomuon.linalg.Coefficients;
import org.fedcomuon.linalg.NewtonSchulz;
import org.fedcomuon.method.FedCoMuon;
import org.fedcomuon.method.FedCoMuonVr;
import org.fedcomuon.method.Method;
import org.fedcomuon.method.Muon;
import org.fedcomuon.method.Schedule;
import org.fedcomuon.problem.Block;
import org.fedcomuon.problem.Floats;
import org.fedcomuon.problem.Layout;
import org.fedcomuon.problem.Loss;
import org.fedcomuon.problem.Problem;
import org.fedcomuon.problem.Risk;
import org.fedcomuon.testing.Simulator;
import org.fedcomuon.testing.TestDevices;
import org.fedcomuon.testing.Trace;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The launches of a round that the model counts are those that simulated GPUs are given. */
class RoundWorkIT {
    private static final int CLIENTS = 4;
    private static final int TAU = 3;
    private static final int STEPS = 2;

    /** A small matrix, one for cuBLAS, and vectors. */
    private static final Layout LAYOUT = Layout.of(
            Block.matrix("small", 4, 6),
            Block.vector("bias", 6),
            Block.matrix("large", 130, 131),
            Block.vector("shift", 5));

    @TempDir
    private Path directory;

    @ParameterizedTest
    @CsvSource({"false, 1", "false, 2", "true, 1", "true, 2"})
    void launchesAreThoseOfARound(boolean reduced, int devices) throws Exception {
        assumeTrue(TestDevices.simulated().findAny().isPresent(), "the simulated devices have not been built");
        // What the second round adds: the first one has to begin, and the last one to end.
        Map<String, Long> round = traced(reduced, devices, 3);
        traced(reduced, devices, 2).forEach((kernel, count) -> round.merge(kernel, -count, Long::sum));

        var gradient = new GradientWork(new WorkList(List.of()), 0, List.of());
        var work = new RoundWork(LAYOUT, gradient, reduced, CLIENTS, TAU, STEPS);
        var expected = new TreeMap<String, Long>();
        for (KernelWork each : WorkList.concat(work.round(devices).values()).all()) {
            if (each.name().startsWith("fcm_k_")) {
                expected.merge(each.name(), each.launches(), Long::sum);
            }
        }
        round.values().removeIf(count -> count == 0);
        assertThat(round).isEqualTo(expected);
    }

    /** How often each kernel was given to the first device in a run of so many rounds. */
    private Map<String, Long> traced(boolean reduced, int devices, int rounds) throws Exception {
        Path file = directory.resolve("trace-%d".formatted(rounds));
        var names = new ArrayList<String>();
        for (int i = 0; i < devices; i++) {
            names.add("cudasim:%d".formatted(i));
        }
        Simulator.traced(
                file,
                () -> Federation.of(problem(), method(reduced))
                        .devices(names.toArray(String[]::new))
                        .iterations((long) rounds * TAU)
                        .tau(TAU)
                        .seed(1)
                        .build()
                        .run());
        return Trace.read(file).launches(0);
    }

    private static Problem problem() {
        Loss loss = (xi, w, gradient) -> {
            Floats values = gradient.values();
            for (long i = 0; i < values.length(); i++) {
                values.set(i, w.values().get(i) + 0.1 * Math.cos((double) i));
            }
            return 1;
        };
        return Problem.ofLosses(LAYOUT, Collections.nCopies(CLIENTS, loss), Risk.mean());
    }

    private static Method method(boolean reduced) {
        Schedule some = Schedule.constant(0.2);
        Muon muon = Muon.with(new NewtonSchulz(Coefficients.jordan(STEPS)));
        return reduced ? new FedCoMuonVr(some, some, some, some, some, muon) : new FedCoMuon(some, some, some, muon);
    }
}
