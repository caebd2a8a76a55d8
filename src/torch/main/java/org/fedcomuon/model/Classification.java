package org.fedcomuon.model;

import static java.util.stream.Collectors.toMap;

import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import org.fedcomuon.data.Batches;
import org.fedcomuon.data.ExampleSet;
import org.fedcomuon.data.Partition;
import org.fedcomuon.device.Device;
import org.fedcomuon.problem.Client;
import org.fedcomuon.problem.Floats;
import org.fedcomuon.problem.JointOracle;
import org.fedcomuon.problem.Layout;
import org.fedcomuon.problem.Problem;
import org.fedcomuon.problem.Risk;

/**
 * A classification problem: each client holds some of the examples, and the loss is the cross entropy of a network
 * under a risk, with d = 1. Immutable, provided that the given arrays and examples are not changed.
 */
public final class Classification implements Problem {
    private final Network network;
    private final Examples examples;
    private final List<int[]> clients;
    private final int batch;
    private final Risk risk;
    private final JointChoice choice;

    /**
     * Describes the problem; nothing is copied.
     *
     * @param clients the indices of each client's examples
     * @param batch examples per sample
     * @param risk f
     */
    public Classification(Network network, Examples examples, List<int[]> clients, int batch, Risk risk) {
        this(network, examples, List.copyOf(clients), batch, risk, new JointChoice(Gradients.AUTO));
    }

    private Classification(
            Network network, Examples examples, List<int[]> clients, int batch, Risk risk, JointChoice choice) {
        this.network = network;
        this.examples = examples;
        this.clients = clients;
        this.batch = batch;
        this.risk = risk;
        this.choice = choice;
    }

    /**
     * Describes the problem of a data set that is divided among clients.
     *
     * @param examples for training, which are converted to tensors
     * @param clients which of them each client has
     * @param batch examples per sample
     * @param risk f
     */
    public Classification(Network network, ExampleSet examples, Partition clients, int batch, Risk risk) {
        this(
                network,
                Examples.of(examples),
                IntStream.range(0, clients.clients()).mapToObj(clients::indices).toList(),
                batch,
                risk);
    }

    /** Returns the same problem with another way to compute gradients than {@link Gradients#AUTO}. */
    public Classification gradients(Gradients gradients) {
        return choosing(new JointChoice(gradients));
    }

    Classification choosing(JointChoice other) {
        return new Classification(network, examples, clients, batch, risk, other);
    }

    /**
     * Returns what evaluates the network during a run, for {@code Federation.Builder.evaluate}. It takes a copy of each
     * client's examples, and all cores.
     *
     * @param test examples that no client has
     */
    public ClassificationJudge judge(ExampleSet test) {
        return new ClassificationJudge(
                network,
                clients.stream().map(examples::select).toList(),
                Examples.of(test),
                List.of(),
                new ClassificationJudge.Metrics(
                        clients.stream().map(own -> own.length).toList(),
                        examples.labels().dim() > 1,
                        losses ->
                                Arrays.stream(losses).map(risk::value).average().orElseThrow()),
                Runtime.getRuntime().availableProcessors());
    }

    @Override
    public Layout layout() {
        return network.layout();
    }

    @Override
    public int innerDimension() {
        return 1;
    }

    @Override
    public Optional<Floats> initial(long seed) {
        return Optional.of(network.initial(seed));
    }

    @Override
    public int clients() {
        return clients.size();
    }

    /** Returns the number of examples per sample; a client with less than a batch takes less time. */
    @Override
    public double cost(int k) {
        return batches(k).batchSize();
    }

    @Override
    public List<String> mistakes(int k) {
        int[] own = clients.get(k);
        int count = examples.count();
        if (own.length == 0) {
            return List.of("has no examples; every client needs one");
        }
        return Arrays.stream(own)
                .filter(i -> i < 0 || i >= count)
                .limit(1)
                .mapToObj(i -> "has example %d, but there are %d".formatted(i, count))
                .toList();
    }

    private Batches batches(int k) {
        return new Batches(clients.get(k), batch);
    }

    @Override
    public Client client(int k) {
        return Problem.ofLosses(layout(), List.of(loss(k)), risk).client(0);
    }

    private NetworkLoss loss(int k) {
        return new NetworkLoss(network, examples, batches(k)::indices);
    }

    @Override
    public Optional<JointOracle> joint(Device device, List<Integer> here) {
        Supplier<JointOracle> together = () -> {
            Map<Integer, Batches> batches = here.stream().collect(toMap(k -> k, this::batches));
            return new Together((xi, w) -> {
                List<int[]> indices = xi.stream()
                        .map(sample -> batches.get(sample.client()).indices(sample))
                        .toList();
                return CrossEntropy.mean(network, w, Minibatch.of(examples, indices), choice.masks(xi, device));
            });
        };
        return choice.on(
                device,
                network.name(),
                Optional.of(together).filter(_ -> network.takesSeveralClients()),
                () -> new OneByOne(this::loss));
    }
}
