package org.fedcomuon.federation;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.fedcomuon.method.ClientFault;
import org.fedcomuon.method.ClientFaultException;
import org.fedcomuon.method.DivergedException;
import org.fedcomuon.method.FedAvg;
import org.fedcomuon.method.Method;
import org.fedcomuon.method.Schedule;
import org.fedcomuon.problem.Block;
import org.fedcomuon.problem.Client;
import org.fedcomuon.problem.Floats;
import org.fedcomuon.problem.HessianProduct;
import org.fedcomuon.problem.Jacobian;
import org.fedcomuon.problem.Layout;
import org.fedcomuon.problem.Loss;
import org.fedcomuon.problem.Point;
import org.fedcomuon.problem.Problem;
import org.fedcomuon.problem.Risk;
import org.fedcomuon.problem.Sample;
import org.fedcomuon.problem.testbed.RateTestbed;
import org.fedcomuon.testing.TestDevices;
import org.junit.jupiter.api.Named;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Clients that throw or return nonsense: the run fails, or goes on without them for the round. */
class ClientFaultsIT {
    private static final int CLIENTS = 8;

    static Stream<Method> methods() {
        return AllMethods.ofAnyProblem();
    }

    private interface Trouble {
        void visit(int client, Sample xi, Floats value, Jacobian jacobian) throws Exception;
    }

    /** The test-bed with something going wrong after an evaluation. */
    private static Problem troubled(Trouble trouble) {
        var testbed = new RateTestbed(CLIENTS, 1);
        return Problem.of(
                testbed.layout(), testbed.innerDimension(), CLIENTS, k -> new Troubled(k, testbed.client(k), trouble));
    }

    private record Troubled(int number, Client client, Trouble trouble) implements Client, HessianProduct {
        @Override
        public void inner(Sample xi, Point w, Floats value, Jacobian jacobian) throws Exception {
            client.inner(xi, w, value, jacobian);
            trouble.visit(number, xi, value, jacobian);
        }

        @Override
        public void outerGradient(Sample zeta, Floats y, Floats gradient) throws Exception {
            client.outerGradient(zeta, y, gradient);
        }

        @Override
        public void hessianProduct(Sample xi, Point w, Point direction, Point product) throws Exception {
            ((HessianProduct) client).hessianProduct(xi, w, direction, product);
        }
    }

    private static Federation.Builder run(Problem problem, Method method) {
        return Federation.of(problem, method).iterations(20).tau(5).seed(42).devices("cpu:0", "cpu:1");
    }

    @Test
    void anOracleThatThrowsEndsTheRunByDefault() {
        Problem problem = troubled((client, xi, value, jacobian) -> {
            if (client == 6 && xi.draw() == 8) { // the first draw is the initial state's
                throw new IOException("the disk is gone");
            }
        });
        assertThatThrownBy(() -> run(problem, AllMethods.fedCoMuon()).build().run())
                .isInstanceOfSatisfying(ClientFaultException.class, e -> {
                    assertThat(e.fault().client()).isEqualTo(6);
                    assertThat(e.fault().step()).isEqualTo(7);
                })
                .hasMessageContaining("client 6 failed in step 7")
                .hasMessageContaining("the disk is gone")
                .hasRootCauseInstanceOf(IOException.class);
    }

    @Test
    void aResultThatIsNotFiniteNamesItsBlock() {
        Problem problem = troubled((client, xi, value, jacobian) -> {
            if (client == 2 && xi.draw() == 3) {
                jacobian.component(4).values().set(11, Double.NaN);
            }
        });
        assertThatThrownBy(() -> run(problem, AllMethods.fedCoMuonVr()).build().run())
                .isInstanceOf(ClientFaultException.class)
                .hasMessageContaining("client 2")
                .hasMessageContaining("grad g is not finite in block 'W'");
    }

    @Test
    void aFaultOfTheInitialStateIsFatalUnderAnyPolicy() {
        Problem problem = troubled((client, xi, value, jacobian) -> {
            if (client == 0 && xi.draw() == 0) {
                value.set(0, Double.POSITIVE_INFINITY);
            }
        });
        assertThatThrownBy(() -> run(problem, AllMethods.fedCoMuon())
                        .onFault(ClientFault.Policy.DROP)
                        .build()
                        .run())
                .isInstanceOf(ClientFaultException.class)
                .hasMessageContaining("initialisation")
                .hasMessageContaining("g is not finite in component 0");
    }

    private static final class Faults implements Listener {
        final List<ClientFault> faults = new ArrayList<>();
        final List<Round> rounds = new ArrayList<>();

        @Override
        public void onClientFault(ClientFault fault) {
            faults.add(fault);
        }

        @Override
        public void onRound(Round round) {
            rounds.add(round);
        }
    }

