package org.fedcomuon.bench;

import java.util.ArrayList;
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

    private static final int MEMBERS = 2;

    /**
     * The approximate number of bytes of all rounds of a sample: few rounds with large weights, more with small ones.
     */
    private static final double SAMPLE_BYTES = 1.5e8;

    /** An engine that is not on every class path; found by {@link ServiceLoader}. */
    public interface Engine {
        /** Returns its name in the table. */
        String name();

        /** Measures like {@link ClusterRounds#seconds}, with the given number of members, each in its own process. */
        double seconds(int members, int elements, int rounds);
    }

    /** Measures the seconds per round for a number of elements and of rounds. */
    private interface Contender {
        double seconds(int elements, int rounds);
    }

    private ClusterBench() {}

    /** Measures the available engines; notes give the reasons why others are not available. */
    public static BenchReport run(List<Double> megabytes, int samples, TurnListener listener) {
        var notes = new ArrayList<String>();
        Map<String, Contender> contenders = contenders(notes);
        var rows = new ArrayList<BenchReport.Row>();
        for (double size : megabytes) {
            int elements = (int) Math.round(size * 1e6 / Float.BYTES);
            int rounds = (int) Math.clamp(SAMPLE_BYTES / (size * 1e6), 5, 40);
            String what = String.format(Locale.ROOT, "%.2f MB of weights: ", size);
            int turns = samples * contenders.size();
            int done = 0;
            Map<String, double[]> seconds = new LinkedHashMap<>();
            for (int sample = 0; sample < samples; sample++) {
                for (var contender : contenders.entrySet()) {
                    listener.onTurn(
                            "%s%s, sample %d of %d".formatted(what, contender.getKey(), sample + 1, samples),
                            done++,
                            turns);
                    seconds.computeIfAbsent(contender.getKey(), _ -> new double[samples])[sample] =
                            contender.getValue().seconds(elements, rounds);
                }
            }
            listener.onTurn(what.strip(), turns, turns);
            double alone = Timing.of(seconds.values().iterator().next()).median();
            seconds.forEach((name, each) -> {
                Timing timing = Timing.of(each);
                rows.add(
                        new BenchReport.Row(what + name, timing.median(), timing.spread(), 0, timing.median() / alone));
                double more = timing.median() - alone;
                if (more > 0) {
                    notes.add(String.format(
                            Locale.ROOT,
                            "%.2f MB, %s: %.1f ms more than in one process, 10 %% of a round if tau steps take %.2f s",
                            size,
                            name,
                            1e3 * more,
                            9 * more));
                }
            });
        }
        return new BenchReport(
                "cluster",
                "cpu:0",
                """
                A round of %d clients with almost no computation, tau = 1, with W and M exchanged, over %d members with one \
                thread each; ratio = time relative to one process with one thread.""".formatted(ClusterRounds.CLIENTS, MEMBERS),
                List.copyOf(rows),
                List.copyOf(notes));
    }

    private static Map<String, Contender> contenders(List<String> notes) {
        var all = new LinkedHashMap<String, Contender>();
        all.put("one process", ClusterBench::alone);
        all.put("members in one process", ClusterBench::inProcess);
        MpiRounds.missing()
                .ifPresentOrElse(
                        reason -> notes.add("MPI is not measured: " + reason),
                        () -> all.put("MPI", (elements, rounds) -> MpiRounds.seconds(MEMBERS, elements, rounds)));
        List<Engine> engines = ServiceLoader.load(Engine.class).stream()
                .map(ServiceLoader.Provider::get)
                .toList();
        if (engines.isEmpty()) {
            notes.add("Spark is not measured: it is not on the class path; ./fedcomuon bench cluster adds it");
        }
        for (Engine engine : engines) {
            all.put(engine.name(), (elements, rounds) -> engine.seconds(MEMBERS, elements, rounds));
        }
        return all;
    }

    private static double alone(int elements, int rounds) {
        try {
            return ClusterRounds.seconds(Optional.empty(), elements, rounds);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted while measuring", e);
        }
    }

    private static double inProcess(int elements, int rounds) {
        List<Cluster> members = InProcessCluster.of(MEMBERS);
        try (var threads = Executors.newFixedThreadPool(MEMBERS)) {
            List<Future<Double>> each = members.stream()
                    .map(member -> threads.submit(() -> ClusterRounds.seconds(Optional.of(member), elements, rounds)))
                    .toList();
            double first = each.getFirst().get();
            for (Future<Double> other : each) {
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
