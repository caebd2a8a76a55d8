package org.fedcomuon.bench;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicReference;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.Devices;
import org.fedcomuon.device.InstructionSet;
import org.fedcomuon.federation.Federation;
import org.fedcomuon.method.FedAvg;
import org.fedcomuon.method.Schedule;
import org.fedcomuon.model.CifarCnn;
import org.fedcomuon.problem.Block;
import org.fedcomuon.problem.ExponentialRisk;
import org.fedcomuon.problem.Layout;
import org.fedcomuon.problem.Loss;
import org.fedcomuon.problem.Problem;
import org.fedcomuon.testing.Repository;
import org.fedcomuon.testing.Slow;
import org.junit.jupiter.api.Test;

/** That the suites run and count right; how fast anything is, is no unit test's business. */
class BenchTest {
    @Test
    void medianAndSpread() {
        Timing timing = Timing.of(new double[] {5, 1, 3, 2, 4});
        assertThat(timing.median()).isEqualTo(3);
        assertThat(timing.spread()).isCloseTo(1.0 / 3, within(1e-12)); // quartiles 2 and 4
        assertThat(Timing.of(new double[] {1, 3}).median()).isEqualTo(2);
    }

    @Test
    void everyTurnIsToldAndThoseFarBehindAreLeftOut() {
        var told = new ArrayList<String>();
        Map<String, Timing> timings = new Interleaved(
                        "contest", (what, done, turns) -> told.add("%s (%d of %d)".formatted(what, done, turns)))
                .addTimed("ours", () -> 0.2)
                .addTimed("near", () -> 0.2)
                .addTimed("far", () -> 0.4)
                .measure(2, Set.of("near", "far"));
        assertThat(timings).containsOnlyKeys("ours", "near");
        assertThat(told)
                .containsExactly(
                        "contest: ours, warm-up (0 of 9)",
                        "contest: near, warm-up (1 of 9)",
                        "contest: far, warm-up (2 of 9)",
                        "contest: ours, sample 1 of 2 (3 of 7)",
                        "contest: near, sample 1 of 2 (4 of 7)",
                        "contest: ours, sample 2 of 2 (5 of 7)",
                        "contest: near, sample 2 of 2 (6 of 7)",
                        "contest (7 of 7)");
    }

    @Test
    void composeCountsTheBytesThatMustMove() {
        try (Device device = Devices.open("cpu:0")) {
            BenchReport report = ComposeBench.run(device, List.of(1_000_000L), 1, TurnListener.NONE);
            assertThat(report.rows()).hasSize(18).allSatisfy(row -> {
                assertThat(row.aims()).isEmpty(); // it is in the cache
                assertThat(row.seconds()).isPositive();
                assertThat(row.ratio()).isPositive();
            });
            // d = 8: storm 4 words an element of H, compose 1 plus 2/8 for M and a few for v
            assertThat(bytes(report, "d = 8: storm + project_compose_momentum, inside the ball"))
                    .isEqualTo(4 * (4 * 1_000_000 + 1_000_000 + 2 * 125_000 + 80));
            assertThat(bytes(report, "d = 8: storm + project_compose_momentum, projecting"))
                    .isEqualTo(4 * (4 * 1_000_000 + 2 * 1_000_000 + 2 * 125_000 + 80));
            assertThat(bytes(report, "d = 1: compose_momentum")).isEqualTo(4 * (1_000_000 + 2 * 1_000_000 + 10));
            assertThat(bytes(report, "d = 1: mean")).isEqualTo(8_000_000);
            assertThat(bytes(report, "d = 1: mean_exponents")).isEqualTo(4_100_000);
            assertThat(bytes(report, "d = 1: mean_sums")).isEqualTo(4_900_000);
            assertThat(bytes(report, "d = 1: ema")).isEqualTo(12_000_000);
            assertThat(bytes(report, "d = 1: project")).isEqualTo(8_000_000);
            assertThat(bytes(report, "d = 1: norm")).isEqualTo(4_000_000);
            assertThat(bytes(report, "d = 1: triad")).isEqualTo(12_000_000);
            assertThat(device.liveBytes()).isZero();
        }
    }

    private static long bytes(BenchReport report, String name) {
        return report.rows().stream()
                .filter(row -> row.name().endsWith(name))
                .findFirst()
                .orElseThrow()
                .bytes();
    }

    @Test
    void orthogonalizeComparesEqualResults() {
        try (Device device = Devices.open("cpu:0", 2, InstructionSet.AUTO)) {
            // Throws when the two sides disagree.
            BenchReport report = OrthogonalizeBench.run(device, OrthogonalizeSizes.small(), 1, TurnListener.NONE);
            assertThat(report.notes()).isEmpty();
            assertThat(report.rows()).extracting(BenchReport.Row::name).anyMatch(name -> name.contains("Gram form"));
            assertThat(report.rows()).hasSize(12 + 7 + 7 + 2 * 6);
            assertThat(report.rows().getFirst().ratio()).isEqualTo(1);
            assertThat(device.liveBytes()).isZero();
        }
    }

