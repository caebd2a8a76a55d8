package org.fedcomuon.experiment;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import org.fedcomuon.device.Buffer;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.DeviceException;
import org.fedcomuon.device.ElementType;
import org.fedcomuon.device.Precision;
import org.fedcomuon.linalg.Coefficients;
import org.fedcomuon.linalg.GramNewtonSchulz;
import org.fedcomuon.linalg.NewtonSchulz;
import org.fedcomuon.linalg.Orthogonalizer;
import org.fedcomuon.linalg.Quality;
import org.fedcomuon.linalg.ScaleRule;

/** What the steps of each coefficient set leave of singular values in each precision. */
final class PrecisionBands {
    private PrecisionBands() {}

    /** As {@link Compare#bands} describes it. */
    static List<String> table(Device device, Compare.Shape shape, double condition) {
        int rows = shape.rows();
        int cols = shape.cols();
        int size = rows * cols;
        double[] spectrum = MadeMatrix.spectrum(Math.min(rows, cols), condition);
        double[] exactly = MadeMatrix.of(device, shape, spectrum);
        float[] values = new float[size];
        double squares = 0;
        for (int i = 0; i < size; i++) {
            values[i] = (float) exactly[i];
            squares += (double) values[i] * values[i];
        }
        double norm = Math.sqrt(squares);
        var lines = new ArrayList<String>();
        lines.add("| %d x %d, s0 in [%.0e, 1] | exact arithmetic | fp32 | tf32 | bf16 | tf32 off fp32 | bf16 off fp32 |"
                .formatted(rows, cols, 1 / condition));
        lines.add("|---|---|---|---|---|---:|---:|");
        try (Buffer m = device.allocate("M", ElementType.FLOAT32, size);
                Buffer o = device.allocate("O", ElementType.FLOAT32, size)) {
            m.copyIn(0, values);
            for (boolean gram : new boolean[] {false, true}) {
                for (String name : Coefficients.NAMES) {
                    Coefficients named = Coefficients.parse(name, Optional.empty());
                    var whole = new Coefficients(named.name(), named.steps(), named.divisor() / norm);
                    double least = Arrays.stream(spectrum).map(named::map).min().orElseThrow();
                    double most = Arrays.stream(spectrum).map(named::map).max().orElseThrow();
                    var bands = new ArrayList<String>();
                    var distances = new ArrayList<String>();
                    bands.add(band(least, most));
                    double[] single = {};
                    for (Precision precision : Precision.values()) {
                        Orthogonalizer how =
                                gram ? new GramNewtonSchulz(whole, precision) : new NewtonSchulz(whole, precision);
                        try (Orthogonalizer.Plan plan =
                                how.plan(device, 1, rows, cols, ElementType.FLOAT32, ScaleRule.NONE)) {
                            plan.orthogonalize(m.batch(1, size), o.batch(1, size));
                            device.synchronize();
                        } catch (DeviceException.NotFinite e) {
                            bands.add("out of range");
                            distances.add("");
                            continue;
                        }
                        double[] result = o.toDoubles(0, size);
                        Quality quality = Quality.of(device, rows, cols, exactly, 1, result);
                        bands.add(band(quality.smallestSingularValue(), quality.largestSingularValue()));
                        if (precision == Precision.FP32) {
                            single = result;
                        } else {
                            distances.add("%.1e".formatted(distance(single, result)));
                        }
                    }
                    lines.add("| %s%s | %s | %s |"
                            .formatted(
                                    gram ? "gram, " : "",
                                    named,
                                    String.join(" | ", bands),
                                    String.join(" | ", distances)));
                }
            }
        }
        return lines;
    }

    private static String band(double least, double most) {
        return "[%.4f, %.4f]".formatted(least, most);
    }

    /** Returns the Frobenius norm of a difference, relative to that of the first. */
    private static double distance(double[] from, double[] to) {
        double difference = 0;
        double whole = 0;
        for (int i = 0; i < from.length; i++) {
            difference += (from[i] - to[i]) * (from[i] - to[i]);
            whole += from[i] * from[i];
        }
        return Math.sqrt(difference / whole);
    }
}
