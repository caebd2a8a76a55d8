package org.fedcomuon.cluster.mpi;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.fedcomuon.cluster.Cluster;
import org.fedcomuon.cluster.Contribution;
import org.fedcomuon.cluster.MemberFailedException;
import org.fedcomuon.cluster.OrderedMean;
import org.fedcomuon.cluster.StagingBuffers;
import org.fedcomuon.cluster.WireFormat;
import org.fedcomuon.internal.MpiLibrary;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Members are the processes that {@code mpirun} has started, and process 0 computes the means: it receives every
 * client's values, sums them in client order, and broadcasts. MPI's own sums would depend on the number of processes.
 *
 * <p>Each message begins with two numbers: what it is, and how long. A member that has failed sends the reason in place
 * of its contribution, so that all end together, with the message of process 0.
 *
 * <p>Not thread-safe, but not bound to one thread: MPI is initialized with no more than that.
 */
public final class MpiCluster implements Cluster {
    private static final Logger LOG = LoggerFactory.getLogger(MpiCluster.class);

    private static final long CONTRIBUTION = 1;
    private static final long FAILURE = 2;
    private static final long FAREWELL = 3;
    private static final long QUESTION = 4;

    private static final long PIECE = 1 << 26; // bytes; MPI counts in int

    private final MpiLibrary mpi;
    private final OrderedMean mean;
    private final MemorySegment label = Arena.ofAuto().allocate(2 * Long.BYTES, Long.BYTES);
    private final StagingBuffers staging = new StagingBuffers();
    private boolean meeting; // in the middle of one
    private boolean over; // no member sends anything any more

    private MpiCluster(MpiLibrary mpi, int threads) {
        this.mpi = mpi;
        mean = new OrderedMean(threads);
    }

    /**
     * Joins the other members.
     *
     * @param threads the number of threads that sum, in process 0
     * @throws UnavailableException when there is no Open MPI here, or it did not start this process
     */
    public static MpiCluster join(int threads) {
        try {
            return new MpiCluster(MpiLibrary.join(), threads);
        } catch (MpiLibrary.Unusable e) {
            throw new UnavailableException(e);
        }
    }

    /** Thrown when Open MPI cannot be used; the message has the reason and a remedy. */
    public static final class UnavailableException extends RuntimeException {
        private static final long serialVersionUID = 1L;

        private UnavailableException(MpiLibrary.Unusable cause) {
            super(cause.getMessage(), cause);
        }
    }

    @Override
    public int members() {
        return mpi.size();
    }

    @Override
    public int self() {
        return mpi.rank();
    }

    @Override
    public Cluster.Answer exchange(Contribution mine) {
        if (over) {
            throw new IllegalStateException("the members have parted");
        }
        meeting = true;
        Cluster.Answer answer = mpi.rank() == 0 ? receiveAndAnswer(mine) : sendAndHear(mine);
        meeting = false;
        return answer;
    }

    /** Returns the value of member 0. All members call it at the same time. */
    public String agree(String mine) {
        if (mpi.rank() > 0) {
            sendText(QUESTION, new byte[0]);
            return new String(hear(), StandardCharsets.UTF_8);
        }
        requireNoFailure(receiveAll());
        say(CONTRIBUTION, mine.getBytes(StandardCharsets.UTF_8));
        return mine;
    }

    private Cluster.Answer sendAndHear(Contribution mine) {
        sendText(CONTRIBUTION, WireFormat.header(mine));
        for (Contribution.Values values : mine.values()) {
            forPieces(values.rows(), piece -> mpi.send(piece, 0));
        }
        Cluster.Answer said = WireFormat.answer(hear());
        var means = new ArrayList<MemorySegment>();
        for (int i = 0; i < mine.values().size(); i++) {
            MemorySegment into = staging.get(i, mine.length(i) * Float.BYTES);
            forPieces(into, mpi::broadcast);
            means.add(into);
        }
        return new Cluster.Answer(said.statuses(), said.weights(), means);
    }

    private Cluster.Answer receiveAndAnswer(Contribution mine) {
        List<Received> received = receiveAll();
        requireNoFailure(received);
        var all = new ArrayList<Contribution>();
        all.add(mine);
        for (Received each : received) {
            if (each instanceof Received.Brought(Contribution theirs)) {
                all.add(theirs);
            }
        }
        Cluster.Answer answer;
        try {
            if (all.size() < members()) {
                throw new MemberFailedException("a member has not begun when others meet");
            }
            answer = mean.of(all);
        } catch (MemberFailedException e) {
            sayFailure(String.valueOf(e.getMessage()));
            throw e;
        }
        say(CONTRIBUTION, WireFormat.answer(answer));
        for (MemorySegment value : answer.means()) {
            forPieces(value, mpi::broadcast);
        }
        return answer;
    }

    /** A message of a member. */
    private sealed interface Received {
        record Brought(Contribution contribution) implements Received {}

        record Asked() implements Received {}

        /** The member has ended, successfully if there is no reason. */
        record Ended(String reason) implements Received {}
    }

