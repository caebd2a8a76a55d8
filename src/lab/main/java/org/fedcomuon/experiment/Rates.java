package org.fedcomuon.experiment;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.function.Consumer;
import java.util.function.LongFunction;
import org.fedcomuon.federation.Federation;
import org.fedcomuon.linalg.Coefficients;
import org.fedcomuon.linalg.Exact;
import org.fedcomuon.linalg.NewtonSchulz;
import org.fedcomuon.linalg.Orthogonalizer;
import org.fedcomuon.method.FedCoMuon;
import org.fedcomuon.method.FedCoMuonVr;
import org.fedcomuon.method.Method;
import org.fedcomuon.method.Muon;
import org.fedcomuon.method.Schedule;
import org.fedcomuon.problem.Floats;
import org.fedcomuon.problem.testbed.RateTestbed;

/**
 * Measures the rates of the two theorems on {@link RateTestbed}: the mean gradient norm over a run of T steps, with the
 * parameters that the theory sets for T, against T.
 *
 * <p>Not thread-safe.
 */
public final class Rates {
    /** The number of clients K. */
    public static final int CLIENTS = 8;

    /**
     * A method to be measured.
     *
     * @param theory the exponent of the theorem
     * @param least the least slope that agrees with it
     * @param greatest the greatest slope that agrees with it
     * @param method its parameters for T
     * @param tau for T
     */
    public record Subject(
            String name,
            Orthogonalizer orthogonalizer,
            double theory,
            double least,
            double greatest,
            LongFunction<Method> method,
            LongFunction<Integer> tau) {}

    private Rates() {}

    /** Returns FedCoMuon with the schedules of its theorem. */
    public static Subject fedCoMuon(Orthogonalizer orthogonalizer) {
        var method = new FedCoMuon(
                Schedule.power(1, -3.0 / 4),
                Schedule.power(1, -1.0 / 2),
                Schedule.power(1, -1.0 / 2),
                Muon.with(orthogonalizer));
        return new Subject(method.name(), orthogonalizer, -1.0 / 4, -0.30, -0.19, iterations -> method, iterations ->
                (int) Math.round(Math.pow((double) iterations, 1.0 / 4)));
    }

    /** Returns FedCoMuon-VR with the schedules of its theorem. */
    public static Subject fedCoMuonVr(Orthogonalizer orthogonalizer) {
        Schedule fast = Schedule.power(1, -2.0 / 3);
        LongFunction<Method> method = iterations -> new FedCoMuonVr(
                fast,
                fast,
                fast,
                fast,
                Schedule.power(1, -1.0 / 3),
                Double.POSITIVE_INFINITY,
                Double.POSITIVE_INFINITY,
                (int) Math.round(Math.pow((double) iterations, 2.0 / 3)),
                Muon.with(orthogonalizer));
        return new Subject(method.apply(1).name(), orthogonalizer, -1.0 / 3, -0.39, -0.27, method, iterations -> 4);
    }

    /** Returns both methods, each with exact and with Newton-Schulz directions. */
    public static List<Subject> subjects() {
        var all = new ArrayList<Subject>();
        for (Orthogonalizer orthogonalizer : List.of(new Exact(), new NewtonSchulz(Coefficients.jordan(5)))) {
            all.add(fedCoMuon(orthogonalizer));
            all.add(fedCoMuonVr(orthogonalizer));
        }
        return all;
    }

    /**
     * Measures the rates.
     *
     * @param lengths each T
     * @param seeds the number of seeds; each gives another problem and other samples
     * @param progress receives one line per length
     */
    public static RatesReport run(List<Subject> subjects, List<Long> lengths, int seeds, Consumer<String> progress)
            throws InterruptedException {
        var curves = new ArrayList<RatesReport.Curve>();
        // Runs are independent and small: one per core, each on one thread.
        try (var pool = Executors.newFixedThreadPool(Runtime.getRuntime().availableProcessors())) {
            for (Subject subject : subjects) {
                Map<Long, List<Future<Double>>> measured = new LinkedHashMap<>();
                for (long iterations : lengths) {
                    var each = new ArrayList<Future<Double>>();
                    for (int seed = 0; seed < seeds; seed++) {
                        each.add(pool.submit(measure(subject, iterations, seed)));
                    }
                    measured.put(iterations, each);
                }
                var runs = new ArrayList<RatesReport.Run>();
                for (var entry : measured.entrySet()) {
                    var norms = new ArrayList<Double>();
                    for (Future<Double> norm : entry.getValue()) {
                        norms.add(get(norm));
                    }
                    var run = new RatesReport.Run(entry.getKey(), norms);
                    runs.add(run);
                    progress.accept(String.format(
                            Locale.ROOT,
                            "%s, %s, T = %d: %.5f",
                            subject.name(),
                            subject.orthogonalizer().name(),
                            run.iterations(),
                            run.mean()));
                }
                curves.add(new RatesReport.Curve(
                        subject.name(),
                        subject.orthogonalizer().name(),
                        subject.theory(),
                        subject.least(),
                        subject.greatest(),
                        runs));
            }
        }
        return new RatesReport(CLIENTS, curves);
    }

    private static double get(Future<Double> norm) throws InterruptedException {
        try {
            return norm.get();
        } catch (ExecutionException e) {
            throw new IllegalStateException(
                    "a measurement failed: " + e.getCause().getMessage(), e.getCause());
        }
    }

    private static Callable<Double> measure(Subject subject, long iterations, long seed) {
        return () -> {
            var problem = new RateTestbed(CLIENTS, seed);
            var total = new double[1];
            Federation.of(problem, subject.method().apply(iterations))
                    .iterations(iterations)
                    .tau(subject.tau().apply(iterations))
                    .seed(seed)
                    .threads(1)
                    .workers(1)
                    .evaluate(1, (step, average) -> {
                        if (step < iterations) {
                            total[0] += gradientNorm(problem, average.values());
                        }
                        return Map.of();
                    })
                    .build()
                    .run();
            return total[0] / iterations;
        };
    }

    private static double gradientNorm(RateTestbed problem, Floats w) {
        var at = new double[(int) w.length()];
        for (int i = 0; i < at.length; i++) {
            at[i] = w.get(i);
        }
        double sum = 0;
        for (double element : problem.gradient(at)) {
            sum += element * element;
        }
        return Math.sqrt(sum);
    }
}
