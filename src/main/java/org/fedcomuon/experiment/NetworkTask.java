package org.fedcomuon.experiment;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.stream.IntStream;
import org.fedcomuon.data.Partition;
import org.fedcomuon.internal.NativeHeap;
import org.fedcomuon.model.Adaptation;
import org.fedcomuon.model.Classification;
import org.fedcomuon.model.Episode;
import org.fedcomuon.model.Examples;
import org.fedcomuon.model.Initialization;
import org.fedcomuon.model.Judge;
import org.fedcomuon.model.MetaJudge;
import org.fedcomuon.model.MetaLearning;
import org.fedcomuon.model.Network;
import org.fedcomuon.model.Score;
import org.fedcomuon.problem.ExponentialRisk;
import org.fedcomuon.problem.Floats;
import org.fedcomuon.problem.Point;
import org.fedcomuon.problem.Problem;

/** A network that is trained by clients who share a dataset, plainly or as tasks of meta learning, under a risk. */
final class NetworkTask implements Task {
    private final TaskData data;
    private final Network network;
    private final ExponentialRisk risk;
    private final Problem problem;
    private final double[] weights;
    private final int[] sizes;
    private final long seed;
    private final Scores scores;

    /** How a model is judged: for each client by its own examples, and by those that nobody has trained on. */
    private interface Scores extends AutoCloseable {
        List<Score> ofClients(Point w) throws InterruptedException;

        /** One, or one a client. */
        List<Score> unseen(Point w) throws InterruptedException;

        @Override
        void close();
    }

    NetworkTask(Configuration c, Optional<Path> dataDirectory, int threads, int devices, Consumer<RunMemory> gate)
            throws IOException {
        data = TaskData.of(c, dataDirectory);
        seed = c.seed();
        risk = new ExponentialRisk(c.number("lambda"), c.number("exponentCap"));
        try {
            network = network(c, data);
            Partition partition = split(c, data);
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
            // Only what somebody has, client by client.
            Examples train = data.train(IntStream.range(0, clients)
                    .flatMap(k -> IntStream.of(partition.indices(k)))
                    .toArray());
            List<int[]> own = IntStream.range(0, clients)
                    .mapToObj(k -> IntStream.range(first[k], first[k + 1]).toArray())
                    .toList();
            int batch = c.integer("batch");
            if (c.text("objective").equals("meta")) {
                var adaptation = new Adaptation(c.number("inner"), c.flag("firstOrder"));
                var meta = new MetaLearning(network, train, own, batch, adaptation, risk);
                // FedMAML adapts by itself, on three batches.
                problem = c.methodName().equals("fedmaml") ? meta.plain() : meta;
                scores = new MetaScores(c, train, own, adaptation, threads);
            } else {
                problem = new Classification(network, train, own, batch, risk);
                scores = new PlainScores(c, train, own, threads);
            }
        } catch (IllegalArgumentException e) {
            throw new ConfigurationException(String.valueOf(e.getMessage()), e);
        }
    }

    private static Network network(Configuration c, TaskData data) {
        String model = c.text("model");
        String needed = switch (model) {
            case "lenet" -> "mnist";
            case "transformer" -> "wikitext2";
            default -> "cifar10";
        };
        if (!c.text("data").equals(needed)) {
            throw new ConfigurationException(
                    "model = %s is for data = %s, not for %s".formatted(model, needed, c.text("data")));
        }
        return Networks.of(c, data.classes());
    }

    private static Partition split(Configuration c, TaskData data) {
        int clients = c.integer("clients");
        return switch (c.text("split")) {
            case "imbalanced" -> {
                var sizes = new ArrayList<Integer>();
                for (int k = 0; k < clients; k++) {
                    sizes.add(c.integer(k == 0 ? "largest" : "others"));
                }
                yield Partition.imbalanced(data.trainCount(), sizes, c.seed());
            }
            case "one-large" -> Partition.oneLarge(data.trainCount(), clients, c.number("share"), c.seed());
            case "dominant" -> data.dominant(false, clients, c.integer("perClient"), c.number("chi"), c.seed());
            default -> throw new IllegalStateException("no such split: " + c.text("split"));
        };
    }

    /** At most {@code most} of {@code count}; 0 stands for all. */
    private static int limited(int count, int most) {
        return most == 0 ? count : Math.min(count, most);
    }

    /** What the network does as it is. */
    private final class PlainScores implements Scores {
        private final Judge judge;
        private final List<Examples> clients = new ArrayList<>();
        private final Examples test;

        PlainScores(Configuration c, Examples train, List<int[]> own, int threads) {
            for (int[] indices : own) {
                int from = indices[0];
                clients.add(train.range(from, from + limited(indices.length, c.integer("judgedTrain"))));
            }
            test = data.test(IntStream.range(0, limited(data.testCount(), c.integer("judgedTest")))
                    .toArray());
            judge = new Judge(network, threads);
        }

