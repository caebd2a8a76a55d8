package org.fedcomuon.experiment;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.bytedeco.pytorch.Scalar;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.TensorVector;
import org.bytedeco.pytorch.global.torch;
import org.fedcomuon.data.Batches;
import org.fedcomuon.data.ExampleSet;
import org.fedcomuon.federation.Evaluator;
import org.fedcomuon.model.Dropout;
import org.fedcomuon.model.Network;
import org.fedcomuon.model.TorchProblem;
import org.fedcomuon.problem.OuterFunction;
import org.fedcomuon.problem.Point;
import org.fedcomuon.problem.Problem;

/**
 * Policy evaluation with linear values: the squared distance between the values {@code Phi w} of all states and what
 * they should be, {@code E[R + gamma Phi' w]}. d = 2S. An example has a row per state: its features, those of a state
 * that follows, and the reward between them ({@link MarkovData}).
 *
 * <p>The objective is quadratic in w, so that its minimum is known; evaluations show how far w is from it.
 */
record BellmanObjective() implements ObjectiveChoice {
    private static final Setting DISCOUNT =
            Setting.number("discount", 0, 0.9999).withDefault("0.9");

    @Override
    public String name() {
        return "bellman";
    }

    @Override
    public List<Setting> settings() {
        return List.of(DISCOUNT);
    }

    @Override
    public int outputs(TaskData data) {
        return 1;
    }

    @Override
    public int dimension(TaskData data) {
        return 2 * states(data);
    }

    private static int states(TaskData data) {
        List<Integer> shape = data.input().shape();
        if (shape.size() != 2 || shape.getLast() % 2 == 0 || shape.getLast() < 3) {
            throw new ConfigurationException(
                    "objective = bellman needs examples with a row per state of features, features of the next state and"
                            + " a reward, but there are "
                            + data.input());
        }
        return shape.getFirst();
    }

    /** Returns the shape that the network sees: a row of features per state. */
    @Override
    public Input input(TaskData data) {
        int states = states(data);
        return new Input.Values(List.of(states, data.input().shape().getLast() / 2));
    }

    @Override
    public Problem problem(TaskParts parts) {
        Configuration c = parts.configuration();
        Network network = parts.network();
        int states = states(parts.data());
        int features = parts.data().input().shape().getLast() / 2;
        double discount = c.number(DISCOUNT.name());
        List<TorchProblem.Inner> clients = new ArrayList<>();
        for (int[] own : parts.clients()) {
            var batches = new Batches(own, c.integer("batch"));
            clients.add((w, xi) -> {
                Tensor x = w.here(parts.train().select(batches.indices(xi)).inputs());
                Dropout dropout = Dropout.of(xi);
                Tensor now =
                        network.logits(w, x.narrow(2, 0, features), dropout).view(-1, states);
                Tensor next = network.logits(w, x.narrow(2, features, features), dropout)
                        .view(-1, states);
                Tensor wanted = x.select(2, 2L * features).add(next, new Scalar(discount));
                return torch.cat(new TensorVector(now.mean(0L), wanted.mean(0L)), 0);
            });
        }
        return new TorchProblem(network.layout(), clients, OuterFunction.squaredDistance(states), network::initial)
                .gradients(c.gradients());
    }

    @Override
    public TaskEvaluator evaluator(TaskParts parts) {
        return new Residuals(parts);
    }

    /** Evaluates by the expected residuals of each client, which are linear in w. */
    private static final class Residuals implements TaskEvaluator {
        /** Of each client, {@code Phi - gamma E[Phi']}, a row per state, and E[R]. */
        private final List<double[][]> slopes = new ArrayList<>();

        private final List<double[]> rewards = new ArrayList<>();
        private final List<Integer> examples = new ArrayList<>();
        private final int features;
        private final double[] solution;

        Residuals(TaskParts parts) {
            TaskData data = parts.data();
            int states = states(data);
            features = data.input().shape().getLast() / 2;
            double discount = parts.configuration().number(DISCOUNT.name());
            if (parts.network().parameters() != features) {
                throw new ConfigurationException(
                        "objective = bellman knows the solution of linear values only; use layers: [dense: {out: 1, bias: false}]");
            }
            ExampleSet set = data.labelledTrain().orElseThrow();
            for (int k = 0; k < parts.clients().size(); k++) {
                int[] own = parts.originals(k);
                var slope = new double[states][features];
                var reward = new double[states];
                var values = new float[set.size()];
                for (int example : own) {
                    set.copyTo(example, values, 0);
                    for (int s = 0; s < states; s++) {
                        int row = s * (2 * features + 1);
                        for (int j = 0; j < features; j++) {
                            slope[s][j] += (values[row + j] - discount * values[row + features + j]) / own.length;
                        }
                        reward[s] += (double) values[row + 2 * features] / own.length;
                    }
                }
                slopes.add(slope);
                rewards.add(reward);
                examples.add(own.length);
            }
            solution = LeastSquares.solve(slopes, rewards);
        }

        @Override
        public Evaluator.Scores of(Point w) {
            var weights = new double[features];
            for (int j = 0; j < features; j++) {
                weights[j] = w.values().get(j);
            }
            var rows = new ArrayList<Map<String, Double>>();
            double objective = 0;
            double least = 0;
            double worst = 0;
            for (int k = 0; k < slopes.size(); k++) {
                double value = residual(k, weights);
                objective += value / slopes.size();
                least += residual(k, solution) / slopes.size();
                worst = Math.max(worst, value);
                var row = new LinkedHashMap<String, Double>();
                row.put("objective", value);
                row.put("examples", (double) examples.get(k));
                rows.add(row);
            }
            double distance = 0;
            double norm = 0;
            for (int j = 0; j < features; j++) {
                distance += Math.pow(weights[j] - solution[j], 2);
                norm += Math.pow(solution[j], 2);
            }
            var metrics = new LinkedHashMap<String, Double>();
            metrics.put("train_objective", objective);
            metrics.put("excess_objective", objective - least);
            metrics.put("solution_distance", Math.sqrt(distance / norm));
            metrics.put("worst_client_objective", worst);
            return new Evaluator.Scores(metrics, rows);
        }

        private double residual(int k, double[] w) {
            double sum = 0;
            for (int s = 0; s < rewards.get(k).length; s++) {
                double difference = -rewards.get(k)[s];
                for (int j = 0; j < features; j++) {
                    difference += slopes.get(k)[s][j] * w[j];
                }
                sum += difference * difference;
            }
            return sum;
        }

        @Override
        public void close() {}
    }
}
