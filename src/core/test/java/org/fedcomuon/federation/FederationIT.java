package org.fedcomuon.federation;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import java.util.stream.Stream;
import org.fedcomuon.device.DeviceException;
import org.fedcomuon.method.ClientFault;
import org.fedcomuon.method.ClientFaultException;
import org.fedcomuon.method.Clients;
import org.fedcomuon.method.DivergedException;
import org.fedcomuon.method.FedAvg;
import org.fedcomuon.method.FedCoMuon;
import org.fedcomuon.method.FedMuon;
import org.fedcomuon.method.Method;
import org.fedcomuon.method.Scaffold;
import org.fedcomuon.method.Schedule;
import org.fedcomuon.problem.Block;
import org.fedcomuon.problem.Client;
import org.fedcomuon.problem.Floats;
import org.fedcomuon.problem.Layout;
import org.fedcomuon.problem.Loss;
import org.fedcomuon.problem.MatrixQuadratics;
import org.fedcomuon.problem.Point;
import org.fedcomuon.problem.Problem;
import org.fedcomuon.problem.Risk;
import org.fedcomuon.problem.testbed.RateTestbed;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Whole runs: where they run does not matter, what they tell is true, and they end as asked. */
class FederationIT {
    private static final int CLIENTS = 8;
    private static final int PARAMETERS = RateTestbed.ROWS * RateTestbed.COLS;

    static Stream<Method> methods() {
        return AllMethods.all();
    }

    static Stream<Method> methodsOfAnyProblem() {
        return AllMethods.ofAnyProblem();
    }

    static Stream<Method> plainMethods() {
        return AllMethods.plain();
    }

    private static Federation.Builder testbed(Method method) {
        return Federation.of(AllMethods.problem(method, CLIENTS), method)
                .iterations(23)
                .tau(5)
                .seed(42);
    }

    @ParameterizedTest
    @MethodSource("methods")
    void theNumberOfDevicesAndThreadsDoesNotChangeABit(Method method) throws Exception {
        var hashes = new HashSet<String>();
        hashes.add(testbed(method).threads(1).workers(1).build().run().sha256());
        for (int threads : new int[] {2, 4}) {
            hashes.add(testbed(method)
                    .threads(threads)
                    .workers(threads)
                    .build()
                    .run()
                    .sha256());
        }
        hashes.add(testbed(method).devices("cpu:0", "cpu:1").build().run().sha256());
        hashes.add(testbed(method)
                .devices("cpu:0", "cpu:1", "cpu:2")
                .threads(4)
                .build()
                .run()
                .sha256());
        hashes.add(testbed(method)
                .devices("cpu:0", "cpu:1", "cpu:2", "cpu:3", "cpu:4", "cpu:5", "cpu:6", "cpu:7")
                .build()
                .run()
                .sha256());
        assertThat(hashes).hasSize(1);
        assertThat(testbed(method).seed(43).build().run().sha256()).isNotIn(hashes);
    }

    @ParameterizedTest
    @MethodSource("methods")
    void partialParticipationAndWeightsNeitherChangeThat(Method method) throws Exception {
        var hashes = new HashSet<String>();
        for (List<String> devices :
                List.of(List.of("cpu:0"), List.of("cpu:0", "cpu:1"), List.of("cpu:0", "cpu:1", "cpu:2"))) {
            hashes.add(testbed(method)
                    .devices(devices.toArray(String[]::new))
                    .participation(0.4)
                    .weights(5, 1, 1, 1, 2, 1, 1, 3)
                    .build()
                    .run()
                    .sha256());
        }
        assertThat(hashes).hasSize(1);
        assertThat(testbed(method).participation(0.4).build().run().sha256()).isNotIn(hashes);
    }

