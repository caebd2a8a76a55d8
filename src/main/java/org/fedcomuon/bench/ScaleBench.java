package org.fedcomuon.bench;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.IntFunction;
import java.util.stream.IntStream;
import org.fedcomuon.device.Device;
import org.fedcomuon.federation.Federation;
import org.fedcomuon.method.Clients;
import org.fedcomuon.method.FaultPolicy;
import org.fedcomuon.method.FedCoMuon;
import org.fedcomuon.method.FedCoMuonVr;
import org.fedcomuon.method.Method;
import org.fedcomuon.method.Muon;
import org.fedcomuon.method.Schedule;

/**
 * How the cost of a client's step grows with the number of clients and of devices, which it should not, and with the
 * components of g, of which each has a gradient.
 */
public final class ScaleBench {
    /** Samples of each contender. */
    public static final int ROUNDS = 7;

    /** Of all clients together, so that a sample takes a second or two. */
    public static final int CLIENT_STEPS = 5000;

    /** That of LeNet's largest matrix. With one much smaller a step of few clients is spent waking threads. */
    private static final int ROWS = 120;

    private static final int COLS = 256;

    private static final int TAU = 5;

    /** What is run: so many clients, components of g and devices. */
    private record Size(int clients, int d, int devices) {}

    /** One of the three that varies. */
    private record Series(String symbol, List<Integer> values, IntFunction<Size> size) {}

    private static final List<Series> SERIES = List.of(
            new Series("K", List.of(10, 100, 1000), clients -> new Size(clients, 1, 1)),
            new Series("d", List.of(1, 4, 16, 64), d -> new Size(10, d, 1)),
            new Series("devices", List.of(1, 2, 4), devices -> new Size(100, 1, devices)));

    private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();

    private final Device device;
    private final int rows;
    private final int cols;
    private final int clientSteps;
    private final int rounds;
    private final List<BenchReport.Row> results = new ArrayList<>();
    private final List<String> notes = new ArrayList<>();

    private ScaleBench(Device device, int rows, int cols, int clientSteps, int rounds) {
        this.device = device;
        this.rows = rows;
        this.cols = cols;
        this.clientSteps = clientSteps;
        this.rounds = rounds;
    }

    /**
     * Whole runs of a problem that costs next to nothing by itself.
     *
     * @param clientSteps steps of all clients together, the same for each number of clients; fewer the larger d is
     */
    public static BenchReport run(Device device, int clientSteps, int rounds) {
        return run(device, ROWS, COLS, clientSteps, rounds);
    }

    static BenchReport run(Device device, int rows, int cols, int clientSteps, int rounds) {
        var bench = new ScaleBench(device, rows, cols, clientSteps, rounds);
        for (Method method : methods()) {
            for (Series series : SERIES) {
                bench.measure(method, series);
            }
        }
        return new BenchReport(
                "scale",
                device.name(),
                """
                A thousand client steps, with a matrix of %d x %d; the ratio is against the first of a series, and 1 is a cost that \
                does not grow. Devices are virtual ones on the same cores.""".formatted(rows, cols),
                List.copyOf(bench.results),
                List.copyOf(bench.notes));
    }

    private void measure(Method method, Series series) {
        var names = new LinkedHashMap<Integer, String>();
        var contenders = new Interleaved();
        Map<Integer, Double> memory = new LinkedHashMap<>();
        Map<Integer, Double> allocated = new LinkedHashMap<>();
        for (int value : series.values()) {
            Size size = series.size().apply(value);
            var problem = new ScaleProblem(rows, cols, size.clients(), size.d());
            memory.put(value, (double) memory(problem, method) / size.clients());
            allocated.put(value, allocated(problem, method, size));
            String name = String.format(
                    Locale.ROOT,
                    "%s, %s = %d: %.0f bytes of memory and %d bytes sent a round, a client; %.0f bytes of heap allocated a step",
                    method.name(),
                    series.symbol(),
                    value,
                    memory.get(value),
                    train(problem, method, size, TAU) / size.clients(),
                    allocated.get(value));
            names.put(value, name);
            contenders.add(name, () -> train(problem, method, size, steps(size)));
        }
        Map<String, Timing> timings = contenders.measure(rounds);
        Map<Integer, Double> seconds = new LinkedHashMap<>();
        names.forEach((value, name) -> {
            Size size = series.size().apply(value);
            seconds.put(value, timings.get(name).median() / steps(size) / size.clients());
        });
        double first = seconds.get(series.values().getFirst());
        seconds.forEach((value, each) -> results.add(new BenchReport.Row(
                names.get(value), each * 1000, timings.get(names.get(value)).spread(), 0, first / each)));
        notes.add(String.format(
                Locale.ROOT,
                "%s: a client step takes time ~ %s^%.2f, memory ~ %s^%.2f; a step allocates ~ %s^%.2f",
                method.name(),
                series.symbol(),
                Growth.exponent(seconds),
                series.symbol(),
                Growth.exponent(memory),
                series.symbol(),
                Growth.exponent(allocated)));
    }

    private int steps(Size size) {
        return Math.max(TAU, clientSteps / size.clients() / Math.max(1, size.d() / 4));
    }

    private static List<Method> methods() {
        Schedule small = Schedule.constant(0.01);
        Schedule some = Schedule.constant(0.2);
        return List.of(
                new FedCoMuon(small, some, some, Muon.standard()),
                new FedCoMuonVr(small, some, some, some, some, Muon.standard()));
    }

    /** What the state of all clients takes on a device. */
    private long memory(ScaleProblem problem, Method method) {
        long before = device.liveBytes();
        List<Integer> all = IntStream.range(0, problem.clients()).boxed().toList();
        try (var clients = new Clients(device, problem, all, 1, FaultPolicy.FAIL, fault -> {}, 1)) {
            method.on(clients);
            return device.liveBytes() - before;
        }
    }

    /**
     * Bytes of the heap that a step allocates, by the JVM's count over all threads: what a run takes that is twice as
     * long, because its start allocates too, and so does the compiler in the first of all.
     */
    private double allocated(ScaleProblem problem, Method method, Size size) {
        int steps = Math.max(2 * TAU, 1000 / size.clients());
        train(problem, method, size, 2 * steps);
        long before = THREADS.getTotalThreadAllocatedBytes();
        train(problem, method, size, steps);
        long between = THREADS.getTotalThreadAllocatedBytes();
        train(problem, method, size, 2 * steps);
        return (double) (THREADS.getTotalThreadAllocatedBytes() - between - (between - before)) / steps;
    }

    /** Bytes that the clients sent and received in the rounds. */
    private long train(ScaleProblem problem, Method method, Size size, int steps) {
        try {
            return Federation.of(problem, method)
                    .devices(IntStream.range(0, size.devices())
                            .mapToObj(i -> "cpu:" + i)
                            .toArray(String[]::new))
                    .threads(device.threads())
                    .iterations(steps)
                    .tau(TAU)
                    .build()
                    .run()
                    .communicatedBytes();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted while measuring", e);
        }
    }
}