    @Test
    void roundsGiveTheWeightsOfTheStraightforwardLoop() {
        try (Device device = Devices.open("cpu:0", 1, InstructionSet.AUTO)) {
            // Throws when the two sides disagree.
            BenchReport report = RoundBench.run(
                    device,
                    Aims.NONE.with(".*: fedcomuon, .*", Aim.atMost(1).of("optimizer's share")),
                    1,
                    TurnListener.NONE,
                    List.of(RoundTask.mnist(1), RoundTask.cifarCnn(new CifarCnn.Sizes(8, 4, 6, 3, 20, 10), 4)));
            assertThat(report.rows()).hasSize(2 * 2 * 2).allSatisfy(row -> {
                assertThat(row.seconds()).isPositive();
                assertThat(row.parts())
                        .containsOnlyKeys("gradient", "track", "orthogonalize", "average", "other")
                        .allSatisfy((part, share) -> assertThat(share).isBetween(0.0, 1.0));
                assertThat(row.parts().values().stream()
                                .mapToDouble(share -> share)
                                .sum())
                        .isCloseTo(1, within(1e-9));
            });
            for (int ours = 0; ours < 8; ours += 2) {
                BenchReport.Row row = report.rows().get(ours);
                double steps = 1 - row.parts().get("other");
                assertThat(row.aims()).hasSize(1);
                assertThat(row.aims().getFirst().found()) // of one run, so that it is that of its parts
                        .isCloseTo(1 - row.parts().get("gradient") / steps, within(1e-9));
                assertThat(report.rows().get(ours + 1).aims()).isEmpty();
            }
            assertThat(device.liveBytes()).isZero();
        }
    }

    @Test
    void aWholeRunIsDividedIntoStepsAndEvaluations() {
        try (Device device = Devices.open("cpu:0", 2, InstructionSet.AUTO)) {
            BenchReport.Row row = RoundBench.wholeRun(
                    "mnist-robust",
                    Map.of("iterations", "4", "tau", "2", "evaluateEvery", "2", "largest", "40"),
                    device,
                    Aims.NONE.with("mnist-robust, .*", Aim.atMost(1).of("evaluations' share")),
                    TurnListener.NONE);
            assertThat(row.name()).isEqualTo("mnist-robust, whole run: fedcomuon, 2 threads");
            assertThat(row.parts().keySet()).containsExactly("steps", "evaluations", "other");
            assertThat(row.parts())
                    .allSatisfy((part, share) -> assertThat(share).isBetween(part.equals("other") ? 0.0 : 0.01, 1.0));
            Judgement share = row.aims().getFirst();
            assertThat(share.verdict()).isEqualTo(Judgement.Verdict.MET);
            assertThat(share.found()).isBetween(0.01, 1.0);
        }
    }

    @Test
    void theExponentOfAPowerLaw() {
        assertThat(Growth.exponent(Map.of(1, 3.0, 10, 300.0, 100, 30_000.0))).isCloseTo(2, within(1e-12));
        assertThat(Growth.exponent(Map.of(10, 5.0, 1000, 5.0))).isCloseTo(0, within(1e-12));
    }

    @Test
    void scaleCountsWhatAClientTakes() {
        try (Device device = Devices.open("cpu:0", 2, InstructionSet.AUTO)) {
            BenchReport report = ScaleBench.run(device, 16, 32, 1000, 1, TurnListener.NONE);
            assertThat(report.rows()).hasSize(2 * (3 + 4 + 3)).allSatisfy(row -> {
                assertThat(row.seconds()).isPositive();
                assertThat(row.ratio()).isPositive();
            });
            // W and M, 512 floats each, up and down.
            assertThat(report.rows().getFirst().name())
                    .contains("fedcomuon, K = 10")
                    .contains("8192 bytes sent");
            // The same of VR, whose start sends M once more.
            assertThat(report.rows().get(10).name())
                    .contains("fedcomuon-vr, K = 10")
                    .contains("8192 bytes sent");
            assertThat(report.notes()).hasSize(6).allMatch(note -> note.contains("a client step takes time"));
            assertThat(device.liveBytes()).isZero();
        }
    }

    @Test
    void theRecordingSeesWhatAnOracleAllocates() throws InterruptedException {
        int kilobytes = 100;
        var last = new AtomicReference<byte[]>(); // or the compiler may leave the allocation out
        Loss allocating = (xi, w, gradient) -> {
            last.set(new byte[1024 * kilobytes]);
            gradient.values().set(0, 0);
            return 0;
        };
        int clients = 3;
        int steps = 40;
        try (var recording = new AllocationRecording(steps)) {
            Federation.of(
                            Problem.ofLosses(
                                    Layout.of(Block.vector("w", 1)),
                                    Collections.nCopies(clients, allocating),
                                    new ExponentialRisk(1)),
                            new FedAvg(Schedule.constant(1)))
                    .iterations(steps)
                    .listener(recording)
                    .build()
                    .run();
            double each = (double) recording.allocatedBytes() / (steps - 1) / clients / 1024;
            assertThat(each).isBetween((double) kilobytes, 1.5 * kilobytes);
        }
    }