    /** Receives from all others, even after a failure: a member whose message is not received would wait for ever. */
    private List<Received> receiveAll() {
        var all = new ArrayList<Received>();
        for (int member = 1; member < mpi.size(); member++) {
            all.add(receive(member));
        }
        return all;
    }

    private void requireNoFailure(List<Received> received) {
        for (int i = 0; i < received.size(); i++) {
            if (received.get(i) instanceof Received.Ended(String reason)) {
                var failure = new MemberFailedException(i + 1, reason.isEmpty() ? "it has left early" : reason);
                sayFailure(String.valueOf(failure.getMessage()));
                throw failure;
            }
        }
    }

    private Received receive(int member) {
        mpi.receive(label, member);
        long kind = label.getAtIndex(ValueLayout.JAVA_LONG, 0);
        var text = new byte[Math.toIntExact(label.getAtIndex(ValueLayout.JAVA_LONG, 1))];
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment bytes = arena.allocate(Math.max(1, text.length));
            mpi.receive(bytes.asSlice(0, text.length), member);
            MemorySegment.copy(bytes, ValueLayout.JAVA_BYTE, 0, text, 0, text.length);
        }
        if (kind == QUESTION) {
            return new Received.Asked();
        }
        if (kind != CONTRIBUTION) {
            return new Received.Ended(new String(text, StandardCharsets.UTF_8));
        }
        WireFormat.Header header = WireFormat.header(text);
        var values = new ArrayList<Contribution.Values>();
        for (int i = 0; i < header.names().size(); i++) {
            long size = header.lengths().get(i) * Float.BYTES * header.clients().size();
            MemorySegment into = staging.get((member - 1) * header.names().size() + i, size);
            forPieces(into, piece -> mpi.receive(piece, member));
            values.add(new Contribution.Values(header.names().get(i), into));
        }
        return new Received.Brought(new Contribution(header.status(), header.clients(), header.weights(), values));
    }

    /** Receives the broadcast of process 0. */
    private byte[] hear() {
        mpi.broadcast(label);
        long kind = label.getAtIndex(ValueLayout.JAVA_LONG, 0);
        var text = new byte[Math.toIntExact(label.getAtIndex(ValueLayout.JAVA_LONG, 1))];
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment bytes = arena.allocate(Math.max(1, text.length));
            mpi.broadcast(bytes.asSlice(0, text.length));
            MemorySegment.copy(bytes, ValueLayout.JAVA_BYTE, 0, text, 0, text.length);
        }
        if (kind != CONTRIBUTION) {
            meeting = false;
            over = true;
            if (kind == FAILURE) {
                throw new MemberFailedException(new String(text, StandardCharsets.UTF_8));
            }
        }
        return text;
    }

    private void say(long kind, byte[] text) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment bytes = arena.allocateFrom(ValueLayout.JAVA_BYTE, text);
            label.setAtIndex(ValueLayout.JAVA_LONG, 0, kind);
            label.setAtIndex(ValueLayout.JAVA_LONG, 1, text.length);
            mpi.broadcast(label);
            mpi.broadcast(bytes);
        }
    }

    private void sayFailure(String reason) {
        say(FAILURE, reason.getBytes(StandardCharsets.UTF_8));
        meeting = false;
        over = true;
    }

    private void sendText(long kind, byte[] text) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment bytes = arena.allocateFrom(ValueLayout.JAVA_BYTE, text);
            label.setAtIndex(ValueLayout.JAVA_LONG, 0, kind);
            label.setAtIndex(ValueLayout.JAVA_LONG, 1, text.length);
            mpi.send(label, 0);
            mpi.send(bytes, 0);
        }
    }

    private interface Piece {
        void accept(MemorySegment piece);
    }

    private static void forPieces(MemorySegment all, Piece body) {
        for (long at = 0; at < all.byteSize(); at += PIECE) {
            body.accept(all.asSlice(at, Math.min(PIECE, all.byteSize() - at)));
        }
    }

    @Override
    public void fail(String reason) {
        if (over) {
            return;
        }
        try {
            if (meeting) {
                LOG.error("{}; all members end", reason);
                mpi.abort(1); // the other members cannot read another message before the end of this one
            }
            part(FAILURE, reason);
        } catch (RuntimeException e) {
            LOG.error("the other members cannot be informed of the failure \"{}\": {}", reason, e.getMessage());
        }
    }

    /** The last message of all members. */
    private void part(long kind, String reason) {
        if (mpi.rank() > 0) {
            sendText(kind, reason.getBytes(StandardCharsets.UTF_8));
            try {
                hear();
            } catch (MemberFailedException e) {
                LOG.debug("all end: {}", e.getMessage()); // reported by process 0
            }
            return;
        }
        String failed = kind == FAILURE ? reason : "";
        for (Received each : receiveAll()) {
            String theirs = each instanceof Received.Ended(String why) ? why : "member 0 has left early";
            failed = failed.isEmpty() ? theirs : failed;
        }
        if (failed.isEmpty()) {
            say(FAREWELL, new byte[0]);
            over = true;
        } else {
            sayFailure(failed);
        }
    }

    @Override
    public void close() {
        try {
            if (!over) {
                part(FAREWELL, "");
            }
            mpi.leave();
        } finally {
            mean.close();
        }
    }
}
