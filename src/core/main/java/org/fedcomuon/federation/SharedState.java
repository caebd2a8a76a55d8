package org.fedcomuon.federation;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.Phaser;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.NcclReduction;
import org.fedcomuon.method.ClientFault;
import org.fedcomuon.method.ClientStore;
import org.fedcomuon.method.Clients;
import org.fedcomuon.method.Variable;
import org.jspecify.annotations.Nullable;

/**
 * The state that the threads of all devices share. Each thread writes its own part before a barrier, and reads the
 * parts of the others after it.
 */
final class SharedState {
    final DeviceBarrier barrier;
    /** The barrier at which devices that are done or have failed wait until no device uses the memory of another. */
    final Phaser departure;

    final List<List<Variable>> posted = new ArrayList<>(); // by device
    final List<double[]> weights = new ArrayList<>(); // by device: of the rows there, before they are scaled
    final List<int[]> numbers = new ArrayList<>(); // by device: of the clients there
    final List<List<Integer>> dropped = new ArrayList<>(); // by device, or by member: clients, in this round
    final PeerAveraging[] peers; // by device
    final Device[] opened; // by device
    final boolean[] reaches; // by device: whether it reaches the memory of all others

    final Optional<Evaluator.OnDevices> evaluator; // if the devices evaluate
    final double[][] evaluated; // by device: its share of an evaluation

    NcclReduction.@Nullable Group nccl; // of all devices, made by device 0; null if NCCL is not used

    final double[] losses; // by position in the cohort; NaN for one that has drawn no sample in this round
    final List<Map<Clients.Phase, Double>> seconds = new ArrayList<>(); // by device, or by member
    CheckpointStore.@Nullable Pending pending; // of device 0
    Optional<ClientStore> kept = Optional.empty(); // what clients of this process keep while they sit out
    boolean stop; // of device 0
    final List<ClientFault> faults = new ArrayList<>(); // here, that the first member of a cluster does not know yet

    /**
     * @param members of a cluster, or 1
     * @param cohort the number of clients in a round
     * @param evaluator if the devices evaluate
     */
    SharedState(int devices, int members, int cohort, Optional<Evaluator.OnDevices> evaluator) {
        this.evaluator = evaluator;
        evaluated = new double[devices][];
        barrier = new DeviceBarrier(devices);
        peers = new PeerAveraging[devices];
        opened = new Device[devices];
        reaches = new boolean[devices];
        departure = new Phaser(devices);
        losses = new double[cohort];
        Arrays.fill(losses, Double.NaN);
        for (int i = 0; i < Math.max(devices, members); i++) {
            seconds.add(new EnumMap<>(Clients.Phase.class));
            posted.add(List.of());
            weights.add(new double[0]);
            numbers.add(new int[0]);
            dropped.add(List.of());
        }
    }

    int devices() {
        return opened.length;
    }

    /** Returns the seconds of the slowest device. */
    double seconds(Clients.Phase phase) {
        return seconds.stream()
                .mapToDouble(device -> device.getOrDefault(phase, 0.0))
                .max()
                .orElse(0);
    }
}
