package org.fedcomuon.federation;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.Phaser;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.NcclMean;
import org.fedcomuon.method.ClientFault;
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

    final Variable[][] posted; // by device
    final OrderedAveraging[] ordered; // by device
    final Device[] opened; // by device
    final boolean[] reaches; // by device: whether it reaches the memory of all others

    final Optional<Evaluator.OnDevices> evaluator; // if the devices evaluate
    final double[][] evaluated; // by device: its share of an evaluation

    NcclMean.@Nullable Group nccl; // of all devices, made by device 0

    final double[] weights; // by client; 0 for one that does not take part
    final double[] losses; // by client; NaN for one that has drawn no sample in this round
    final List<Map<Clients.Phase, Double>> seconds = new ArrayList<>(); // by device, or by member
    CheckpointStore.@Nullable Pending pending; // of device 0
    boolean stop; // of device 0
    final List<ClientFault> faults = new ArrayList<>(); // here, that the first member of a cluster does not know yet

    /**
     * @param members of a cluster, or 1
     * @param evaluator if the devices evaluate
     */
    SharedState(int devices, int members, int clients, Optional<Evaluator.OnDevices> evaluator) {
        this.evaluator = evaluator;
        evaluated = new double[devices][];
        barrier = new DeviceBarrier(devices);
        posted = new Variable[devices][];
        ordered = new OrderedAveraging[devices];
        opened = new Device[devices];
        reaches = new boolean[devices];
        departure = new Phaser(devices);
        weights = new double[clients];
        losses = new double[clients];
        Arrays.fill(losses, Double.NaN);
        for (int i = 0; i < Math.max(devices, members); i++) {
            seconds.add(new EnumMap<>(Clients.Phase.class));
        }
    }

    int devices() {
        return posted.length;
    }

    /** Returns the seconds of the slowest device. */
    double seconds(Clients.Phase phase) {
        return seconds.stream()
                .mapToDouble(device -> device.getOrDefault(phase, 0.0))
                .max()
                .orElse(0);
    }
}