    @Slow
    @Test
    void membersOfAClusterAreMeasuredAgainstOneProcess() {
        BenchReport report = ClusterBench.run(List.of(10), List.of(0.01), 1, TurnListener.NONE);
        assertThat(report.rows()).hasSizeBetween(2, 3).allSatisfy(row -> {
            assertThat(row.name()).startsWith("0.01 MB of weights, K = 10: ");
            assertThat(row.seconds()).isPositive();
        });
        assertThat(report.rows().getFirst().ratio()).isEqualTo(1);
        assertThat(report.notes()).anyMatch(note -> note.startsWith("Spark is not measured: ")); // no module has it
        boolean mpi = report.rows().stream().anyMatch(row -> row.name().endsWith(": MPI"));
        assertThat(report.notes().stream().anyMatch(note -> note.startsWith("MPI is not measured: ")))
                .isNotEqualTo(mpi);
    }

    @Test
    void exactFactorsAreExactAndConvergedOnesNearIt() {
        try (Device device = Devices.open("cpu:0", 1, InstructionSet.AUTO)) {
            BenchReport report = ExactVsNsBench.run(
                    device,
                    1,
                    List.of(new int[] {32, 32}, new int[] {40, 24}, new int[] {130, 270}),
                    TurnListener.NONE);
            assertThat(report.rows()).hasSize(3 + 3 + 4);
            for (BenchReport.Row row : report.rows()) {
                assertThat(row.seconds()).isPositive();
                if (row.name().contains("exact")) {
                    assertThat(error(row)).isLessThan(1e-5);
                } else if (row.name().contains("polar-express")) {
                    assertThat(error(row)).isLessThan(2e-3); // what was asked for, and rounding
                } else {
                    assertThat(error(row)).isBetween(0.01, 0.99); // the jordan steps do not converge
                }
            }
            assertThat(report.rows().get(6).name()).startsWith("130 x 270, auto: Gram form");
            assertThat(report.rows().get(6).ratio()).isEqualTo(1);
            assertThat(report.notes()).hasSize(3).first().asString().startsWith("exact overtakes auto at:");
            assertThat(device.liveBytes()).isZero();
        }
    }

    private static double error(BenchReport.Row row) {
        return Double.parseDouble(row.name().substring(row.name().lastIndexOf(' ') + 1));
    }

    @Slow
    @Test
    void callsAreMeasuredOnEverySide() {
        // In one JVM, with what a reader would call no warm-up: that it runs, not how fast.
        List<String> effort = List.of("-f", "0", "-wi", "1", "-w", "10ms", "-i", "3", "-r", "2ms", "-p", "n=1,64");
        BenchReport report = FfiBench.run(1, effort, TurnListener.NONE);
        assertThat(report.notes()).isEmpty();
        assertThat(report.rows()).hasSize(3 + 4 + 2 * 8).allSatisfy(row -> {
            assertThat(row.seconds()).isBetween(1e-10, 1e-2);
            assertThat(row.ratio()).isPositive();
        });
        assertThat(report.rows())
                .extracting(BenchReport.Row::name)
                .contains("fcm_abi_version(): JNI", "fcm_ema, n = 64: on arrays, as critical")
                .contains("cublasGetVersion_v2(handle, int *): JCuda's JNI");
        assertThat(report.rows().getFirst().ratio()).isEqualTo(1);
    }

    @Slow
    @Test
    void whatCannotBeMeasuredIsSaid() {
        String path = System.getProperty("fedcomuon.native.path");
        Path ours = Repository.target().resolve("native/cpu/libfedcomuon.so");
        System.setProperty("fedcomuon.native.library", ours.toString());
        System.setProperty("fedcomuon.native.path", "/nowhere");
        try {
            List<String> effort = List.of("-f", "0", "-wi", "0", "-i", "1", "-r", "1ms", "-p", "n=1");
            BenchReport report = FfiBench.run(1, effort, TurnListener.NONE);
            assertThat(report.rows())
                    .hasSize(2 + 5) // what needs no library but ours
                    .noneMatch(row -> row.name().contains("JNI"));
            assertThat(String.join("\n", report.notes()))
                    .contains("not measured: fcm_abi_version(): JNI, because: java.lang.IllegalStateException: no jni/")
                    .contains("not measured: cublasGetVersion_v2(handle, int *), because:");
        } finally {
            System.setProperty("fedcomuon.native.path", path);
            System.clearProperty("fedcomuon.native.library");
        }
    }
}
