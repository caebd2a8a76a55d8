package org.fedcomuon.bench;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.function.Consumer;
import org.fedcomuon.device.Device;
import org.fedcomuon.federation.Federation;
import org.fedcomuon.federation.Listener;
import org.fedcomuon.federation.Result;
import org.fedcomuon.federation.Round;
import org.fedcomuon.linalg.Coefficients;
import org.fedcomuon.method.Method;
import org.fedcomuon.model.CifarCnn;
import org.fedcomuon.model.Initialization;

/**
 * Compares whole rounds of the two algorithms (10 clients, tau = 5) with the straightforward libtorch loop, from the
 * same initial weights and on the same samples, with the best settings of libtorch's threads or on the same GPU. Both
 * must compute the same weights before anything is timed. On a GPU the time is not divided into parts, because the host
 * sees when work was submitted, not when it was done.
 */
public final class RoundBench {
    /** Samples of each contender. */
    public static final int ROUNDS = 9;

    /** How the name of our own rounds begins. */
    static final String OURS = "fedcomuon";

    private static final String MNIST = "mnist";
    private static final String CIFAR_CNN = "cifar-cnn";

    /** The names of the tasks. */
    public static final List<String> TASKS = List.of(MNIST, CIFAR_CNN);

    /** The number of rounds per sample; start and end of a run are not part of its rounds. */
    private static final int MNIST_ROUNDS = 20;

    /**
     * The tolerance relative to the change of the weights: five Newton-Schulz steps amplify rounding errors about 500
     * times.
     */
    private static final double TOLERANCE = 1e-4;

    /** The tolerance relative to the effect of an ulp of the initial weights. */
    private static final double ULPS = 2;

    private static final String OPTIMIZER = "optimizer's share";
    private static final String EVALUATIONS = "evaluations' share";

    /** Whole runs to measure. */
    private static final int WHOLE_RUNS = 3;

    /** Those of the paper's sizes; of the time of the steps, the optimizer's share is what is not gradients. */
    static final Aims AIMS = Aims.NONE
            .with("mnist, [^:]*: libtorch loop, .* threads", Aim.atLeast(1.5))
            .with("cifar-cnn, [^:]*: libtorch loop, .* threads", Aim.atLeast(1.3))
            .with("mnist, [^:]*: fedcomuon, .*", Aim.atMost(0.2).of(OPTIMIZER))
            .with("cifar-cnn, fedcomuon: fedcomuon, .*", Aim.atMost(0.4).of(OPTIMIZER))
            .with("cifar-cnn, fedcomuon-vr: fedcomuon, .*", Aim.atMost(0.3).of(OPTIMIZER))
            .with("mnist-robust, whole run: fedcomuon, .*", Aim.atMost(0.3).of(EVALUATIONS));

    private final Device device;
    private final Aims aims;
    private final int rounds;
    private final TurnListener listener;
    private final List<String> notes = new ArrayList<>();

    private RoundBench(Device device, Aims aims, int rounds, TurnListener listener) {
        this.device = device;
        this.aims = aims;
        this.rounds = rounds;
        this.listener = listener;
    }

    /**
     * Runs the benchmark.
     *
     * @param rounds samples of each contender
     * @param small whether the tasks are so small that simulated devices run them in minutes
     * @param tasks some of {@link #TASKS}
     */
    public static BenchReport run(Device device, int rounds, boolean small, List<String> tasks, TurnListener listener) {
        BenchReport report = run(
                device,
                small ? Aims.NONE : AIMS,
                rounds,
                listener,
                tasks.stream().map(name -> task(name, small)).toList());
        if (small || !device.isHost() || !tasks.contains(MNIST)) {
            return report;
        }
        var rows = new ArrayList<>(report.rows());
        rows.add(wholeRun("mnist-robust", Map.of(), device, AIMS, listener));
        return new BenchReport(report.suite(), report.device(), report.explanation(), rows, report.notes());
    }

    /** Measures what part of whole runs of a preset is evaluations. */
    static BenchReport.Row wholeRun(
            String preset, Map<String, String> changes, Device device, Aims aims, TurnListener listener) {
        var runs = new ArrayList<DefaultRun.Measured>();
        String what = preset + ", whole run";
        for (int i = 0; i < WHOLE_RUNS; i++) {
            listener.onTurn(what, i, WHOLE_RUNS);
            runs.add(DefaultRun.of(preset, changes, device));
        }
        listener.onTurn(what, WHOLE_RUNS, WHOLE_RUNS);
        Timing timing = Timing.of(
                runs.stream().mapToDouble(DefaultRun.Measured::seconds).toArray());
        Figure evaluations = Figure.of(runs.stream()
                .mapToDouble(run -> run.parts().get(DefaultRun.EVALUATIONS))
                .toArray());
        return new BenchReport.Row(
                        "%s: %s".formatted(what, us(device)),
                        timing.median(),
                        timing.spread(),
                        0,
                        1,
                        runs.getLast().parts(),
                        List.of())
                .judged(aims, Map.of(Aim.RATIO, Figure.exactly(1), EVALUATIONS, evaluations));
    }

