package org.fedcomuon.bench;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.function.Supplier;
import org.fedcomuon.data.Mnist;
import org.fedcomuon.data.Partition;
import org.fedcomuon.device.Device;
import org.fedcomuon.federation.Federation;
import org.fedcomuon.federation.Listener;
import org.fedcomuon.federation.Result;
import org.fedcomuon.federation.Round;
import org.fedcomuon.internal.OpenBlasLibrary;
import org.fedcomuon.linalg.Coefficients;
import org.fedcomuon.method.FedCoMuon;
import org.fedcomuon.method.FedCoMuonVr;
import org.fedcomuon.method.Method;
import org.fedcomuon.method.Muon;
import org.fedcomuon.method.Schedule;
import org.fedcomuon.model.Classification;
import org.fedcomuon.model.Examples;
import org.fedcomuon.model.Initialization;
import org.fedcomuon.model.LeNet;
import org.fedcomuon.model.Network;
import org.fedcomuon.problem.ExponentialRisk;

/**
 * Whole rounds of the two algorithms (10 clients, tau = 5) against the straightforward libtorch loop, both from the
 * same start on the same samples, at every setting of libtorch's threads. Both must give the same weights before
 * anything is timed.
 */
public final class RoundBench {
    /** Samples of each contender. */
    public static final int ROUNDS = 5;

    /** Rounds of the federation in a sample. */
    public static final int FEDERATED = 4;

    private static final int CLIENTS = 10;
    private static final int TAU = 5;
    private static final long SEED = 42;

    /**
     * Relative to how far the weights have come: five steps of Newton-Schulz enlarge rounding errors some 500 times.
     */
    private static final double TOLERANCE = 1e-4;

    private record Task(String name, Network network, Examples train, List<int[]> shares, int batch, double lambda) {
        ExponentialRisk risk() {
            return new ExponentialRisk(lambda);
        }
    }

    private interface Peer {
        float[] run(TorchRounds loop, float[] initial, int steps);
    }

    private record Algorithm(Method method, Peer peer) {}

    private final Device device;
    private final int rounds;
    private final int steps;

    private RoundBench(Device device, int rounds, int steps) {
        this.device = device;
        this.rounds = rounds;
        this.steps = steps;
    }

    /**
     * Measures.
     *
     * @param rounds samples of each contender
     * @param federated rounds of the federation in a sample
     */
    public static BenchReport run(Device device, int rounds, int federated) {
        var bench = new RoundBench(device, rounds, federated * TAU);
        var rows = new ArrayList<BenchReport.Row>();
        for (Algorithm algorithm : algorithms()) {
            rows.addAll(bench.contest(mnist(), algorithm));
        }
        return new BenchReport(
                "round",
                device.toString(),
                "A round of %d clients with %d steps; ratio = a peer's time relative to ours. Runs of %d rounds, their start included."
                        .formatted(CLIENTS, TAU, federated),
                List.copyOf(rows));
    }

    private static List<Algorithm> algorithms() {
        return List.of(
                new Algorithm(
                        new FedCoMuon(fixed(0.01), fixed(0.2), fixed(0.1), Muon.standard()),
                        (loop, initial, steps) -> loop.fedCoMuon(initial, steps, TAU, 0.01, 0.2, 0.1)),
                new Algorithm(
                        new FedCoMuonVr(fixed(0.01), fixed(0.2), fixed(0.8), fixed(0.9), fixed(0.2), Muon.standard()),
                        (loop, initial, steps) -> loop.fedCoMuonVr(initial, steps, TAU, 0.01, 0.2, 0.8, 0.9, 0.2)));
    }

    private static Schedule fixed(double value) {
        return Schedule.constant(value);
    }

    /** As the preset has it: one client with 5000 images, the others with 20. */
    private static Task mnist() {
        var data = Mnist.bundled().train();
        var sizes = new ArrayList<Integer>();
        for (int k = 0; k < CLIENTS; k++) {
            sizes.add(k == 0 ? 5000 : 20);
        }
        Partition partition = Partition.imbalanced(data.count(), sizes, SEED);
        var shares = new ArrayList<int[]>();
        for (int k = 0; k < CLIENTS; k++) {
            shares.add(partition.indices(k));
        }
        return new Task("mnist", new LeNet(), Examples.of(data), List.copyOf(shares), 20, 0.5);
    }

