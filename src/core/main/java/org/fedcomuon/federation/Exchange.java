package org.fedcomuon.federation;

import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.DeviceException;
import org.fedcomuon.device.NcclReduction;
import org.fedcomuon.method.Clients;
import org.fedcomuon.method.Method;
import org.fedcomuon.method.Variable;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The server, as one device sees it. There is no central server: the devices compute means among themselves, by an
 * {@link Averaging}. This class has what all of these share: the weights of the clients that take part, the check that
 * what is averaged is finite, and the counters.
 */
final class Exchange implements Method.Server, AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(Exchange.class);

    private final SharedState shared;
    private final int self;
    private final Clients clients;
    private final RoundWeights round;
    private final Averaging averaging;
    private final boolean alone;
    private final boolean isClustered;
    private final Set<Variable> means = new HashSet<>(); // of this step
    private long bytes;
    private long roundTrips;
    private long exchanges;

    Exchange(SharedState shared, int self, Clients clients, Setup setup, RunMonitor monitor) {
        this.shared = shared;
        this.self = self;
        this.clients = clients;
        round = new RoundWeights(setup.weights());
        isClustered = setup.cluster().isPresent();
        alone = setup.cluster().isEmpty() && shared.devices() == 1;
        averaging = setup.cluster().isPresent()
                ? new ClusterAveraging(
                        setup.cluster().get(), shared, clients, monitor, setup.fingerprint(), setup.exchangeSection())
                : ofDevices(shared, self, clients, setup);
    }

    /** Chooses what is fastest on these devices. All of them are here before any returns. */
    private static Averaging ofDevices(SharedState shared, int self, Clients clients, Setup setup) {
        shared.opened[self] = clients.device();
        shared.barrier.await();
        List<Device> devices = List.of(shared.opened);
        if (!setup.exchangeCopies() && devices.stream().allMatch(Device::isHost)) {
            return new DirectAveraging(shared, self, clients);
        }
        if (self == 0) {
            shared.nccl = nccl(devices, setup);
        }
        shared.reaches[self] = !setup.exchangeCopies() && devices.stream().allMatch(clients.device()::reaches);
        shared.barrier.await();
        if (shared.nccl != null) {
            return new NcclAveraging(shared, clients, shared.nccl, setup.exchangeSection());
        }
        boolean reach = true;
        for (boolean each : shared.reaches) {
            reach &= each;
        }
        if (devices.size() == 1) {
            return new DirectAveraging(shared, self, clients);
        }
        return reach
                ? new PeerReads(shared, self, clients, setup.exchangeSection())
                : new PeerCopies(shared, self, clients, setup.exchangeSection());
    }

    private static NcclReduction.@Nullable Group nccl(List<Device> devices, Setup setup) {
        return switch (setup.exchange()) {
            case NCCL -> NcclReduction.Group.of(devices, setup.ncclTimeout());
            case PEER -> null;
            case AUTO -> {
                if (devices.size() == 1 || setup.exchangeCopies()) {
                    yield null;
                }
                try {
                    yield NcclReduction.Group.of(devices, setup.ncclTimeout());
                } catch (DeviceException.LibraryMissing | DeviceException.InvalidOperand e) {
                    LOG.debug("without NCCL: {}", e.getMessage()); // or these devices do not go together
                    yield null;
                }
            }
        };
    }

    /** Sets which clients take part from now on, ascending, unless a fault drops them. Before, all do. */
    void begin(int[] cohort) {
        round.begin(cohort);
        if (isClustered) {
            Arrays.fill(shared.losses, Double.NaN); // those of other members stay there
        }
    }

    @Override
    public void average(Variable... variables) {
        long each = 0;
        for (Variable variable : variables) {
            each += variable.length() * Float.BYTES;
        }
        average(each, each, variables);
    }

    @Override
    public void average(long up, long down, Variable... variables) {
        mean(variables);
        bytes += round.participants() * (up + down);
        roundTrips++;
    }

    /** The same without the algorithm sending anything: for looking at a run from outside. */
    void mean(Variable... variables) {
        clients.timed(Clients.Phase.EXCHANGE, () -> {
            List<Variable> posted = List.of(variables);
            posted.forEach(clients::requireConverging); // a mean does not say whose value it was
            if (!alone) {
                clients.settle(); // a GPU with a fault holds back its own operations, not those of others
            }
            double[] weights = post(posted);
            round.drop(shared.dropped);
            averaging.average(posted, round.scaled(weights), round);
            posted.forEach(Variable::becomeCommon);
            means.addAll(posted);
        });
    }

    /** Forgets the means of the step before. */
    void beginStep() {
        means.clear();
    }

    /** Returns whether a variable was averaged in this step and not written since, and is therefore finite. */
    boolean isMean(Variable variable) {
        return means.contains(variable) && variable.isCommon();
    }

    private double[] post(List<Variable> posted) {
        double[] weights = posted.isEmpty() ? new double[0] : round.unscaled(clients, Section.rows(posted.getFirst()));
        shared.dropped.set(self, round.dropped(clients));
        for (int k = 0; k < clients.count(); k++) {
            shared.losses[round.position(clients.number(k))] = clients.meanLoss(k);
        }
        for (Clients.Phase phase : Clients.Phase.values()) {
            shared.seconds.get(self).put(phase, clients.seconds(phase));
        }
        averaging.post(posted, weights);
        exchanges += alone ? 0 : 1;
        return weights;
    }

    @Override
    public double share() {
        return round.share();
    }

    /** Returns the number of clients in the last mean. */
    int participants() {
        return round.participants();
    }

    /** Returns the bytes that clients have sent and received, as the algorithm would send them. */
    long bytes() {
        return bytes;
    }

    long roundTrips() {
        return roundTrips;
    }

    /** Returns the bytes that this device or member has sent to others and received from them. */
    long exchangedBytes() {
        return averaging.exchangedBytes();
    }

    /** Returns how often the devices or members have exchanged something. */
    long exchanges() {
        return exchanges;
    }

    /** Continues the counters of a checkpoint. */
    void resume(long communicatedBytes, long trips) {
        bytes = communicatedBytes;
        roundTrips = trips;
    }

    /** Waits for all devices, without a mean. */
    void await() {
        clients.timed(Clients.Phase.EXCHANGE, () -> {
            post(List.of());
        });
    }

    /** Returns how means are computed. */
    String title() {
        return averaging.title();
    }

    /** Waits until no device uses the memory of another, whether they are done or have failed. */
    void leave() {
        averaging.drain();
        shared.departure.arriveAndAwaitAdvance();
        averaging.disband();
        shared.departure.arriveAndAwaitAdvance();
    }

    @Override
    public void close() {
        averaging.close();
    }
}