    private static RoundTask task(String name, boolean small) {
        return switch (name) {
            case MNIST -> RoundTask.mnist(small ? 1 : MNIST_ROUNDS);
            case CIFAR_CNN ->
                small
                        ? RoundTask.cifarCnn(new CifarCnn.Sizes(8, 4, 6, 3, 20, 10), 4)
                        : RoundTask.cifarCnn(CifarCnn.Sizes.paper(), 64);
            default -> throw new IllegalArgumentException("unknown task %s; the tasks are %s".formatted(name, TASKS));
        };
    }

    static BenchReport run(Device device, Aims aims, int rounds, TurnListener listener, List<RoundTask> tasks) {
        var bench = new RoundBench(device, aims, rounds, listener);
        Optional<String> obstacle = TorchPlace.obstacle(device);
        obstacle.ifPresent(bench.notes::add);
        Optional<TorchPlace> torch = obstacle.isPresent() ? Optional.empty() : Optional.of(TorchPlace.of(device));
        var rows = new ArrayList<BenchReport.Row>();
        for (RoundTask task : tasks) {
            for (RoundTask.Algorithm algorithm : task.algorithms()) {
                rows.addAll(torch.map(place -> bench.contest(task, algorithm, place))
                        .orElseGet(() -> bench.alone(task, algorithm)));
            }
        }
        return new BenchReport(
                "round",
                device.toString(),
                """
                A round of %d clients with %d steps; ratio = the loop's time relative to ours (> 1: ours is faster). \
                libtorch's thread settings near the best are measured.""".formatted(RoundTask.CLIENTS, RoundTask.TAU),
                List.copyOf(rows),
                List.copyOf(bench.notes));
    }

    private static String what(RoundTask task, RoundTask.Algorithm algorithm) {
        return "%s, %s".formatted(task.name(), algorithm.method().name());
    }

    private String us() {
        return us(device);
    }

    private static String us(Device device) {
        return device.isHost() ? "%s, %d threads".formatted(OURS, device.threads()) : OURS;
    }

    /** Measures ours without a peer. */
    private List<BenchReport.Row> alone(RoundTask task, RoundTask.Algorithm algorithm) {
        int steps = task.rounds() * RoundTask.TAU;
        return rows(
                task,
                what(task, algorithm),
                new Interleaved(what(task, algorithm), device::synchronize, listener)
                        .add(us(), () -> ours(task, algorithm.method(), steps))
                        .measure(Math.min(rounds, task.mostSamples())),
                Map.of());
    }

    /**
     * Returns the rows of a task.
     *
     * @param parts the shares of the parts in every run of a contender; the last of them are those of its samples
     */
    private List<BenchReport.Row> rows(
            RoundTask task, String what, Map<String, Timing> timings, Map<String, List<Map<String, Double>>> parts) {
        Timing our = timings.get(us());
        var rows = new ArrayList<BenchReport.Row>();
        timings.forEach((name, timing) -> {
            var figures = new LinkedHashMap<String, Figure>();
            figures.put(Aim.RATIO, Figure.ratio(timing, our));
            List<Map<String, Double>> runs = device.isHost() ? parts.getOrDefault(name, List.of()) : List.of();
            if (!runs.isEmpty()) {
                figures.put(
                        OPTIMIZER,
                        Figure.of(runs.subList(runs.size() - timing.samples().size(), runs.size()).stream()
                                .mapToDouble(RoundBench::optimizer)
                                .toArray()));
            }
            rows.add(new BenchReport.Row(
                            what + ": " + name,
                            timing.median() / task.rounds(),
                            timing.spread(),
                            0,
                            figures.get(Aim.RATIO).median(),
                            runs.isEmpty() ? Map.of() : runs.getLast(),
                            List.of())
                    .judged(aims, figures));
        });
        return rows;
    }

    /** Returns the part of the steps that is not gradients. */
    private static double optimizer(Map<String, Double> parts) {
        return 1 - parts.get("gradient") / (1 - parts.get("other"));
    }

    private List<BenchReport.Row> contest(RoundTask task, RoundTask.Algorithm algorithm, TorchPlace place) {
        float[] initial =
                Initialization.uniform(task.network().layout(), RoundTask.SEED).toArray();
        int steps = task.rounds() * RoundTask.TAU;
        try (var loop = new TorchRounds(
                place,
                task.network(),
                task.loss(),
                RoundTask.CLIENTS,
                task.risk(),
                RoundTask.SEED,
                Coefficients.jordan(5).steps())) {
            Runnable alone = place.settings(1).values().iterator().next();
            alone.run();
            String what = what(task, algorithm);
            listener.onTurn(what + ": whether both sides give the same weights", 0, 1);
            requireSame(task, algorithm, loop, initial);

            Map<String, List<Map<String, Double>>> parts = new LinkedHashMap<>();
            var contest = new Interleaved(
                            what,
                            () -> {
                                device.synchronize();
                                place.synchronize();
                            },
                            listener)
                    .add(us(), alone, () -> all(parts, us()).add(ours(task, algorithm.method(), steps)));
            var rivals = new LinkedHashSet<String>();
            place.settings(device.threads()).forEach((setting, use) -> {
                String name = "libtorch loop, %s".formatted(setting);
                rivals.add(name);
                contest.add(
                        name,
                        use,
                        () -> all(parts, name)
                                .add(theirs(loop, () -> algorithm.peer().run(loop, initial, steps))));
            });
            Map<String, Timing> timings = contest.measure(Math.min(rounds, task.mostSamples()), rivals);
            alone.run();
            return rows(task, what, timings, parts);
        }
    }

