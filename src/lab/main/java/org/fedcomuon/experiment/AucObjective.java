package org.fedcomuon.experiment;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.TensorVector;
import org.bytedeco.pytorch.global.torch;
import org.fedcomuon.data.TwoClassBatches;
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
 * The area under the ROC curve of a score, by its square surrogate: the network has one output, and every batch has
 * examples of both classes. d = 4.
 */
record AucObjective() implements ObjectiveChoice {
    private static final Setting MARGIN = Setting.number("margin", 0, 1e6).withDefault("1");
    private static final Setting BATCH_SHARE =
            Setting.number("batchShare", 0, 0.999).withDefault("0.5");

    @Override
    public String name() {
        return "auc";
    }

    @Override
    public List<Setting> settings() {
        return List.of(MARGIN, BATCH_SHARE);
    }

    @Override
    public int outputs(TaskData data) {
        return 1;
    }

    @Override
    public int dimension(TaskData data) {
        return 4;
    }

    private static OuterFunction outer(Configuration c) {
        return OuterFunction.areaUnderCurve(c.number(MARGIN.name()));
    }

    @Override
    public List<String> mistakes(TaskData data) {
        if (data.labelledTrain().isEmpty()) {
            return List.of("objective = auc needs classes, which a text does not have");
        }
        return data.classes() == 2
                ? List.of()
                : List.of(
                        "objective = auc needs two classes, but there are %d; positives: [LABEL, ...] makes two of them"
                                .formatted(data.classes()));
    }

    @Override
    public Problem problem(TaskParts parts) {
        var clients = new ArrayList<TorchProblem.Inner>();
        var mistakes = new Mistakes(parts.configuration());
        for (int k = 0; k < parts.clients().size(); k++) {
            int client = k;
            mistakes.attempt("objective", () -> inner(parts, client)).ifPresent(clients::add);
        }
        mistakes.refuse();
        return new TorchProblem(
                        parts.network().layout(), clients, outer(parts.configuration()), parts.network()::initial)
                .gradients(parts.configuration().gradients());
    }

    private static TorchProblem.Inner inner(TaskParts parts, int k) {
        Configuration c = parts.configuration();
        int[] own = parts.clients().get(k);
        int[] labels = parts.ofClient(k).classes();
        var batches =
                new TwoClassBatches(i -> labels[i - own[0]], k, own, c.integer("batch"), c.number(BATCH_SHARE.name()));
        Network network = parts.network();
        return (w, xi) -> {
            Examples batch = parts.train().select(batches.indices(xi));
            Tensor scores =
                    network.logits(w, w.here(batch.inputs()), Dropout.of(xi)).flatten();
            Tensor positive = scores.narrow(0, 0, batches.positives());
            Tensor negative = scores.narrow(0, batches.positives(), scores.numel() - batches.positives());
            return torch.stack(new TensorVector(
                    positive.mean(),
                    negative.mean(),
                    positive.square().mean(),
                    negative.square().mean()));
        };
    }

    @Override
    public List<ValidationMetric> validationMetrics(TaskData data) {
        return ValidationMetric.ofScores();
    }

    @Override
    public TaskEvaluator evaluator(TaskParts parts) {
        return new AucEvaluator(parts);
    }

    /**
     * Returns the area under the ROC curve: the share of pairs of a positive and a negative example of which the
     * positive one scores higher, where equal scores count half.
     */
    static double area(double[] scores, int[] labels) {
        Integer[] ascending = IntStream.range(0, scores.length).boxed().toArray(Integer[]::new);
        Arrays.sort(ascending, Comparator.comparingDouble(i -> scores[i]));
        double wins = 0;
        long negatives = 0;
        long positives = 0;
        for (int from = 0; from < ascending.length; ) {
            int to = from;
            long equalNegatives = 0;
            while (to < ascending.length && scores[ascending[to]] == scores[ascending[from]]) {
                equalNegatives += labels[ascending[to]] == 0 ? 1 : 0;
                to++;
            }
            long equalPositives = to - from - equalNegatives;
            wins += equalPositives * (negatives + equalNegatives / 2.0);
            negatives += equalNegatives;
            positives += equalPositives;
            from = to;
        }
        return wins / ((double) positives * negatives);
    }

