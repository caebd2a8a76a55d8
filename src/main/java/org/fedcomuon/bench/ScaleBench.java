package org.fedcomuon.bench;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
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
import org.fedcomuon.problem.RateTestbed;

/** How the cost of a client grows with the number of clients: it should not. */
public final class ScaleBench {
    /** Samples of each contender. */
    public static final int ROUNDS = 7;

    /** Of all clients together, so that a sample takes about a second. */
    public static final int CLIENT_STEPS = 200_000;

    private static final List<Integer> CLIENTS = List.of(10, 30, 100, 300, 1000);
    private static final int TAU = 5;

    private ScaleBench() {}

    /**
     * Whole runs on the test-bed.
     *
     * @param clientSteps steps of all clients together, the same for each number of clients
     */
    public static BenchReport run(Device device, int clientSteps, int rounds) {
        var rows = new ArrayList<BenchReport.Row>();
        for (Method method : methods()) {
            var names = new LinkedHashMap<Integer, String>();
            var contenders = new Interleaved();
            for (int clients : CLIENTS) {
                var problem = new RateTestbed(clients, 1);
                String name = "%s, K = %d: %d bytes of memory and %d bytes sent a round, a client"
                        .formatted(
                                method.name(),
                                clients,
                                memory(device, problem, method) / clients,
                                train(device, problem, method, TAU) / clients);
                names.put(clients, name);
                contenders.add(name, () -> train(device, problem, method, clientSteps / clients));
            }
            var timings = contenders.measure(rounds);
            double base = timings.get(names.get(CLIENTS.getFirst())).median();
            names.values().forEach(name -> {
                Timing timing = timings.get(name);
                rows.add(new BenchReport.Row(
                        name, timing.median() / clientSteps * 1000, timing.spread(), 0, base / timing.median()));
            });
        }
        return new BenchReport(
                "scale",
                device.name(),
                "A thousand client steps on the test-bed; the ratio is against K = %d, and 1 is a cost that does not grow."
                        .formatted(CLIENTS.getFirst()),
                List.copyOf(rows));
    }

    private static List<Method> methods() {
        Schedule small = Schedule.constant(0.01);
        Schedule some = Schedule.constant(0.2);
        return List.of(
                new FedCoMuon(small, some, some, Muon.standard()),
                new FedCoMuonVr(small, some, some, some, some, Muon.standard()));
    }

    /** What the state of all clients takes on the device. */
    private static long memory(Device device, RateTestbed problem, Method method) {
        long before = device.liveBytes();
        List<Integer> all = IntStream.range(0, problem.clients()).boxed().toList();
        try (var clients = new Clients(device, problem, all, 1, FaultPolicy.FAIL, fault -> {}, 1)) {
            method.on(clients);
            return device.liveBytes() - before;
        }
    }

    /** Bytes that the clients sent and received in the rounds. */
    private static long train(Device device, RateTestbed problem, Method method, int steps) {
        try {
            return Federation.of(problem, method)
                    .devices(device.name())
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
