package org.fedcomuon.federation;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Phaser;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.NcclMean;
import org.fedcomuon.method.ClientFault;
import org.fedcomuon.method.Phase;
import org.fedcomuon.method.Variable;
import org.jspecify.annotations.Nullable;

/** What the devices lay on the table when they meet. Written before a rendezvous, read after it. */
final class Meeting {
    final Rendezvous rendezvous;
    /** Where devices wait, when they are done or have failed, until nobody uses what is another's. */
    final Phaser departure;

    final Variable[][] posted; // by device
    final OrderedAveraging[] ordered; // by device
    final Device[] opened; // by device

    @Nullable
    NcclMean nccl; // of all devices, made and closed by device 0

    final double[] weights; // by client; 0 for one that does not take part
    final double[] losses; // by client; NaN for one that has drawn no sample in this round
    final List<Map<Phase, Double>> seconds = new ArrayList<>(); // by device, or by member
    CheckpointStore.@Nullable Pending pending; // of device 0
    boolean stop; // of device 0
    final List<ClientFault> faults = new ArrayList<>(); // here, that the first member of a cluster does not know yet

    /** @param members of a cluster, or 1 */
    Meeting(int devices, int members, int clients) {
        rendezvous = new Rendezvous(devices);
        posted = new Variable[devices][];
        ordered = new OrderedAveraging[devices];
        opened = new Device[devices];
        departure = new Phaser(devices);
        weights = new double[clients];
        losses = new double[clients];
        Arrays.fill(losses, Double.NaN);
        for (int i = 0; i < Math.max(devices, members); i++) {
            seconds.add(new EnumMap<>(Phase.class));
        }
    }

    int devices() {
        return posted.length;
    }

    /** Of the slowest device. */
    double seconds(Phase phase) {
        return seconds.stream()
                .mapToDouble(device -> device.getOrDefault(phase, 0.0))
                .max()
                .orElse(0);
    }
}
