package org.fedcomuon.experiment;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.TensorVector;
import org.bytedeco.pytorch.global.torch;
import org.fedcomuon.data.Batches;
import org.fedcomuon.federation.Evaluator;
import org.fedcomuon.model.Dropout;
import org.fedcomuon.model.Examples;
import org.fedcomuon.model.Judge;
import org.fedcomuon.model.Network;
import org.fedcomuon.model.TorchProblem;
import org.fedcomuon.problem.OuterFunction;
import org.fedcomuon.problem.Point;
import org.fedcomuon.problem.Problem;

/**
 * The mean-variance objective of a portfolio, {@code -E[r] + aversion Var[r]}: an example has the returns of all
 * assets, and the one output of the model is the return r of the portfolio. d = 2.
 */
record MeanVarianceObjective() implements ObjectiveChoice {
    private static final Setting AVERSION = Setting.notNegative("aversion").withDefault("1");

    @Override
    public String name() {
        return "mean-variance";
    }

    @Override
    public List<Setting> settings() {
        return List.of(AVERSION);
    }

    @Override
    public int outputs(TaskData data) {
        return 1;
    }

    @Override
    public int dimension(TaskData data) {
        return 2;
    }

    private static OuterFunction outer(Configuration c) {
        return OuterFunction.meanVariance(c.number(AVERSION.name()));
    }

    @Override
    public Problem problem(TaskParts parts) {
        Configuration c = parts.configuration();
        Network network = parts.network();
        List<TorchProblem.Inner> clients = new ArrayList<>();
        for (int[] own : parts.clients()) {
            var batches = new Batches(own, c.integer("batch"));
            clients.add((w, xi) -> {
                Examples batch = parts.train().select(batches.indices(xi));
                Tensor returns = network.logits(w, w.here(batch.inputs()), Dropout.of(xi));
                return torch.stack(
                        new TensorVector(returns.mean(), returns.square().mean()));
            });
        }
        return new TorchProblem(network.layout(), clients, outer(c), network::initial).gradients(c.gradients());
    }

    @Override
    public List<ValidationMetric> validationMetrics(TaskData data) {
        return ValidationMetric.ofReturns();
    }

    @Override
    public TaskEvaluator evaluator(TaskParts parts) {
        return new Portfolio(parts);
    }

    /** Evaluates returns. */
    private static final class Portfolio implements TaskEvaluator {
        private final TaskParts parts;
        private final OuterFunction outer;
        private final Judge judge;
        private final Examples test;

        Portfolio(TaskParts parts) {
            this.parts = parts;
            outer = outer(parts.configuration());
            test = parts.data()
                    .test(IntStream.range(0, parts.data().testCount()).toArray());
            judge = new Judge(parts.network(), parts.threads());
        }

        @Override
        public Evaluator.Scores of(Point w) throws InterruptedException {
            Point model = parts.ofNetwork(w);
            var rows = new ArrayList<Map<String, Double>>();
            int clients = parts.clients().size();
            double objective = 0;
            double worst = Double.NEGATIVE_INFINITY;
            for (int k = 0; k < clients; k++) {
                Examples own = parts.ofClient(k);
                double[] g = inner(judge.outputs(model, own));
                double value = outer.value(g);
                objective += value / clients;
                worst = Math.max(worst, value);
                rows.add(row(value, g, own.count()));
            }
            double[] g = inner(judge.outputs(model, test));
            var metrics = new LinkedHashMap<String, Double>();
            metrics.put("train_objective", objective);
            metrics.put("test_objective", outer.value(g));
            metrics.put("test_return", g[0]);
            metrics.put("test_variance", g[1] - g[0] * g[0]);
            metrics.put("worst_client_objective", worst);
            if (!parts.validationSets().isEmpty()) {
                metrics.putAll(ofValidation(model));
            }
            return new Evaluator.Scores(metrics, rows);
        }

        private Map<String, Double> ofValidation(Point model) throws InterruptedException {
            List<Examples> sets = parts.validationSets();
            var pooled = new ArrayList<double[]>();
            double objective = 0;
            double worst = Double.NEGATIVE_INFINITY;
            for (Examples held : sets) {
                double[] returns = judge.outputs(model, held);
                double value = outer.value(inner(returns));
                objective += value / sets.size();
                worst = Math.max(worst, value);
                pooled.add(returns);
            }
            double[] g = inner(pooled.stream().flatMapToDouble(Arrays::stream).toArray());
            var metrics = new LinkedHashMap<String, Double>();
            metrics.put("validation_objective", objective);
            metrics.put("validation_return", g[0]);
            metrics.put("validation_variance", g[1] - g[0] * g[0]);
            metrics.put("validation_worst_client_objective", worst);
            return metrics;
        }

        private static Map<String, Double> row(double value, double[] g, int examples) {
            var row = new LinkedHashMap<String, Double>();
            row.put("objective", value);
            row.put("return", g[0]);
            row.put("variance", g[1] - g[0] * g[0]);
            row.put("examples", (double) examples);
            return row;
        }

        private static double[] inner(double[] returns) {
            return new double[] {
                Arrays.stream(returns).average().orElseThrow(),
                Arrays.stream(returns).map(r -> r * r).average().orElseThrow()
            };
        }

        @Override
        public void close() {
            judge.close();
        }
    }
}
