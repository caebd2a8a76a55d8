package org.fedcomuon.experiment;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.stream.IntStream;
import org.fedcomuon.data.Partition;
import org.fedcomuon.federation.Evaluator;
import org.fedcomuon.format.SafetensorsFile;
import org.fedcomuon.internal.NativeHeap;
import org.fedcomuon.model.Examples;
import org.fedcomuon.model.Network;
import org.fedcomuon.problem.Floats;
import org.fedcomuon.problem.Layout;
import org.fedcomuon.problem.Point;
import org.fedcomuon.problem.Problem;

/** The training task of a configuration: a problem, the initial weights, and the evaluation of a model. */
final class NetworkTask implements Evaluator, AutoCloseable {
    private static final String INIT = "init";

    private final TaskData data;
    private final Partition partition;
    private final TaskParts parts;
    private final Problem problem;
    private final Floats initial;
    private final double[] weights;
    private final TaskEvaluator evaluator;

    /**
     * Reads the data and prepares the clients.
     *
     * @param dataDirectory the user's own files, instead of the packaged ones
     * @param threads that evaluate, each a client at a time
     * @param members among which the clients are divided, of which this process is one
     * @param devices of this process, among which its clients are divided
     * @param gate receives the estimate before that memory is allocated, and may refuse it by an exception
     * @throws ConfigurationException when files are missing, malformed or not readable, or the parts do not fit
     *     together; it has all mistakes that can be found at once
     */
    NetworkTask(
            Configuration c,
            Optional<Path> dataDirectory,
            int threads,
            int members,
            int devices,
            Consumer<RunMemory> gate) {
        var mistakes = new Mistakes(c);
        ObjectiveChoice objective = c.chosen(Objectives.ALL);
        Optional<TaskData> read = read(c, dataDirectory, mistakes);
        Optional<Network> made = Optional.empty();
        Optional<Partition> divided = Optional.empty();
        if (read.isPresent()) {
            TaskData there = read.get();
            mistakes.addAll(objective.mistakes(there));
            made = mistakes.attempt("model", () -> c.chosen(ModelChoice.ALL).network(c, there));
            divided = mistakes.attempt(
                    "split", () -> c.chosen(SplitChoice.ALL).train().divide(c, there));
        } else {
            mistakes.addAll(c.chosen(ModelChoice.ALL).mistakes(c));
        }
        Optional<Point> given = weights(c, made.map(Network::layout), mistakes);
        mistakes.refuse();
        data = read.orElseThrow();
        Network network = made.orElseThrow();
        partition = divided.orElseThrow();
        int clients = partition.clients();
        weights = new double[clients];
        var first = new int[clients + 1];
        for (int k = 0; k < clients; k++) {
            weights[k] = c.text("weighting").equals("examples") ? partition.size(k) : 1;
            first[k + 1] = first[k] + partition.size(k);
        }
        long examples = (long) first[clients] + data.testCount();
        gate.accept(RunMemory.of(
                c,
                network,
                RunMemory.share(clients, c.cohort(clients), members),
                objective.dimension(data),
                threads,
                devices,
                examples * data.exampleBytes()));
        // Only the examples of clients are converted to tensors, client by client.
        Examples train = data.train(IntStream.range(0, clients)
                .flatMap(k -> IntStream.of(partition.indices(k)))
                .toArray());
        List<int[]> own = IntStream.range(0, clients)
                .mapToObj(k -> IntStream.range(first[k], first[k + 1]).toArray())
                .toList();
        parts = new TaskParts(c, data, network, train, own, partition, threads);
        try {
            problem = objective.problem(parts);
            initial = initial(c.seed(), given);
            evaluator = objective.evaluator(parts);
        } catch (IllegalArgumentException e) {
            throw new ConfigurationException("objective = %s: %s".formatted(objective.name(), e.getMessage()), e);
        }
    }

    /** Reads the data. Where they cannot be read, all files that are missing are named, not only those of the data. */
    private static Optional<TaskData> read(Configuration c, Optional<Path> directory, Mistakes mistakes) {
        List<String> missing = c.missingFiles();
        DataChoice choice = c.chosen(DataChoice.ALL);
        List<String> incomplete = choice.mistakes(c);
        mistakes.addAll(missing);
        mistakes.addAll(incomplete);
        return missing.isEmpty() && incomplete.isEmpty()
                ? mistakes.attempt("data", () -> choice.load(c, directory))
                : Optional.empty();
    }

    /** Returns the weights of the network from a file if one is named; without a network, it is only opened. */
    private static Optional<Point> weights(Configuration c, Optional<Layout> layout, Mistakes mistakes) {
        Optional<Path> file = c.path(INIT).filter(Files::exists); // otherwise it is named as missing
        if (file.isEmpty()) {
            return Optional.empty();
        }
        if (layout.isPresent()) {
            return mistakes.attempt(INIT, () -> Point.load(file.get(), layout.get(), InitialNames.of(c)));
        }
        mistakes.attempt(INIT, () -> {
            SafetensorsFile.open(file.get()).close();
            return file;
        });
        return Optional.empty();
    }

    /** Returns W0: that of the problem, with the weights of the network from a file if one is named. */
    private Floats initial(long seed, Optional<Point> given) {
        Floats w0 = problem.initial(seed)
                .orElseGet(() -> Floats.zeros(problem.layout().length()));
        given.ifPresent(weights -> w0.slice(0, weights.values().length())
                .segment()
                .copyFrom(weights.values().segment()));
        return w0;
    }

    /** Returns the clients and their losses. */
    Problem problem() {
        return problem;
    }

    /** Returns W0. */
    Floats initial() {
        return initial;
    }

    /** Returns the weights of the clients in averages. */
    double[] weights() {
        return weights;
    }

    /** Returns the number of examples of each client. */
    double[] sizes() {
        return IntStream.range(0, partition.clients())
                .mapToDouble(partition::size)
                .toArray();
    }

    @Override
    public Map<String, Double> evaluate(long step, Point average) throws InterruptedException {
        return scores(step, average).metrics();
    }

    @Override
    public Evaluator.Scores scores(long step, Point average) throws InterruptedException {
        NativeHeap.trim(); // memory of the training, which is paused
        try {
            return evaluator.of(average);
        } finally {
            NativeHeap.trim(); // memory of the evaluation
        }
    }

    @Override
    public Optional<Evaluator.OnDevices> onDevices(List<String> devices) {
        return evaluator.onDevices(devices);
    }

    /** Returns the number of examples that each client has, by class; one number where examples have no class. */
    List<List<Integer>> split() {
        int[][] counts = data.labelledTrain()
                .map(partition::table)
                .orElseGet(() -> IntStream.range(0, partition.clients())
                        .mapToObj(k -> new int[] {partition.size(k)})
                        .toArray(int[][]::new));
        return Arrays.stream(counts)
                .map(row -> Arrays.stream(row).boxed().toList())
                .toList();
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
        evaluator.close();
    }
}