        @Override
        public List<Score> ofClients(Point w) throws InterruptedException {
            var scores = new ArrayList<Score>();
            for (Examples client : clients) {
                scores.add(judge.score(w, client));
            }
            return scores;
        }

        @Override
        public List<Score> unseen(Point w) throws InterruptedException {
            return List.of(judge.score(w, test));
        }

        @Override
        public void close() {
            judge.close();
        }
    }

    /**
     * The meta test: what the network does after a step of adaptation to a batch, by examples that are not in it. For a
     * client's own examples both are its own. Unseen ones are dealt out as the training set was, so that a client is
     * tested on the classes it has, and it adapts to some of them; where the split knows no classes, there is one task
     * for all.
     */
    private final class MetaScores implements Scores {
        private final MetaJudge judge;
        private final List<Episode> own;
        private final List<Episode> unseen;

        MetaScores(Configuration c, Examples train, List<int[]> clients, Adaptation adaptation, int threads) {
            int batch = c.integer("batch");
            own = clients.stream()
                    .map(indices -> episode(
                            train.range(indices[0], indices[0] + indices.length), batch, c.integer("judgedTrain")))
                    .toList();
            unseen = new ArrayList<>();
            int judged = c.integer("judgedTest");
            if (c.text("split").equals("dominant")) {
                Partition dealt =
                        data.dominant(true, clients.size(), c.integer("testPerClient"), c.number("chi"), c.seed());
                int each = judged == 0 ? 0 : Math.max(1, judged / clients.size());
                for (int k = 0; k < clients.size(); k++) {
                    unseen.add(episode(data.test(dealt.indices(k)), batch, each));
                }
            } else {
                unseen.add(
                        episode(data.test(IntStream.range(0, data.testCount()).toArray()), batch, judged));
            }
            judge = new MetaJudge(network, adaptation, threads);
        }

        private static Episode episode(Examples examples, int batch, int judged) {
            int support = Math.clamp(examples.count() / 2, 1, batch);
            int query = limited(examples.count() - support, judged);
            return Episode.split(examples.range(0, support + query), support);
        }

        @Override
        public List<Score> ofClients(Point w) throws InterruptedException {
            return judge.score(w, own);
        }

        @Override
        public List<Score> unseen(Point w) throws InterruptedException {
            return judge.score(w, unseen);
        }

        @Override
        public void close() {
            judge.close();
        }
    }

    @Override
    public Problem problem() {
        return problem;
    }

    @Override
    public Floats initial() {
        return Initialization.uniform(network.layout(), seed);
    }

    @Override
    public double[] weights() {
        return weights;
    }

    @Override
    public Map<String, Double> evaluate(Point w) throws InterruptedException {
        NativeHeap.trim(); // of those who train; they wait
        try {
            return judged(w);
        } finally {
            NativeHeap.trim(); // of those who judge
        }
    }

    private Map<String, Double> judged(Point w) throws InterruptedException {
        double mean = 0;
        double objective = 0;
        double pooled = 0;
        long examples = 0;
        double worstLoss = Double.NEGATIVE_INFINITY;
        double worstAccuracy = 1;
        List<Score> clients = scores.ofClients(w);
        for (int k = 0; k < sizes.length; k++) {
            Score score = clients.get(k);
            mean += score.loss() / clients.size();
            objective += risk.value(score.loss()) / clients.size();
            pooled += score.loss() * sizes[k];
            examples += sizes[k];
            worstLoss = Math.max(worstLoss, score.loss());
            worstAccuracy = Math.min(worstAccuracy, score.accuracy());
        }
        List<Score> unseen = scores.unseen(w);
        double testLoss = unseen.stream().mapToDouble(Score::loss).average().orElseThrow();
        var metrics = new LinkedHashMap<String, Double>();
        metrics.put("train_loss", mean);
        metrics.put("train_objective", objective);
        metrics.put("train_loss_pooled", pooled / examples);
        metrics.put("test_loss", testLoss);
        if (data instanceof TaskData.Text) {
            metrics.put("test_perplexity", Math.exp(testLoss));
        } else {
            metrics.put(
                    "test_accuracy",
                    unseen.stream().mapToDouble(Score::accuracy).average().orElseThrow());
        }
        metrics.put("worst_client_loss", worstLoss);
        if (!(data instanceof TaskData.Text)) {
            metrics.put("worst_client_accuracy", worstAccuracy);
        }
        return metrics;
    }

    @Override
    public String data() {
        return data.description();
    }

    @Override
    public String dataHash() {
        return data.sha256();
    }

    @Override
    public void close() {
        scores.close();
    }
}