    private static List<Map<String, Double>> all(Map<String, List<Map<String, Double>>> parts, String name) {
        return parts.computeIfAbsent(name, _ -> new ArrayList<>());
    }

    private Map<String, Double> ours(RoundTask task, Method method, int steps) {
        var done = new ArrayList<Round>();
        train(
                task,
                method,
                Initialization.uniform(task.network().layout(), RoundTask.SEED).toArray(),
                steps,
                done::add);
        Round all = done.getLast();
        double track = all.stepSeconds() - all.gradientSeconds() - all.orthogonalizeSeconds() - all.exchangeSeconds();
        return parts(all.seconds(), all.gradientSeconds(), track, all.orthogonalizeSeconds(), all.exchangeSeconds());
    }

    private static Map<String, Double> theirs(TorchRounds loop, Runnable work) {
        loop.takeSplit();
        long start = System.nanoTime();
        work.run();
        double seconds = (System.nanoTime() - start) * 1e-9;
        TorchRounds.Split split = loop.takeSplit();
        return parts(seconds, split.gradient, split.track, split.orthogonalize, split.average);
    }

    private static Map<String, Double> parts(
            double all, double gradient, double track, double orthogonalize, double average) {
        var parts = new LinkedHashMap<String, Double>();
        parts.put("gradient", gradient / all);
        parts.put("track", track / all);
        parts.put("orthogonalize", orthogonalize / all);
        parts.put("average", average / all);
        parts.put("other", 1 - (gradient + track + orthogonalize + average) / all);
        return parts;
    }

    private Result train(RoundTask task, Method method, float[] initial, int iterations, Consumer<Round> onRound) {
        try {
            return Federation.of(task.problem(), method)
                    .devices(device.name())
                    .threads(device.threads())
                    .workers(device.threads())
                    .iterations(iterations)
                    .tau(RoundTask.TAU)
                    .seed(RoundTask.SEED)
                    .initial(initial)
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

    /**
     * Requires that both sides compute the same weights after a round. Where a round amplifies an ulp beyond the
     * tolerance, they must agree after a step, and after a round differ by no more than an ulp of the initial weights
     * changes ours.
     */
    private void requireSame(RoundTask task, RoundTask.Algorithm algorithm, TorchRounds loop, float[] initial) {
        double round = difference(task, algorithm, loop, initial, RoundTask.TAU);
        if (round <= TOLERANCE) {
            return;
        }
        double step = difference(task, algorithm, loop, initial, 1);
        var next = new float[initial.length];
        for (int i = 0; i < next.length; i++) {
            next[i] = Math.nextUp(initial[i]);
        }
        double ulp = difference(
                initial,
                weights(task, algorithm, initial, RoundTask.TAU),
                weights(task, algorithm, next, RoundTask.TAU));
        String found = String.format(
                Locale.ROOT,
                "%s, %s: relative to the change of the weights, the two sides differ by %.2g after a"
                        + " step and by %.2g after a round; ours differs by"
                        + " %.2g from itself when the initial weights are changed by an ulp",
                task.name(),
                algorithm.method().name(),
                step,
                round,
                ulp);
        if (!(step <= TOLERANCE && round <= ULPS * ulp)) {
            throw new IllegalStateException(found);
        }
        notes.add(found);
    }

    private double difference(
            RoundTask task, RoundTask.Algorithm algorithm, TorchRounds loop, float[] initial, int steps) {
        return difference(
                initial,
                weights(task, algorithm, initial, steps),
                algorithm.peer().run(loop, initial, steps));
    }

    private float[] weights(RoundTask task, RoundTask.Algorithm algorithm, float[] initial, int steps) {
        return train(task, algorithm.method(), initial, steps, round -> {})
                .weights()
                .values()
                .toArray();
    }

    /** Returns the difference relative to the change of our weights. */
    private static double difference(float[] initial, float[] ours, float[] theirs) {
        double difference = 0;
        double way = 0;
        for (int i = 0; i < initial.length; i++) {
            difference += Math.pow((double) ours[i] - theirs[i], 2);
            way += Math.pow((double) ours[i] - initial[i], 2);
        }
        return Math.sqrt(difference / way);
    }
}
