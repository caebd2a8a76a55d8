package org.fedcomuon.cluster;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.IntStream;
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
    public Cluster.Answer exchange(Contribution mine) {
        return table.meet(self, mine);
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

    /** The state that the members share. The last to arrive computes the answer. */
    private static final class Table {
        final int members;
        private final OrderedMean mean = new OrderedMean(1);
        private final List<@Nullable Contribution> brought = new ArrayList<>();
        private int waiting;
        private int left;
        private long meetings;
        private Cluster.@Nullable Answer
                answer; // of the last exchange; no member misses it, since the next one needs all of them
        private @Nullable MemberFailedException failure;

        Table(int members) {
            this.members = members;
            brought.addAll(Collections.nCopies(members, null));
        }

        synchronized Cluster.Answer meet(int self, Contribution mine) {
            if (failure != null) {
                throw failure; // and what the others brought may be gone
            }
            brought.set(self, mine);
            long before = meetings;
            if (++waiting == members) {
                waiting = 0;
                settle();
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
            return Objects.requireNonNull(answer);
        }

        private void settle() {
            try {
                answer = mean.of(brought.stream().map(Objects::requireNonNull).toList());
                meetings++;
            } catch (MemberFailedException e) {
                failure = e;
            } catch (RuntimeException e) { // the others must not wait for what will never be
                failure = new MemberFailedException("no means: " + e);
                failure.initCause(e);
            }
            notifyAll();
        }

        synchronized void fail(MemberFailedException why) {
            if (failure == null) {
                failure = why;
            }
            notifyAll();
        }

        synchronized void leave(int self) {
            if (++left == members) {
                mean.close();
            } else {
                fail(new MemberFailedException(self, "it has left early")); // unless there are no more exchanges
            }
        }
    }
}
