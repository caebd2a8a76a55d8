package org.fedcomuon.cluster.mpi;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.fedcomuon.cluster.Cluster;
import org.fedcomuon.cluster.Cluster.MeanBlock;
import org.fedcomuon.cluster.Cluster.MemberStatus;
import org.fedcomuon.cluster.MemberFailedException;
import org.fedcomuon.cluster.StagingBuffers;
import org.fedcomuon.cluster.WireFormat;
import org.fedcomuon.internal.MpiLibrary;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Members are the processes that {@code mpirun} has started. MPI reduces exponents and sums over all of them; they are
 * integers, so its order does not show. Statuses go through process 0.
 *
 * <p>Each message of a status begins with two numbers: what it is, and how long. A member that has failed sends the
 * reason in place of its status, so that all end together, with the message of process 0. A member that fails while
 * means are computed aborts all, because the others wait in MPI.
 *
 * <p>A process that is stopped, or whose host cannot be reached, leaves the others waiting in MPI. They notice beside
 * MPI, by threads of their own over TCP, that it gives no sign of life. One that only computes for long gives them.
 *
 * <p>Not thread-safe, but not bound to one thread: MPI is initialized with no more than that.
 */
public final class MpiCluster implements Cluster {
    private static final Logger LOG = LoggerFactory.getLogger(MpiCluster.class);

    private static final long STATUS = 1;
    private static final long FAILURE = 2;
    private static final long FAREWELL = 3;
    private static final long QUESTION = 4;

    private static final long LABEL_BYTES = 2 * Long.BYTES;

    private static final Duration LEAST_SILENCE = Duration.ofMillis(100);

    /** What processes may take to start, besides the silence that is allowed them later. */
    private static final Duration START = Duration.ofSeconds(30);

    private final MpiLibrary mpi;
    private final MemorySegment label = Arena.ofAuto().allocate(LABEL_BYTES, Long.BYTES);
    private final StagingBuffers memory = new StagingBuffers();
    private long exchangedBytes;
    private boolean meeting; // in the middle of one
    private boolean over; // no member sends anything any more
    private Runnable endSigns = () -> {};

    private MpiCluster(MpiLibrary mpi) {
        this.mpi = mpi;
    }

    /**
     * Joins the other members. From then on until {@link #close}, each process gives signs of life: process 0 hears all
     * others, and they hear process 0.
     *
     * <p>The thread that runs cannot be told that another process is silent: it is in a call of MPI that does not
     * return. So {@code onSilence} is called by another thread, once, and has to end this process, which makes
     * {@code mpirun} end all others: {@link Runtime#halt}, because {@link System#exit} may wait for the thread that
     * runs. If it returns, the members wait on.
     *
     * @param silence after which a process is given up; the signs of life are a tenth of it apart, and at most a second
     * @param onSilence receives the failure, which names the process and its host
     * @throws UnavailableException when there is no Open MPI here, or it did not start this process
     */
    public static MpiCluster join(Duration silence, Consumer<MemberFailedException> onSilence) {
        if (silence.compareTo(LEAST_SILENCE) < 0) {
            throw new IllegalArgumentException(
                    "a silence of %s; at least %s is needed".formatted(silence, LEAST_SILENCE));
        }
        Thread starting = Thread.ofPlatform().daemon().name("mpi-join").start(() -> awaitOthers(silence, onSilence));
        try {
            var cluster = new MpiCluster(MpiLibrary.join());
            cluster.giveSigns(silence, onSilence);
            return cluster;
        } catch (MpiLibrary.Unusable e) {
            throw new UnavailableException(e);
        } finally {
            starting.interrupt();
        }
    }

    private static void awaitOthers(Duration silence, Consumer<MemberFailedException> onSilence) {
        try {
            TimeUnit.NANOSECONDS.sleep(silence.plus(START).toNanos());
            onSilence.accept(new MemberFailedException("not all processes have started and joined within %s"
                    .formatted(SilenceWatch.text(silence.plus(START)))));
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt(); // all have joined
        }
    }

