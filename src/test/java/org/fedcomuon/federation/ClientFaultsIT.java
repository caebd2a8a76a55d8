package org.fedcomuon.federation;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.stream.Stream;
import org.fedcomuon.method.ClientFault;
import org.fedcomuon.method.ClientFaultException;
import org.fedcomuon.method.FaultPolicy;
import org.fedcomuon.method.Method;
import org.fedcomuon.problem.Client;
import org.fedcomuon.problem.Floats;
import org.fedcomuon.problem.HessianProduct;
import org.fedcomuon.problem.Jacobian;
import org.fedcomuon.problem.Point;
import org.fedcomuon.problem.Problem;
import org.fedcomuon.problem.RateTestbed;
import org.fedcomuon.problem.Sample;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Clients that throw or return nonsense: the run fails, or goes on without them for the round. */
class ClientFaultsIT {
    private static final int CLIENTS = 8;

    static Stream<Method> methods() {
        return AllMethods.all();
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
                        .onFault(FaultPolicy.DROP)
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
                .onFault(FaultPolicy.DROP)
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
    void droppingGivesTheSameBitsOnAnyDevices(Method method) throws Exception {
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
                    .onFault(FaultPolicy.DROP)
                    .build()
                    .run();
            hashes.add(result.sha256());
            counts.add(result.faults());
        }
        assertThat(hashes).hasSize(1);
        assertThat(counts).singleElement().satisfies(count -> assertThat(count).isPositive());
    }

    @Test
    void aRoundWithoutClientsEndsTheRun() {
        Problem problem = troubled((client, xi, value, jacobian) -> {
            if (xi.draw() >= 4) {
                throw new IllegalStateException("all gone");
            }
        });
        assertThatThrownBy(() -> run(problem, AllMethods.fedCoMuon())
                        .onFault(FaultPolicy.DROP)
                        .build()
                        .run())
                .isInstanceOf(NoClientsException.class);
    }

    @Test
    void anErrorIsNobodysFault() {
        Problem problem = troubled((client, xi, value, jacobian) -> {
            if (client == 1 && xi.draw() == 4) {
                throw new OutOfMemoryError("pretended");
            }
        });
        assertThatThrownBy(() -> run(problem, AllMethods.fedCoMuon())
                        .onFault(FaultPolicy.DROP)
                        .workers(4)
                        .build()
                        .run())
                .isInstanceOf(OutOfMemoryError.class);
    }
}