    /** Evaluates scores: each client's on all of its examples, and those of the pooled test set. */
    private static final class AucEvaluator implements TaskEvaluator {
        private final TaskParts parts;
        private final OuterFunction outer;
        private final Judge judge;
        private final Examples test;
        private final List<Examples> validation = new ArrayList<>();
        private final List<int[]> validationLabels = new ArrayList<>();

        AucEvaluator(TaskParts parts) {
            this.parts = parts;
            outer = outer(parts.configuration());
            test = parts.data()
                    .test(IntStream.range(0, parts.data().testCount()).toArray());
            for (Examples held : parts.validationSets()) {
                int[] labels = held.classes();
                validation.add(held);
                validationLabels.add(labels);
            }
            if (!validation.isEmpty() && !hasBoth(pooledLabels())) {
                throw new IllegalArgumentException(
                        "validation examples of both classes are needed; take a greater validationShare");
            }
            judge = new Judge(parts.network(), parts.threads());
        }

        private int[] pooledLabels() {
            return validationLabels.stream().flatMapToInt(Arrays::stream).toArray();
        }

        private static boolean hasBoth(int[] labels) {
            return Arrays.stream(labels).distinct().count() == 2;
        }

        @Override
        public Evaluator.Scores of(Point w) throws InterruptedException {
            Point model = parts.ofNetwork(w);
            var rows = new ArrayList<Map<String, Double>>();
            double objective = 0;
            double worst = 1;
            double mean = 0;
            int clients = parts.clients().size();
            for (int k = 0; k < clients; k++) {
                Examples own = parts.ofClient(k);
                double[] scores = judge.outputs(model, own);
                int[] labels = own.classes();
                double value = outer.value(inner(scores, labels));
                double auc = area(scores, labels);
                objective += value / clients;
                mean += auc / clients;
                worst = Math.min(worst, auc);
                var row = new LinkedHashMap<String, Double>();
                row.put("objective", value);
                row.put("auc", auc);
                row.put("examples", (double) labels.length);
                rows.add(row);
            }
            var metrics = new LinkedHashMap<String, Double>();
            metrics.put("train_objective", objective);
            metrics.put("train_auc", mean);
            metrics.put("test_auc", area(judge.outputs(model, test), test.classes()));
            metrics.put("worst_client_auc", worst);
            if (!validation.isEmpty()) {
                metrics.putAll(ofValidation(model));
            }
            return new Evaluator.Scores(metrics, rows);
        }

        /** A client without validation examples of both classes counts in the pooled curve only. */
        private Map<String, Double> ofValidation(Point model) throws InterruptedException {
            var scores = new ArrayList<double[]>();
            double objective = 0;
            double worst = 1;
            int judged = 0;
            for (int i = 0; i < validation.size(); i++) {
                double[] own = judge.outputs(model, validation.get(i));
                int[] labels = validationLabels.get(i);
                scores.add(own);
                if (hasBoth(labels)) {
                    objective += outer.value(inner(own, labels));
                    worst = Math.min(worst, area(own, labels));
                    judged++;
                }
            }
            var metrics = new LinkedHashMap<String, Double>();
            metrics.put(
                    "validation_auc",
                    area(scores.stream().flatMapToDouble(Arrays::stream).toArray(), pooledLabels()));
            if (judged > 0) {
                metrics.put("validation_objective", objective / judged);
                metrics.put("validation_worst_client_auc", worst);
            }
            return metrics;
        }

        /** Returns g: the means of the scores and of their squares, of positive and of negative examples. */
        private static double[] inner(double[] scores, int[] labels) {
            var g = new double[4];
            var counts = new long[2];
            for (int i = 0; i < scores.length; i++) {
                int of = labels[i] == 1 ? 0 : 1;
                g[of] += scores[i];
                g[of + 2] += scores[i] * scores[i];
                counts[of]++;
            }
            for (int i = 0; i < g.length; i++) {
                g[i] /= counts[i % 2];
            }
            return g;
        }

        @Override
        public void close() {
            judge.close();
        }
    }
}
