package org.fedcomuon.cluster.spark;

import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.api.java.JavaSparkContext;
import org.fedcomuon.bench.ClusterBench;
import org.fedcomuon.bench.ClusterRounds;

/** Spark in {@code bench cluster}: executors on this machine, with a core each. */
public final class SparkRounds implements ClusterBench.Engine {
    private static final int HEAP = 1024; // MiB of an executor
    private static final int LARGE_HEAP = 4096;
    private static final int LARGE_ELEMENTS = 82_700_000; // of wikitext2-robust
    private static final int LARGE_CLIENTS = 10;
    private static final int LARGE_MEMBERS = 2;
    private static final int LARGE_ROUNDS = 3;
    private static final Duration LIMIT = Duration.ofMinutes(1); // without an executor

    @Override
    public String name() {
        return "Spark, executors on this machine";
    }

    @Override
    public ClusterBench.Sample run(int members, ClusterRounds.Work work) {
        return run(members, work, HEAP);
    }

    private static ClusterBench.Sample run(int members, ClusterRounds.Work work, int heap) {
        var settings = SparkSettings.of("local-cluster[%d,1,%d]".formatted(members, heap), "bench");
        settings.setIfMissing("spark.executor.memory", heap + "m"); // so that a worker has enough for its executor
        Map<Integer, ClusterRounds.Measured> samples = new TreeMap<>(); // by member
        var lines = new ArrayList<String>();
        ClusterRounds.resetHeapPeak();
        var losses = new Losses(_ -> {});
        try (var log = SparkLog.open(_ -> {});
                var spark = new JavaSparkContext(settings);
                var executors = new SparkExecutors(spark, losses, log, _ -> {})) {
            executors.await(LIMIT, () -> {});
            RunSpec run = RunSpec.of(SparkSettings.tree(settings, members), RoundsProgram.of(work));
            Path temporary = Path.of(System.getProperty("java.io.tmpdir"));
            var health = new ExchangeLoop.Health(losses, _ -> {}, () -> {}, LIMIT);
            try (var exchanges = new ExchangeLoop(
                    spark, executors, run, new StartPoint(0, 0), temporary, List.of(), lines::add, health)) {
                exchanges.run(() -> false);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted while measuring", e);
        }
        for (String line : lines.subList(0, members)) {
            String[] parts = line.split(" ", 2);
            samples.put(Integer.parseInt(parts[0]), ClusterRounds.Measured.of(parts[1]));
        }
        Map<String, Long> heaps = new LinkedHashMap<>();
        heaps.put("the driver", ClusterRounds.heapPeak());
        heaps.put(
                "an executor",
                samples.values().stream()
                        .mapToLong(ClusterRounds.Measured::heap)
                        .max()
                        .orElse(0));
        return new ClusterBench.Sample(samples.get(0), heaps);
    }

    @Override
    public List<String> large() {
        var work = new ClusterRounds.Work(LARGE_CLIENTS, LARGE_ELEMENTS, LARGE_ROUNDS, false);
        ClusterBench.Sample sample = run(LARGE_MEMBERS, work, LARGE_HEAP);
        var lines = new ArrayList<String>();
        lines.add(String.format(
                Locale.ROOT,
                "%s: %d clients, W and M of %.1f million weights, %d members, heaps of %d MiB (driver) and %d MiB:"
                        + " %.1f s per round, %.0f MB sent and received per round and member",
                name(),
                LARGE_CLIENTS,
                LARGE_ELEMENTS * 1e-6,
                LARGE_MEMBERS,
                Runtime.getRuntime().maxMemory() >> 20,
                LARGE_HEAP,
                sample.first().seconds(),
                sample.first().bytes() * 1e-6));
        sample.heaps()
                .forEach((where, bytes) ->
                        lines.add(String.format(Locale.ROOT, "heap of %s: at most %.0f MiB", where, bytes / 0x1p20)));
        return lines;
    }
}
