package org.fedcomuon.cluster.spark;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.util.SignalUtils;
import org.fedcomuon.cluster.Cluster;
import org.fedcomuon.cluster.Contribution;
import org.fedcomuon.cluster.MemberFailedException;
import org.fedcomuon.federation.Evaluation;
import org.jspecify.annotations.Nullable;

/**
 * A member of a run in an executor: a program with its thread. The program uses it as its cluster; the tasks of Spark's
 * jobs find it in the process, where an earlier task has put it.
 */
final class Member implements Cluster {
    /** The members in this executor, by run and number. Spark has no other place for state that tasks share. */
    private static final Map<String, Member> MEMBERS = new ConcurrentHashMap<>();

    static {
        // Ctrl-C in a terminal also reaches executors on the same machine; only the driver stops members.
        SignalUtils.register("INT", () -> true);
    }

    private final RunSpec run;
    private final int self;
    private final String host;
    private final boolean rejoining;

    // The following fields are guarded by this.
    private final ArrayList<String> lines = new ArrayList<>();
    private final ArrayList<Evaluation> evaluations = new ArrayList<>();
    private int received; // replies since the run began
    private @Nullable MemberMessage message; // for the next exchange, or the last one
    private Cluster.@Nullable Answer answer; // received, but not yet taken by the program
    private @Nullable String abandoned; // the reason why there will be no more replies

    private Member(RunSpec run, int self, String host, int received, boolean rejoining) {
        this.run = run;
        this.self = self;
        this.host = host;
        this.received = received;
        this.rejoining = rejoining;
    }

    /**
     * Returns the member that is in this executor, or else a new one that begins at {@code start}.
     *
     * @param exchanges the number of replies so far
     */
    static Member of(RunSpec run, int self, String host, StartPoint start, int exchanges) {
        MEMBERS.values().removeIf(member -> member.endsIfLeftBehind(run, start));
        return MEMBERS.computeIfAbsent(run.id() + '/' + self, _ -> {
            var member = new Member(run, self, host, start.exchange(), exchanges > 0);
            member.begin(start);
            return member;
        });
    }

    /** Ends a member whose partition has moved to another executor, if the replies that it lacks have been dropped. */
    private boolean endsIfLeftBehind(RunSpec now, StartPoint start) {
        boolean leftBehind = run.id().equals(now.id()) && received() < start.exchange();
        if (leftBehind) {
            abandon("another executor has its clients now");
        }
        return leftBehind;
    }

    /** Ends all members of a run in this executor at their next wait for a reply. */
    static void endAll(RunSpec run, String reason) {
        MEMBERS.entrySet().removeIf(entry -> {
            boolean ends = entry.getKey().startsWith(run.id() + '/');
            if (ends) {
                entry.getValue().abandon(reason);
            }
            return ends;
        });
    }

    private void begin(StartPoint start) {
        if (rejoining) {
            lines.add("member %d starts again on %s, from %s"
                    .formatted(self, host, start.step() == 0 ? "the beginning" : "step " + start.step()));
        }
        Thread.ofPlatform().daemon().name("member-" + self).start(() -> {
            try {
                run.program().run(this, start);
                send(MemberMessage.done(self, host));
            } catch (Throwable e) { // reported by the driver
                send(MemberMessage.failed(self, host, e));
            }
        });
    }

    /**
     * Passes on the replies that the program has not received yet, and returns its message for the exchange after them.
     *
     * @param first the number of the first of these replies
     */
    synchronized MemberMessage next(int first, List<Broadcast<Reply>> replies) throws InterruptedException {
        while (true) {
            while (message == null) {
                wait();
            }
            if (message.kind() != MemberMessage.Kind.CONTRIBUTION || received == first + replies.size()) {
                if (!lines.isEmpty() || !evaluations.isEmpty()) {
                    message = message.with(lines, evaluations);
                    lines.clear();
                    evaluations.clear();
                }
                return message; // kept for the case that the result of this task is lost and Spark repeats the task
            }
            answer = replies.get(received - first).value().answer();
            received++;
            message = null;
            notifyAll();
        }
    }

    private synchronized int received() {
        return received;
    }

    /** Reports a line to the driver, with the next message. */
    synchronized void report(String line) {
        lines.add(line);
    }

    /** Reports an evaluation to the driver, with the next message. */
    synchronized void report(Evaluation evaluation) {
        evaluations.add(evaluation);
    }

    private synchronized void send(MemberMessage next) {
        message = next;
        notifyAll();
    }

    private synchronized void abandon(String reason) {
        abandoned = reason;
        notifyAll();
    }

    @Override
    public int members() {
        return run.members();
    }

    @Override
    public int self() {
        return self;
    }

    @Override
    public boolean isRejoining() {
        return rejoining;
    }

    @Override
    public synchronized Cluster.Answer exchange(Contribution mine) {
        send(MemberMessage.of(self, host, mine));
        while (answer == null && abandoned == null) {
            try {
                wait();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                throw new MemberFailedException(self, "interrupted");
            }
        }
        Cluster.Answer taken = answer;
        if (taken == null) {
            throw new MemberFailedException(String.valueOf(abandoned));
        }
        answer = null;
        return taken;
    }

    /** Does nothing: the program ends by an exception, which becomes the last message. */
    @Override
    public void fail(String reason) {}

    @Override
    public void close() {}
}
