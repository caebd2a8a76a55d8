package org.fedcomuon.cluster.spark;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.fedcomuon.cluster.MemberFailedException;
import scala.Tuple2;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.reflect.ClassTag;
import scala.reflect.ClassTag$;

/**
 * Which member is in which executor. Members of a lost executor start again in one without members; if none comes
 * within some time, beside others. Not thread-safe.
 */
final class MemberPlaces implements AutoCloseable {
    /** The longest time that a lost executor may take to be replaced. */
    private static final Duration REPLACEMENT = Duration.ofSeconds(15);

    /** What the start of a member may take where there are executors: that of a JVM on a machine with much to do. */
    private static final Duration START = Duration.ofSeconds(60);

    /** How often a member may be started without taking part in an exchange that nobody has done before. */
    private static final int MOST_STARTS = 5;

    private final JavaSparkContext spark;
    private final SparkExecutors executors;
    private final RunSpec run;
    private final int port;
    private final Queue<Hub.Event> events;
    private final ExecutorService starter = Executors.newSingleThreadExecutor(
            Thread.ofPlatform().daemon().name("member-starts").factory());
    private final int[] lives;
    private final Map<Integer, String> executorOf = new HashMap<>(); // where a member is, or will be
    private final Map<Integer, Long> lostSince = new HashMap<>();
    private final Map<Integer, Long> waitingSince = new HashMap<>(); // members that have not begun where they are now
    private final int[] starts; // since the last progress of the run
    private final Losses losses;
    private final Duration limit;
    private long lastExecutor = System.nanoTime(); // when there was one

    /** @param limit the time that there may be no executor */
    MemberPlaces(
            JavaSparkContext spark,
            SparkExecutors executors,
            RunSpec run,
            int port,
            Queue<Hub.Event> events,
            Losses losses,
            Duration limit) {
        this.spark = spark;
        this.losses = losses;
        this.limit = limit;
        this.executors = executors;
        this.run = run;
        this.port = port;
        this.events = events;
        lives = new int[run.members()];
        starts = new int[run.members()];
    }

    /** Returns how often a member was started again. */
    int life(int member) {
        return lives[member];
    }

    /** Starts every member in an executor of its own. */
    void startAll(StartPoint start) {
        List<String> names = executors.names();
        for (int member = 0; member < run.members(); member++) {
            executorOf.put(member, names.get(member % names.size()));
            waitingSince.put(member, System.nanoTime());
        }
        start(List.copyOf(executorOf.keySet()), start);
    }

    private void start(List<Integer> members, StartPoint start) {
        var preferences = new ArrayList<Tuple2<Integer, Seq<String>>>();
        for (int member : members) {
            String executor = executorOf.get(member);
            // The form in which Spark itself says that a task should run in an executor.
            String place = "executor_%s_%s".formatted(executors.host(executor), executor);
            preferences.add(new Tuple2<>(
                    member, CollectionConverters.asScala(List.of(place)).toSeq()));
        }
        var task = new BeginTask(
                run,
                spark.getConf().get("spark.driver.host"),
                port,
                start,
                new ArrayList<>(Arrays.stream(lives).boxed().toList()));
        starter.execute(() -> {
            try {
                ClassTag<Integer> type = ClassTag$.MODULE$.apply(Integer.class);
                JavaRDD<Integer> partitions = new JavaRDD<>(
                        spark.sc()
                                .makeRDD(
                                        CollectionConverters.asScala(preferences)
                                                .toSeq(),
                                        type),
                        type);
                for (BeginTask.Place place : partitions.mapPartitions(task).collect()) {
                    events.add(new Hub.Event.Started(
                            place.member(), task.lives().get(place.member()), place.executor(), place.host()));
                }
            } catch (RuntimeException e) {
                events.add(new Hub.Event.Broken(e));
            } catch (Exception e) { // Scala does not declare checked exceptions
                events.add(new Hub.Event.Broken(SparkFailures.explained(e)));
            }
        });
    }

    /** A member was started, perhaps elsewhere than it should. */
    void started(Hub.Event.Started started) {
        if (started.life() == lives[started.member()]) {
            executorOf.put(started.member(), started.executor());
            waitingSince.remove(started.member());
        }
    }

    /** The run has done an exchange that no member has done before. */
    void progressed() {
        Arrays.fill(starts, 0);
    }

    /**
     * Throws when the run cannot go on.
     *
     * @throws MemberFailedException with the last reasons why executors were lost
     */
    void requirePossible() {
        long now = System.nanoTime();
        if (executors.count() > 0) {
            lastExecutor = now;
        } else if (now - lastExecutor > limit.toNanos()) {
            throw new MemberFailedException(losses.explain(
                    "there has been no executor for %d s (--cluster-timeout)".formatted(limit.toSeconds())));
        }
        waitingSince.forEach((member, since) -> {
            if (now - since > limit.plus(START).toNanos()) {
                throw new MemberFailedException(
                        member,
                        losses.explain("it has not started in an executor for %d s"
                                .formatted(limit.plus(START).toSeconds())));
            }
        });
    }

    /** Returns the members that are not in an executor any more since the last call. */
    List<Integer> lost(boolean[] done) {
        Set<String> names = new HashSet<>(executors.names());
        var lost = new ArrayList<Integer>();
        executorOf.forEach((member, executor) -> {
            if (!names.contains(executor) && !done[member]) {
                lost.add(member);
            }
        });
        for (int member : lost) {
            takeAway(member);
            if (++starts[member] > MOST_STARTS) {
                throw new MemberFailedException(
                        member,
                        losses.explain(
                                "it was started %d times and lost its executor each time, before the run had come any further"
                                        .formatted(MOST_STARTS)));
            }
        }
        return lost;
    }

    private void takeAway(int member) {
        executorOf.remove(member);
        lostSince.put(member, System.nanoTime());
        waitingSince.putIfAbsent(member, System.nanoTime());
        lives[member]++;
    }

    private long replacement() {
        return Math.min(REPLACEMENT.toNanos(), limit.toNanos() / 2);
    }

    /** Starts lost members again where there is a place for them. */
    void startLost(StartPoint start, boolean[] done) {
        for (int member : List.copyOf(lostSince.keySet())) {
            boolean late = System.nanoTime() - lostSince.get(member) > replacement();
            Optional<String> place = late ? leastLoaded(done) : idle(done);
            if (place.isPresent()) {
                lostSince.remove(member);
                executorOf.put(member, place.get());
                start(List.of(member), start);
            }
        }
    }

    private long load(String executor, boolean[] done) {
        return executorOf.entrySet().stream()
                .filter(each -> each.getValue().equals(executor) && !done[each.getKey()])
                .count();
    }

    private Optional<String> idle(boolean[] done) {
        return leastLoaded(done).filter(name -> load(name, done) == 0);
    }

    private Optional<String> leastLoaded(boolean[] done) {
        return executors.names().stream().min(Comparator.comparingLong(name -> load(name, done)));
    }

    /**
     * Takes members from executors that have several of them, if there are others without; they are then lost, and will
     * start where there is a place. Returns these members.
     */
    List<Integer> spread(boolean[] done) {
        var moving = new ArrayList<Integer>();
        long idle =
                executors.names().stream().filter(name -> load(name, done) == 0).count();
        for (int member = run.members() - 1; member >= 0 && moving.size() < idle; member--) {
            String executor = executorOf.get(member);
            if (executor != null && load(executor, done) > 1) {
                takeAway(member);
                moving.add(member);
            }
        }
        return moving;
    }

    @Override
    public void close() {
        starter.shutdownNow();
    }
}
