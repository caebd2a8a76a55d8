package org.fedcomuon.federation;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.stream.IntStream;
import org.fedcomuon.cluster.Cluster;
import org.fedcomuon.cluster.Contribution;
import org.fedcomuon.cluster.StagingBuffers;
import org.fedcomuon.device.Batch;
import org.fedcomuon.device.Buffer;
import org.fedcomuon.method.ClientFault;
import org.fedcomuon.method.Clients;
import org.fedcomuon.method.Variable;

/** Means over the members of a {@link Cluster}, each with one device. */
final class ClusterAveraging implements Averaging {
    private final Cluster cluster;
    private final SharedState shared;
    private final Clients clients;
    private final RunMonitor monitor;
    private final String run;
    private final List<Integer> numbers;
    private final StagingBuffers staging = new StagingBuffers();
    private List<MemorySegment> means = List.of();

    ClusterAveraging(Cluster cluster, SharedState shared, Clients clients, RunMonitor monitor, String run) {
        this.cluster = cluster;
        this.shared = shared;
        this.clients = clients;
        this.monitor = monitor;
        this.run = run;
        numbers = IntStream.range(0, clients.count()).mapToObj(clients::number).toList();
    }

    @Override
    public void post(Variable... posted) {
        var values = new ArrayList<Contribution.Values>();
        for (int i = 0; i < posted.length; i++) {
            values.add(new Contribution.Values(posted[i].name(), onHost(i, posted[i])));
        }
        Cluster.Answer answer = cluster.exchange(new Contribution(
                status(),
                numbers,
                numbers.stream().map(client -> shared.weights[client]).toList(),
                values));
        for (int client = 0; client < shared.weights.length; client++) {
            shared.weights[client] = answer.weights().get(client);
        }
        for (int member = 0; member < cluster.members(); member++) {
            Cluster.MemberStatus status = answer.statuses().get(member);
            shared.seconds.get(member).putAll(status.seconds());
            if (cluster.self() == 0 && member > 0) {
                status.faults().forEach(monitor::fault);
            }
        }
        shared.stop = answer.statuses().getFirst().stop();
        means = answer.means();
    }

    private Cluster.MemberStatus status() {
        var seconds = new EnumMap<Clients.Phase, Double>(Clients.Phase.class);
        for (Clients.Phase phase : Clients.Phase.values()) {
            seconds.put(phase, clients.seconds(phase));
        }
        List<ClientFault> faults = List.copyOf(shared.faults);
        shared.faults.clear();
        return new Cluster.MemberStatus(run, clients.step(), monitor.isStopping(), seconds, faults);
    }

    private MemorySegment onHost(int i, Variable variable) {
        Buffer buffer = variable.buffer();
        if (buffer.device().isHost()) {
            return buffer.segment();
        }
        MemorySegment copy = staging.get(i, buffer.length() * Float.BYTES);
        buffer.copyOut(0, copy);
        return copy;
    }

    @Override
    public void average(int i, Variable variable) {
        long length = variable.length();
        Buffer values = variable.buffer();
        values.copyIn(0, means.get(i));
        int others = clients.count() - 1;
        if (others > 0) {
            clients.device()
                    .ema(
                            1,
                            new Batch(values, 0, others, length, others == 1 ? length : 0),
                            new Batch(values, length, others, length, length));
        }
    }

    @Override
    public String title() {
        return "%s, %d members".formatted(Federation.ExchangeKind.ORDERED, cluster.members());
    }

    @Override
    public void drain() {}

    @Override
    public void disband() {}

    @Override
    public void close() {}
}
