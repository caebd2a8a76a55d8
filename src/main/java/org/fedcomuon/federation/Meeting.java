package org.fedcomuon.federation;

import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import org.fedcomuon.device.Buffer;
import org.fedcomuon.method.Phase;
import org.fedcomuon.method.Variable;
import org.jspecify.annotations.Nullable;

/** What the devices lay on the table when they meet. Written before a rendezvous, read after it. */
final class Meeting {
    final Rendezvous rendezvous;
    final Variable[][] posted; // by device
    final Buffer[] parts; // by device: the stretch of the mean that it has worked out
    final double[] weights; // by client; 0 for one that does not take part
    final List<Map<Phase, Double>> seconds = new ArrayList<>(); // by device
    CheckpointStore.@Nullable Pending pending; // of device 0
    boolean stop; // of device 0

    Meeting(int devices, int clients) {
        rendezvous = new Rendezvous(devices);
        posted = new Variable[devices][];
        parts = new Buffer[devices];
        weights = new double[clients];
        for (int i = 0; i < devices; i++) {
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
