package org.fedcomuon.cluster.spark;

import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerExecutorAdded;
import org.apache.spark.scheduler.SparkListenerExecutorRemoved;
import org.apache.spark.status.api.v1.ExecutorSummary;
import org.fedcomuon.cluster.MemberFailedException;
import scala.collection.immutable.Map$;
import scala.jdk.javaapi.CollectionConverters;

/** The executors of a run, as they come and go. Thread-safe. */
final class SparkExecutors implements AutoCloseable {
    private static final Pattern LOCAL_CLUSTER = Pattern.compile("local-cluster\\[\\s*(\\d+)\\s*,.*");

    /**
     * Where the number of executors is not known, registration is complete when no new one has registered for this
     * long.
     */
    private static final long QUIET = TimeUnit.SECONDS.toNanos(3);

    /** An executor that ends sooner was of no use. */
    private static final long OF_USE = TimeUnit.SECONDS.toNanos(10);

    /**
     * An executor.
     *
     * @param host under which others reach it
     * @param since when it is known, by {@link System#nanoTime}
     */
    private record Executor(String host, int cores, long since) {}

    private final JavaSparkContext spark;
    private final Losses losses;
    private final Map<String, Executor> all = new ConcurrentHashMap<>(); // by Spark's identifier
    private final Set<String> gone = ConcurrentHashMap.newKeySet();
    private final LaunchLimit limit;
    private final SparkListener listener;
    private volatile Runnable changed = () -> {};
    private volatile boolean complete;

    /**
     * Begins to listen.
     *
     * @param log names the host of an executor that ended before it had registered
     * @param notes receives a line for each that joins after {@link #await}
     */
    SparkExecutors(JavaSparkContext spark, Losses losses, SparkLog log, Consumer<String> notes) {
        this.spark = spark;
        this.losses = losses;
        limit = new LaunchLimit(this::count, this::request);
        listener = new SparkListener() {
            @Override
            public void onExecutorAdded(SparkListenerExecutorAdded added) {
                all.put(
                        added.executorId(),
                        new Executor(
                                added.executorInfo().executorHost(),
                                added.executorInfo().totalCores(),
                                System.nanoTime()));
                if (complete) {
                    notes.accept("executor %s has joined: %s"
                            .formatted(added.executorId(), added.executorInfo().executorHost()));
                }
                changed.run();
            }

            @Override
            public void onExecutorRemoved(SparkListenerExecutorRemoved removed) {
                String name = removed.executorId();
                gone.add(name);
                Optional<Executor> before = Optional.ofNullable(all.remove(name));
                String host =
                        before.map(Executor::host).or(() -> log.host(name)).orElse("a host that Spark does not name");
                if (losses.add(new ExecutorLoss(name, host, removed.reason()))) {
                    if (before.isPresent() && System.nanoTime() - before.get().since() > OF_USE) {
                        limit.succeeded();
                    } else {
                        limit.failed();
                    }
                }
                changed.run();
            }
        };
        spark.sc().addSparkListener(listener);
    }

    private void request(int executors) {
        try {
            spark.sc().requestTotalExecutors(executors, 0, Map$.MODULE$.empty());
        } catch (Exception e) { // Scala does not declare checked exceptions
            // There is no master, so that no executor is started anyway.
        }
    }

    /** Sets what is called when one has come or gone, by a thread of Spark. */
    void onChange(Runnable listener) {
        changed = listener;
    }

    /**
     * Waits for the executors to register.
     *
     * @param patience the time limit
     * @param check called now and then; throws when there is nothing to wait for any more
     * @throws MemberFailedException when they do not register in time
     */
    void await(Duration patience, Runnable check) throws InterruptedException {
        Matcher local = LOCAL_CLUSTER.matcher(spark.master());
        int expected = local.matches() ? Integer.parseInt(local.group(1)) : 0;
        long start = System.nanoTime();
        long lastChange = start;
        int before = 0;
        while (true) {
            registered(spark).stream()
                    .filter(each -> !gone.contains(each.id())) // what this list is made from may be told later
                    .forEach(each -> all.computeIfAbsent(each.id(), _ -> executor(each)));
            int here = count();
            long now = System.nanoTime();
            if (here != before) {
                before = here;
                lastChange = now;
            }
            if (here > 0 && (expected == 0 ? now - lastChange > QUIET : here >= expected)) {
                complete = true;
                return;
            }
            check.run();
            if (here < Math.max(1, expected) && now - start > patience.toNanos()) {
                throw new MemberFailedException(losses.explain(
                        ("--cluster %s: %s executors have registered within %d s (--cluster-timeout); are there workers"
                                        + " with free cores, %s of memory, and a JDK >= 25.0.3 at %s, which"
                                        + " spark.executorEnv.JAVA_HOME names?")
                                .formatted(
                                        spark.master(),
                                        here == 0 ? "no" : "only " + here,
                                        patience.toSeconds(),
                                        SparkSettings.executorMemory(spark.getConf()),
                                        spark.getConf().get("spark.executorEnv.JAVA_HOME"))));
            }
            Thread.sleep(50);
        }
    }

    private static Executor executor(ExecutorSummary each) {
        String address = each.hostPort(); // without a port before its blocks can be reached
        int colon = address.lastIndexOf(':');
        return new Executor(colon < 0 ? address : address.substring(0, colon), each.totalCores(), System.nanoTime());
    }

    private static List<ExecutorSummary> registered(JavaSparkContext spark) {
        Collection<ExecutorSummary> all =
                CollectionConverters.asJavaCollection(spark.sc().statusStore().executorList(true));
        return all.stream().filter(each -> !each.id().equals("driver")).toList();
    }

    /** Returns how many there are. */
    int count() {
        return all.size();
    }

    /** Returns the cores of the executor with the fewest. */
    int cores() {
        return all.values().stream().mapToInt(Executor::cores).min().orElse(1);
    }

    /** Returns their identifiers, sorted. */
    List<String> names() {
        return all.keySet().stream().sorted().toList();
    }

    /** Returns the host of an executor; empty if it is lost. */
    String host(String name) {
        Executor executor = all.get(name);
        return executor == null ? "" : executor.host();
    }

    /** Those that end from now on, end because the run does. */
    @Override
    public void close() {
        losses.end();
        limit.close();
        spark.sc().removeSparkListener(listener);
    }
}
