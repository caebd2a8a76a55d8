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
 * Evaluates a network during a run: on the examples of each client, and on test examples, which no client has. The
 * metrics are those that {@code fedcomuon train} records: {@code train_loss}, {@code test_accuracy},
 * {@code worst_client_accuracy} and so on. {@link Classification#judge} makes one for a problem.
 *
 * <p>Not thread-safe: the evaluator of one run. Close it after the run, to end its threads.
 */
public final class ClassificationJudge implements Evaluator, AutoCloseable {
    private final Judge judge;
    private final List<Examples> sets; // of each client, and at last the test examples
    private final Metrics metrics;

    /**
     * Creates one.
     *
     * @param clients the examples of each client that it is judged by
     * @param threads for the evaluation; their number does not change a result
     */
    public ClassificationJudge(Network network, List<Examples> clients, Examples test, Metrics metrics, int threads) {
        this(new Judge(network, threads), clients, test, metrics);
    }

    ClassificationJudge(Judge judge, List<Examples> clients, Examples test, Metrics metrics) {
        this.judge = judge;
        sets = Stream.concat(clients.stream(), Stream.of(test)).toList();
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
        int clients = scores.size() - 1;
        return metrics.of(scores.subList(0, clients), scores.subList(clients, clients + 1));
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
     * Makes the metrics of a run from scores: of the mean client, of the worst client, and on test examples.
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
         */
        public Scores of(List<Judge.Score> clients, List<Judge.Score> test) {
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
            return new Scores(values, rows);
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
