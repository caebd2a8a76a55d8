package org.fedcomuon.cluster.spark;

import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerExecutorAdded;
import org.apache.spark.scheduler.SparkListenerExecutorRemoved;
import org.apache.spark.status.api.v1.ExecutorSummary;
import org.fedcomuon.experiment.ConfigurationException;
import scala.jdk.javaapi.CollectionConverters;

/** The executors of a run, as they come and go. Thread-safe. */
final class SparkExecutors {
    private static final Pattern LOCAL_CLUSTER = Pattern.compile("local-cluster\\[\\s*(\\d+)\\s*,.*");
    private static final long TIMEOUT = TimeUnit.SECONDS.toNanos(60);

    /**
     * Where the number of executors is not known, registration is complete when no new one has registered for this
     * long.
     */
    private static final long QUIET = TimeUnit.SECONDS.toNanos(3);

    /**
     * An executor.
     *
     * @param host under which others reach it
     */
    private record Executor(String host, int cores) {}

    private final Map<String, Executor> all = new ConcurrentHashMap<>(); // by Spark's identifier
    private volatile Runnable changed = () -> {};

    private SparkExecutors() {}

    /** Sets what is called when one has come or gone, by a thread of Spark. */
    void onChange(Runnable listener) {
        changed = listener;
    }

    /** Waits for the executors to register. */
    static SparkExecutors await(JavaSparkContext spark) throws InterruptedException {
        var executors = new SparkExecutors();
        spark.sc().addSparkListener(new SparkListener() {
            @Override
            public void onExecutorAdded(SparkListenerExecutorAdded added) {
                executors.all.put(
                        added.executorId(),
                        new Executor(
                                added.executorInfo().executorHost(),
                                added.executorInfo().totalCores()));
                executors.changed.run();
            }

            @Override
            public void onExecutorRemoved(SparkListenerExecutorRemoved removed) {
                executors.all.remove(removed.executorId());
                executors.changed.run();
            }
        });
        Matcher local = LOCAL_CLUSTER.matcher(spark.master());
        int expected = local.matches() ? Integer.parseInt(local.group(1)) : 0;
        long start = System.nanoTime();
        long lastChange = start;
        int before = 0;
        while (true) {
            registered(spark).forEach(each -> executors.all.putIfAbsent(each.id(), executor(each)));
            int here = executors.count();
            long now = System.nanoTime();
            if (here != before) {
                before = here;
                lastChange = now;
            }
            if (here > 0 && (expected == 0 ? now - lastChange > QUIET : here >= expected)) {
                return executors;
            }
            if (now - start > TIMEOUT) {
                throw new ConfigurationException(
                        ("--cluster %s: %s executors have registered within %d s; are there workers with"
                                        + " free cores, and a JDK >= 25.0.3 at %s, which spark.executorEnv.JAVA_HOME names?")
                                .formatted(
                                        spark.master(),
                                        here == 0 ? "no" : "only " + here,
                                        TimeUnit.NANOSECONDS.toSeconds(TIMEOUT),
                                        spark.getConf().get("spark.executorEnv.JAVA_HOME")));
            }
            Thread.sleep(50);
        }
    }

    private static Executor executor(ExecutorSummary each) {
        String address = each.hostPort(); // without a port before its blocks can be reached
        int colon = address.lastIndexOf(':');
        return new Executor(colon < 0 ? address : address.substring(0, colon), each.totalCores());
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
}
