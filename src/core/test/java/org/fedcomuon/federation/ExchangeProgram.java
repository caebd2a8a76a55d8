package org.fedcomuon.federation;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
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
    private static final int COLS = 5; // stretches that no chunk of four divides
    private static final int CHUNK = 4;

    static final List<List<String>> PLACEMENTS = List.of(
            List.of("cudasim:0"),
            List.of("cudasim:0", "cudasim:1"),
            List.of("cudasim:2", "cudasim:0", "cudasim:1"),
            List.of("cudasim:0", "cudasim:1", "cudasim:2", "cudasim:3"));

    private ExchangeProgram() {}

    static Result run(List<String> devices, long chunk) throws Exception {
        var problem = new MatrixQuadratics(CLIENTS, ROWS, COLS, 0.3, 0.05, Risk.mean(), 3);
        return Federation.of(problem, new FedAvg(Schedule.constant(0.1)))
                .devices(devices.toArray(String[]::new))
                .weights(5, 1, 1, 2, 3)
                .exchangeChunk(chunk)
                .iterations(4)
                .build()
                .run();
    }

    /** In turns of two slots: the copies of a chunk wait for the sum of the one before the last, and for no later. */
    static void requireOverlap(Path file) throws Exception {
        List<String> devices = List.of("cudasim:0", "cudasim:1");
        Simulator.traced(file, () -> run(devices, CHUNK));
        Trace trace = Trace.read(file);
        int parameters = ROWS * COLS;
        for (int device = 0; device < devices.size(); device++) {
            int size = parameters * (device + 1) / devices.size() - parameters * device / devices.size();
            int chunks = Math.ceilDiv(size, CHUNK);
            List<Trace.Work> sums = trace.launches(device, "fcm_k_average");
            assertThat(chunks).isGreaterThan(4);
            assertThat(sums).isNotEmpty().hasSize(sums.size() / chunks * chunks);
            List<Trace.Work> copies = trace.copiesFor(sums.getFirst());
            int means = sums.size() / chunks;
            int each = chunks * CLIENTS + devices.size(); // what is gathered, then what is taken
            assertThat(copies).hasSize(means * each);
            for (int mean = 0; mean < means; mean++) {
                for (int c = 0; c < chunks; c++) {
                    Trace.Work sum = sums.get(mean * chunks + c);
                    int first = mean * each + c * CLIENTS;
                    List<Trace.Work> own = copies.subList(first, first + CLIENTS);
                    assertThat(own)
                            .allSatisfy(copy -> assertThat(sum.runsAfter(copy)).isTrue());
                    if (c + 1 < chunks) {
                        assertThat(copies.subList(first + CLIENTS, first + 2 * CLIENTS))
                                .as("chunk %d, beside the sum of %d", c + 1, c)
                                .allSatisfy(next -> {
                                    assertThat(next.line()).isLessThan(sum.line());
                                    assertThat(next.runsAfter(sum)).isFalse();
                                    assertThat(sum.runsAfter(next)).isFalse();
                                });
                    }
                    if (c + 2 < chunks) {
                        assertThat(copies.get(first + 2 * CLIENTS).runsAfter(sum))
                                .isTrue();
                    }
                }
            }
        }
    }

    /** Prints a line for each placement and one about the last, after chunks have been seen to overlap. */
    public static void main(String[] arguments) throws Exception {
        Path file = Path.of(arguments[0], "trace of " + System.getenv("FEDCOMUON_CUDASIM_PEERS"));
        requireOverlap(file);
        for (List<String> devices : PLACEMENTS) {
            Simulator.traced(file, () -> {
                System.out.println(run(devices, 0).sha256());
                return true;
            });
        }
        Trace trace = Trace.read(file);
        boolean direct = IntStream.range(0, 4)
                .anyMatch(
                        device -> !trace.launches(device, "fcm_k_average_rows").isEmpty());
        boolean copied = IntStream.range(0, 4)
                .anyMatch(device -> trace.launches(device, "fcm_k_average").stream()
                        .anyMatch(sum -> !trace.copiesFor(sum).isEmpty()));
        System.out.printf(
                "direct sums: %s, copies between devices: %s%n", direct ? "some" : "none", copied ? "some" : "none");
        assertThat(Simulator.liveBytes(-1)).isZero();
    }
}