    @Test
    void droppedClientsAreCountedAndComeBack() throws Exception {
        Problem problem = troubled((client, xi, value, jacobian) -> {
            if (client == 3 && xi.draw() == 8) { // step 7, in the middle of round 1
                throw new IllegalStateException("out for a moment");
            }
            if (client == 5 && xi.draw() == 9) { // step 8
                value.set(2, Double.NaN);
            }
        });
        var heard = new Faults();
        Result result = run(problem, AllMethods.fedCoMuon())
                .onFault(ClientFault.Policy.DROP)
                .listener(heard)
                .build()
                .run();
        assertThat(result.faults()).isEqualTo(2);
        assertThat(heard.faults).extracting(ClientFault::client).containsExactly(3, 5);
        assertThat(heard.faults).extracting(ClientFault::step).containsExactly(7L, 8L);
        assertThat(heard.rounds).extracting(Round::participants).containsExactly(8, 6, 8, 8);
        assertThat(heard.rounds).extracting(Round::dropped).containsExactly(0, 2, 0, 0);
    }

    @ParameterizedTest
    @MethodSource("methods")
    void droppingIsBitIdenticalOnAnyDevices(Method method) throws Exception {
        Problem problem = troubled((client, xi, value, jacobian) -> {
            if ((client * 7L + xi.draw()) % 29 == 28 && xi.draw() > 3) {
                throw new IllegalStateException("unwell");
            }
        });
        var hashes = new HashSet<String>();
        var counts = new HashSet<Long>();
        for (String[] devices : List.of(
                new String[] {"cpu:0"}, new String[] {"cpu:0", "cpu:1"}, new String[] {"cpu:0", "cpu:1", "cpu:2"})) {
            Result result = run(problem, method)
                    .devices(devices)
                    .onFault(ClientFault.Policy.DROP)
                    .build()
                    .run();
            hashes.add(result.sha256());
            counts.add(result.faults());
        }
        assertThat(hashes).hasSize(1);
        assertThat(counts).singleElement().satisfies(count -> assertThat(count).isPositive());
    }

    /** What a client may return that is no answer, or hardly one. */
    enum Nonsense {
        ONE_NAN,
        ONE_INFINITE,
        ALL_NAN,
        LARGEST,
        LARGE_OF_BOTH_SIGNS,
        DENORMAL;

        void put(Floats value, Jacobian jacobian) {
            List<Floats> rows =
                    jacobian.components().stream().map(Point::values).toList();
            switch (this) {
                case ONE_NAN -> rows.getLast().set(rows.getLast().length() - 1, Double.NaN);
                case ONE_INFINITE -> value.set(value.length() - 1, Double.NEGATIVE_INFINITY);
                case ALL_NAN -> {
                    value.fill(Double.NaN);
                    rows.forEach(row -> row.fill(Double.NaN));
                }
                case LARGEST -> {
                    value.fill(Float.MAX_VALUE);
                    rows.forEach(row -> row.fill(Float.MAX_VALUE));
                }
                case LARGE_OF_BOTH_SIGNS -> {
                    value.fill(-1e38);
                    for (Floats row : rows) {
                        for (long i = 0; i < row.length(); i++) {
                            row.set(i, i % 2 == 0 ? 1e38 : -1e38);
                        }
                    }
                }
                case DENORMAL -> {
                    value.fill(Float.MIN_VALUE);
                    rows.forEach(row -> row.fill(-Float.MIN_VALUE));
                }
            }
        }
    }

    static Stream<Arguments> methodsAndNonsense() {
        return methods()
                .flatMap(method -> Stream.of(Nonsense.values())
                        .map(nonsense -> Arguments.of(Named.of(method.name(), method), nonsense)));
    }

    /** The hash of finite weights, or what was thrown: never weights that are no numbers. */
    private static String outcome(Federation.Builder builder) throws InterruptedException {
        try {
            Result result = builder.build().run();
            Floats weights = result.weights().values();
            for (long i = 0; i < weights.length(); i++) {
                assertThat(weights.get(i)).isFinite();
            }
            return result.sha256();
        } catch (ClientFaultException | DivergedException | Federation.NoClientsException e) {
            return e.toString();
        }
    }

