package org.fedcomuon.bench;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.fedcomuon.device.Buffer;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.ElementType;
import org.fedcomuon.internal.OpenBlasLibrary;
import org.fedcomuon.linalg.Auto;
import org.fedcomuon.linalg.Coefficients;
import org.fedcomuon.linalg.ExactSvd;
import org.fedcomuon.linalg.Orthogonalizer;
import org.fedcomuon.linalg.Plan;
import org.fedcomuon.linalg.Quality;
import org.fedcomuon.linalg.ScaleRule;

/**
 * The exact orthogonal factor against what {@link Auto} picks, shape by shape: where the iteration is ahead, and by how
 * much. With each goes what it has computed, as the farthest that a singular value of the result is from 1: five jordan
 * steps are fast because they stop there.
 */
public final class ExactVsNsBench {
    /** How many samples a contender a benchmark takes that means what it says. */
    public static final int ROUNDS = 5;

    private static final Coefficients JORDAN = Coefficients.jordan(5);

    private ExactVsNsBench() {}

    /** The shapes of the default run. */
    public static List<int[]> shapes() {
        return List.of(
                new int[] {64, 64},
                new int[] {128, 128},
                new int[] {256, 256},
                new int[] {512, 512},
                new int[] {768, 768},
                new int[] {1024, 1024},
                new int[] {120, 256},
                new int[] {256, 1024},
                new int[] {768, 1024},
                new int[] {768, 3072});
    }

    /** Measures each of {@code shapes}, {@code rounds} samples of each contender. */
    public static BenchReport run(Device device, int rounds, List<int[]> shapes) {
        var rows = new ArrayList<BenchReport.Row>();
        var overtaken = new ArrayList<String>();
        for (int[] shape : shapes) {
            List<BenchReport.Row> pair = shape(device, rounds, shape[0], shape[1]);
            rows.addAll(pair);
            if (pair.getLast().ratio() < 1) {
                overtaken.add("%d x %d".formatted(shape[0], shape[1]));
            }
        }
        return new BenchReport(
                "exact-vs-ns",
                device.toString(),
                "orthogonal factors of one matrix; ratio = time relative to what auto picks, five jordan steps; error = the"
                        + " farthest that a singular value of the result is from 1; the exact one is the faster of the two at "
                        + (overtaken.isEmpty() ? "none of these shapes" : String.join(", ", overtaken)),
                rows);
    }

    private static List<BenchReport.Row> shape(Device device, int rounds, int rows, int cols) {
        long size = (long) rows * cols;
        try (Buffer m = device.allocate("M", ElementType.FLOAT32, size);
                Buffer iterated = device.allocate("O by iteration", ElementType.FLOAT32, size);
                Buffer exact = device.allocate("O", ElementType.FLOAT32, size);
                Plan iteration = plan(new Auto(JORDAN), device, rows, cols);
                Plan decomposition = plan(new ExactSvd(), device, rows, cols)) {
            m.copyIn(0, normal(Math.toIntExact(size)));
            Runnable iterate = () -> iteration.orthogonalize(m.batch(1, size), iterated.batch(1, size));
            Runnable decompose = () -> decomposition.orthogonalize(m.batch(1, size), exact.batch(1, size));
            decompose.run();
            OpenBlasLibrary.setThreads(1); // as a user of the library has it; another suite may have left it otherwise
            var contest = new Interleaved().add("auto", iterate).add("exact", decompose);
            Map<String, Timing> timings = contest.measure(rounds);
            double base = timings.get("auto").median();
            return List.of(
                    row(
                            rows,
                            cols,
                            "auto: " + iteration.path(),
                            error(device, rows, cols, m, iterated),
                            timings.get("auto"),
                            base),
                    row(
                            rows,
                            cols,
                            "exact: " + decomposition.path(),
                            error(device, rows, cols, m, exact),
                            timings.get("exact"),
                            base));
        }
    }

    private static Plan plan(Orthogonalizer how, Device device, int rows, int cols) {
        return how.plan(device, 1, rows, cols, ElementType.FLOAT32, ScaleRule.NONE);
    }

    private static BenchReport.Row row(int rows, int cols, String what, double error, Timing timing, double base) {
        return new BenchReport.Row(
                "%d x %d, %s, error %.1e".formatted(rows, cols, what, error),
                timing.median(),
                timing.spread(),
                0,
                timing.median() / base);
    }

    private static double error(Device device, int rows, int cols, Buffer m, Buffer o) {
        int size = rows * cols;
        Quality quality = Quality.of(device, rows, cols, widen(m.toFloats(0, size)), widen(o.toFloats(0, size)));
        return Math.max(1 - quality.smallestSingularValue(), quality.largestSingularValue() - 1);
    }

    private static double[] widen(float[] values) {
        var wide = new double[values.length];
        for (int i = 0; i < values.length; i++) {
            wide[i] = values[i];
        }
        return wide;
    }

    private static float[] normal(int size) {
        var random = new Random(42);
        var values = new float[size];
        for (int i = 0; i < size; i++) {
            values[i] = (float) random.nextGaussian();
        }
        return values;
    }
}