    /** Client 5 costs as much as all others together, and the second device is the fast one. */
    @Test
    void clientsArePlacedByCostAndNoBitDependsOnIt() throws Exception {
        Problem bed = new RateTestbed(CLIENTS, 1);
        var places = new ConcurrentHashMap<Integer, String>();
        var uneven = new Problem() {
            @Override
            public Layout layout() {
                return bed.layout();
            }

            @Override
            public int innerDimension() {
                return bed.innerDimension();
            }

            @Override
            public int clients() {
                return bed.clients();
            }

            @Override
            public double cost(int k) {
                return k == 5 ? CLIENTS - 1 : 1;
            }

            @Override
            public Client client(int k) {
                places.put(k, Thread.currentThread().getName());
                return bed.client(k);
            }
        };
        Method method = AllMethods.fedCoMuonVr();
        String hash = Federation.of(uneven, method)
                .devices("cpu:0", "cpu:1")
                .iterations(23)
                .tau(5)
                .seed(42)
                .build()
                .run()
                .sha256();
        assertThat(hash).isEqualTo(testbed(method).build().run().sha256());
        for (int k = 0; k < CLIENTS; k++) {
            assertThat(places.get(k)).isEqualTo(k == 5 ? "federation-cpu:0" : "federation-cpu:1");
        }
        Federation.of(uneven, method)
                .devices("cpu:0", "cpu:1")
                .speeds(1, 10)
                .iterations(1)
                .build()
                .run();
        assertThat(places.get(5)).isEqualTo("federation-cpu:1");
    }

    @ParameterizedTest
    @MethodSource("plainMethods")
    void singleLevelMethodsFindTheMinimumOfQuadratics(Method method) throws Exception {
        var problem = new MatrixQuadratics(6, 5, 4, 0.3, 0.05, Risk.mean(), 3);
        double least = problem.objective(problem.minimum());
        double start = problem.objective(new double[20]);
        Result result = Federation.of(problem, method)
                .iterations(2000)
                .tau(5)
                .seed(1)
                .build()
                .run();
        double end = problem.objective(doubles(result.weights()));
        assertThat((end - least) / (start - least)).isBetween(0.0, 0.02);
    }

    @Test
    void scaffoldRemovesTheBiasThatFedAvgHas() throws Exception {
        var problem = new MatrixQuadratics(6, 5, 4, 2, 0, Risk.mean(), 3);
        double least = problem.objective(problem.minimum());
        Result biased = Federation.of(problem, new FedAvg(Schedule.constant(0.2)))
                .iterations(2000)
                .tau(10)
                .build()
                .run();
        Result corrected = Federation.of(problem, new Scaffold(Schedule.constant(0.2), 1))
                .iterations(2000)
                .tau(10)
                .build()
                .run();
        assertThat(problem.objective(doubles(biased.weights())) - least).isGreaterThan(1e-2);
        assertThat(problem.objective(doubles(corrected.weights())) - least).isLessThan(1e-8);
    }

    private static double[] doubles(Point point) {
        Floats values = point.values();
        var all = new double[(int) values.length()];
        for (int i = 0; i < all.length; i++) {
            all[i] = values.get(i);
        }
        return all;
    }

    /** Keeps everything it hears. */
    private static class Notes implements Listener {
        final List<Long> steps = new ArrayList<>();
        final List<Round> rounds = new ArrayList<>();
        final List<Evaluation> evaluations = new ArrayList<>();
        final List<String> warnings = new ArrayList<>();

        @Override
        public void onStep(long step) {
            steps.add(step);
        }

        @Override
        public void onRound(Round round) {
            rounds.add(round);
        }

        @Override
        public void onEvaluation(Evaluation evaluation) {
            evaluations.add(evaluation);
        }

        @Override
        public void onWarning(String warning) {
            warnings.add(warning);
        }
    }

