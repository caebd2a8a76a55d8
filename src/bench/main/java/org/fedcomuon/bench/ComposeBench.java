package org.fedcomuon.bench;

import static java.util.Map.entry;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import org.fedcomuon.device.Batch;
import org.fedcomuon.device.Buffer;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.ElementType;
import org.fedcomuon.internal.StreamTriad;

/**
 * Compares the compositional-gradient kernels and those of means with the memory bandwidth of the machine. They do
 * little arithmetic, so the limit is a STREAM triad of the same number of elements; on a CPU with ordinary or
 * non-temporal stores, whichever is faster.
 *
 * <p>{@code elements} counts the elements of H over all clients (d blocks of n per client).
 */
public final class ComposeBench {
    private static final int CLIENTS = 10;
    private static final String TRIAD = "triad";
    private static final String TRIAD_NON_TEMPORAL = "triad, non-temporal";
    private static final int CHUNK = 1 << 20;

    /** What is added to or taken from an element in a call: however often it is called, no element becomes denormal. */
    private static final double LITTLE = 1e-6;

    /** Of what is far larger than a cache; the rest of a kernel's work has to hide behind its loads and stores. */
    static final Aims AIMS = Aims.NONE.with("[1-9]e\\+(0[7-9]|1\\d) elements, .*: (?!triad).*", Aim.atLeast(0.85));

    /** The number of samples per contender in a full benchmark. */
    public static final int ROUNDS = 15;

    /** Numbers of elements that a simulated device computes in seconds. */
    public static final List<Long> SMALL = List.of(20_000L);

    private ComposeBench() {}

    /** Measures these numbers of elements, with d = 1 and 8, {@code rounds} samples of each contender. */
    public static BenchReport run(Device device, List<Long> sizes, int rounds, TurnListener listener) {
        var rows = new ArrayList<BenchReport.Row>();
        for (long elements : sizes) {
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
                Buffer norms = device.allocate("norms", ElementType.FLOAT64, CLIENTS);
                Buffer fixedNorms = device.allocate("norms of M", ElementType.FLOAT64, CLIENTS);
                Buffer exponents = device.allocate("exponents", ElementType.UINT8, n);
                Buffer sums = device.allocate("sums", ElementType.INT64, n)) {
            Batch batchH = h.batch(CLIENTS, length);
            Batch batchM = m.batch(CLIENTS, n);
            Batch batchV = v.batch(CLIENTS, d);
            Runnable storm = () -> device.storm(
                    0.9, gNew.batch(CLIENTS, length), gOld.batch(CLIENTS, length), batchH, norms.batch(CLIENTS, 1));
            device.norm(batchH, norms.batch(CLIENTS, 1));
            double everyNorm = norms.toDoubles(0, 1)[0];
            var contest = new Interleaved(what, device::synchronize, listener)
                    .add(TRIAD, () -> triad(device, gNew, gOld, a, false));
            if (device.isHost()) { // a GPU has no such stores
                contest.add(TRIAD_NON_TEMPORAL, () -> triad(device, gNew, gOld, a, true));
            }
            var ones = new double[CLIENTS];
            Arrays.fill(ones, 1);
            if (d == 1) { // neither a mean nor a norm has a Jacobian
                device.meanExponents(batchM, ones, exponents.batch(1, n));
                contest.add("norm", () -> device.norm(batchH, norms.batch(CLIENTS, 1)))
                        .add("mean", () -> device.average(batchM))
                        .add("mean_exponents", () -> device.meanExponents(batchM, ones, exponents.batch(1, n)))
                        .add(
                                "mean_sums",
                                () -> device.meanSums(batchM, ones, CLIENTS, exponents.batch(1, n), sums.batch(1, n)));
                Batch x = gOld.batch(CLIENTS, n);
                device.norm(batchM, fixedNorms.batch(CLIENTS, 1));
                double radius =
                        fixedNorms.toDoubles(0, 1)[0] * (1 - LITTLE); // so that M is written and stays what it is
                contest.add("ema", () -> device.ema(0.1, x, batchM))
                        .add("vector_step", () -> device.vectorStep(LITTLE, x, batchM))
                        .add("project", () -> device.project(radius, fixedNorms.batch(CLIENTS, 1), batchM))
                        .add("all_finite", () -> device.requireFinite(x));
            }
            Map<String, Timing> timings = contest.add("storm + project_compose_momentum, projecting", () -> {
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
            long values = word * CLIENTS * n; // of M
            Map<String, Long> bytes = Map.ofEntries(
                    entry("norm", word * total),
                    entry("mean", 2 * values),
                    entry("mean_exponents", values + n),
                    entry("mean_sums", values + n + Long.BYTES * n),
                    entry("ema", 3 * values),
                    entry("vector_step", 3 * values),
                    entry("project", 2 * values),
                    entry("all_finite", values),
                    entry(TRIAD, 3 * word * total),
                    entry(TRIAD_NON_TEMPORAL, 3 * word * total),
                    entry("storm + project_compose_momentum, projecting", stormBytes + composeBytes + word * total),
                    entry("storm + project_compose_momentum, inside the ball", stormBytes + composeBytes),
                    entry("compose_momentum", composeBytes));
            Timing limit = timings.entrySet().stream()
                    .filter(timing -> timing.getKey().startsWith(TRIAD))
                    .map(Map.Entry::getValue)
                    .min(Comparator.comparingDouble(Timing::median))
                    .orElseThrow();
            double moves = bytes.get(TRIAD);
            var rows = new ArrayList<BenchReport.Row>();
            timings.forEach((name, timing) -> {
                Figure ratio = Figure.ratio(limit, timing).times(bytes.get(name) / moves);
                rows.add(new BenchReport.Row(
                                what + ": " + name, timing.median(), timing.spread(), bytes.get(name), ratio.median())
                        .judged(AIMS, Map.of(Aim.RATIO, ratio)));
            });
            return rows;
        }
    }

    private static void triad(Device device, Buffer b, Buffer c, Buffer a, boolean nonTemporal) {
        ((StreamTriad) device).triad(a.length(), 0.5f, b.address(), c.address(), a.address(), nonTemporal);
    }

    /** Returns a buffer of ordinary numbers around 0.1: zeros or denormals would distort the measurement. */
    private static Buffer filled(Device device, String label, long length) {
        Buffer buffer = device.allocate(label, ElementType.FLOAT32, length);
        var values = new float[(int) Math.min(CHUNK, length)];
        for (long at = 0; at < length; at += CHUNK) {
            int count = (int) Math.min(CHUNK, length - at);
            for (int i = 0; i < count; i++) {
                values[i] = 0.01f * (1 + (at + i) % 17);
            }
            buffer.copyIn(at, MemorySegment.ofArray(values).asSlice(0, (long) count * Float.BYTES));
        }
        return buffer;
    }
}
