package org.fedcomuon.federation;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalDouble;
import java.util.stream.IntStream;
import org.fedcomuon.problem.Client;
import org.fedcomuon.problem.Floats;
import org.fedcomuon.problem.Jacobian;
import org.fedcomuon.problem.Layout;
import org.fedcomuon.problem.Point;
import org.fedcomuon.problem.Problem;
import org.fedcomuon.problem.Sample;

/** Estimates {@code f(E[g(W)])} of each client from samples that are the same in every evaluation. */
final class ObjectiveEvaluator implements Evaluator {
    /**
     * Far from the numbers of draws of any run, so that a model is not evaluated on what it is about to be trained on.
     */
    private static final long FIRST_DRAW = 1L << 62;

    private final List<Client> clients;
    private final int d;
    private final int samples;
    private final long seed;
    private final Floats value;
    private final Floats mean;
    private final Jacobian unused;

    ObjectiveEvaluator(Problem problem, int samples, long seed) {
        if (samples < 1) {
            throw new IllegalArgumentException("%d samples; at least 1 is needed".formatted(samples));
        }
        this.samples = samples;
        this.seed = seed;
        d = problem.innerDimension();
        clients =
                IntStream.range(0, problem.clients()).mapToObj(problem::client).toList();
        Layout layout = problem.layout();
        value = Floats.zeros(d);
        mean = Floats.zeros(d);
        unused = new Jacobian(IntStream.range(0, d)
                .mapToObj(i -> new Point(layout, Floats.zeros(layout.length())))
                .toList());
    }

    @Override
    public Map<String, Double> evaluate(long step, Point average) throws Exception {
        return scores(step, average).metrics();
    }

    @Override
    public Scores scores(long step, Point average) throws Exception {
        var rows = new ArrayList<Map<String, Double>>();
        double objective = 0;
        double worst = Double.NEGATIVE_INFINITY;
        for (int k = 0; k < clients.size(); k++) {
            double own = objective(k, average);
            objective += own / clients.size();
            worst = Math.max(worst, own);
            rows.add(Map.of("objective", own));
        }
        var metrics = new LinkedHashMap<String, Double>();
        metrics.put("train_objective", objective);
        metrics.put("worst_client_objective", worst);
        return new Scores(metrics, rows);
    }

    private double objective(int k, Point w) throws Exception {
        var sums = new double[d];
        for (int i = 0; i < samples; i++) {
            clients.get(k).inner(new Sample(seed, k, Sample.Stream.INNER, FIRST_DRAW + i), w, value, unused);
            for (int j = 0; j < d; j++) {
                sums[j] += value.get(j) / samples;
            }
        }
        for (int j = 0; j < d; j++) {
            mean.set(j, sums[j]);
        }
        OptionalDouble f = clients.get(k).outerValue(new Sample(seed, k, Sample.Stream.OUTER, FIRST_DRAW), mean);
        return f.orElseThrow(() -> new UnsupportedOperationException(
                "client %d does not say the value of f (Client.outerValue)".formatted(k)));
    }
}