    @Test
    void tellsStepsRoundsAndEvaluations() throws Exception {
        var notes = new Notes();
        testbed(AllMethods.fedCoMuon())
                .devices("cpu:0", "cpu:1")
                .evaluate(
                        10,
                        (step, average) ->
                                Map.of("w0", (double) average.values().get(0)))
                .listener(notes)
                .build()
                .run();
        assertThat(notes.steps).hasSize(23).startsWith(1L).endsWith(23L).isSorted();
        assertThat(notes.rounds).extracting(Round::number).containsExactly(0L, 1L, 2L, 3L);
        assertThat(notes.rounds).extracting(Round::step).containsExactly(5L, 10L, 15L, 20L);
        assertThat(notes.rounds).allMatch(round -> round.participants() == CLIENTS && round.dropped() == 0);
        assertThat(notes.rounds.getLast().seconds()).isPositive();
        assertThat(notes.rounds.getLast().gradientSeconds()).isPositive();
        assertThat(notes.rounds.getLast().orthogonalizeSeconds()).isPositive();
        assertThat(notes.evaluations).extracting(Evaluation::step).containsExactly(0L, 10L, 20L, 23L);
        assertThat(notes.evaluations).extracting(Evaluation::round).containsExactly(0L, 2L, 4L, 4L);
        assertThat(notes.evaluations.getFirst().metrics()).containsEntry("w0", 0.0);
        assertThat(notes.warnings).isEmpty();
    }

    /** The testbed has d = 5: a method without a tracker is told so once, whatever the number of devices. */
    @ParameterizedTest
    @MethodSource("methodsOfAnyProblem")
    void singleLevelMethodsAreWarnedOfSeveralComponents(Method method) throws Exception {
        var notes = new Notes();
        testbed(method).devices("cpu:0", "cpu:1").listener(notes).build().run();
        if (AllMethods.plain().anyMatch(method::equals)) {
            assertThat(notes.warnings).singleElement().asString().contains(method.name(), "d = 5", "biased");
        } else {
            assertThat(notes.warnings).isEmpty();
        }
        assertThat(notes.rounds).allMatch(round -> Double.isNaN(round.meanLoss()));
    }

    @Test
    void evaluationDoesNotDisturbTheRun() throws Exception {
        String without = testbed(AllMethods.fedCoMuonVr()).build().run().sha256();
        String with = testbed(AllMethods.fedCoMuonVr())
                .evaluate(1, (step, average) -> Map.of())
                .build()
                .run()
                .sha256();
        assertThat(with).isEqualTo(without);
    }

    @Test
    void bytesAreThoseThatTheAlgorithmsSend() throws Exception {
        long model = PARAMETERS * 4L;
        var alone = new Notes();
        Result result = testbed(AllMethods.fedCoMuon()).listener(alone).build().run();
        // One round trip a round: W and M up, W and M down, for each client.
        assertThat(result.roundTrips()).isEqualTo(4);
        assertThat(result.communicatedBytes()).isEqualTo(4 * CLIENTS * 2 * 2 * model);
        assertThat(alone.rounds.getFirst().communicatedBytes()).isEqualTo(CLIENTS * 2 * 2 * model);

        result = testbed(AllMethods.fedCoMuonVr()).build().run();
        // M once at the start, then W and M in two round trips a round.
        assertThat(result.roundTrips()).isEqualTo(1 + 2 * 4);
        assertThat(result.communicatedBytes()).isEqualTo((1 + 2 * 4) * CLIENTS * 2 * model);

        result = testbed(new FedAvg(Schedule.constant(0.1)))
                .participation(0.5)
                .build()
                .run();
        assertThat(result.communicatedBytes()).isEqualTo(4 * (CLIENTS / 2) * 2 * model);
    }

    @Test
    void aVirtualAverageIsTheMeanOfTheClients() throws Exception {
        // One step before the exchange, the mean of what the clients hold; W moves by -eta polar(M) of each.
        var seen = new ArrayList<Double>();
        testbed(new FedAvg(Schedule.constant(0.05)))
                .iterations(5)
                .evaluate(1, (step, average) -> {
                    seen.add((double) average.values().get(3));
                    return Map.of();
                })
                .build()
                .run();
        Result atSync = testbed(new FedAvg(Schedule.constant(0.05)))
                .iterations(5)
                .build()
                .run();
        assertThat(seen.getLast()).isEqualTo((double) atSync.weights().values().get(3));
        Result before = testbed(new FedAvg(Schedule.constant(0.05)))
                .iterations(4)
                .build()
                .run();
        assertThat(seen.get(4)).isEqualTo((double) before.weights().values().get(3));
        assertThat(seen.get(4)).isNotEqualTo(seen.get(5));
    }

