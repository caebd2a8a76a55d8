package org.fedcomuon.experiment;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.OptionalInt;
import java.util.function.Consumer;
import org.fedcomuon.device.Buffer;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.Devices;
import org.fedcomuon.device.ElementType;
import org.fedcomuon.linalg.Auto;
import org.fedcomuon.linalg.Coefficients;
import org.fedcomuon.linalg.Exact;
import org.fedcomuon.linalg.ExactSvd;
import org.fedcomuon.linalg.GramNewtonSchulz;
import org.fedcomuon.linalg.NewtonSchulz;
import org.fedcomuon.linalg.Orthogonalizer;

/**
 * Compares exact orthogonalization with Newton-Schulz: with every coefficient set, in the Gram form, and with as many
 * steps as a wanted error takes.
 *
 * <p>Not thread-safe.
 */
public final class Compare {
    private static final int WARM_UP = 2;
    private static final int ROUNDS = 5;

    /** Of singular values below 1 in the curves. */
    private static final int DECADES = 5;

    /** Of a decade: the polynomials go up and down many times. */
    private static final int SAMPLES = 2000;

    private static final int DRAWN = 40;

    private final Device device;
    private final Device host;
    private final List<Double> wanted;
    private final Consumer<String> progress;
    private final List<CompareReport.Entry> entries = new ArrayList<>();

    /** @param host a CPU, for what results are judged by */
    private Compare(Device device, Device host, List<Double> wanted, Consumer<String> progress) {
        this.device = device;
        this.host = host;
        this.wanted = wanted;
        this.progress = progress;
    }

    /** A shape to compare on. */
    public record Shape(int rows, int cols) {
        public Shape {
            if (rows < 1 || cols < 1 || (long) rows * cols > 1 << 28) {
                throw new IllegalArgumentException("a %d x %d matrix".formatted(rows, cols));
            }
        }
    }

    /**
     * Measures every method on every shape and condition number, on matrices whose singular values are evenly spaced on
     * a logarithmic scale from 1 down to 1 / condition.
     *
     * @param wanted errors whose times are compared
     * @param progress receives a line before each measurement
     */
    public static CompareReport ofShapes(
            Device device,
            List<Shape> shapes,
            List<Double> conditions,
            List<Double> wanted,
            Consumer<String> progress) {
        try (Device host = Devices.open("cpu:0")) {
            var compare = new Compare(device, host, wanted, progress);
            for (Shape shape : shapes) {
                for (double condition : conditions) {
                    progress.accept("%d x %d, condition %.0e".formatted(shape.rows(), shape.cols(), condition));
                    double[] spectrum = MadeMatrix.spectrum(Math.min(shape.rows(), shape.cols()), condition);
                    compare.measure(
                            "",
                            shape,
                            MadeMatrix.floats(MadeMatrix.of(host, shape, spectrum)),
                            OptionalDouble.of(condition));
                }
            }
            return compare.report("Exact factors and Newton-Schulz", false);
        }
    }

    /**
     * Measures every method on the momentum in the newest checkpoint of a run.
     *
     * @param run the directory of the run
     * @param client the one client whose momentum is taken, where clients differ; empty for all
     * @param wanted errors whose times are compared
     * @param progress receives a line before each measurement
     * @throws RunRecordException when there is no such run, checkpoint, momentum or client
     */
    public static CompareReport ofRun(
            Device device, Path run, OptionalInt client, List<Double> wanted, Consumer<String> progress) {
        RunMomentum momentum = RunMomentum.read(run, client);
        try (Device host = Devices.open("cpu:0")) {
            var compare = new Compare(device, host, wanted, progress);
            for (RunMomentum.Momentum m : momentum.matrices()) {
                progress.accept("%s, %d x %d".formatted(m.name(), m.rows(), m.cols()));
                compare.measure(m.name(), new Shape(m.rows(), m.cols()), m.values(), OptionalDouble.empty());
            }
            return compare.report(
                    "Exact factors and Newton-Schulz on the momentum of %s at step %d".formatted(run, momentum.step()),
                    true);
        }
    }

    /**
     * Measures the singular values that each coefficient set leaves in each precision, and the distance of the result
     * from that of fp32. The iteration starts from the matrix as it is, without a division by its norm, so that its
     * singular values fill the whole range from 1 / condition to 1.
     *
     * @return the lines of a table in Markdown
     */
    public static List<String> bands(Device device, Shape shape, double condition) {
        return PrecisionBands.table(device, shape, condition);
    }

    private CompareReport report(String title, boolean ofRun) {
        return new CompareReport(title, device.toString(), Devices.libraryInfo(), ofRun, wanted, entries, curves());
    }

