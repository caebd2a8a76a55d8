package org.fedcomuon.cluster.spark;

import java.util.ArrayList;
import org.apache.spark.api.java.JavaSparkContext;
import org.fedcomuon.bench.ClusterBench;
import org.fedcomuon.federation.Listener;

/** What {@code bench cluster} measures of Spark: executors on this machine, with a core and 2 GiB each. */
public final class SparkRounds implements ClusterBench.Engine {
    @Override
    public String name() {
        return "Spark, executors on this machine";
    }

    @Override
    public double seconds(int members, int elements, int rounds) {
        var settings = SparkSettings.of("local-cluster[%d,1,2048]".formatted(members), "bench");
        settings.setIfMissing("spark.executor.memory", "2g"); // or a worker's memory has room for two of the usual size
        var lines = new ArrayList<String>();
        try (var spark = new JavaSparkContext(settings)) {
            SparkExecutors.await(spark);
            Order order = Order.of(members, new RoundsProgram(elements, rounds));
            try (var meetings = new Meetings(
                    spark, Meetings.places(spark, members), order, new Start(0, 0), new Listener() {}, lines::add)) {
                meetings.run(() -> false);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted while measuring", e);
        }
        return Double.parseDouble(lines.getFirst());
    }
}