    @Test
    void warnsOutsideOfTheTheory() throws Exception {
        var notes = new Notes();
        testbed(new FedCoMuon(Schedule.constant(0.01), Schedule.constant(0.3), Schedule.constant(0.1), AllMethods.MUON))
                .listener(notes)
                .build()
                .run();
        assertThat(notes.warnings).singleElement().asString().contains("alpha * tau = 1.5");
    }

    @Test
    void aRunThatDivergesNamesStepClientAndBlock() {
        // Gradients that stay finite while the weights do not.
        Loss steep = (xi, w, gradient) -> {
            gradient.values().fill(3e38);
            return 0;
        };
        var layout = Layout.of(Block.vector("bias", 3), Block.matrix("weight", 4, 3));
        var problem = Problem.ofLosses(layout, List.of(steep, steep, steep), Risk.mean());
        assertThatThrownBy(() -> Federation.of(problem, new FedAvg(Schedule.constant(1)))
                        .iterations(1000)
                        .tau(2)
                        .devices("cpu:0", "cpu:1")
                        .build()
                        .run())
                .isInstanceOfSatisfying(DivergedException.class, e -> {
                    assertThat(e.step()).isEqualTo(1);
                    assertThat(e.client()).isZero();
                    assertThat(e.place()).isEqualTo("block 'bias'");
                })
                .hasMessageContaining("diverged in step 1: W of client 0 is not finite in block 'bias'");
    }

    /** Before the average, which would not say whose value it was. */
    @ParameterizedTest
    @ValueSource(strings = {"cpu:0", "cpu:0,cpu:1", "cpu:0,cpu:1,cpu:2"})
    void theClientThatDivergesIsNamedWhicheverItIs(String devices) {
        Loss flat = (xi, w, gradient) -> 0;
        Loss steep = (xi, w, gradient) -> {
            gradient.values().fill(3e38);
            return 0;
        };
        var layout = Layout.of(Block.vector("bias", 3), Block.matrix("weight", 4, 3));
        var problem = Problem.ofLosses(layout, List.of(flat, flat, steep, flat), Risk.mean());
        assertThatThrownBy(() -> Federation.of(problem, new FedAvg(Schedule.constant(1)))
                        .iterations(1000)
                        .tau(2)
                        .devices(devices.split(","))
                        .build()
                        .run())
                .isInstanceOf(DivergedException.class)
                .hasMessageContaining("diverged in step 1: W of client 2 is not finite in block 'bias'");
    }

    @Test
    void aLossThatLeavesTheRangeFirstSaysHowFarTheWeightsAre() {
        var problem = new MatrixQuadratics(3, 4, 3, 1, 0, Risk.mean(), 1);
        assertThatThrownBy(() -> Federation.of(problem, new FedAvg(Schedule.constant(1e6)))
                        .iterations(1000)
                        .build()
                        .run())
                .isInstanceOfSatisfying(ClientFaultException.class, e -> {
                    assertThat(e.fault().kind()).isEqualTo(ClientFault.Kind.NOT_FINITE);
                    assertThat(e.fault().step()).isBetween(2L, 10L);
                })
                .hasMessageMatching(".*loss is not finite in component 0, at a W as large as \\d.*e\\+\\d+");
    }

    @Test
    void stopsAfterTheStepItIsIn() throws Exception {
        var federation = new Federation[1];
        var builder = testbed(AllMethods.fedCoMuon()).devices("cpu:0", "cpu:1").listener(new Listener() {
            @Override
            public void onStep(long step) {
                if (step == 7) {
                    federation[0].stop();
                }
            }
        });
        federation[0] = builder.build();
        Result result = federation[0].run();
        assertThat(result.stopped()).isTrue();
        assertThat(result.step()).isEqualTo(7);
    }

