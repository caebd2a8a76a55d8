package org.fedcomuon.bench;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.stream.Stream;
import org.fedcomuon.device.Buffer;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.DeviceException;
import org.fedcomuon.device.Devices;
import org.fedcomuon.device.ElementType;
import org.fedcomuon.device.NewtonSchulzSpec;
import org.fedcomuon.internal.OpenBlasLibrary;
import org.fedcomuon.linalg.Auto;
import org.fedcomuon.linalg.Coefficients;
import org.fedcomuon.linalg.Exact;
import org.fedcomuon.linalg.GramNewtonSchulz;
import org.fedcomuon.linalg.NewtonSchulz;
import org.fedcomuon.linalg.Orthogonalizer;
import org.fedcomuon.linalg.Quality;
import org.fedcomuon.linalg.ScaleRule;

/**
 * Compares the exact orthogonal factor with the iterations, shape by shape: five jordan steps as {@link Auto} runs them
 * and in the form that it did not pick, and as many steps as bring all singular values of the matrix near to 1. Each
 * row has the error of the result, the largest distance of a singular value from 1: the jordan coefficients are fast
 * because they do not converge.
 */
public final class ExactVsNsBench {
    /** The number of samples per contender in a full benchmark. */
    public static final int ROUNDS = 5;

    private static final String AUTO = "auto";
    static final String OTHER = "other form";
    private static final String CONVERGED = "converged";
    private static final String EXACT = "exact";
    private static final Coefficients JORDAN = Coefficients.jordan(5);

    /**
     * That {@link Auto} picks the faster form, or one as fast, where speed is what decides: between squares and
     * matrices twice as long, it prefers the form that keeps the condition number.
     */
    static final Aims AIMS = Aims.NONE.with(
            "(256 x (256|1024)|512 x 512|768 x (768|1536|3072)|1024 x 1024), " + OTHER + ": .*", Aim.atLeast(0.95));

    /** The largest distance of a singular value from 1 at which an iteration counts as converged. */
    private static final double NEAR = 1e-3;

    private ExactVsNsBench() {}

    /** Returns shapes that a simulated device computes in a minute. */
    public static List<int[]> smallShapes() {
        return List.of(new int[] {16, 16}, new int[] {24, 40}, new int[] {130, 270});
    }