    @ParameterizedTest
    @MethodSource("methodsAndNonsense")
    void nonsenseIsAFaultOrHarmlessOnAnyDevices(Method method, Nonsense nonsense) throws Exception {
        Problem problem = troubled((client, xi, value, jacobian) -> {
            if ((client == 2 || client == 5) && xi.draw() >= 4) {
                nonsense.put(value, jacobian);
            }
        });
        for (ClientFault.Policy policy : ClientFault.Policy.values()) {
            var outcomes = new HashSet<String>();
            for (String[] devices : List.of(new String[] {"cpu:0"}, new String[] {"cpu:0", "cpu:1"})) {
                // Not at an exchange, so that the last average is not one that the run has looked at.
                outcomes.add(outcome(
                        run(problem, method).devices(devices).iterations(19).onFault(policy)));
            }
            assertThat(outcomes).hasSize(1);
            boolean notFinite =
                    nonsense == Nonsense.ONE_NAN || nonsense == Nonsense.ONE_INFINITE || nonsense == Nonsense.ALL_NAN;
            if (notFinite && policy == ClientFault.Policy.FAIL) {
                assertThat(outcomes).singleElement().asString().contains("client 2 failed");
            }
            if (notFinite && policy == ClientFault.Policy.DROP) {
                assertThat(outcomes).singleElement().asString().matches("[0-9a-f]{64}");
            }
        }
    }

    /** A sum of them is not finite, and weights like these are no better than any others. */
    @Test
    void theMeanOfTheLargestWeightsIsFinite() throws Exception {
        Loss flat = (xi, w, gradient) -> {
            gradient.values().fill(0);
            return 1;
        };
        var layout = Layout.of(Block.matrix("weight", 3, 5));
        var largest = new float[15];
        Arrays.fill(largest, Float.MAX_VALUE);
        Problem problem = Problem.ofLosses(layout, Collections.nCopies(CLIENTS, flat), Risk.mean());
        for (double[] weights : List.of(new double[] {1, 1, 1, 1, 1, 1, 1, 1}, new double[] {3, 1, 4, 1, 5, 9, 2, 6})) {
            Result result = run(problem, new FedAvg(Schedule.constant(0.1)))
                    .iterations(7) // the last average is not at an exchange
                    .initial(largest)
                    .weights(weights)
                    .build()
                    .run();
            assertThat(result.weights().values().toArray()).containsExactly(largest);
        }
    }

    @Test
    void whoFailsAlwaysIsDroppedForAsManyRoundsAsThereAre() throws Exception {
        Problem problem = troubled((client, xi, value, jacobian) -> {
            if (client == 3 && xi.draw() > 0) {
                throw new IOException("gone for good");
            }
        });
        var heard = new Faults();
        Result result = run(problem, AllMethods.fedCoMuon())
                .iterations(2000)
                .onFault(ClientFault.Policy.DROP)
                .listener(heard)
                .build()
                .run();
        assertThat(result.faults()).isEqualTo(400);
        assertThat(heard.rounds).hasSize(400).allMatch(round -> round.participants() == 7 && round.dropped() == 1);
    }

    @Test
    void aRoundWithoutClientsEndsTheRun() {
        Problem problem = troubled((client, xi, value, jacobian) -> {
            if (xi.draw() >= 4) {
                throw new IllegalStateException("all gone");
            }
        });
        assertThatThrownBy(() -> run(problem, AllMethods.fedCoMuon())
                        .onFault(ClientFault.Policy.DROP)
                        .build()
                        .run())
                .isInstanceOf(Federation.NoClientsException.class);
    }

    @Test
    void anErrorIsNobodysFault() {
        Problem problem = troubled((client, xi, value, jacobian) -> {
            if (client == 1 && xi.draw() == 4) {
                throw new OutOfMemoryError("pretended");
            }
        });
        assertThatThrownBy(() -> run(problem, AllMethods.fedCoMuon())
                        .onFault(ClientFault.Policy.DROP)
                        .workers(4)
                        .build()
                        .run())
                .isInstanceOf(OutOfMemoryError.class);
    }

    /** A step of FedAvg has no wait after its gradient, so that a GPU throws while the evaluation reads W. */
    @ParameterizedTest
    @ValueSource(strings = {"cpu:0", "cudasim:0"})
    void aFaultThatAnEvaluationComesUponIsThatOfTheClient(String device) {
        assumeTrue(
                device.startsWith("cpu") || TestDevices.simulated().findAny().isPresent(),
                "the simulated devices have not been built");
        Layout layout = Layout.of(Block.matrix("weight", 4, 6), Block.vector("bias", 6));
        Loss sound = (xi, w, gradient) -> 1;
        Loss faulty = (xi, w, gradient) -> {
            gradient.block("bias").set(2, Double.NaN);
            return 1;
        };
        Federation federation = Federation.of(
                        Problem.ofLosses(layout, List.of(sound, faulty, sound), Risk.mean()),
                        new FedAvg(Schedule.constant(0.1)))
                .devices(device)
                .iterations(1)
                .evaluate(1, (step, average) -> Map.of())
                .build();
        assertThatThrownBy(federation::run)
                .isInstanceOf(ClientFaultException.class)
                .hasMessageStartingWith("client 1 failed in step 0: ")
                .hasMessageContaining("block 'bias'");
    }
}
