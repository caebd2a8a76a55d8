package org.fedcomuon.bench;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.ServiceLoader;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.fedcomuon.cluster.Cluster;
import org.fedcomuon.cluster.InProcessCluster;

/**
 * Compares the time of a round with members in several processes with its time in one process. The engines run
 * {@link ClusterRounds} in turns.
 */
public final class ClusterBench {
    /** Samples of each contender. */
    public static final int SAMPLES = 3;

    /** Sizes of the weights: that of LeNet, one below that of the CIFAR CNN, and one above it. */
    public static final List<Double> MEGABYTES = List.of(0.15, 3.0, 30.0);

    /** Numbers of clients: what leaves a member does not depend on them. */
    public static final List<Integer> CLIENTS = List.of(10, 100, 1000);

    private static final int MEMBERS = 2;
    private static final String MILLISECONDS = "ms";

    /** What several processes may cost with the largest weights, and Spark's fixed cost with the smallest. */
    static final Aims AIMS = Aims.NONE
            .with("30\\.00 MB of weights, K = \\d+: Spark.*", Aim.atMost(3))
            .with("30\\.00 MB of weights, K = \\d+: MPI", Aim.atMost(1.3))
            .with("0\\.15 MB of weights, K = 10: Spark.*", Aim.atMost(50).of(MILLISECONDS));

    /**
     * The approximate number of bytes of all rounds of a sample: few rounds with large weights, more with small ones.
     */
    private static final double SAMPLE_BYTES = 1.5e9;

    /**
     * Variables of the size of the weights that every client has in memory: W, M, a gradient, and W once more at the
     * end.
     */
    private static final int VARIABLES = 4;

    /** The share of the free memory that a run may take. */
    private static final double SHARE = 0.8;

    /** An engine that is not on every class path; found by {@link ServiceLoader}. */
    public interface Engine {
        /** Returns its name in the table. */
        String name();

        /** Measures like {@link ClusterRounds#run}, with the given number of members, each in its own process. */
        Sample run(int members, ClusterRounds.Work work);

        /** Returns what an exchange costs that is as large as the largest preset's, one line per figure. */
        List<String> large();
    }

    /**
     * The result of an engine.
     *
     * @param first what the first member has measured
     * @param heaps the most bytes in the Java heap of other processes, by name
     */
    public record Sample(ClusterRounds.Measured first, Map<String, Long> heaps) {
        /** Copies. */
        public Sample {
            heaps = Collections.unmodifiableMap(new LinkedHashMap<>(heaps));
        }

        private Sample(ClusterRounds.Measured first) {
            this(first, Map.of());
        }
    }

    /** Measures rounds. */
    private interface Contender {
        Sample run(ClusterRounds.Work work);
    }

    private ClusterBench() {}

    /** Measures the available engines; notes give the reasons why others are not available. */
    public static BenchReport run(List<Integer> clients, List<Double> megabytes, int samples, TurnListener listener) {
        var notes = new ArrayList<String>();
        Map<String, Contender> contenders = contenders(notes);
        var rows = new ArrayList<BenchReport.Row>();
        for (double size : megabytes) {
            for (int k : clients) {
                String what = String.format(Locale.ROOT, "%.2f MB of weights, K = %d: ", size, k);
                double needed = VARIABLES * size * 1e6 * k;
                double free = SHARE * freeMemory();
                if (needed > free) {
                    notes.add(String.format(
                            Locale.ROOT,
                            "%snot measured: needs %.1f GB of memory, and %.1f GB may be used here",
                            what,
                            needed * 1e-9,
                            free * 1e-9));
                    continue;
                }
                var work = new ClusterRounds.Work(
                        k,
                        (int) Math.round(size * 1e6 / Float.BYTES),
                        (int) Math.clamp(SAMPLE_BYTES / (size * 1e6 * k), 3, 40),
                        true);
                rows.addAll(measure(what, work, contenders, samples, listener, notes));
            }
        }
        return new BenchReport("cluster", "cpu:0", """
                A round with almost no computation, tau = 1, with W and M exchanged, over %d members with one thread each; \
                ratio = time relative to one process with one thread.""".formatted(MEMBERS), List.copyOf(rows), List.copyOf(notes));
    }

