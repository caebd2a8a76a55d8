package org.fedcomuon.experiment;

import java.io.IOException;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.stream.IntStream;
import org.fedcomuon.data.Partition;
import org.fedcomuon.internal.NativeHeap;
import org.fedcomuon.model.Examples;
import org.fedcomuon.model.Initialization;
import org.fedcomuon.model.Judge;
import org.fedcomuon.model.Network;
import org.fedcomuon.problem.ExponentialRisk;
import org.fedcomuon.problem.Floats;
import org.fedcomuon.problem.Point;
import org.fedcomuon.problem.Problem;
import org.fedcomuon.problem.Risk;

/** The training task of a configuration: a problem, the initial weights, and the evaluation of a model. */
final class NetworkTask implements AutoCloseable {
    private final TaskData data;
    private final Network network;
    private final Risk risk;
    private final Problem problem;
    private final double[] weights;
    private final int[] sizes;
    private final long seed;
    private final Scores scores;

    /**
     * Reads the data and prepares the clients.
     *
     * @param dataDirectory the user's own files, instead of the packaged ones
     * @param threads that evaluate, each a client at a time
     * @param devices among which the clients are divided
     * @param gate receives the estimate before that memory is allocated, and may refuse it by an exception
     * @throws ConfigurationException when the parts do not fit together, or data are missing
     * @throws IOException when the files are malformed
     */
    NetworkTask(Configuration c, Optional<Path> dataDirectory, int threads, int devices, Consumer<RunMemory> gate)
            throws IOException {
        data = c.chosen(DataChoice.ALL).load(c, dataDirectory);
        seed = c.seed();
        risk = new ExponentialRisk(c.number("lambda"), c.number("exponentCap"));
        try {
            network = c.chosen(ModelChoice.ALL).network(c, data);
            Partition partition = c.chosen(SplitChoice.ALL).train().divide(c, data);
            int clients = partition.clients();
            weights = new double[clients];
            sizes = new int[clients];
            var first = new int[clients + 1];
            for (int k = 0; k < clients; k++) {
                weights[k] = c.text("weighting").equals("examples") ? partition.size(k) : 1;
                sizes[k] = partition.size(k);
                first[k + 1] = first[k] + sizes[k];
            }
            long examples = (long) first[clients] + data.testCount();
            gate.accept(RunMemory.of(c, network, threads, devices, examples * data.exampleBytes()));
            // Only the examples of clients are converted to tensors, client by client.
            Examples train = data.train(IntStream.range(0, clients)
                    .flatMap(k -> IntStream.of(partition.indices(k)))
                    .toArray());
            List<int[]> own = IntStream.range(0, clients)
                    .mapToObj(k -> IntStream.range(first[k], first[k + 1]).toArray())
                    .toList();
            ObjectiveChoice objective = c.chosen(ObjectiveChoice.ALL);
            var parts = new TaskParts(c, data, network, risk, train, own, threads);
            problem = objective.problem(parts);
            scores = objective.scores(parts);
        } catch (IllegalArgumentException e) {
            throw new ConfigurationException(String.valueOf(e.getMessage()), e);
        }
    }

    /** Returns the clients and their losses. */
    Problem problem() {
        return problem;
    }

    /** Returns W0. */
    Floats initial() {
        return Initialization.uniform(network.layout(), seed);
    }

    /** Returns the weights of the clients in averages. */
    double[] weights() {
        return weights;
    }

    /** Returns the metrics of a model, by the names of {@code metrics.jsonl}. */
    Map<String, Double> evaluate(Point w) throws InterruptedException {
        NativeHeap.trim(); // memory of the training, which is paused
        try {
            return judged(w);
        } finally {
            NativeHeap.trim(); // memory of the evaluation
        }
    }

    private Map<String, Double> judged(Point w) throws InterruptedException {
        double mean = 0;
        double objective = 0;
        double pooled = 0;
        long examples = 0;
        double worstLoss = Double.NEGATIVE_INFINITY;
        double worstAccuracy = 1;
        List<Judge.Score> clients = scores.ofClients(w);
        for (int k = 0; k < sizes.length; k++) {
            Judge.Score score = clients.get(k);
            mean += score.loss() / clients.size();
            objective += risk.value(score.loss()) / clients.size();
            pooled += score.loss() * sizes[k];
            examples += sizes[k];
            worstLoss = Math.max(worstLoss, score.loss());
            worstAccuracy = Math.min(worstAccuracy, score.accuracy());
        }
        List<Judge.Score> test = scores.ofTest(w);
        double testLoss = test.stream().mapToDouble(Judge.Score::loss).average().orElseThrow();
        var metrics = new LinkedHashMap<String, Double>();
        metrics.put("train_loss", mean);
        metrics.put("train_objective", objective);
        metrics.put("train_loss_pooled", pooled / examples);
        metrics.put("test_loss", testLoss);
        if (data.hasPerplexity()) {
            metrics.put("test_perplexity", Math.exp(testLoss));
        } else {
            metrics.put(
                    "test_accuracy",
                    test.stream().mapToDouble(Judge.Score::accuracy).average().orElseThrow());
        }
        metrics.put("worst_client_loss", worstLoss);
        if (!data.hasPerplexity()) {
            metrics.put("worst_client_accuracy", worstAccuracy);
        }
        return metrics;
    }

    /** Returns a description of the data. */
    String data() {
        return data.description();
    }

    /** Returns the SHA-256 of all data: a checkpoint is resumed with the same data only. */
    String dataHash() {
        return data.sha256();
    }

    @Override
    public void close() {
        scores.close();
    }
}