    /** Returns the shapes of the default run. */
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
                new int[] {768, 1152},
                new int[] {768, 1536},
                new int[] {768, 3072});
    }

    /** Measures each of {@code shapes}, {@code rounds} samples of each contender. */
    public static BenchReport run(Device device, int rounds, List<int[]> shapes, TurnListener listener) {
        var rows = new ArrayList<BenchReport.Row>();
        var overAuto = new ArrayList<String>();
        var overConverged = new ArrayList<String>();
        var otherForm = new ArrayList<String>();
        Optional<String> noSolver = Optional.empty();
        try {
            device.solver();
        } catch (DeviceException.Unsupported e) {
            noSolver = Optional.of("exact factors are left out: " + e.getMessage());
        }
        for (int[] shape : shapes) {
            String name = "%d x %d".formatted(shape[0], shape[1]);
            var seconds = new LinkedHashMap<String, Double>();
            rows.addAll(shape(device, noSolver.isEmpty(), rounds, shape[0], shape[1], seconds, listener));
            if (seconds.getOrDefault(EXACT, Double.MAX_VALUE) < seconds.get(AUTO)) {
                overAuto.add(name);
            }
            if (seconds.getOrDefault(EXACT, Double.MAX_VALUE) < seconds.get(CONVERGED)) {
                overConverged.add(name);
            }
            if (seconds.getOrDefault(OTHER, Double.MAX_VALUE) < seconds.get(AUTO)) {
                otherForm.add(name);
            }
        }
        return new BenchReport(
                "exact-vs-ns",
                device.toString(),
                "orthogonal factors of one matrix; ratio = time relative to auto with five jordan steps; error = the"
                        + " largest distance of a singular value of the result from 1",
                List.copyOf(rows),
                Stream.concat(
                                noSolver.map(Stream::of)
                                        .orElseGet(() -> Stream.of(
                                                "exact overtakes auto at: " + list(overAuto),
                                                "exact overtakes an iteration that has converged to %s at: "
                                                                .formatted(NEAR)
                                                        + list(overConverged))),
                                Stream.of("the form that auto does not pick is faster at: " + list(otherForm)))
                        .toList());
    }

    private static String list(List<String> shapes) {
        return shapes.isEmpty() ? "none of these" : String.join(", ", shapes);
    }

    private static List<BenchReport.Row> shape(
            Device device,
            boolean exact,
            int rounds,
            int rows,
            int cols,
            Map<String, Double> seconds,
            TurnListener listener) {
        long size = (long) rows * cols;
        var plans = new LinkedHashMap<String, Orthogonalizer.Plan>();
        try (Device host = Devices.open("cpu:0"); // which singular values are computed on
                Buffer m = device.allocate("M", ElementType.FLOAT32, size);
                Buffer o = device.allocate("O", ElementType.FLOAT32, size)) {
            m.copyIn(0, normal(Math.toIntExact(size)));
            Coefficients convergent = convergent(host, rows, cols, m);
            plans.put(AUTO, plan(new Auto(JORDAN), device, rows, cols));
            if (Math.min(rows, cols) > NewtonSchulzSpec.longestSide()) {
                boolean gram = new Auto(JORDAN).pick(rows, cols, ElementType.FLOAT32) instanceof GramNewtonSchulz;
                plans.put(
                        OTHER,
                        plan(gram ? new NewtonSchulz(JORDAN) : new GramNewtonSchulz(JORDAN), device, rows, cols));
            }
            plans.put(CONVERGED, plan(new Auto(convergent), device, rows, cols));
            if (exact) {
                plans.put(EXACT, plan(new Exact(), device, rows, cols));
            }
            var errors = new LinkedHashMap<String, Double>();
            var contest = new Interleaved("%d x %d".formatted(rows, cols), device::synchronize, listener);
            plans.forEach((name, plan) -> {
                Runnable work = () -> plan.orthogonalize(m.batch(1, size), o.batch(1, size));
                work.run();
                errors.put(name, error(host, rows, cols, m, o));
                contest.add(name, work);
            });
            OpenBlasLibrary.setThreads(1); // the library's default, which another suite may have changed
            Map<String, Timing> timings = contest.measure(rounds);
            Timing base = timings.get(AUTO);
            timings.forEach((name, timing) -> seconds.put(name, timing.median()));
            return timings.entrySet().stream()
                    .map(e -> {
                        String words = e.getKey().equals(CONVERGED) ? convergent.toString() : e.getKey();
                        return BenchReport.Row.of(
                                "%d x %d, %s: %s, error %.1e"
                                        .formatted(
                                                rows,
                                                cols,
                                                words,
                                                plans.get(e.getKey()).path(),
                                                errors.get(e.getKey())),
                                e.getValue(),
                                Figure.ratio(e.getValue(), base),
                                AIMS);
                    })
                    .toList();
        } finally {
            plans.values().forEach(Orthogonalizer.Plan::close);
        }
    }

    private static Orthogonalizer.Plan plan(Orthogonalizer how, Device device, int rows, int cols) {
        return how.plan(device, 1, rows, cols, ElementType.FLOAT32, ScaleRule.NONE);
    }

    /** Returns the schedule that brings the smallest singular value of this matrix near to 1. */
    private static Coefficients convergent(Device host, int rows, int cols, Buffer m) {
        double[] values = widen(m.toFloats(0, rows * cols));
        double squares = 0;
        for (double value : values) {
            squares += value * value;
        }
        double smallest = Quality.of(host, rows, cols, values, values).smallestSingularValue();
        return Coefficients.polarExpressUntil(NEAR, smallest / Math.sqrt(squares));
    }

    private static double error(Device host, int rows, int cols, Buffer m, Buffer o) {
        int size = rows * cols;
        Quality quality = Quality.of(host, rows, cols, widen(m.toFloats(0, size)), widen(o.toFloats(0, size)));
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
