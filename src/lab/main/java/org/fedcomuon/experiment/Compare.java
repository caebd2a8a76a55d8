package org.fedcomuon.experiment;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.function.Consumer;
import org.fedcomuon.device.Blas;
import org.fedcomuon.device.Buffer;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.DeviceException;
import org.fedcomuon.device.Devices;
import org.fedcomuon.device.ElementType;
import org.fedcomuon.device.Matrix;
import org.fedcomuon.device.Precision;
import org.fedcomuon.linalg.Coefficients;
import org.fedcomuon.linalg.ExactSvd;
import org.fedcomuon.linalg.GramNewtonSchulz;
import org.fedcomuon.linalg.NewtonSchulz;
import org.fedcomuon.linalg.Orthogonalizer;
import org.fedcomuon.linalg.Quality;
import org.fedcomuon.linalg.ScaleRule;

/**
 * Compares exact orthogonalization with Newton-Schulz, with every coefficient set and in the Gram form, on matrices
 * whose singular values are evenly spaced on a logarithmic scale from 1 down to 1 / condition.
 *
 * <p>Not thread-safe.
 */
public final class Compare {
    private static final int WARM_UP = 2;
    private static final int ROUNDS = 5;

    private Compare() {}

    /** A shape to compare on. */
    public record Shape(int rows, int cols) {
        public Shape {
            if (rows < 1 || cols < 1 || (long) rows * cols > 1 << 28) {
                throw new IllegalArgumentException("a %d x %d matrix".formatted(rows, cols));
            }
        }
    }

    /**
     * Measures every method on every shape and condition number.
     *
     * @param progress receives a line before each measurement
     */
    public static CompareReport run(
            Device device, List<Shape> shapes, List<Double> conditions, Consumer<String> progress) {
        var entries = new ArrayList<CompareReport.Entry>();
        for (Shape shape : shapes) {
            for (double condition : conditions) {
                progress.accept("%d x %d, condition %.0e".formatted(shape.rows(), shape.cols(), condition));
                entries.addAll(compare(device, shape, condition));
            }
        }
        return new CompareReport(
                "Exact SVD and Newton-Schulz", device.toString(), Devices.libraryInfo(), entries, curves());
    }

    /** Returns all methods by the name of their coefficients, which is empty for the exact path. */
    private static List<Map.Entry<String, Orthogonalizer>> methods() {
        var methods = new ArrayList<Map.Entry<String, Orthogonalizer>>();
        methods.add(Map.entry("", new ExactSvd()));
        for (String name : Coefficients.NAMES) {
            methods.add(Map.entry(name, new NewtonSchulz(Coefficients.parse(name, Optional.empty()))));
        }
        for (String name : List.of("jordan", "polar-express")) {
            methods.add(Map.entry(name, new GramNewtonSchulz(Coefficients.parse(name, Optional.empty()))));
        }
        return methods;
    }

    private static List<CompareReport.Entry> compare(Device device, Shape shape, double condition) {
        int rows = shape.rows();
        int cols = shape.cols();
        int size = rows * cols;
        double[] spectrum = spectrum(Math.min(rows, cols), condition);
        double[] exactly = matrix(device, shape, spectrum);
        float[] values = new float[size];
        for (int i = 0; i < size; i++) {
            values[i] = (float) exactly[i];
        }
        double nuclear = Arrays.stream(spectrum).sum();
        var methods = methods();
        var plans = new LinkedHashMap<Map.Entry<String, Orthogonalizer>, Orthogonalizer.Plan>();
        var entries = new ArrayList<CompareReport.Entry>();
        try (Buffer m = device.allocate("M", ElementType.FLOAT32, size);
                Buffer o = device.allocate("O", ElementType.FLOAT32, size)) {
            m.copyIn(0, values);
            methods.forEach(method -> plans.put(
                    method, method.getValue().plan(device, 1, rows, cols, ElementType.FLOAT32, ScaleRule.NONE)));
            var seconds = new double[methods.size()][ROUNDS];
            for (int round = -WARM_UP; round < ROUNDS; round++) { // in turns
                for (int i = 0; i < methods.size(); i++) {
                    long start = System.nanoTime();
                    plans.get(methods.get(i)).orthogonalize(m.batch(1, size), o.batch(1, size));
                    if (round >= 0) {
                        seconds[i][round] = (System.nanoTime() - start) * 1e-9;
                    }
                }
            }
            for (int i = 0; i < methods.size(); i++) {
                Orthogonalizer.Plan plan = plans.get(methods.get(i));
                plan.orthogonalize(m.batch(1, size), o.batch(1, size));
                Quality quality = Quality.of(device, rows, cols, exactly, nuclear, o.toDoubles(0, size));
                Arrays.sort(seconds[i]);
                entries.add(new CompareReport.Entry(
                        rows,
                        cols,
                        condition,
                        kind(methods.get(i).getValue()),
                        methods.get(i).getKey(),
                        plan.path(),
                        seconds[i][ROUNDS / 2],
                        quality.orthogonalityError(),
                        quality.alignment(),
                        quality.smallestSingularValue(),
                        quality.largestSingularValue()));
            }
        } finally {
            plans.values().forEach(Orthogonalizer.Plan::close);
        }
        return entries;
    }

