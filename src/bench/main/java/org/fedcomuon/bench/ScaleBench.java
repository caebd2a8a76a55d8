package org.fedcomuon.bench;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.function.IntFunction;
import java.util.stream.IntStream;
import org.fedcomuon.device.Device;
import org.fedcomuon.federation.Federation;
import org.fedcomuon.federation.Listener;
import org.fedcomuon.federation.Round;
import org.fedcomuon.method.ClientFault;
import org.fedcomuon.method.Clients;
import org.fedcomuon.method.FedCoMuon;
import org.fedcomuon.method.FedCoMuonVr;
import org.fedcomuon.method.Method;
import org.fedcomuon.method.Muon;
import org.fedcomuon.method.Schedule;
import org.jspecify.annotations.Nullable;

/**
 * Measures how the cost of a client step grows with the number of clients and of devices, where it should be constant,
 * and with the number of components of g, each of which has a gradient.
 */
public final class ScaleBench {
    /** Samples of each contender. */
    public static final int ROUNDS = 7;

    /** The number of steps of all clients together, chosen so that a sample takes one or two seconds. */
    public static final int CLIENT_STEPS = 5000;

    /** The size of LeNet's largest matrix. With a much smaller one, a step of few clients mostly wakes threads. */
    private static final int ROWS = 120;

    private static final int COLS = 256;

    private static final int TAU = 5;
    private static final String MEMORY = "memory per client";

    /** A constant cost, within a tenth; of d gradients it cannot be. */
    static final Aims AIMS = Aims.NONE
            .with("[^:]*, K = 1000?: .*", Aim.atLeast(0.9))
            .with("[^:]*, devices = [24]: .*", Aim.atLeast(0.9))
            .with("[^:]*, K = 1000?: .*", Aim.atMost(1.1).of(MEMORY));

    /** The numbers of clients, of components of g and of devices of a run. */
    private record Size(int clients, int d, int devices) {}

    /** A series in which one of the three varies. */
    private record Series(String symbol, List<Integer> values, IntFunction<Size> size) {}

    private static final List<Series> SERIES = List.of(
            new Series("K", List.of(10, 100, 1000), clients -> new Size(clients, 1, 1)),
            new Series("d", List.of(1, 4, 16, 64), d -> new Size(10, d, 1)),
            new Series("devices", List.of(1, 2, 4), devices -> new Size(100, 1, devices)));

    private final Device device;
    private final int rows;
    private final int cols;
    private final int clientSteps;
    private final int rounds;
    private final TurnListener listener;
    private final List<BenchReport.Row> results = new ArrayList<>();
    private final List<String> notes = new ArrayList<>();

    private ScaleBench(Device device, int rows, int cols, int clientSteps, int rounds, TurnListener listener) {
        this.device = device;
        this.rows = rows;
        this.cols = cols;
        this.clientSteps = clientSteps;
        this.rounds = rounds;
        this.listener = listener;
    }

    /**
     * Measures whole runs of a problem with almost no cost of its own.
     *
     * @param clientSteps steps of all clients together, the same for each number of clients; fewer the larger d is
     */
    public static BenchReport run(Device device, int clientSteps, int rounds, TurnListener listener) {
        return run(device, ROWS, COLS, clientSteps, rounds, listener);
    }

    static BenchReport run(Device device, int rows, int cols, int clientSteps, int rounds, TurnListener listener) {
        var bench = new ScaleBench(device, rows, cols, clientSteps, rounds, listener);
        for (Method method : methods()) {
            for (Series series : SERIES) {
                bench.measure(method, series);
            }
        }
        return new BenchReport(
                "scale",
                device.toString(),
                """
                A thousand client steps with a matrix of %d x %d; ratio = speed relative to the first of a series, where 1 \
                is a constant cost. Devices are virtual devices on the same cores.""".formatted(rows, cols),
                List.copyOf(bench.results),
                List.copyOf(bench.notes));
    }

