package org.fedcomuon.model;

import static java.util.stream.Collectors.toMap;

import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Function;
import java.util.function.Supplier;
import org.fedcomuon.data.Episodes;
import org.fedcomuon.device.Device;
import org.fedcomuon.problem.Client;
import org.fedcomuon.problem.Floats;
import org.fedcomuon.problem.JointOracle;
import org.fedcomuon.problem.Layout;
import org.fedcomuon.problem.Problem;
import org.fedcomuon.problem.Risk;
import org.fedcomuon.problem.Sample;

/**
 * Clients as tasks: {@code g(W; (S, Q)) = l(W - a grad l(W; S); Q)} under a risk, d = 1. S and Q are drawn together,
 * without replacement, so they never share an example.
 *
 * <p>For methods that use g as it is. FedMAML adapts by itself and takes {@link #plain}.
 *
 * <p>Immutable, provided that the given arrays and examples are not changed.
 */
public final class MetaLearning implements Problem {
    private final Network network;
    private final Examples examples;
    private final List<int[]> clients;
    private final int batch;
    private final Adaptation adaptation;
    private final Risk risk;
    private final JointChoice choice;

    /**
     * Describes the problem; nothing is copied.
     *
     * @param clients the indices of each client's examples, at least two
     * @param batch examples of a support set, and as many of a query set; a client that has less than both together has
     *     one half of its examples in each
     * @param risk f
     */
    public MetaLearning(
            Network network, Examples examples, List<int[]> clients, int batch, Adaptation adaptation, Risk risk) {
        this(network, examples, clients, batch, adaptation, risk, new JointChoice(Gradients.AUTO));
    }

    private MetaLearning(
            Network network,
            Examples examples,
            List<int[]> clients,
            int batch,
            Adaptation adaptation,
            Risk risk,
            JointChoice choice) {
        this.choice = choice;
        this.network = network;
        this.examples = examples;
        this.clients = List.copyOf(clients);
        this.batch = batch;
        this.adaptation = adaptation;
        this.risk = risk;
        for (int k = 0; k < clients.size(); k++) {
            if (clients.get(k).length < 2) {
                throw new IllegalArgumentException("client %d has %d examples; support and query need one each"
                        .formatted(k, clients.get(k).length));
            }
        }
    }

    /** Returns the same problem with another way to compute gradients than {@link Gradients#AUTO}. */
    public MetaLearning gradients(Gradients gradients) {
        return choosing(new JointChoice(gradients));
    }

    MetaLearning choosing(JointChoice other) {
        return new MetaLearning(network, examples, clients, batch, adaptation, risk, other);
    }

    /** Returns the loss without adaptation, on the same examples in batches of the same size. */
    public Classification plain() {
        return new Classification(network, examples, clients, batch, risk).gradients(choice.gradients());
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

    @Override
    public Client client(int k) {
        return Problem.ofLosses(layout(), List.of(loss(k)), risk).client(0);
    }

    private Episodes episodes(int k) {
        return new Episodes(clients.get(k), batch, batch);
    }

    private AdaptedLoss loss(int k) {
        Episodes own = episodes(k);
        return new AdaptedLoss(network, examples, own::support, own::query, adaptation);
    }

    @Override
    public Optional<JointOracle> joint(Device device, List<Integer> here) {
        Supplier<JointOracle> together = () -> {
            Map<Integer, Episodes> episodes = here.stream().collect(toMap(k -> k, this::episodes));
            return new Together((xi, w) -> adaptation.loss(
                    network,
                    w,
                    batch(xi, sample -> episodes.get(sample.client()).support(sample)),
                    batch(xi, sample -> episodes.get(sample.client()).query(sample)),
                    choice.masks(xi, device)));
        };
        return choice.on(
                device,
                network.name(),
                Optional.of(together).filter(_ -> network.takesSeveralClients()),
                () -> new OneByOne(this::loss));
    }

    private Minibatch batch(List<Sample> xi, Function<Sample, int[]> indices) {
        return Minibatch.of(examples, xi.stream().map(indices).toList());
    }

    /**
     * A task of meta learning: examples to adapt to, and examples to evaluate on.
     *
     * <p>Immutable, provided that its examples are not changed.
     *
     * @param support S
     * @param query Q
     */
    public record Episode(Examples support, Examples query) {
        /**
         * Returns an episode with the first {@code support} of {@code examples} as its support set and the rest as its
         * query set.
         */
        public static Episode split(Examples examples, int support) {
            int count = examples.count();
            if (support < 1 || support >= count) {
                throw new IllegalArgumentException(
                        "%d of %d examples for support; at least one, and one is left for query"
                                .formatted(support, count));
            }
            return new Episode(examples.range(0, support), examples.range(support, count));
        }
    }
}