    @Test
    void anInterruptedCallerStopsTheRun() throws Exception {
        var started = new CountDownLatch(1);
        var interrupted = new AtomicBoolean();
        Federation federation = testbed(AllMethods.fedCoMuon())
                .iterations(100_000_000)
                .listener(new Listener() {
                    @Override
                    public void onStep(long step) {
                        started.countDown();
                    }
                })
                .build();
        Thread caller = Thread.ofPlatform().start(() -> {
            try {
                federation.run();
            } catch (InterruptedException e) {
                interrupted.set(true);
            }
        });
        started.await();
        caller.interrupt();
        caller.join();
        assertThat(interrupted).isTrue();
    }

    @Test
    void runsOnce() throws Exception {
        Federation federation = testbed(AllMethods.fedCoMuon()).build();
        federation.run();
        assertThatThrownBy(federation::run).isInstanceOf(IllegalStateException.class);
    }

    @Test
    void severalRunAtOnce() throws Exception {
        String alone =
                testbed(AllMethods.fedCoMuonVr()).iterations(500).build().run().sha256();
        Set<String> hashes = java.util.concurrent.ConcurrentHashMap.newKeySet();
        var threads = new ArrayList<Thread>();
        for (int i = 0; i < 4; i++) {
            threads.add(Thread.ofPlatform().start(() -> {
                try {
                    hashes.add(testbed(AllMethods.fedCoMuonVr())
                            .iterations(500)
                            .devices("cpu:0", "cpu:1")
                            .build()
                            .run()
                            .sha256());
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                }
            }));
        }
        for (Thread thread : threads) {
            thread.join();
        }
        assertThat(hashes).containsExactly(alone);
    }

    @Test
    void whatAnEvaluatorOrListenerThrowsEndsTheRun() {
        assertThatThrownBy(() -> testbed(AllMethods.fedCoMuon())
                        .devices("cpu:0", "cpu:1")
                        .evaluate(5, (step, average) -> {
                            throw new java.io.IOException("no room");
                        })
                        .build()
                        .run())
                .isInstanceOf(Evaluation.FailedException.class)
                .hasMessageContaining("step 0")
                .hasMessageContaining("no room");
        assertThatThrownBy(() -> testbed(AllMethods.fedCoMuon())
                        .devices("cpu:0", "cpu:1")
                        .listener(new Listener() {
                            @Override
                            public void onRound(Round round) {
                                throw new IllegalStateException("heard enough");
                            }
                        })
                        .build()
                        .run())
                .hasMessage("heard enough");
    }

    @Test
    void aMissingDeviceIsNamed() {
        assertThatThrownBy(() -> testbed(AllMethods.fedCoMuon())
                        .devices("cpu:0", "gpu:0")
                        .build()
                        .run())
                .isInstanceOf(DeviceException.Unavailable.class)
                .hasMessageContaining("gpu:0");
    }

    @Test
    void aMethodOfOnesOwnRunsLikeAnyOther() throws Exception {
        record SignDescent(double eta) implements Method {
            @Override
            public String name() {
                return "normalised";
            }

            @Override
            public Map<String, Object> parameters() {
                return Map.of("eta", eta);
            }

            @Override
            public void validate(long iterations, int tau) {}

            @Override
            public Replica on(Clients clients) {
                var gradient = clients.scratch("gradient", clients.n());
                return new Replica() {
                    @Override
                    public void step(Step t, Server server) {
                        clients.gradient(clients.weights(), gradient);
                        clients.weights().add(-eta, gradient);
                        if (t.isSync()) {
                            server.average(clients.weights());
                        }
                    }
                };
            }
        }
        assertThat(testbed(new SignDescent(0.05)).build().run().sha256())
                .isEqualTo(testbed(new FedAvg(Schedule.constant(0.05)))
                        .build()
                        .run()
                        .sha256());
    }