    private List<BenchReport.Row> contest(Task task, Algorithm algorithm) {
        float[] initial = Initialization.uniform(task.network().layout(), SEED);
        var schulz = Coefficients.jordan(5).steps();
        try (var loop =
                new TorchRounds(task.network(), task.train(), task.shares(), task.batch(), task.risk(), SEED, schulz)) {
            requireSame(
                    initial,
                    train(task, algorithm.method(), TAU, round -> {})
                            .weights()
                            .values()
                            .toArray(),
                    algorithm.peer().run(loop, initial, TAU));

            String us = "fedcomuon, %d threads".formatted(device.threads());
            var contest = new Interleaved()
                    .add(
                            us,
                            () -> OpenBlasLibrary.setThreads(1),
                            () -> train(task, algorithm.method(), steps, round -> {}));
            var settings = new LinkedHashMap<String, TorchPeer.Threads>();
            for (TorchPeer.Threads threads : TorchPeer.settings(device.threads())) {
                String name = "libtorch loop, %s".formatted(threads);
                settings.put(name, threads);
                contest.add(
                        name,
                        () -> TorchPeer.use(threads),
                        () -> algorithm.peer().run(loop, initial, steps));
            }
            Map<String, Timing> timings = contest.measure(rounds);
            double our = timings.get(us).median();
            var rows = new ArrayList<BenchReport.Row>();
            timings.forEach((name, timing) -> {
                Supplier<String> split = () -> {
                    TorchPeer.Threads threads = settings.get(name);
                    return threads == null
                            ? ours(task, algorithm.method())
                            : theirs(loop, threads, () -> algorithm.peer().run(loop, initial, steps));
                };
                rows.add(new BenchReport.Row(
                        "%s, %s: %s (%s)"
                                .formatted(task.name(), algorithm.method().name(), name, split.get()),
                        timing.median() * TAU / steps,
                        timing.spread(),
                        0,
                        timing.median() / our));
            });
            OpenBlasLibrary.setThreads(1);
            return rows;
        }
    }

    /** Where our time goes, of a run after the contest. */
    private String ours(Task task, Method method) {
        OpenBlasLibrary.setThreads(1);
        var last = new ArrayList<Round>();
        train(task, method, steps, last::add);
        Round all = last.getLast();
        return parts(
                all.seconds(),
                all.gradientSeconds(),
                all.orthogonalizeSeconds(),
                all.exchangeSeconds(),
                Optional.empty());
    }

    private static String theirs(TorchRounds loop, TorchPeer.Threads threads, Runnable work) {
        TorchPeer.use(threads);
        loop.takeSplit();
        long start = System.nanoTime();
        work.run();
        double seconds = (System.nanoTime() - start) * 1e-9;
        TorchRounds.Split split = loop.takeSplit();
        return parts(seconds, split.gradient, split.orthogonalize, split.average, Optional.of(split.track));
    }

    private static String parts(
            double all, double gradient, double orthogonalize, double average, Optional<Double> track) {
        double known = gradient + orthogonalize + average;
        String rest = track.map(seconds -> String.format(
                        Locale.ROOT,
                        "track %.0f%%, other %.0f%%",
                        100 * seconds / all,
                        100 * (all - known - seconds) / all))
                .orElseGet(() -> String.format(Locale.ROOT, "track and other %.0f%%", 100 * (all - known) / all));
        return String.format(
                Locale.ROOT,
                "gradient %.0f%%, orthogonalize %.0f%%, average %.0f%%, %s",
                100 * gradient / all,
                100 * orthogonalize / all,
                100 * average / all,
                rest);
    }

    private Result train(Task task, Method method, int iterations, java.util.function.Consumer<Round> onRound) {
        var problem = new Classification(task.network(), task.train(), task.shares(), task.batch(), task.risk());
        try {
            return Federation.of(problem, method)
                    .devices(device.name())
                    .threads(device.threads())
                    .workers(device.threads())
                    .iterations(iterations)
                    .tau(TAU)
                    .seed(SEED)
                    .initial(Initialization.uniform(task.network().layout(), SEED))
                    .listener(new Listener() {
                        @Override
                        public void onRound(Round round) {
                            onRound.accept(round);
                        }
                    })
                    .build()
                    .run();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted while measuring", e);
        }
    }

    private static void requireSame(float[] initial, float[] ours, float[] theirs) {
        double difference = 0;
        double way = 0;
        for (int i = 0; i < initial.length; i++) {
            difference += Math.pow((double) ours[i] - theirs[i], 2);
            way += Math.pow((double) ours[i] - initial[i], 2);
        }
        double relative = Math.sqrt(difference / way);
        if (!(relative <= TOLERANCE)) {
            throw new IllegalStateException(
                    "after a round the two sides disagree by %.3g of the way they have come".formatted(relative));
        }
    }
}