    private void measure(Method method, Series series) {
        var contenders = new Interleaved("%s, %s".formatted(method.name(), series.symbol()), listener);
        var problems = new LinkedHashMap<Integer, ScaleProblem>();
        for (int value : series.values()) {
            Size size = series.size().apply(value);
            var problem = new ScaleProblem(rows, cols, size.clients(), size.d());
            problems.put(value, problem);
            contenders.addTimed(String.valueOf(value), () -> {
                var rounds = new LaterRounds();
                train(problem, method, size, rounds);
                return rounds.seconds();
            });
        }
        Map<String, Timing> timings = contenders.measure(rounds);
        Map<Integer, Double> seconds = new LinkedHashMap<>();
        Map<Integer, Double> memory = new LinkedHashMap<>();
        Map<Integer, Double> allocated = new LinkedHashMap<>();
        problems.forEach((value, problem) -> {
            Size size = series.size().apply(value);
            Timing timing = timings.get(String.valueOf(value));
            var counted = new LaterRounds();
            try (var recording = new AllocationRecording(1 + laterRounds(size))) {
                train(problem, method, size, counted, recording);
                allocated.put(value, (double) recording.allocatedBytes() / clientSteps(size));
            }
            seconds.put(value, timing.median() / clientSteps(size));
            memory.put(value, (double) memory(problem, method) / size.clients());
            int first = series.values().getFirst();
            Figure speed = Figure.ratio(timings.get(String.valueOf(first)), timing)
                    .times((double) clientSteps(size)
                            / clientSteps(series.size().apply(first)));
            results.add(new BenchReport.Row(
                            String.format(
                                    Locale.ROOT,
                                    "%s, %s = %d: per client %.0f bytes of memory and %d bytes sent per round; %.0f bytes"
                                            + " of heap allocated per client step",
                                    method.name(),
                                    series.symbol(),
                                    value,
                                    memory.get(value),
                                    counted.sentBytes() / size.clients() / laterRounds(size),
                                    allocated.get(value)),
                            seconds.get(value) * 1000,
                            timing.spread(),
                            0,
                            speed.median())
                    .judged(
                            AIMS,
                            Map.of(Aim.RATIO, speed, MEMORY, Figure.exactly(memory.get(value) / memory.get(first)))));
        });
        notes.add(String.format(
                Locale.ROOT,
                "%s: a client step takes time ~ %s^%.2f and allocates ~ %s^%.2f, memory per client ~ %s^%.2f",
                method.name(),
                series.symbol(),
                Growth.exponent(seconds),
                series.symbol(),
                Growth.exponent(allocated),
                series.symbol(),
                Growth.exponent(memory)));
    }

    /**
     * Returns the number of measured rounds: those after the first, in which a run touches its memory for the first
     * time.
     */
    private long laterRounds(Size size) {
        return Math.max(2, clientSteps / TAU / size.clients() / Math.max(1, size.d() / 4));
    }

    private long clientSteps(Size size) {
        return laterRounds(size) * TAU * size.clients();
    }

    private static List<Method> methods() {
        Schedule small = Schedule.constant(0.01);
        Schedule some = Schedule.constant(0.2);
        return List.of(
                new FedCoMuon(small, some, some, Muon.standard()),
                new FedCoMuonVr(small, some, some, some, some, Muon.standard()));
    }

    /** Returns the memory of the state of all clients on a device. */
    private long memory(ScaleProblem problem, Method method) {
        long before = device.liveBytes();
        List<Integer> all = IntStream.range(0, problem.clients()).boxed().toList();
        try (var clients = new Clients(device, problem, all, 1, ClientFault.Policy.FAIL, fault -> {}, 1)) {
            method.on(clients);
            return device.liveBytes() - before;
        }
    }

    private void train(ScaleProblem problem, Method method, Size size, Listener... listeners) {
        Federation.Builder run = Federation.of(problem, method)
                .devices(IntStream.range(0, size.devices())
                        .mapToObj(i -> "cpu:" + i)
                        .toArray(String[]::new))
                .threads(device.threads())
                .iterations((1 + laterRounds(size)) * TAU)
                .tau(TAU);
        for (Listener listener : listeners) {
            run.listener(listener);
        }
        try {
            run.build().run();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted while measuring", e);
        }
    }

    /** Measures the rounds after the first. */
    private static final class LaterRounds implements Listener {
        private @Nullable Round first;
        private @Nullable Round last;

        @Override
        public void onRound(Round round) {
            first = round.number() == 0 ? round : first;
            last = round;
        }

        double seconds() {
            return Objects.requireNonNull(last).seconds()
                    - Objects.requireNonNull(first).seconds();
        }

        /** Returns the bytes sent and received by all clients. */
        long sentBytes() {
            return Objects.requireNonNull(last).communicatedBytes()
                    - Objects.requireNonNull(first).communicatedBytes();
        }
    }
}
