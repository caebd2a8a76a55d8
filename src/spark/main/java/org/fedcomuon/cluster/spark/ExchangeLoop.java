package org.fedcomuon.cluster.spark;

import java.util.ArrayList;
import java.util.List;
import java.util.OptionalLong;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import java.util.stream.IntStream;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.broadcast.Broadcast;
import org.fedcomuon.cluster.Cluster;
import org.fedcomuon.cluster.Contribution;
import org.fedcomuon.cluster.MemberFailedException;
import org.fedcomuon.cluster.OrderedMean;
import org.fedcomuon.cluster.WireFormat;
import org.fedcomuon.experiment.ConfigurationException;
import org.fedcomuon.federation.Evaluation;
import org.fedcomuon.federation.Listener;

/**
 * The exchanges of a run, in the driver: one Spark job per exchange collects the contributions of the members, the
 * driver sums them in client order, and the reply is broadcast. Replies are kept until a checkpoint follows them.
 */
final class ExchangeLoop implements AutoCloseable {
    private final JavaSparkContext spark;
    private final JavaRDD<Integer> partitions;
    private final RunSpec run;
    private final List<Listener> listeners;
    private final Consumer<String> notes;
    private final OrderedMean mean = new OrderedMean(Runtime.getRuntime().availableProcessors());
    private final ArrayList<Broadcast<Reply>> replies = new ArrayList<>(); // since the start point
    private StartPoint start;
    private long lastEvaluated = -1;
    private long exchanges;
    private long valueBytes;
    private long headerBytes;

    ExchangeLoop(
            JavaSparkContext spark,
            JavaRDD<Integer> partitions,
            RunSpec run,
            StartPoint start,
            List<Listener> listeners,
            Consumer<String> notes) {
        this.spark = spark;
        this.partitions = partitions;
        this.run = run;
        this.start = start;
        this.listeners = listeners;
        this.notes = notes;
    }

    /**
     * Returns one partition per member, cached: Spark then prefers the same executor for a partition in the next job.
     */
    static JavaRDD<Integer> partitions(JavaSparkContext spark, int members) {
        return spark.parallelize(IntStream.range(0, members).boxed().toList(), members)
                .cache();
    }

    /**
     * Runs exchanges until all members are done.
     *
     * @throws MemberFailedException when a member cannot go on
     * @throws ConfigurationException when a member cannot begin
     */
    void run(BooleanSupplier stopping) {
        OptionalLong saved = OptionalLong.empty(); // the step of the checkpoint that the last exchange belongs to
        while (true) {
            List<MemberMessage> messages = partitions
                    .mapPartitions(new ExchangeTask(run, start, new ArrayList<>(replies)))
                    .collect(); // in the order of the members
            forward(messages);
            if (messages.stream().allMatch(message -> message.kind() == MemberMessage.Kind.DONE)) {
                notes.accept("%d exchanges, in which members sent %d bytes of values and %d bytes of headers"
                        .formatted(exchanges, valueBytes, headerBytes));
                return;
            }
            requireContributions(messages);
            saved.ifPresent(
                    this::forget); // the checkpoint is complete, because the first member has reached this exchange
            List<Contribution> contributions =
                    messages.stream().map(MemberMessage::contribution).toList();
            count(contributions);
            Cluster.Answer answer = mean.of(contributions);
            replies.add(spark.broadcast(Reply.of(stopping.getAsBoolean() ? stopped(answer) : answer)));
            Contribution first = contributions.getFirst();
            long done = first.status().step() + 1;
            // An exchange without values is the one after which the members' pieces become a checkpoint.
            saved = first.values().isEmpty() ? OptionalLong.of(done) : OptionalLong.empty();
            if (done > 0) {
                listeners.forEach(listener -> listener.onStep(done));
            }
        }
    }

    private void forward(List<MemberMessage> messages) {
        for (MemberMessage message : messages) {
            message.lines().forEach(notes);
            for (Evaluation evaluation : message.evaluations()) {
                if (evaluation.step() > lastEvaluated) { // a restarted member repeats evaluations
                    lastEvaluated = evaluation.step();
                    listeners.forEach(listener -> listener.onEvaluation(evaluation));
                }
            }
        }
    }

    private void count(List<Contribution> contributions) {
        exchanges++;
        for (Contribution each : contributions) {
            headerBytes += WireFormat.header(each).length;
            for (Contribution.Values values : each.values()) {
                valueBytes += values.rows().byteSize();
            }
        }
    }

    private static void requireContributions(List<MemberMessage> messages) {
        for (MemberMessage message : messages) {
            switch (message.kind()) {
                case CONTRIBUTION, DONE -> {}
                case REFUSED -> throw new ConfigurationException(message.failure());
                case FAILED -> throw new MemberFailedException(message.failure());
            }
        }
        for (MemberMessage message : messages) {
            if (message.kind() == MemberMessage.Kind.DONE) {
                throw new MemberFailedException("%s is done while others are not".formatted(message.sender()));
            }
        }
    }

    /** Drops the replies before the checkpoint of a step, because no member will start before that step any more. */
    private void forget(long step) {
        start = new StartPoint(step, start.exchange() + replies.size());
        replies.forEach(Broadcast::destroy);
        replies.clear();
    }

    /** Returns the answer with the first member stopping, which stops all members. */
    private static Cluster.Answer stopped(Cluster.Answer answer) {
        var statuses = new ArrayList<Cluster.MemberStatus>(answer.statuses());
        statuses.set(0, statuses.getFirst().stopping());
        return new Cluster.Answer(statuses, answer.weights(), answer.means());
    }

    @Override
    public void close() {
        mean.close();
    }
}