    private void giveSigns(Duration silence, Consumer<MemberFailedException> onSilence) {
        if (mpi.rank() > 0) {
            HeartbeatAddress first = HeartbeatAddress.of(agree(""));
            endSigns = HeartbeatLink.open(mpi.rank(), mpi.host(), first, silence, onSilence)::close;
        } else {
            try {
                HeartbeatHub hub = HeartbeatHub.open(mpi.host(), mpi.isOneHost(), mpi.size(), silence, onSilence);
                endSigns = hub::close;
                agree(hub.address().text());
            } catch (IOException e) {
                String reason = "process 0 cannot listen for signs of life: " + e.getMessage();
                fail(reason);
                throw new UncheckedIOException(reason, e);
            }
        }
        exchangedBytes = 0; // of exchanges
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
    public List<MemberStatus> exchange(MemberStatus mine) {
        requireTogether();
        meeting = true;
        List<MemberStatus> all = mpi.rank() == 0 ? gather(mine) : sendAndHear(mine);
        meeting = false;
        return all;
    }

    private void requireTogether() {
        if (over) {
            throw new IllegalStateException("the members have parted");
        }
    }

    private List<MemberStatus> sendAndHear(MemberStatus mine) {
        sendText(STATUS, WireFormat.bytes(mine));
        return WireFormat.statuses(hear());
    }

    private List<MemberStatus> gather(MemberStatus mine) {
        List<Received> received = receiveAll();
        requireNoFailure(received);
        var all = new ArrayList<MemberStatus>();
        all.add(mine);
        for (Received each : received) {
            if (each instanceof Received.Told(MemberStatus theirs)) {
                all.add(theirs);
            }
        }
        if (all.size() < members()) {
            var failure = new MemberFailedException("a member has not begun when others meet");
            sayFailure(String.valueOf(failure.getMessage()));
            throw failure;
        }
        say(STATUS, WireFormat.bytes(all));
        return all;
    }

    @Override
    public void mean(List<? extends MeanBlock> blocks) {
        requireTogether();
        meeting = true;
        for (MeanBlock block : blocks) {
            MemorySegment exponents = memory.get(0, block.length());
            MemorySegment sums = memory.get(1, (long) Long.BYTES * block.length());
            block.exponents(exponents);
            mpi.max(exponents);
            block.sums(exponents, sums);
            mpi.sum(sums);
            block.finish(exponents, sums);
            exchangedBytes += 2 * (exponents.byteSize() + sums.byteSize()); // to and from
        }
        meeting = false;
    }

    /** Nothing is computed while MPI reduces; so the sums of a block, 512 KiB, stay in the cache between the calls. */
    @Override
    public int blockElements() {
        return 1 << 16;
    }

    @Override
    public long exchangedBytes() {
        return exchangedBytes;
    }

    /** Returns the value of member 0. All members call it at the same time. */
    public String agree(String mine) {
        if (mpi.rank() > 0) {
            sendText(QUESTION, new byte[0]);
            return new String(hear(), StandardCharsets.UTF_8);
        }
        requireNoFailure(receiveAll());
        say(STATUS, mine.getBytes(StandardCharsets.UTF_8));
        return mine;
    }

    /** A message of a member. */
    private sealed interface Received {
        record Told(MemberStatus status) implements Received {}

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
        exchangedBytes += LABEL_BYTES + text.length;
        if (kind == QUESTION) {
            return new Received.Asked();
        }
        return kind == STATUS
                ? new Received.Told(WireFormat.status(text))
                : new Received.Ended(new String(text, StandardCharsets.UTF_8));
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
        exchangedBytes += LABEL_BYTES + text.length;
        if (kind != STATUS) {
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
        exchangedBytes += LABEL_BYTES + text.length;
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
        exchangedBytes += LABEL_BYTES + text.length;
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
            endSigns.run(); // not before, because all of this waits for the others
        }
    }
}
