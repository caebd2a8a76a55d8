package org.fedcomuon.model;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.ToDoubleFunction;
import java.util.stream.Stream;
import org.fedcomuon.federation.Evaluator;
import org.fedcomuon.problem.Point;

/**
 * Evaluates a network during a run: on the examples of each client, on test examples, which no client has, and on
 * validation examples of clients, which are not trained on, if there are any. The metrics are those that
 * {@code fedcomuon train} records: {@code train_loss}, {@code test_accuracy}, {@code worst_client_accuracy},
 * {@code validation_accuracy} and so on. {@link Classification#judge} makes one for a problem.
 *
 * <p>Not thread-safe: the evaluator of one run. Close it after the run, to end its threads.
 */
public final class ClassificationJudge implements Evaluator, AutoCloseable {
    private final Judge judge;
    private final List<Examples> sets; // of each client, then the test examples, then for validation
    private final int clients;
    private final Metrics metrics;

    /**
     * Creates one.
     *
     * @param clients the examples of each client that it is judged by
     * @param validation examples that are held back for validation, of each client that has some; none is possible
     * @param threads for the evaluation; their number does not change a result
     */
    public ClassificationJudge(
            Network network,
            List<Examples> clients,
            Examples test,
            List<Examples> validation,
            Metrics metrics,
            int threads) {
        this(new Judge(network, threads), clients, test, validation, metrics);
    }

    ClassificationJudge(
            Judge judge, List<Examples> clients, Examples test, List<Examples> validation, Metrics metrics) {
        this.judge = judge;
        this.clients = clients.size();
        sets = Stream.of(clients, List.of(test), validation)
                .flatMap(List::stream)
                .toList();
        this.metrics = metrics;
    }

    @Override
    public Map<String, Double> evaluate(long step, Point average) throws InterruptedException {
        return scores(step, average).metrics();
    }

    @Override
    public Scores scores(long step, Point average) throws InterruptedException {
        return metrics(judge.scores(average, sets));
    }

    private Scores metrics(List<Judge.Score> scores) {
        return metrics.of(
                scores.subList(0, clients),
                scores.subList(clients, clients + 1),
                scores.subList(clients + 1, scores.size()));
    }

    /** Returns an evaluation on GPUs, if libtorch computes on all of the devices. */
    @Override
    public Optional<Evaluator.OnDevices> onDevices(List<String> devices) {
        return judge.onDevices(devices, sets, this::metrics);
    }

    @Override
    public void close() {
        judge.close();
    }

    /**
     * Makes the metrics of a run from scores: of the mean client, of the worst client, on test examples, and on
     * validation examples.
     *
     * <p>Immutable.
     *
     * @param sizes the number of examples of each client
     * @param perplexity whether a model is judged by its perplexity; otherwise by its accuracy
     * @param objective returns what is minimised, from the losses of all clients
     */
    public record Metrics(List<Integer> sizes, boolean perplexity, ToDoubleFunction<double[]> objective) {
        public Metrics {
            sizes = List.copyOf(sizes);
        }

        /**
         * Returns the metrics.
         *
         * @param clients one score per client
         * @param test one score, or one per client
         * @param validation one score per client that has validation examples; none if there are none
         */
        public Scores of(List<Judge.Score> clients, List<Judge.Score> test, List<Judge.Score> validation) {
            double pooled = 0;
            long examples = 0;
            var losses = new double[clients.size()];
            var rows = new ArrayList<Map<String, Double>>();
            for (int k = 0; k < losses.length; k++) {
                losses[k] = clients.get(k).loss();
                pooled += losses[k] * sizes.get(k);
                examples += sizes.get(k);
                rows.add(row(clients.get(k), sizes.get(k)));
            }
            double mean = 0;
            for (double loss : losses) {
                mean += loss / losses.length;
            }
            double testLoss =
                    test.stream().mapToDouble(Judge.Score::loss).average().orElseThrow();
            var values = new LinkedHashMap<String, Double>();
            values.put("train_loss", mean);
            values.put("train_objective", objective.applyAsDouble(losses));
            values.put("train_loss_pooled", pooled / examples);
            values.put("test_loss", testLoss);
            if (perplexity) {
                values.put("test_perplexity", Math.exp(testLoss));
            } else {
                values.put(
                        "test_accuracy",
                        test.stream()
                                .mapToDouble(Judge.Score::accuracy)
                                .average()
                                .orElseThrow());
            }
            values.put("worst_client_loss", Arrays.stream(losses).max().orElseThrow());
            if (!perplexity) {
                values.put(
                        "worst_client_accuracy",
                        clients.stream()
                                .mapToDouble(Judge.Score::accuracy)
                                .min()
                                .orElseThrow());
            }
            if (!validation.isEmpty()) {
                values.putAll(ofValidation(validation));
            }
            return new Scores(values, rows);
        }

        /** Every example counts the same in the loss and the accuracy, as in a test; every client in the objective. */
        private Map<String, Double> ofValidation(List<Judge.Score> scores) {
            double loss = 0;
            double accuracy = 0;
            double worstAccuracy = 1;
            long count = 0;
            var losses = new double[scores.size()];
            for (int i = 0; i < losses.length; i++) {
                Judge.Score score = scores.get(i);
                losses[i] = score.loss();
                loss += score.loss() * score.count();
                accuracy += score.accuracy() * score.count();
                worstAccuracy = Math.min(worstAccuracy, score.accuracy());
                count += score.count();
            }
            var values = new LinkedHashMap<String, Double>();
            values.put("validation_loss", loss / count);
            values.put("validation_objective", objective.applyAsDouble(losses));
            if (perplexity) {
                values.put("validation_perplexity", Math.exp(loss / count));
            } else {
                values.put("validation_accuracy", accuracy / count);
            }
            values.put(
                    "validation_worst_client_loss", Arrays.stream(losses).max().orElseThrow());
            if (!perplexity) {
                values.put("validation_worst_client_accuracy", worstAccuracy);
            }
            return values;
        }

        private Map<String, Double> row(Judge.Score score, int examples) {
            var row = new LinkedHashMap<String, Double>();
            row.put("loss", score.loss());
            if (!perplexity) {
                row.put("accuracy", score.accuracy());
            }
            row.put("examples", (double) examples);
            return row;
        }
    }
}