    private static List<BenchReport.Row> measure(
            String what,
            ClusterRounds.Work work,
            Map<String, Contender> contenders,
            int samples,
            TurnListener listener,
            List<String> notes) {
        int turns = samples * contenders.size();
        int done = 0;
        Map<String, double[]> seconds = new LinkedHashMap<>();
        Map<String, Sample> last = new LinkedHashMap<>();
        for (int sample = 0; sample < samples; sample++) {
            for (var contender : contenders.entrySet()) {
                listener.onTurn(
                        "%s%s, sample %d of %d".formatted(what, contender.getKey(), sample + 1, samples),
                        done++,
                        turns);
                Sample measured = contender.getValue().run(work);
                last.put(contender.getKey(), measured);
                seconds.computeIfAbsent(contender.getKey(), _ -> new double[samples])[sample] =
                        measured.first().seconds();
            }
        }
        listener.onTurn(what.strip(), turns, turns);
        Timing alone = Timing.of(seconds.values().iterator().next());
        var rows = new ArrayList<BenchReport.Row>();
        seconds.forEach((name, each) -> {
            Timing timing = Timing.of(each);
            Figure ratio = Figure.ratio(timing, alone);
            rows.add(new BenchReport.Row(what + name, timing.median(), timing.spread(), 0, ratio.median())
                    .judged(
                            AIMS,
                            Map.of(
                                    Aim.RATIO,
                                    ratio,
                                    MILLISECONDS,
                                    Figure.seconds(timing).times(1000))));
            Sample sample = last.get(name);
            if (sample != null && sample.first().bytes() > 0) {
                var heaps = new StringBuilder();
                sample.heaps()
                        .forEach((where, bytes) -> heaps.append(
                                String.format(Locale.ROOT, "; heap of %s at most %.0f MiB", where, bytes / 0x1p20)));
                notes.add(String.format(
                        Locale.ROOT,
                        "%s%s: %.3f MB sent and received per round and member%s",
                        what,
                        name,
                        sample.first().bytes() * 1e-6,
                        heaps));
            }
        });
        return rows;
    }

    private static double freeMemory() {
        try {
            return Files.readAllLines(Path.of("/proc/meminfo")).stream()
                            .filter(line -> line.startsWith("MemAvailable:"))
                            .mapToDouble(line -> Double.parseDouble(line.replaceAll("[^0-9]", "")))
                            .findFirst()
                            .orElse(Double.POSITIVE_INFINITY)
                    * 1024;
        } catch (IOException e) {
            return Double.POSITIVE_INFINITY; // not Linux: what does not fit fails
        }
    }

    /** Measures an exchange that is as large as the largest preset's, with each engine that can. */
    public static List<String> large() {
        List<String> lines =
                engines().stream().flatMap(engine -> engine.large().stream()).toList();
        return lines.isEmpty()
                ? List.of(
                        "Nothing is measured: Spark is not on the class path; ./fedcomuon bench cluster --large adds it")
                : lines;
    }

    private static List<Engine> engines() {
        return ServiceLoader.load(Engine.class).stream()
                .map(ServiceLoader.Provider::get)
                .toList();
    }

    private static Map<String, Contender> contenders(List<String> notes) {
        var all = new LinkedHashMap<String, Contender>();
        all.put("one process", ClusterBench::alone);
        all.put("members in one process", ClusterBench::inProcess);
        MpiRounds.missing()
                .ifPresentOrElse(
                        reason -> notes.add("MPI is not measured: " + reason),
                        () -> all.put("MPI", work -> new Sample(MpiRounds.run(MEMBERS, work))));
        List<Engine> engines = engines();
        if (engines.isEmpty()) {
            notes.add("Spark is not measured: it is not on the class path; ./fedcomuon bench cluster adds it");
        }
        for (Engine engine : engines) {
            all.put(engine.name(), work -> engine.run(MEMBERS, work));
        }
        return all;
    }

    private static Sample alone(ClusterRounds.Work work) {
        try {
            return new Sample(ClusterRounds.run(Optional.empty(), work));
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted while measuring", e);
        }
    }

    private static Sample inProcess(ClusterRounds.Work work) {
        List<Cluster> members = InProcessCluster.of(MEMBERS);
        try (var threads = Executors.newFixedThreadPool(MEMBERS)) {
            List<Future<ClusterRounds.Measured>> each = members.stream()
                    .map(member -> threads.submit(() -> ClusterRounds.run(Optional.of(member), work)))
                    .toList();
            Sample first = new Sample(each.getFirst().get());
            for (Future<ClusterRounds.Measured> other : each) {
                other.get();
            }
            return first;
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted while measuring", e);
        } catch (ExecutionException e) {
            throw new IllegalStateException(e.getCause());
        } finally {
            members.forEach(Cluster::close);
        }
    }
}
