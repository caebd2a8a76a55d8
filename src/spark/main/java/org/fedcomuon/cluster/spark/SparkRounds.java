package org.fedcomuon.cluster.spark;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.api.java.JavaSparkContext;
import org.fedcomuon.bench.ClusterBench;

/** Spark in {@code bench cluster}: executors on this machine, with a core and 2 GiB each. */
public final class SparkRounds implements ClusterBench.Engine {
    @Override
    public String name() {
        return "Spark, executors on this machine";
    }

    @Override
    public double seconds(int members, int elements, int rounds) {
        var settings = SparkSettings.of("local-cluster[%d,1,2048]".formatted(members), "bench");
        settings.setIfMissing("spark.executor.memory", "2g"); // so that a worker has enough memory for its executor
        var lines = new ArrayList<String>();
        try (var spark = new JavaSparkContext(settings)) {
            SparkExecutors.await(spark);
            RunSpec run = RunSpec.of(members, new RoundsProgram(elements, rounds));
            try (var exchanges = new ExchangeLoop(
                    spark, ExchangeLoop.partitions(spark, members), run, new StartPoint(0, 0), List.of(), lines::add)) {
                exchanges.run(() -> false);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted while measuring", e);
        }
        return Double.parseDouble(lines.getFirst());
    }
}
