package org.fedcomuon.cluster.spark;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.util.SignalUtils;
import org.fedcomuon.cluster.Answer;
import org.fedcomuon.cluster.Cluster;
import org.fedcomuon.cluster.Contribution;
import org.fedcomuon.cluster.MemberFailedException;
import org.fedcomuon.federation.Evaluation;
import org.jspecify.annotations.Nullable;

/**
 * A program in an executor, with its thread. To the program it is the cluster, to the tasks of Spark's jobs it is the
 * member: they find it where the task before has left it, in this process.
 */
final class Member implements Cluster {
    /** Of this executor, by run and number. Spark offers tasks no other place to find what an earlier one left. */
    private static final Map<String, Member> HERE = new ConcurrentHashMap<>();

    static {
        // A terminal's Ctrl-C reaches executors on its machine too; it is the driver who tells members to stop.
        SignalUtils.register("INT", () -> true);
    }

    private final Order order;
    private final int self;
    private final String host;
    private final boolean rejoining;

    // From here on guarded by this.
    private final ArrayList<String> lines = new ArrayList<>();
    private final ArrayList<ToldEvaluation> evaluations = new ArrayList<>();
    private int heard; // answers since the run began
    private @Nullable Said said; // what it brings to the next meeting, or its last word
    private @Nullable Answer answer; // that it has not taken yet
    private @Nullable String abandoned; // why nobody will answer any more

    private Member(Order order, int self, String host, int heard, boolean rejoining) {
        this.order = order;
        this.self = self;
        this.host = host;
        this.heard = heard;
        this.rejoining = rejoining;
    }

    /**
     * The one that is here, or one that begins at {@code start}.
     *
     * @param meetings that have been answered so far
     */
    static Member of(Order order, int self, String host, Start start, int meetings) {
        HERE.values().removeIf(member -> member.isLeftBehind(order, start));
        return HERE.computeIfAbsent(order.id() + '/' + self, _ -> {
            var member = new Member(order, self, host, start.meeting(), meetings > 0);
            member.begin(start);
            return member;
        });
    }

    /** Whether another executor has had its partition for so long that it cannot catch up any more; then it ends. */
    private boolean isLeftBehind(Order now, Start start) {
        boolean leftBehind = order.id().equals(now.id()) && heard() < start.meeting();
        if (leftBehind) {
            abandon("another executor has its clients now");
        }
        return leftBehind;
    }

    /** Ends all members of a run that are here; they are waiting for an answer, or will be. */
    static void endAll(Order order, String reason) {
        HERE.entrySet().removeIf(entry -> {
            boolean ends = entry.getKey().startsWith(order.id() + '/');
            if (ends) {
                entry.getValue().abandon(reason);
            }
            return ends;
        });
    }

    private void begin(Start start) {
        if (rejoining) {
            lines.add("member %d starts again on %s, from %s"
                    .formatted(self, host, start.step() == 0 ? "the beginning" : "step " + start.step()));
        }
        Thread.ofPlatform().daemon().name("member-" + self).start(() -> {
            try {
                order.program().run(this, start);
                say(Said.isDone(self, host));
            } catch (Throwable e) { // for the driver to report
                say(Said.failed(self, host, e));
            }
        });
    }

    /**
     * Hears the answers that it has not heard yet, and says what it brings to the meeting after them.
     *
     * @param first which answer is the first of these
     */
    synchronized Said next(int first, List<Broadcast<Heard>> answers) throws InterruptedException {
        while (true) {
            while (said == null) {
                wait();
            }
            if (said.kind() != Said.Kind.MEETING || heard == first + answers.size()) {
                if (!lines.isEmpty() || !evaluations.isEmpty()) {
                    said = said.telling(lines, evaluations);
                    lines.clear();
                    evaluations.clear();
                }
                return said; // kept, in case that this task is lost on its way home and comes again
            }
            answer = answers.get(heard - first).value().answer();
            heard++;
            said = null;
            notifyAll();
        }
    }

    private synchronized int heard() {
        return heard;
    }

    /** Says something to whoever watches the run, at the next meeting. */
    synchronized void tell(String line) {
        lines.add(line);
    }

    synchronized void tell(Evaluation evaluation) {
        evaluations.add(ToldEvaluation.of(evaluation));
    }

    private synchronized void say(Said word) {
        said = word;
        notifyAll();
    }

    private synchronized void abandon(String reason) {
        abandoned = reason;
        notifyAll();
    }

    @Override
    public int members() {
        return order.members();
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
    public synchronized Answer meet(Contribution mine) {
        say(Said.brings(self, host, mine));
        while (answer == null && abandoned == null) {
            try {
                wait();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                throw new MemberFailedException(self, "interrupted");
            }
        }
        Answer mineNow = answer;
        if (mineNow == null) {
            throw new MemberFailedException(String.valueOf(abandoned));
        }
        answer = null;
        return mineNow;
    }

    /** What a member runs ends by an exception, which is its last word. */
    @Override
    public void fail(String reason) {}

    @Override
    public void close() {}
}