    /**
     * Prepares all ways to orthogonalize a matrix.
     *
     * @param lowerBound of its singular values, relative to its norm
     * @param contenders receives them, to be closed
     */
    private void prepare(Shape shape, double lowerBound, List<Contender> contenders) {
        for (Orthogonalizer exact : List.of(new Exact(), new ExactSvd())) {
            contenders.add(new Contender(device, exact, Optional.empty(), shape, ROUNDS));
        }
        for (String name : Coefficients.NAMES) {
            Coefficients set = Coefficients.parse(name, Optional.empty());
            add(new NewtonSchulz(set), set, shape, contenders);
        }
        for (String name : List.of("jordan", "polar-express")) {
            Coefficients set = Coefficients.parse(name, Optional.empty());
            add(new GramNewtonSchulz(set), set, shape, contenders);
        }
        for (double error : wanted) {
            Coefficients set = Coefficients.polarExpressUntil(error, lowerBound);
            add(new NewtonSchulz(set), set, shape, contenders);
            Orthogonalizer picked = new Auto(set).pick(shape.rows(), shape.cols(), ElementType.FLOAT32);
            if (picked instanceof GramNewtonSchulz) {
                add(picked, set, shape, contenders);
            }
        }
    }

    /** Several errors may take the same steps, which are measured once. */
    private void add(Orthogonalizer how, Coefficients set, Shape shape, List<Contender> contenders) {
        contenders.stream()
                .filter(one -> one.takes(how, set))
                .findFirst()
                .ifPresentOrElse(
                        same -> same.alsoAs(set),
                        () -> contenders.add(new Contender(device, how, Optional.of(set), shape, ROUNDS)));
    }

    /**
     * Returns the power of ten below the smallest singular value that can be told from rounding, relative to the norm:
     * what a user would know.
     */
    private static double lowerBound(KnownFactor known) {
        double smallest = known.singularValues()[known.directions() - 1] / known.norm();
        return Double.parseDouble("1e" + (int) Math.floor(Math.log10(smallest * 0.999)));
    }

    /** @param condition the one intended; empty for the one that the matrix has */
    private void measure(String name, Shape shape, float[] values, OptionalDouble condition) {
        KnownFactor known = KnownFactor.of(host, shape.rows(), shape.cols(), values);
        if (known.directions() == 0) {
            progress.accept("it is zero, and left out");
            return;
        }
        double[] spectrum = known.singularValues();
        var subject = new CompareReport.Subject(
                name,
                shape.rows(),
                shape.cols(),
                condition.orElse(spectrum[0] / spectrum[spectrum.length - 1]),
                known.directions(),
                Arrays.stream(spectrum).boxed().toList());
        try (Buffer m = device.allocate("M", ElementType.FLOAT32, values.length);
                Buffer o = device.allocate("O", ElementType.FLOAT32, values.length)) {
            m.copyIn(0, values);
            var contenders = new ArrayList<Contender>();
            try {
                prepare(shape, lowerBound(known), contenders);
                for (int round = -WARM_UP; round < ROUNDS; round++) { // in turns
                    for (Contender each : contenders) {
                        each.run(m, o, round);
                    }
                }
                for (Contender each : contenders) {
                    List<CompareReport.Entry> results = each.judge(host, subject, known, values, m, o);
                    if (results.isEmpty()) {
                        progress.accept(each.name() + " leaves the range of floats, and is left out");
                    }
                    entries.addAll(results);
                }
            } finally {
                contenders.forEach(Contender::close);
            }
        }
    }

    /** Of all sets, and of the schedule for the least error that is wanted. */
    private List<CompareReport.Curve> curves() {
        var sets = new ArrayList<Coefficients>();
        Coefficients.NAMES.forEach(name -> sets.add(Coefficients.parse(name, Optional.empty())));
        wanted.stream()
                .min(Comparator.naturalOrder())
                .ifPresent(error -> sets.add(Coefficients.polarExpressUntil(error, Coefficients.LOWER_BOUND)));
        return sets.stream().map(Compare::curve).toList();
    }

    private static CompareReport.Curve curve(Coefficients coefficients) {
        var lowest = new ArrayList<Double>();
        var errors = new ArrayList<Double>();
        double worst = 0;
        for (int i = 0; i <= DECADES * SAMPLES; i++) {
            double s = Math.pow(10, -i / (double) SAMPLES);
            worst = Math.max(worst, Math.abs(coefficients.map(s) - 1));
            if (i % (SAMPLES / DRAWN) == 0) {
                lowest.addFirst(s);
                errors.addFirst(worst);
            }
        }
        return new CompareReport.Curve(coefficients.name(), lowest, errors);
    }
}
