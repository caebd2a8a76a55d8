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
import org.fedcomuon.cluster.Answer;
import org.fedcomuon.cluster.Contribution;
import org.fedcomuon.cluster.Facts;
import org.fedcomuon.cluster.MemberFailedException;
import org.fedcomuon.cluster.OrderedMean;
import org.fedcomuon.cluster.Wire;
import org.fedcomuon.experiment.ConfigurationException;
import org.fedcomuon.federation.Listener;

/**
 * The meetings of a run, as the driver sees them: one job after the other collects what the members bring, here it is
 * summed in client order, and the answer is broadcast. Answers are kept until there is a checkpoint behind them.
 */
final class Meetings implements AutoCloseable {
    private final JavaSparkContext spark;
    private final JavaRDD<Integer> places;
    private final Order order;
    private final Listener listener;
    private final Consumer<String> notes;
    private final OrderedMean mean = new OrderedMean(Runtime.getRuntime().availableProcessors());
    private final ArrayList<Broadcast<Heard>> answers = new ArrayList<>(); // since the start
    private Start start;
    private long evaluated = -1;
    private long meetings;
    private long valueBytes;
    private long textBytes;

    Meetings(
            JavaSparkContext spark,
            JavaRDD<Integer> places,
            Order order,
            Start start,
            Listener listener,
            Consumer<String> notes) {
        this.spark = spark;
        this.places = places;
        this.order = order;
        this.start = start;
        this.listener = listener;
        this.notes = notes;
    }

    /** A partition for each member, kept by the executor that had it first: Spark prefers that one for the next job. */
    static JavaRDD<Integer> places(JavaSparkContext spark, int members) {
        return spark.parallelize(IntStream.range(0, members).boxed().toList(), members)
                .cache();
    }

    /**
     * All of them, until the members are done.
     *
     * @throws MemberFailedException when one cannot go on
     * @throws ConfigurationException when one cannot begin
     */
    void run(BooleanSupplier stopping) {
        OptionalLong saved = OptionalLong.empty(); // the step whose checkpoint was under way at the last meeting
        while (true) {
            List<Said> brought = places.mapPartitions(new Meet(order, start, new ArrayList<>(answers)))
                    .collect(); // in the order of the members
            tell(brought);
            if (brought.stream().allMatch(said -> said.kind() == Said.Kind.DONE)) {
                notes.accept("%d meetings, to which members brought %d bytes of values and %d about them"
                        .formatted(meetings, valueBytes, textBytes));
                return;
            }
            requireAllHere(brought);
            saved.ifPresent(this::forget); // the first member has come to this meeting, so it has been written
            List<Contribution> contributions =
                    brought.stream().map(Said::contribution).toList();
            count(contributions);
            Answer answer = mean.of(contributions);
            answers.add(spark.broadcast(Heard.of(stopping.getAsBoolean() ? stopped(answer) : answer)));
            Contribution first = contributions.getFirst();
            long done = first.facts().step() + 1;
            // Members meet without values only when each has left its piece of a checkpoint.
            saved = first.values().isEmpty() ? OptionalLong.of(done) : OptionalLong.empty();
            if (done > 0) {
                listener.onStep(done);
            }
        }
    }

    private void tell(List<Said> brought) {
        for (Said said : brought) {
            said.lines().forEach(notes);
            for (ToldEvaluation told : said.evaluations()) {
                if (told.step() > evaluated) { // or a member that started again has made it once more
                    evaluated = told.step();
                    listener.onEvaluation(told.evaluation());
                }
            }
        }
    }

    private void count(List<Contribution> contributions) {
        meetings++;
        for (Contribution each : contributions) {
            textBytes += Wire.header(each).length;
            for (Contribution.Values values : each.values()) {
                valueBytes += values.rows().byteSize();
            }
        }
    }

    private static void requireAllHere(List<Said> brought) {
        for (Said said : brought) {
            switch (said.kind()) {
                case MEETING, DONE -> {}
                case REFUSED -> throw new ConfigurationException(said.failure());
                case FAILED -> throw new MemberFailedException(said.failure());
            }
        }
        for (Said said : brought) {
            if (said.kind() == Said.Kind.DONE) {
                throw new MemberFailedException("%s is done when others are not".formatted(said.who()));
            }
        }
    }

    /** Nobody will begin before this step any more. */
    private void forget(long step) {
        start = new Start(step, start.meeting() + answers.size());
        answers.forEach(Broadcast::destroy);
        answers.clear();
    }

    /** It is the wish of the first member that counts. */
    private static Answer stopped(Answer answer) {
        var facts = new ArrayList<Facts>(answer.facts());
        facts.set(0, facts.getFirst().stopping());
        return new Answer(facts, answer.weights(), answer.means());
    }

    @Override
    public void close() {
        mean.close();
    }
}
