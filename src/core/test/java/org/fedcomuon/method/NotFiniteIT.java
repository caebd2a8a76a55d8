package org.fedcomuon.method;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Stream;
import org.fedcomuon.linalg.Coefficients;
import org.fedcomuon.linalg.NewtonSchulz;
import org.fedcomuon.problem.Client;
import org.fedcomuon.problem.Floats;
import org.fedcomuon.problem.Jacobian;
import org.fedcomuon.problem.Point;
import org.fedcomuon.problem.Problem;
import org.fedcomuon.problem.Sample;
import org.fedcomuon.testing.TestDevices;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * NaN at every operation of a step, and at every client. A CPU throws at the operation that finds it; a GPU goes on
 * without the host and throws at the next wait. Both have to say the same, and to leave the same state: what follows
 * the fault has written nothing.
 */
class NotFiniteIT {
    private static final Testbed BED = Testbed.blocks();
    private static final int TAU = 100; // no exchange in between
    private static final int SOUND_STEPS = 2;

    @BeforeAll
    static void requireSimulator() {
        assumeTrue(TestDevices.simulated().findAny().isPresent(), "the simulated devices have not been built");
    }

    static Stream<Method> methods() {
        Schedule some = Schedule.constant(0.2);
        Muon muon = Muon.with(new NewtonSchulz(Coefficients.jordan(2)));
        Muon all = muon.withNesterov(true).withWeightDecay(0.1).withAdamW(Muon.AdamW.ofVectors(0.1));
        return Stream.of(
                new FedCoMuon(some, some, some, muon),
                new FedCoMuon(some, some, some, all),
                new FedCoMuonVr(some, some, some, some, some, muon),
                new FedMuon(some, some, muon),
                new LocalScgdm(some, some, some, false));
    }

    /** Into each variable that a step begins with, and each block of it. */
    @ParameterizedTest
    @MethodSource("methods")
    void ofTheState(Method method) {
        List<String> names;
        try (Rig rig = Rig.of(BED, method).open()) {
            names = rig.clients.state().stream()
                    .map(Variable::name)
                    .filter(name -> !name.equals("AdamW steps")) // which the host counts as well
                    .toList();
        }
        for (String name : names) {
            for (int client = 0; client < BED.clients; client++) {
                int k = client;
                for (int part = 0; part < 3; part++) {
                    double where = (part + 0.5) / 3;
                    assertSame(method, BED.problem(), name + " of client " + k, rig -> {
                        Variable variable = rig.variable(name);
                        long row = variable.isShared() ? 0 : k;
                        long at = row * variable.length() + (long) (where * variable.length());
                        variable.buffer().copyIn(at, Float.NaN);
                    });
                }
            }
        }
    }

    /** Into what an oracle brings. */
    @ParameterizedTest
    @MethodSource("methods")
    void ofOracles(Method method) {
        for (int client = 0; client < BED.clients; client++) {
            for (Fault fault : Fault.values()) {
                int bad = client;
                var armed = new AtomicBoolean();
                Problem problem = Problem.of(
                        BED.layout,
                        BED.d,
                        BED.clients,
                        k -> k == bad ? new Faulty(BED.client(k), fault, armed) : BED.client(k));
                assertSame(
                        method, problem, fault + " of client " + bad, rig -> armed.set(true), () -> armed.set(false));
            }
        }
    }

    private interface Injection {
        void into(Rig rig);
    }

    private static void assertSame(Method method, Problem problem, String what, Injection injection) {
        assertSame(method, problem, what, injection, () -> {});
    }

    private static void assertSame(
            Method method, Problem problem, String what, Injection injection, Runnable afterwards) {
        var failures = new ArrayList<Throwable>();
        var states = new ArrayList<Map<Integer, Map<String, float[]>>>();
        for (String device : List.of("cpu:0", "cudasim:0")) {
            try (Rig rig =
                    Rig.of(BED, method).problem(problem).device(device).tau(TAU).open()) {
                rig.initialize();
                for (int t = 0; t < SOUND_STEPS; t++) {
                    rig.step(t);
                }
                rig.clients.settle();
                injection.into(rig);
                failures.add(catchThrowable(() -> {
                    rig.step(SOUND_STEPS);
                    rig.clients.settle();
                    rig.step(SOUND_STEPS + 1);
                    rig.clients.settle();
                }));
                afterwards.run();
                var state = new HashMap<Integer, Map<String, float[]>>();
                for (int k = 0; k < BED.clients; k++) {
                    state.put(k, rig.floats(k));
                }
                states.add(state);
            }
        }
        assertThat(failures.getFirst()).as(what).isNotNull();
        assertThat(failures.getLast()).as(what).isInstanceOf(failures.getFirst().getClass());
        assertThat(failures.getLast()).as(what).hasMessage(failures.getFirst().getMessage());
        states.getFirst()
                .forEach((k, state) -> state.forEach(
                        (name, values) -> assertThat(states.getLast().get(k).get(name)) // NaN is equal to NaN
                                .as("%s: %s of client %d afterwards", what, name, k)
                                .containsExactly(values)));
    }

    private enum Fault {
        VALUE,
        JACOBIAN,
        OUTER
    }

    /** A client that brings NaN while it is armed. */
    private record Faulty(Client well, Fault fault, AtomicBoolean armed) implements Client {
        @Override
        public void inner(Sample xi, Point w, Floats value, Jacobian jacobian) throws Exception {
            well.inner(xi, w, value, jacobian);
            if (armed.get() && fault == Fault.VALUE) {
                value.set(BED.d - 1L, Double.NaN);
            } else if (armed.get() && fault == Fault.JACOBIAN) {
                jacobian.component(BED.d - 1).block("second").set(3, Double.NEGATIVE_INFINITY);
            }
        }

        @Override
        public void outerGradient(Sample zeta, Floats y, Floats gradient) throws Exception {
            well.outerGradient(zeta, y, gradient);
            if (armed.get() && fault == Fault.OUTER) {
                gradient.set(0, Double.NaN);
            }
        }
    }
}
