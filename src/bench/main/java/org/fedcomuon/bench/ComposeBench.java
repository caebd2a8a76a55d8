package org.fedcomuon.bench;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.fedcomuon.device.Batch;
import org.fedcomuon.device.Buffer;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.ElementType;
import org.fedcomuon.internal.StreamTriad;

/**
 * Compares the compositional-gradient kernels with the memory bandwidth of the machine. They do little arithmetic, so
 * the limit is a STREAM triad of the same number of elements, with ordinary or non-temporal stores, whichever is
 * faster.
 *
 * <p>{@code elements} counts the elements of H over all clients (d blocks of n per client).
 */
public final class ComposeBench {
    private static final int CLIENTS = 10;
    /** The number of samples per contender in a full benchmark. */
    public static final int ROUNDS = 15;

    private ComposeBench() {}

    /** Measures 1e6 and {@code largest} elements, with d = 1 and 8, {@code rounds} samples of each contender. */
    public static BenchReport run(Device device, long largest, int rounds, TurnListener listener) {
        var rows = new ArrayList<BenchReport.Row>();
        for (long elements : new long[] {1_000_000, largest}) {
            for (int d : new int[] {1, 8}) {
                rows.addAll(measure(device, elements, d, rounds, listener));
            }
        }
        return new BenchReport(
                "compose",
                device.toString(),
                "ratio = GB/s relative to the faster STREAM triad of as many elements in the same run; bytes are what"
                        + " must move between memory and the cores",
                List.copyOf(rows));
    }

    private static List<BenchReport.Row> measure(
            Device device, long elements, int d, int rounds, TurnListener listener) {
        long n = elements / CLIENTS / d;
        long length = n * d;
        long total = CLIENTS * length;
        String what = "%.0e elements, d = %d".formatted((double) total, d);
        try (Buffer gNew = filled(device, "Gnew", total);
                Buffer gOld = filled(device, "Gold", total);
                Buffer h = filled(device, "H", total);
                Buffer m = filled(device, "M", CLIENTS * n);
                Buffer v = filled(device, "v", (long) CLIENTS * d);
                Buffer a = filled(device, "triad", total);
                Buffer norms = device.allocate("norms", ElementType.FLOAT64, CLIENTS)) {
            Batch batchH = h.batch(CLIENTS, length);
            Batch batchM = m.batch(CLIENTS, n);
            Batch batchV = v.batch(CLIENTS, d);
            Runnable storm = () -> device.storm(
                    0.9, gNew.batch(CLIENTS, length), gOld.batch(CLIENTS, length), batchH, norms.batch(CLIENTS, 1));
            device.norm(batchH, norms.batch(CLIENTS, 1));
            double everyNorm = norms.toDoubles(0, 1)[0];
            Map<String, Timing> timings = new Interleaved(what, listener)
                    .add("triad", () -> triad(device, gNew, gOld, a, false))
                    .add("triad, non-temporal", () -> triad(device, gNew, gOld, a, true))
                    .add("storm + project_compose_momentum, projecting", () -> {
                        storm.run();
                        device.projectComposeMomentum(
                                everyNorm * 1e-3, norms.batch(CLIENTS, 1), 0.1, batchH, batchV, batchM);
                    })
                    .add("storm + project_compose_momentum, inside the ball", () -> {
                        storm.run();
                        device.projectComposeMomentum(
                                Double.POSITIVE_INFINITY, norms.batch(CLIENTS, 1), 0.1, batchH, batchV, batchM);
                    })
                    .add("compose_momentum", () -> device.composeMomentum(0.1, batchH, batchV, batchM))
                    .measure(rounds);

            long word = Float.BYTES;
            long stormBytes = 4 * word * total; // reads Gnew, Gold, H; writes H
            long composeBytes = word * (total + 2L * CLIENTS * n + (long) CLIENTS * d); // reads H, M, v; writes M
            Map<String, Long> bytes = Map.of(
                    "triad",
                    3 * word * total,
                    "triad, non-temporal",
                    3 * word * total,
                    "storm + project_compose_momentum, projecting",
                    stormBytes + composeBytes + word * total,
                    "storm + project_compose_momentum, inside the ball",
                    stormBytes + composeBytes,
                    "compose_momentum",
                    composeBytes);
            double limit = Math.max(
                    bytes.get("triad") / timings.get("triad").median(),
                    bytes.get("triad, non-temporal")
                            / timings.get("triad, non-temporal").median());
            var rows = new ArrayList<BenchReport.Row>();
            timings.forEach((name, timing) -> rows.add(new BenchReport.Row(
                    what + ": " + name,
                    timing.median(),
                    timing.spread(),
                    bytes.get(name),
                    bytes.get(name) / timing.median() / limit)));
            return rows;
        }
    }

    private static void triad(Device device, Buffer b, Buffer c, Buffer a, boolean nonTemporal) {
        ((StreamTriad) device).triad(a.length(), 0.5f, b.address(), c.address(), a.address(), nonTemporal);
    }

    /** Returns a buffer of ordinary numbers around 0.1: zeros or denormals would distort the measurement. */
    private static Buffer filled(Device device, String label, long length) {
        Buffer buffer = device.allocate(label, ElementType.FLOAT32, length);
        MemorySegment segment = buffer.segment();
        for (long i = 0; i < length; i++) {
            segment.setAtIndex(ValueLayout.JAVA_FLOAT, i, 0.01f * (1 + i % 17));
        }
        return buffer;
    }
}