    @Test
    void impossibleValuesAreNamed() {
        Method method = new FedMuon(Schedule.constant(0.1), Schedule.constant(0.1), AllMethods.MUON);
        assertThatThrownBy(() -> testbed(method).iterations(0).build()).hasMessageContaining("iterations = 0");
        assertThatThrownBy(() -> testbed(method).tau(0).build()).hasMessageContaining("tau = 0");
        assertThatThrownBy(() -> testbed(method).threads(0).build()).hasMessageContaining("threads = 0");
        assertThatThrownBy(() -> testbed(method).workers(0).build()).hasMessageContaining("workers = 0");
        assertThatThrownBy(() -> testbed(method).participation(0).build()).hasMessageContaining("participation = 0.0");
        assertThatThrownBy(() -> testbed(method).participation(1.5).build())
                .hasMessageContaining("participation = 1.5");
        assertThatThrownBy(() -> testbed(method).participation(Double.NaN).build())
                .hasMessageContaining("NaN");
        assertThatThrownBy(() -> testbed(method).weights(1, 2).build()).hasMessageContaining("2 weights for 8 clients");
        assertThatThrownBy(() -> testbed(method).speeds(1, 2).build()).hasMessageContaining("2 speeds for 1 devices");
        assertThatThrownBy(() -> testbed(method).speeds(0).build())
                .hasMessageContaining("the speed of device 0 is 0.0");
        assertThatThrownBy(
                        () -> testbed(method).weights(1, 1, 1, -1, 1, 1, 1, 1).build())
                .hasMessageContaining("client 3 is -1.0");
        assertThatThrownBy(() -> testbed(method).initial(1f).build()).hasMessageContaining("1 initial values for 12");
        assertThatThrownBy(() -> testbed(method)
                        .initial(new float[] {0, 0, Float.NaN, 0, 0, 0, 0, 0, 0, 0, 0, 0})
                        .build())
                .hasMessageContaining("initial value 2 is NaN");
        assertThatThrownBy(() -> testbed(method).devices().build()).hasMessageContaining("0 devices");
        assertThatThrownBy(() -> testbed(method).devices("cpu:0", "cpu:0").build())
                .hasMessageContaining("twice");
        assertThatThrownBy(() -> testbed(new FedMuon(Schedule.constant(0.1), Schedule.constant(1), AllMethods.MUON))
                        .build())
                .hasMessageContaining("beta = 1.0");
    }

    @Test
    void closesWhatItHasOpened() throws Exception {
        // A buffer that is left open is logged by its device.
        assertThat(logged("org.fedcomuon.device", () -> {
                    for (Method method : AllMethods.all().toList()) {
                        testbed(method).devices("cpu:0", "cpu:1").build().run();
                    }
                }))
                .isEmpty();
    }

    @Test
    void anEvaluationWithoutMetricsIsNotLogged() throws Exception {
        assertThat(logged(
                        Federation.class.getName(),
                        () -> testbed(AllMethods.fedCoMuon())
                                .name("silent")
                                .evaluate(1, (step, average) -> Map.of())
                                .build()
                                .run()))
                .hasSize(2)
                .allMatch(line -> line.startsWith("silent: "))
                .noneMatch(line -> line.contains("{}"))
                .last()
                .isEqualTo("silent: done after step 23");
        assertThat(logged(
                        Federation.class.getName(),
                        () -> testbed(AllMethods.fedCoMuon())
                                .evaluate(1, (step, average) -> Map.of("w", 1.0))
                                .build()
                                .run()))
                .hasSize(2 + 24)
                .anyMatch(line -> line.endsWith(": step 23: {w=1.0}"));
    }

    private interface Work {
        void run() throws Exception;
    }

    /** What is logged at INFO or above meanwhile. */
    private static List<String> logged(String name, Work work) throws Exception {
        var lines = Collections.synchronizedList(new ArrayList<String>());
        var logger = Logger.getLogger(name);
        var handler = new Handler() {
            @Override
            public void publish(LogRecord record) {
                lines.add(record.getMessage());
            }

            @Override
            public void flush() {}

            @Override
            public void close() {}
        };
        Level before = logger.getLevel();
        logger.setLevel(Level.INFO);
        logger.addHandler(handler);
        try {
            work.run();
        } finally {
            logger.removeHandler(handler);
            logger.setLevel(before);
        }
        return lines;
    }
}
