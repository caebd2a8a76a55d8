package org.fedcomuon.federation;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.fedcomuon.cluster.Cluster;
import org.fedcomuon.cluster.Cluster.MeanBlock;
import org.fedcomuon.cluster.Cluster.MemberStatus;
import org.fedcomuon.device.Batch;
import org.fedcomuon.device.Buffer;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.ElementType;
import org.fedcomuon.method.ClientFault;
import org.fedcomuon.method.Clients;
import org.fedcomuon.method.Variable;

/** Means over the members of a {@link Cluster}, each with one device; the engine reduces their exponents and sums. */
final class ClusterAveraging implements Averaging {
    private final Cluster cluster;
    private final SharedState shared;
    private final Clients clients;
    private final Device device;
    private final RunMonitor monitor;
    private final String run;
    private final long mostElements;
    private final HostMemory memory;

    /** @param mostElements of a block; 0 to choose */
    ClusterAveraging(
            Cluster cluster, SharedState shared, Clients clients, RunMonitor monitor, String run, long mostElements) {
        this.cluster = cluster;
        this.shared = shared;
        this.clients = clients;
        this.device = clients.device();
        this.monitor = monitor;
        this.run = run;
        this.mostElements = mostElements > 0 ? mostElements : cluster.blockElements();
        memory = new HostMemory(device);
    }

    @Override
    public void post(List<Variable> posted, double[] weights) {
        memory.grow(Section.longest(Section.of(posted, mostElements))); // before others rely on this member
        List<MemberStatus> statuses = cluster.exchange(status(posted));
        MemberStatus.requireSame(statuses);
        for (int member = 0; member < cluster.members(); member++) {
            MemberStatus status = statuses.get(member);
            shared.dropped.set(member, status.dropped());
            shared.seconds.get(member).putAll(status.seconds());
            if (cluster.self() == 0 && member > 0) {
                status.faults().forEach(monitor::fault);
            }
        }
        shared.stop = statuses.getFirst().stop();
    }

    private MemberStatus status(List<Variable> posted) {
        var seconds = new EnumMap<Clients.Phase, Double>(Clients.Phase.class);
        for (Clients.Phase phase : Clients.Phase.values()) {
            seconds.put(phase, clients.seconds(phase));
        }
        List<ClientFault> faults = List.copyOf(shared.faults);
        shared.faults.clear();
        return new MemberStatus(
                run,
                clients.step(),
                monitor.isStopping(),
                posted.stream()
                        .map(variable -> new MemberStatus.Posted(variable.name(), variable.length()))
                        .toList(),
                shared.dropped.getFirst(), // of this device
                seconds,
                faults);
    }

    @Override
    public void average(List<Variable> posted, double[] weights, RoundWeights round) {
        var blocks = new ArrayList<MeanBlock>();
        for (Section section : Section.of(posted, mostElements)) {
            blocks.add(new SectionBlock(section, weights, round.terms(), round.total()));
        }
        cluster.mean(blocks);
    }

    /** A section of a variable, as an engine sees it. */
    private final class SectionBlock implements MeanBlock {
        private final Section section;
        private final double[] weights;
        private final long terms;
        private final double total;

        SectionBlock(Section section, double[] weights, long terms, double total) {
            this.section = section;
            this.weights = weights;
            this.terms = terms;
            this.total = total;
        }

        @Override
        public int length() {
            return Math.toIntExact(section.count());
        }

        @Override
        public long terms() {
            return terms;
        }

        @Override
        public double total() {
            return total;
        }

        @Override
        public void exponents(MemorySegment into) {
            Batch own = memory.exponents(into, length());
            device.meanExponents(section.all(), weights, own);
            memory.copyOut(own, into);
        }

        @Override
        public void sums(MemorySegment exponents, MemorySegment into) {
            Batch maxima = memory.exponents(exponents, length());
            memory.copyIn(maxima, exponents);
            Batch own = memory.sums(into, length());
            device.meanSums(section.all(), weights, terms, maxima, own);
            memory.copyOut(own, into);
        }

        @Override
        public void finish(MemorySegment exponents, MemorySegment sums) {
            Batch maxima = memory.exponents(exponents, length());
            memory.copyIn(maxima, exponents);
            Batch all = memory.sums(sums, length());
            memory.copyIn(all, sums);
            device.finishMean(List.of(all), maxima, terms, total, section.each());
        }

        @Override
        public void receive(MemorySegment mean) {
            section.variable().buffer().copyIn(section.at(), mean);
            section.spread(device);
        }
    }

    /**
     * Brings an engine's memory to a device. A CPU works in native memory of the engine itself, if it is aligned; from
     * and to other memory, and on a GPU, values are copied.
     */
    private static final class HostMemory implements AutoCloseable {
        /** More than any engine uses in turns. */
        private static final int VIEWS = 64;

        /** Whatever the type of the elements. */
        private static final long ALIGNMENT = Long.BYTES;

        private final Device device;
        private final GrowingBuffer exponents;
        private final GrowingBuffer sums;
        private final Map<Place, View> views = new LinkedHashMap<>();

        private record Place(long address, long bytes, ElementType type) {}

        /** Keeps the memory alive. */
        private record View(Buffer buffer, MemorySegment memory) {}

        HostMemory(Device device) {
            this.device = device;
            exponents = new GrowingBuffer(device, "exponents for a cluster", ElementType.UINT8);
            sums = new GrowingBuffer(device, "sums for a cluster", ElementType.INT64);
        }

        /** Makes room for blocks of so many elements, if they are copied in any case. */
        void grow(long longest) {
            if (!device.isHost()) {
                exponents.grow(longest);
                sums.grow(longest);
            }
        }

        Batch exponents(MemorySegment engines, int count) {
            return vector(engines, count, ElementType.UINT8, exponents);
        }

        Batch sums(MemorySegment engines, int count) {
            return vector(engines, count, ElementType.INT64, sums);
        }

        private Batch vector(MemorySegment engines, int count, ElementType type, GrowingBuffer own) {
            if (!isUsedInPlace(engines)) {
                own.grow(count);
                return own.vector(0, count);
            }
            var place = new Place(engines.address(), engines.byteSize(), type);
            View view = views.get(place);
            if (view == null) {
                if (views.size() == VIEWS) {
                    closeViews();
                }
                view = new View(device.view("memory of a cluster", type, engines), engines);
                views.put(place, view);
            }
            return new Batch(view.buffer(), 0, 1, count, count);
        }

        private boolean isUsedInPlace(MemorySegment engines) {
            return device.isHost() && engines.isNative() && engines.address() % ALIGNMENT == 0;
        }

        void copyOut(Batch from, MemorySegment engines) {
            if (!isUsedInPlace(engines)) {
                from.buffer().copyOut(from.offset(), bytesOf(from, engines));
            }
        }

        void copyIn(Batch to, MemorySegment engines) {
            if (!isUsedInPlace(engines)) {
                to.buffer().copyIn(to.offset(), bytesOf(to, engines));
            }
        }

        private static MemorySegment bytesOf(Batch vector, MemorySegment engines) {
            return engines.asSlice(0, vector.length() * vector.buffer().type().bytes());
        }

        private void closeViews() {
            views.values().forEach(view -> view.buffer().close());
            views.clear();
        }

        @Override
        public void close() {
            closeViews();
            exponents.close();
            sums.close();
        }
    }

    @Override
    public String title() {
        return "%d members".formatted(cluster.members());
    }

    @Override
    public long exchangedBytes() {
        return cluster.exchangedBytes();
    }

    @Override
    public void drain() {}

    @Override
    public void disband() {}

    @Override
    public void close() {
        memory.close();
    }
}
