package org.fedcomuon.cluster.spark;

import java.util.Collection;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.status.api.v1.ExecutorSummary;
import org.fedcomuon.experiment.ConfigurationException;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The executors of a run.
 *
 * @param count the number of executors
 * @param cores of the executor with the fewest
 */
record SparkExecutors(int count, int cores) {
    private static final Pattern LOCAL_CLUSTER = Pattern.compile("local-cluster\\[\\s*(\\d+)\\s*,.*");
    private static final long TIMEOUT = TimeUnit.SECONDS.toNanos(60);

    /**
     * Where the number of executors is not known, registration is complete when no new one has registered for this
     * long.
     */
    private static final long QUIET = TimeUnit.SECONDS.toNanos(3);

    /** Waits for the executors to register. */
    static SparkExecutors await(JavaSparkContext spark) throws InterruptedException {
        Matcher local = LOCAL_CLUSTER.matcher(spark.master());
        int expected = local.matches() ? Integer.parseInt(local.group(1)) : 0;
        long start = System.nanoTime();
        long lastChange = start;
        int before = 0;
        while (true) {
            List<ExecutorSummary> here = registered(spark);
            long now = System.nanoTime();
            if (here.size() != before) {
                before = here.size();
                lastChange = now;
            }
            if (!here.isEmpty() && (expected == 0 ? now - lastChange > QUIET : here.size() >= expected)) {
                return new SparkExecutors(
                        here.size(),
                        here.stream()
                                .mapToInt(ExecutorSummary::totalCores)
                                .min()
                                .orElse(1));
            }
            if (now - start > TIMEOUT) {
                throw new ConfigurationException(
                        ("--cluster %s: %s executors have registered within %d s; are there workers with"
                                        + " free cores, and a JDK >= 25.0.3 at %s, which spark.executorEnv.JAVA_HOME names?")
                                .formatted(
                                        spark.master(),
                                        here.isEmpty() ? "no" : "only " + here.size(),
                                        TimeUnit.NANOSECONDS.toSeconds(TIMEOUT),
                                        spark.getConf().get("spark.executorEnv.JAVA_HOME")));
            }
            Thread.sleep(50);
        }
    }

    private static List<ExecutorSummary> registered(JavaSparkContext spark) {
        Collection<ExecutorSummary> all =
                CollectionConverters.asJavaCollection(spark.sc().statusStore().executorList(true));
        return all.stream().filter(each -> !each.id().equals("driver")).toList();
    }
}
