package org.fedcomuon.experiment;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.stream.IntStream;
import org.fedcomuon.data.ExampleSet;
import org.fedcomuon.data.Partition;
import org.fedcomuon.data.ValidationSplit;
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
    private static final String VALIDATION_SHARE = Configuration.VALIDATION_SHARE.name();

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
        Optional<ValidationSplit> divided = Optional.empty();
        if (read.isPresent()) {
            TaskData there = read.get();
            mistakes.addAll(objective.mistakes(there));
            made = mistakes.attempt("model", () -> c.chosen(ModelChoice.ALL).network(c, there));
            divided = divide(c, there, mistakes);
        } else {
            mistakes.addAll(c.chosen(ModelChoice.ALL).mistakes(c));
        }
        Optional<Point> given = weights(c, made.map(Network::layout), mistakes);
        mistakes.refuse();
        data = read.orElseThrow();
        Network network = made.orElseThrow();
        partition = divided.orElseThrow().train();
        Partition held = divided.orElseThrow().held();
        int clients = partition.clients();
        weights = new double[clients];
        var first = new int[clients + 1];
        for (int k = 0; k < clients; k++) {
            weights[k] = c.text("weighting").equals("examples") ? partition.size(k) : 1;
            first[k + 1] = first[k] + partition.size(k);
        }
        long examples = (long) first[clients] + held.total() + data.testCount();
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
        parts = new TaskParts(c, data, network, train, own, partition, validation(held), threads);
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

    /**
     * Divides the training set among the clients, and of each client's examples a share for validation, if asked to.
     */
    private static Optional<ValidationSplit> divide(Configuration c, TaskData data, Mistakes mistakes) {
        Optional<Partition> all = mistakes.attempt(
                "split", () -> c.chosen(SplitChoice.ALL).train().divide(c, data));
        if (all.isEmpty() || !c.has(VALIDATION_SHARE)) {
            return all.map(ValidationSplit::none);
        }
        ObjectiveChoice objective = c.chosen(Objectives.ALL);
        if (objective.validationMetrics(data).isEmpty()) {
            mistakes.addAll(List.of("%s = %s: objective = %s has no metrics of validation examples"
                    .formatted(VALIDATION_SHARE, c.text(VALIDATION_SHARE), objective.name())));
            return Optional.empty();
        }
        Optional<ExampleSet> labelled = data.labelledTrain();
        ValidationSplit split = ValidationSplit.of(
                all.get(),
                c.number(VALIDATION_SHARE),
                i -> labelled.map(set -> set.label(i)).orElse(0),
                c.seed());
        if (split.held().total() == 0) {
            mistakes.addAll(List.of(
                    "%s = %s: no client has an example to spare, because each keeps at least one of each of its classes"
                            .formatted(VALIDATION_SHARE, c.text(VALIDATION_SHARE))));
        }
        return Optional.of(split);
    }

    /**
     * Reads the data and divides them as a run would, without a network.
     *
     * @return the metrics of validation examples
     * @throws ConfigurationException with all mistakes that are found
     */
    static List<ValidationMetric> validationMetrics(Configuration c, Optional<Path> dataDirectory) {
        var mistakes = new Mistakes(c);
        Optional<TaskData> read = read(c, dataDirectory, mistakes);
        ObjectiveChoice objective = c.chosen(Objectives.ALL);
        read.ifPresent(data -> {
            mistakes.addAll(objective.mistakes(data));
            divide(c, data, mistakes);
        });
        mistakes.refuse();
        return objective.validationMetrics(read.orElseThrow());
    }

    /** Returns the examples of each client that are held back; nothing where no client has any. */
    private List<Examples> validation(Partition held) {
        if (held.total() == 0) {
            return List.of();
        }
        Examples all = data.train(IntStream.range(0, held.clients())
                .flatMap(k -> IntStream.of(held.indices(k)))
                .toArray());
        var sets = new ArrayList<Examples>();
        int from = 0;
        for (int k = 0; k < held.clients(); k++) {
            sets.add(all.range(from, from + held.size(k)));
            from += held.size(k);
        }
        return sets;
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

    /** Returns what the problem is made from. */
    TaskParts parts() {
        return parts;
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

    /** Returns the number of examples that are held back for validation. */
    long validationExamples() {
        return parts.validation().stream().mapToLong(Examples::count).sum();
    }

    /** Returns the metrics of these examples, the one that decides when a run is stopped early first. */
    List<ValidationMetric> validationMetrics() {
        return parts.configuration().chosen(Objectives.ALL).validationMetrics(data);
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
