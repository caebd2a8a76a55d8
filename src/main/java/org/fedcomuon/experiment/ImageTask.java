package org.fedcomuon.experiment;

import java.io.IOException;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.fedcomuon.data.ImageDataset;
import org.fedcomuon.data.Mnist;
import org.fedcomuon.data.Partition;
import org.fedcomuon.model.Classification;
import org.fedcomuon.model.Examples;
import org.fedcomuon.model.Initialization;
import org.fedcomuon.model.Judge;
import org.fedcomuon.model.LeNet;
import org.fedcomuon.model.Network;
import org.fedcomuon.model.Score;
import org.fedcomuon.problem.ExponentialRisk;
import org.fedcomuon.problem.Point;
import org.fedcomuon.problem.Problem;

/** Robust image classification: one client with many images, the others with few. */
final class ImageTask implements Task {
    private final ImageDataset dataset;
    private final Network network;
    private final ExponentialRisk risk;
    private final Problem problem;
    private final List<Examples> clients = new ArrayList<>();
    private final Examples test;
    private final double[] weights;
    private final long seed;
    private final Judge judge;

    ImageTask(Configuration c, Optional<Path> dataDirectory, int threads) throws IOException {
        try {
            dataset = dataDirectory.isPresent() ? Mnist.load(dataDirectory.get()) : Mnist.bundled();
        } catch (NoSuchFileException e) {
            throw new ConfigurationException("the data are not there: " + e.getMessage(), e);
        }
        network = new LeNet();
        risk = new ExponentialRisk(c.number("lambda"), c.number("exponentCap"));
        seed = c.seed();
        var sizes = new ArrayList<Integer>();
        for (int k = 0; k < c.integer("clients"); k++) {
            sizes.add(c.integer(k == 0 ? "largest" : "others"));
        }
        Partition partition;
        try {
            partition = Partition.imbalanced(dataset.train().count(), sizes, seed);
        } catch (IllegalArgumentException e) {
            throw new ConfigurationException(String.valueOf(e.getMessage()), e);
        }
        Examples train = Examples.of(dataset.train());
        test = Examples.of(dataset.test());
        var indices = new ArrayList<int[]>();
        weights = new double[sizes.size()];
        for (int k = 0; k < sizes.size(); k++) {
            indices.add(partition.indices(k));
            clients.add(train.select(partition.indices(k)));
            weights[k] = c.text("weighting").equals("examples") ? partition.size(k) : 1;
        }
        problem = new Classification(network, train, indices, c.integer("batch"), risk);
        judge = new Judge(network, threads);
    }

    @Override
    public Problem problem() {
        return problem;
    }

    @Override
    public float[] initial() {
        return Initialization.uniform(network.layout(), seed);
    }

    @Override
    public double[] weights() {
        return weights;
    }

    @Override
    public Map<String, Double> evaluate(Point w) throws InterruptedException {
        double mean = 0;
        double objective = 0;
        double pooled = 0;
        long examples = 0;
        double worstLoss = Double.NEGATIVE_INFINITY;
        double worstAccuracy = 1;
        for (Examples client : clients) {
            Score score = judge.score(w, client);
            mean += score.loss() / clients.size();
            objective += risk.value(score.loss()) / clients.size();
            pooled += score.loss() * score.count();
            examples += score.count();
            worstLoss = Math.max(worstLoss, score.loss());
            worstAccuracy = Math.min(worstAccuracy, score.accuracy());
        }
        Score unseen = judge.score(w, test);
        var metrics = new LinkedHashMap<String, Double>();
        metrics.put("train_loss", mean);
        metrics.put("train_objective", objective);
        metrics.put("train_loss_pooled", pooled / examples);
        metrics.put("test_loss", unseen.loss());
        metrics.put("test_accuracy", unseen.accuracy());
        metrics.put("worst_client_loss", worstLoss);
        metrics.put("worst_client_accuracy", worstAccuracy);
        return metrics;
    }

    @Override
    public String data() {
        return dataset.description();
    }

    @Override
    public String dataHash() {
        return dataset.sha256();
    }

    @Override
    public void close() {
        judge.close();
    }
}