    /**
     * Measures the singular values that each coefficient set leaves in each precision, and the distance of the result
     * from that of fp32. The iteration starts from the matrix as it is, without a division by its norm, so that its
     * singular values fill the whole range from 1 / condition to 1.
     *
     * @return the lines of a table in Markdown
     */
    public static List<String> bands(Device device, Shape shape, double condition) {
        int rows = shape.rows();
        int cols = shape.cols();
        int size = rows * cols;
        double[] spectrum = spectrum(Math.min(rows, cols), condition);
        double[] exactly = matrix(device, shape, spectrum);
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

    private static String kind(Orthogonalizer how) {
        return how.name().split(" ", 2)[0];
    }

    private static double[] spectrum(int count, double condition) {
        var values = new double[count];
        for (int i = 0; i < count; i++) {
            values[i] = Math.pow(condition, count == 1 ? 0 : -(double) i / (count - 1));
        }
        return values;
    }

    /** Returns {@code U diag(s) V^T} in double precision, U and V those of a matrix of normal numbers. */
    private static double[] matrix(Device device, Shape shape, double[] spectrum) {
        int rows = shape.rows();
        int cols = shape.cols();
        int side = spectrum.length;
        var random = new Random(42);
        var normal = new double[rows * cols];
        Arrays.setAll(normal, ignored -> random.nextGaussian());
        try (Buffer a = device.allocate("A", ElementType.FLOAT64, normal.length);
                Buffer s = device.allocate("s", ElementType.FLOAT64, side);
                Buffer u = device.allocate("U", ElementType.FLOAT64, (long) rows * side);
                Buffer vt = device.allocate("V^T", ElementType.FLOAT64, (long) side * cols)) {
            a.copyIn(0, normal);
            Matrix left = Matrix.of(u, 0, rows, side);
            Matrix right = Matrix.of(vt, 0, side, cols);
            device.solver().svd(Matrix.of(a, 0, rows, cols), s, 0, left, right);
            double[] scaled = u.toDoubles(0, rows * side);
            for (int i = 0; i < scaled.length; i++) {
                scaled[i] *= spectrum[i % side];
            }
            u.copyIn(0, scaled);
            device.blas().gemm(Blas.Op.NONE, Blas.Op.NONE, 1, left, right, 0, Matrix.of(a, 0, rows, cols));
            return a.toDoubles(0, normal.length);
        }
    }

    private static List<CompareReport.Curve> curves() {
        var curves = new ArrayList<CompareReport.Curve>();
        for (String name : Coefficients.NAMES) {
            Coefficients coefficients = Coefficients.parse(name, Optional.empty());
            var input = new ArrayList<Double>();
            var output = new ArrayList<Double>();
            for (int i = 0; i <= 400; i++) {
                double s = Math.pow(10, -4 + i / 100.0);
                input.add(s);
                output.add(coefficients.map(s));
            }
            curves.add(new CompareReport.Curve(name, input, output));
        }
        return curves;
    }
}
