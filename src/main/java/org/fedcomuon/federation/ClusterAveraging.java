package org.fedcomuon.federation;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.stream.IntStream;
import org.fedcomuon.cluster.Answer;
import org.fedcomuon.cluster.Cluster;
import org.fedcomuon.cluster.Contribution;
import org.fedcomuon.cluster.Facts;
import org.fedcomuon.cluster.Rooms;
import org.fedcomuon.device.Batch;
import org.fedcomuon.device.Buffer;
import org.fedcomuon.method.ClientFault;
import org.fedcomuon.method.Clients;
import org.fedcomuon.method.Phase;
import org.fedcomuon.method.Variable;

/** Means over the members of a {@link Cluster}, each with one device. */
final class ClusterAveraging implements Averaging {
    private final Cluster cluster;
    private final Meeting meeting;
    private final Clients clients;
    private final Watch watch;
    private final String run;
    private final List<Integer> numbers;
    private final Rooms rooms = new Rooms();
    private List<MemorySegment> means = List.of();

    ClusterAveraging(Cluster cluster, Meeting meeting, Clients clients, Watch watch, String run) {
        this.cluster = cluster;
        this.meeting = meeting;
        this.clients = clients;
        this.watch = watch;
        this.run = run;
        numbers = IntStream.range(0, clients.count()).mapToObj(clients::number).toList();
    }

    @Override
    public void meet(Variable... posted) {
        var values = new ArrayList<Contribution.Values>();
        for (int i = 0; i < posted.length; i++) {
            values.add(new Contribution.Values(posted[i].name(), onHost(i, posted[i])));
        }
        Answer answer = cluster.meet(new Contribution(
                facts(),
                numbers,
                numbers.stream().map(client -> meeting.weights[client]).toList(),
                values));
        for (int client = 0; client < meeting.weights.length; client++) {
            meeting.weights[client] = answer.weights().get(client);
        }
        for (int member = 0; member < cluster.members(); member++) {
            Facts facts = answer.facts().get(member);
            meeting.seconds.get(member).putAll(facts.seconds());
            if (cluster.self() == 0 && member > 0) {
                facts.faults().forEach(watch::fault);
            }
        }
        meeting.stop = answer.facts().getFirst().stop();
        means = answer.means();
    }

    private Facts facts() {
        var seconds = new EnumMap<Phase, Double>(Phase.class);
        for (Phase phase : Phase.values()) {
            seconds.put(phase, clients.seconds(phase));
        }
        List<ClientFault> faults = List.copyOf(meeting.faults);
        meeting.faults.clear();
        return new Facts(run, clients.step(), watch.isStopping(), seconds, faults);
    }

    private MemorySegment onHost(int i, Variable variable) {
        Buffer buffer = variable.buffer();
        if (buffer.device().isHost()) {
            return buffer.segment();
        }
        MemorySegment room = rooms.get(i, buffer.length() * Float.BYTES);
        buffer.copyOut(0, room);
        return room;
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
        return "%s, %d members".formatted(ExchangeKind.ORDERED, cluster.members());
    }

    @Override
    public void drain() {}

    @Override
    public void disband() {}

    @Override
    public void close() {}
}
