package org.fedcomuon.federation;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.fedcomuon.method.FedAvg;
import org.fedcomuon.method.Schedule;
import org.fedcomuon.problem.MatrixQuadratics;
import org.fedcomuon.problem.Risk;
import org.fedcomuon.testing.Simulator;
import org.fedcomuon.testing.Trace;

/**
 * Exchanges between simulated GPUs. A program of its own, because whether GPUs reach each other's memory is a property
 * of the simulated machine, of which a process has one.
 */
final class ExchangeProgram {
    private static final int CLIENTS = 5;
    private static final int ROWS = 9;
    private static final int COLS = 5; // which no section of four divides
    private static final int SECTION = 4;

    static final List<List<String>> PLACEMENTS = List.of(
            List.of("cudasim:0"),
            List.of("cudasim:0", "cudasim:1"),
            List.of("cudasim:2", "cudasim:0", "cudasim:1"),
            List.of("cudasim:0", "cudasim:1", "cudasim:2", "cudasim:3"));

    private ExchangeProgram() {}

    static Federation.Builder federation(List<String> devices) {
        var problem = new MatrixQuadratics(CLIENTS, ROWS, COLS, 0.3, 0.05, Risk.mean(), 3);
        return Federation.of(problem, new FedAvg(Schedule.constant(0.1)))
                .devices(devices.toArray(String[]::new))
                .weights(5, 1, 1, 2, 3)
                .exchange(Federation.ExchangeKind.PEER)
                .iterations(4);
    }

    static Result run(List<String> devices) throws Exception {
        return federation(devices).build().run();
    }

    /** The copies of one section run beside the kernels of the next, and memory is used again when all have read it. */
    static void requireOverlap(Path file) throws Exception {
        List<String> devices = List.of("cudasim:0", "cudasim:1");
        Simulator.traced(
                file,
                () -> federation(devices)
                        .exchangeCopies()
                        .exchangeSection(SECTION)
                        .build()
                        .run());
        Trace trace = Trace.read(file);
        int sections = Math.ceilDiv(ROWS * COLS, SECTION);
        for (int device = 0; device < devices.size(); device++) {
            List<Trace.Work> exponents = trace.launches(device, "fcm_k_mean_exponents");
            List<Trace.Work> combined = trace.launches(device, "fcm_k_mean_combine");
            List<Trace.Work> sums = trace.launches(device, "fcm_k_mean_sums");
            int means = sums.size() / sections;
            assertThat(means).isPositive();
            assertThat(sums).hasSize(means * sections);
            assertThat(exponents).hasSameSizeAs(sums);
            assertThat(combined).hasSameSizeAs(sums);
            List<Trace.Work> there = trace.launches(1 - device, "fcm_k_mean_exponents");
            List<Trace.Work> copies = trace.copiesFor(combined.getFirst());
            List<Copy> expected = copies(device, sections);
            assertThat(copies).hasSize(means * expected.size());
            for (int i = 0; i < copies.size(); i++) {
                Copy what = expected.get(i % expected.size());
                int at = i / expected.size() * sections + what.section();
                Trace.Work copy = copies.get(i);
                boolean isLast = what.section() + 1 == sections;
                if (what.step() == 1) {
                    assertThat(copy.runsAfter(there.get(at))).isTrue();
                    assertThat(combined.get(at).runsAfter(copy)).isTrue();
                    if (!isLast) {
                        requireBeside(copy, exponents.get(at + 1));
                    }
                    if (what.section() + PeerAveraging.SLOTS < sections) {
                        assertThat(there.get(at + PeerAveraging.SLOTS).runsAfter(copy))
                                .isTrue();
                    }
                } else if (what.step() == 2 && !isLast) {
                    requireBeside(copy, sums.get(at + 1));
                }
            }
        }
    }

    private static void requireBeside(Trace.Work copy, Trace.Work kernel) {
        assertThat(copy.runsAfter(kernel)).as("%s waits for %s", copy, kernel).isFalse();
        assertThat(kernel.runsAfter(copy)).as("%s waits for %s", kernel, copy).isFalse();
    }

    /** A copy of a device: the exponents, sums or mean of a section that the other has. */
    private record Copy(int step, int section) {}

    /** Returns the copies for a mean, in the order in which they are submitted. */
    private static List<Copy> copies(int device, int sections) {
        var all = new ArrayList<Copy>();
        for (int i = 0; i < sections + 3; i++) {
            for (int step = 1; step <= 3; step++) {
                int section = i - step;
                if (section >= 0 && section < sections) {
                    int count = Math.min(SECTION, ROWS * COLS - section * SECTION);
                    int own = count * (device + 1) / 2 - count * device / 2;
                    boolean nothing = (step == 2 && own == 0) || (step == 3 && own == count);
                    if (!nothing) {
                        all.add(new Copy(step, section));
                    }
                }
            }
        }
        return all;
    }

    /** Prints a line for each placement and one about the last, after copies have been seen to overlap. */
    public static void main(String[] arguments) throws Exception {
        Path file = Path.of(arguments[0], "trace of " + System.getenv("FEDCOMUON_CUDASIM_PEERS"));
        requireOverlap(file);
        for (List<String> devices : PLACEMENTS) {
            System.out.println(federation(devices)
                    .exchange(Federation.ExchangeKind.NCCL)
                    .build()
                    .run()
                    .sha256());
            Simulator.traced(file, () -> {
                System.out.println(run(devices).sha256());
                return true;
            });
        }
        Trace trace = Trace.read(file);
        boolean copied = IntStream.range(0, 4)
                .anyMatch(device -> trace.launches(device, "fcm_k_mean_combine").stream()
                        .anyMatch(work -> !trace.copiesFor(work).isEmpty()));
        System.out.printf(
                "%s, copies between devices: %s%n", run(PLACEMENTS.getLast()).exchange(), copied ? "some" : "none");
        assertThat(Simulator.liveBytes(-1)).isZero();
    }
}
