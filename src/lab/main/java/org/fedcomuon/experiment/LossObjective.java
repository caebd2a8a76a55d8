package org.fedcomuon.experiment;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.function.Function;
import java.util.function.ToDoubleFunction;
import java.util.stream.IntStream;
import org.fedcomuon.federation.Evaluator;
import org.fedcomuon.model.Classification;
import org.fedcomuon.model.ClassificationJudge;
import org.fedcomuon.model.Examples;
import org.fedcomuon.problem.ExponentialRisk;
import org.fedcomuon.problem.OuterFunction;
import org.fedcomuon.problem.Point;
import org.fedcomuon.problem.Problem;
import org.fedcomuon.problem.Risk;
import org.fedcomuon.problem.ThresholdProblem;

/**
 * A function of the clients' losses, each the plain loss of the network on the client's examples.
 *
 * @param d the dimension of the inner function
 * @param problem makes the problem that methods minimise
 * @param objective returns what is minimised, from the losses of all clients
 */
record LossObjective(
        String name,
        int d,
        List<Setting> settings,
        Function<TaskParts, Problem> problem,
        Function<Configuration, ToDoubleFunction<double[]>> objective)
        implements ObjectiveChoice {
    /** How much the worst clients count: large values approach the mean. */
    static final Setting LAMBDA = Setting.number("lambda", 0, 1e6).withDefault("0.5");

    /** The largest exponent that is taken literally. */
    static final Setting EXPONENT_CAP =
            Setting.number("exponentCap", 0, ExponentialRisk.LARGEST_EXPONENT).withDefault("60");

    /** The share of clients that the conditional value at risk leaves out. */
    static final Setting LEVEL = new Setting("level", "a number from 0 to less than 1", value -> {
                double number = Double.parseDouble(value);
                if (!(number >= 0 && number < 1)) {
                    throw new IllegalArgumentException("out of range");
                }
                return Double.toString(number);
            })
            .withDefault("0.7");

    /** By how much the corner of the conditional value at risk is rounded. */
    static final Setting SMOOTHING = Setting.number("smoothing", 0, 1e6).withDefault("0.1");

    /** Returns the mean of the losses. */
    static LossObjective mean() {
        return new LossObjective(
                "mean",
                1,
                List.of(),
                parts -> classification(parts, Risk.mean()),
                c -> losses -> Arrays.stream(losses).average().orElseThrow());
    }

    /** Returns the paper's objective, the mean of {@code exp(loss / lambda)}. */
    static LossObjective robust() {
        return new LossObjective(
                "robust",
                1,
                List.of(LAMBDA, EXPONENT_CAP),
                parts -> classification(parts, risk(parts.configuration())),
                c -> losses -> mean(risk(c), losses));
    }

    /** Returns the KL-regularised worst case over clients, {@code lambda log mean exp(loss / lambda)}. */
    static LossObjective kl() {
        return new LossObjective(
                "kl",
                2,
                List.of(LAMBDA, EXPONENT_CAP),
                parts -> threshold(
                        parts,
                        OuterFunction.klDual(
                                parts.configuration().number("lambda"),
                                parts.configuration().number("exponentCap"))),
                c -> losses -> new ExponentialRisk(c.number("lambda")).worstCase(losses));
    }

    /** Returns the conditional value at risk over clients: the mean of the largest losses. */
    static LossObjective cvar() {
        return new LossObjective(
                "cvar",
                2,
                List.of(LEVEL, SMOOTHING),
                parts -> threshold(
                        parts,
                        OuterFunction.cvarDual(
                                parts.configuration().number("level"),
                                parts.configuration().number("smoothing"))),
                c -> losses -> meanOfLargest(losses, 1 - c.number("level")));
    }

    static ExponentialRisk risk(Configuration c) {
        return new ExponentialRisk(c.number(LAMBDA.name()), c.number(EXPONENT_CAP.name()));
    }

    static double mean(Risk risk, double[] losses) {
        return Arrays.stream(losses).map(risk::value).average().orElseThrow();
    }

    /** Returns the mean of a share of the losses, the largest ones; one of them may count in part. */
    static double meanOfLargest(double[] losses, double share) {
        double[] ascending = losses.clone();
        Arrays.sort(ascending);
        double left = share * losses.length;
        double sum = 0;
        for (int i = ascending.length - 1; i >= 0 && left > 0; i--) {
            sum += Math.min(left, 1) * ascending[i];
            left--;
        }
        return sum / (share * losses.length);
    }

    private static Classification classification(TaskParts parts, Risk risk) {
        return new Classification(
                        parts.network(),
                        parts.train(),
                        parts.clients(),
                        parts.configuration().integer("batch"),
                        risk)
                .gradients(parts.configuration().gradients());
    }

    /** Starts from the loss of a network that knows nothing. */
    private static Problem threshold(TaskParts parts, OuterFunction f) {
        return new ThresholdProblem(
                classification(parts, Risk.mean()), f, Math.log(parts.data().classes()));
    }

    @Override
    public int dimension(TaskData data) {
        return d;
    }

    @Override
    public List<ValidationMetric> validationMetrics(TaskData data) {
        return ValidationMetric.ofNetworks(data.hasPerplexity());
    }

    @Override
    public Problem problem(TaskParts parts) {
        return problem.apply(parts);
    }

    @Override
    public TaskEvaluator evaluator(TaskParts parts) {
        return PlainScores.of(parts, objective.apply(parts.configuration()));
    }

    /** Evaluates the network without adaptation, which is the first part of what a problem trains. */
    private record PlainScores(TaskParts parts, ClassificationJudge judge) implements TaskEvaluator {
        static PlainScores of(TaskParts parts, ToDoubleFunction<double[]> objective) {
            Configuration c = parts.configuration();
            var clients = new ArrayList<Examples>();
            for (int k = 0; k < parts.clients().size(); k++) {
                Examples own = parts.ofClient(k);
                clients.add(own.range(0, TaskParts.limited(own.count(), c.integer("judgedTrain"))));
            }
            List<Examples> validation = parts.validationSets().stream()
                    .map(held -> held.range(0, TaskParts.limited(held.count(), c.integer("judgedTrain"))))
                    .toList();
            int count = TaskParts.limited(parts.data().testCount(), c.integer("judgedTest"));
            Examples test = parts.data().test(IntStream.range(0, count).toArray());
            return new PlainScores(
                    parts,
                    new ClassificationJudge(
                            parts.network(), clients, test, validation, parts.metrics(objective), parts.threads()));
        }

        @Override
        public Evaluator.Scores of(Point w) throws InterruptedException {
            return judge.scores(0, parts.ofNetwork(w));
        }

        @Override
        public Optional<Evaluator.OnDevices> onDevices(List<String> devices) {
            return judge.onDevices(devices).map(parts::ofNetwork);
        }

        @Override
        public void close() {
            judge.close();
        }
    }
}
