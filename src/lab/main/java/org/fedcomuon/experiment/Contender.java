package org.fedcomuon.experiment;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.stream.IntStream;
import org.fedcomuon.device.Buffer;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.DeviceException;
import org.fedcomuon.device.ElementType;
import org.fedcomuon.linalg.Coefficients;
import org.fedcomuon.linalg.Orthogonalizer;
import org.fedcomuon.linalg.Quality;
import org.fedcomuon.linalg.ScaleRule;

/** A way to orthogonalize one matrix, prepared, timed and judged. */
final class Contender implements AutoCloseable {
    private final Device device;
    private final String method;
    private final List<Coefficients> names = new ArrayList<>();
    private final Orthogonalizer.Plan plan;
    private final double[] seconds;
    private boolean leftRange;

    /**
     * @param coefficients of an iteration; empty for an exact way
     * @param rounds that are timed
     */
    Contender(Device device, Orthogonalizer how, Optional<Coefficients> coefficients, Compare.Shape shape, int rounds) {
        this.device = device;
        coefficients.ifPresent(names::add);
        method = method(how);
        plan = how.plan(device, 1, shape.rows(), shape.cols(), ElementType.FLOAT32, ScaleRule.NONE);
        seconds = new double[rounds];
    }

    /** Returns whether these coefficients are the same steps as its own, in the same form, under another name. */
    boolean takes(Orthogonalizer other, Coefficients coefficients) {
        return method.equals(method(other))
                && !names.isEmpty()
                && names.getFirst().steps().equals(coefficients.steps());
    }

    /** Gives its result another name, too. */
    void alsoAs(Coefficients coefficients) {
        names.add(coefficients);
    }

    private static String method(Orthogonalizer how) {
        return how.name().split(" ", 2)[0];
    }

    /** Orthogonalizes; the time counts from round 0 on. */
    void run(Buffer m, Buffer o, int round) {
        if (leftRange) {
            return;
        }
        try {
            long start = System.nanoTime();
            plan.orthogonalize(m.batch(1, m.length()), o.batch(1, o.length()));
            device.synchronize();
            if (round >= 0) {
                seconds[round] = (System.nanoTime() - start) * 1e-9;
            }
        } catch (DeviceException.NotFinite e) {
            leftRange = true; // the matrix is finite, so it is the coefficients
        }
    }

    /**
     * Returns the result of a last run, once for each name; none if the coefficients drive the matrix out of the range
     * of floats.
     *
     * @param host a CPU
     * @param values the matrix
     */
    List<CompareReport.Entry> judge(
            Device host, CompareReport.Subject subject, KnownFactor known, float[] values, Buffer m, Buffer o) {
        run(m, o, -1);
        if (leftRange) {
            return List.of();
        }
        double[] matrix =
                IntStream.range(0, values.length).mapToDouble(i -> values[i]).toArray();
        double[] result = o.toDoubles(0, values.length);
        Quality quality = Quality.of(host, subject.rows(), subject.cols(), matrix, known.nuclearNorm(), result);
        Arrays.sort(seconds);
        List<Integer> kept = plan.kept();
        var entry = new CompareReport.Entry(
                subject,
                method,
                "",
                0,
                plan.path(),
                seconds[seconds.length / 2],
                Arrays.stream(known.errors(host, result)).boxed().toList(),
                quality.orthogonalityError(),
                quality.alignment(),
                quality.smallestSingularValue(),
                quality.largestSingularValue(),
                kept.isEmpty() ? OptionalInt.empty() : OptionalInt.of(kept.getFirst()));
        return names.isEmpty()
                ? List.of(entry)
                : names.stream()
                        .map(set -> entry.with(set.name(), set.steps().size()))
                        .toList();
    }

    /** Returns the method and its coefficients, for messages. */
    String name() {
        return names.isEmpty() ? method : method + " " + names.getFirst();
    }

    @Override
    public void close() {
        plan.close();
    }
}
