package org.fedcomuon.cluster;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.IntStream;
import org.fedcomuon.cluster.Cluster.MeanBlock;
import org.fedcomuon.cluster.Cluster.MemberStatus;
import org.jspecify.annotations.Nullable;

/**
 * Members that are threads of one process. Serves as the reference for other clusters, and to try a federation over
 * members without an engine.
 *
 * <p>For example: {@snippet file="org/fedcomuon/SnippetsIT.java" region="cluster"}
 *
 * <p>Not thread-safe, one thread per member; only {@link #fail} and {@link #close} may be called by any thread.
 */
public final class InProcessCluster implements Cluster {
    private final Table table;
    private final int self;
    private final AtomicBoolean closed = new AtomicBoolean();
    private final StagingBuffers memory = new StagingBuffers();
    private long bytes;

    private InProcessCluster(Table table, int self) {
        this.table = table;
        this.self = self;
    }

    /** Creates the members, each for a thread of its own. The caller closes all of them. */
    public static List<Cluster> of(int members) {
        var table = new Table(members);
        return IntStream.range(0, members)
                .mapToObj(self -> (Cluster) new InProcessCluster(table, self))
                .toList();
    }

    @Override
    public int members() {
        return table.members;
    }

    @Override
    public int self() {
        return self;
    }

    @Override
    public List<MemberStatus> exchange(MemberStatus mine) {
        byte[] sent = WireFormat.bytes(mine);
        bytes += sent.length;
        var all = new ArrayList<MemberStatus>();
        for (Object received : table.meet(self, sent)) {
            var text = (byte[]) received;
            all.add(WireFormat.status(text));
            bytes += text.length;
        }
        return all;
    }

    /** Every member reads what all have computed and reduces it by itself, where others do the work of two. */
    @Override
    public void mean(List<? extends MeanBlock> blocks) {
        for (MeanBlock block : blocks) {
            int length = block.length();
            long sumBytes = (long) Long.BYTES * length;
            MemorySegment ownExponents = memory.get(0, length);
            block.exponents(ownExponents);
            MemorySegment maxima = memory.get(1, length).fill((byte) 0);
            for (Object theirs : table.meet(self, ownExponents)) {
                maximum((MemorySegment) theirs, maxima, length);
            }
            MemorySegment ownSums = memory.get(2, sumBytes);
            block.sums(maxima, ownSums);
            MemorySegment total = memory.get(3, sumBytes).fill((byte) 0);
            for (Object theirs : table.meet(self, ownSums)) {
                add((MemorySegment) theirs, total, length);
            }
            block.finish(maxima, total);
            bytes += 2 * (length + sumBytes); // to and from
        }
    }

    private static void maximum(MemorySegment x, MemorySegment y, int length) {
        for (int i = 0; i < length; i++) {
            int a = x.get(ValueLayout.JAVA_BYTE, i) & 0xff;
            int b = y.get(ValueLayout.JAVA_BYTE, i) & 0xff;
            y.set(ValueLayout.JAVA_BYTE, i, (byte) Math.max(a, b));
        }
    }

    private static void add(MemorySegment x, MemorySegment y, int length) {
        for (int i = 0; i < length; i++) {
            y.setAtIndex(
                    ValueLayout.JAVA_LONG,
                    i,
                    x.getAtIndex(ValueLayout.JAVA_LONG, i) + y.getAtIndex(ValueLayout.JAVA_LONG, i));
        }
    }

    @Override
    public long exchangedBytes() {
        return bytes;
    }

    @Override
    public void fail(String reason) {
        table.fail(new MemberFailedException(self, reason));
    }

    /** An exchange of another member after this one has left fails. Closing twice does nothing. */
    @Override
    public void close() {
        if (closed.compareAndSet(false, true)) {
            table.leave(self);
        }
    }

    /** Where the members meet: each brings something, and all get what everybody has brought. */
    private static final class Table {
        final int members;
        private final List<@Nullable Object> brought = new ArrayList<>();
        private int waiting;
        private int left;
        private long meetings;
        private List<Object> met = List.of(); // by the last meeting; no member misses it, as the next one needs all
        private @Nullable MemberFailedException failure;

        Table(int members) {
            this.members = members;
            brought.addAll(Collections.nCopies(members, null));
        }

        synchronized List<Object> meet(int self, Object mine) {
            if (failure != null) {
                throw failure; // and what the others brought may be gone
            }
            brought.set(self, mine);
            long before = meetings;
            if (++waiting == members) {
                waiting = 0;
                meetings++;
                met = brought.stream().map(Objects::requireNonNull).toList();
                notifyAll();
            }
            while (meetings == before && failure == null) {
                try {
                    wait();
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                    fail(new MemberFailedException(self, "interrupted"));
                }
            }
            if (failure != null && meetings == before) {
                throw failure;
            }
            return met;
        }

        synchronized void fail(MemberFailedException why) {
            if (failure == null) {
                failure = why;
            }
            notifyAll();
        }

        synchronized void leave(int self) {
            if (++left < members) {
                fail(new MemberFailedException(self, "it has left early")); // unless there are no more exchanges
            }
        }
    }
}
