package org.fedcomuon.method;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.Devices;
import org.fedcomuon.device.InstructionSet;
import org.fedcomuon.linalg.Exact;
import org.fedcomuon.problem.Client;
import org.fedcomuon.problem.Floats;
import org.fedcomuon.problem.HessianProduct;
import org.fedcomuon.problem.Jacobian;
import org.fedcomuon.problem.Point;
import org.fedcomuon.problem.Problem;
import org.fedcomuon.problem.Sample;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** What happens when oracles fail, and what must not depend on who evaluates them. */
class ClientsIT {
    private static final Testbed BED = Testbed.blocks();

    private static Schedule value(double value) {
        return Schedule.constant(value);
    }

    private static FedCoMuon fedCoMuon() {
        return new FedCoMuon(value(0.05), value(0.3), value(0.4), Muon.standard());
    }

    private static FedCoMuonVr fedCoMuonVr() {
        return new FedCoMuonVr(value(0.05), value(0.3), value(0.4), value(0.2), value(0.35), Muon.standard());
    }

    /** What a failing oracle does. */
    private enum Way {
        THROWS,
        VALUE,
        JACOBIAN,
        OUTER
    }

    /** A client that does it at one sample. */
    private static final class Failing implements Client, HessianProduct {
        private final Client well;
        private final Way way;
        private final long draw;

        Failing(Client well, Way way, long draw) {
            this.well = well;
            this.way = way;
            this.draw = draw;
        }

        @Override
        public void inner(Sample xi, Point w, Floats value, Jacobian jacobian) throws Exception {
            well.inner(xi, w, value, jacobian);
            if (xi.draw() == draw) {
                switch (way) {
                    case THROWS -> throw new IOException("no data");
                    case VALUE -> value.set(1, Double.NaN);
                    case JACOBIAN -> jacobian.component(1).block("second").set(3, Double.POSITIVE_INFINITY);
                    case OUTER -> {}
                }
            }
        }

        @Override
        public void outerGradient(Sample zeta, Floats y, Floats gradient) throws Exception {
            well.outerGradient(zeta, y, gradient);
            if (zeta.draw() == draw && way == Way.OUTER) {
                gradient.set(0, Double.NaN);
            }
        }

        @Override
        public void hessianProduct(Sample xi, Point w, Point direction, Point product) throws Exception {
            ((HessianProduct) well).hessianProduct(xi, w, direction, product);
        }
    }

    /** Clients fail at their sample of that number, from 0; those not named never. */
    private static Problem failing(Map<Integer, Way> ways, long draw) {
        return Problem.of(BED.layout, BED.d, BED.clients, k -> {
            Way way = ways.get(k);
            return way == null ? BED.client(k) : new Failing(BED.client(k), way, draw);
        });
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 4})
    void aThrowingOracleEndsTheRunByName(int workers) {
        try (Rig rig = Rig.of(BED, fedCoMuon())
                .problem(failing(Map.of(2, Way.THROWS), 4))
                .workers(workers)
                .open()) {
            var failure = catchThrowableOfType(ClientFaultException.class, rig::run);
            assertThat(failure)
                    .hasMessage("client 2 failed in step 3: java.io.IOException: no data")
                    .hasCauseInstanceOf(IOException.class);
            assertThat(failure.fault().client()).isEqualTo(2);
            assertThat(failure.fault().step()).isEqualTo(3);
            assertThat(rig.faults).isEmpty();
        }
    }

    @Test
    void notFiniteResultsAreNamed() {
        Map<Way, String> messages = Map.of(
                Way.VALUE, "client 3 failed in step 5: .* is not finite in component 1.*",
                Way.JACOBIAN, "client 3 failed in step 5: .* is not finite in block 'second'.*",
                Way.OUTER, "client 3 failed in step 5: .* is not finite in component 0.*");
        messages.forEach((way, message) -> {
            for (Method method : List.of(fedCoMuon(), fedCoMuonVr())) {
                try (Rig rig =
                        Rig.of(BED, method).problem(failing(Map.of(3, way), 6)).open()) {
                    assertThatThrownBy(rig::run)
                            .isInstanceOf(ClientFaultException.class)
                            .hasMessageMatching(message);
                }
            }
        });
    }

    @ParameterizedTest
    @ValueSource(strings = {"FAIL", "DROP"})
    void nobodyMayFailInTheBeginning(ClientFault.Policy policy) {
        try (Rig rig = Rig.of(BED, fedCoMuon())
                .problem(failing(Map.of(1, Way.JACOBIAN), 0))
                .policy(policy)
                .open()) {
            assertThatThrownBy(rig::initialize)
                    .isInstanceOf(ClientFaultException.class)
                    .hasMessageStartingWith("client 1 failed in its initialisation: ");
        }
    }

    static Stream<Method> methods() {
        return Stream.of(
                fedCoMuon(),
                fedCoMuonVr(),
                new FedAvg(value(0.05)),
                new FedMaml(1.5, value(0.05), false),
                new FedMuon(value(0.05), value(0.3), Muon.standard()),
                new FedMuonLga(value(0.05), value(0.3), value(0.4), Muon.standard()),
                new FedMuonBc(value(0.05), value(0.3), Muon.standard()),
                new ComFedL(value(0.05)),
                new LocalScgdm(value(0.05), value(0.3), value(0.4), false),
                new FedProx(value(0.05), 2),
                new Scaffold(value(0.05), 1),
                new Ef21Muon(value(0.05), value(0.3), Compressor.topK(0.5), Compressor.none(), Muon.standard()));
    }

    /** Draws of the sample stream that a method has made before step 2 begins. */
    private static long drawsBeforeStepTwo(Method method) {
        try (Rig rig = Rig.of(BED, method).open()) {
            rig.initialize();
            rig.step(0);
            rig.step(1);
            return rig.clients.innerDraws()[2];
        }
    }

    /** The state of a client before what fails, that is with W moved where the method moves it first. */
    @ParameterizedTest
    @MethodSource("methods")
    void aDroppedClientKeepsItsStateAndTheOthersDoNotNotice(Method method) {
        for (Way way : List.of(Way.THROWS, Way.VALUE, Way.JACOBIAN)) {
            try (Rig rig = Rig.of(BED, method)
                            .problem(failing(Map.of(2, way), drawsBeforeStepTwo(method)))
                            .policy(ClientFault.Policy.DROP)
                            .open();
                    Rig well = Rig.of(BED, method).open()) {
                for (Rig each : List.of(rig, well)) {
                    each.initialize();
                    each.step(0);
                    each.step(1);
                }
                Map<String, float[]> before = rig.floats(2);
                rig.step(2);
                well.step(2);
                assertThat(rig.faults).singleElement().satisfies(fault -> {
                    assertThat(fault.client()).isEqualTo(2);
                    assertThat(fault.step()).isEqualTo(2);
                });
                assertThat(rig.clients.takesPart(2)).isFalse();
                boolean movesFirst =
                        method instanceof FedCoMuon || method instanceof FedCoMuonVr || method instanceof FedMuon;
                Map<String, float[]> after = rig.floats(2);
                for (String name : before.keySet()) {
                    boolean moved = movesFirst && name.equals("W");
                    assertThat(after.get(name))
                            .as("%s of %s, %s", name, method.name(), way)
                            .isEqualTo(moved ? well.floats("W", 2) : before.get(name));
                }
                for (int k : new int[] {0, 1, 3, 4}) {
                    assertThat(rig.floats(k))
                            .as("%s, client %d", method.name(), k)
                            .usingRecursiveComparison()
                            .isEqualTo(well.floats(k));
                }
                rig.step(3); // the rest of the round passes without it
                assertThat(rig.floats("W", 2)).isEqualTo(after.get("W"));
                rig.step(4);
                assertThat(rig.floats("W", 2)).as("receives").isEqualTo(rig.floats("W", 0));
                assertThat(rig.faults).hasSize(1);
            }
        }
    }

    /** The mean of the round is that of the others. */
    @Test
    void aDroppedClientIsNotInTheAverage() {
        var method = new FedAvg(value(0.05));
        ReferenceMethod<?> reference = ReferenceMethods.of(method, BED, Rig.SEED, Rig.equal(BED.clients));
        try (Rig rig = Rig.of(BED, method)
                .problem(failing(Map.of(2, Way.THROWS), 2))
                .policy(ClientFault.Policy.DROP)
                .open()) {
            rig.initialize();
            reference.initialize();
            for (int t = 0; t < 5; t++) {
                if (t == 2) {
                    reference.admit(new boolean[] {true, true, false, true, true});
                }
                rig.step(t);
                reference.step(rig.at(t));
            }
            assertThat(Comparison.distance(rig, reference)).isLessThan(Comparison.TOLERANCE);
        }
    }

    /** Trackers that have moved to a new iterate while the old one has not would never agree again. */
    @Test
    void aFaultOfTheOuterGradientLeavesTrackersAndOldIterateTogether() {
        try (Rig rig = Rig.of(BED, fedCoMuonVr())
                .problem(failing(Map.of(2, Way.OUTER), 3))
                .policy(ClientFault.Policy.DROP)
                .open()) {
            rig.initialize();
            rig.step(0);
            rig.step(1);
            Map<String, float[]> before = rig.floats(2);
            rig.step(2);
            assertThat(rig.faults).hasSize(1);
            Map<String, float[]> after = rig.floats(2);
            for (String name : List.of("u", "v", "H", "M", "Wold")) {
                assertThat(after.get(name)).as(name).isEqualTo(before.get(name));
            }
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 4})
    void severalMayFailInOneStep(int workers) {
        Problem problem = failing(Map.of(0, Way.JACOBIAN, 1, Way.THROWS, 4, Way.VALUE), 3);
        try (Rig rig = Rig.of(BED, fedCoMuon())
                        .problem(problem)
                        .policy(ClientFault.Policy.DROP)
                        .workers(workers)
                        .open();
                Rig well = Rig.of(BED, fedCoMuon()).open()) {
            for (int t = -1; t < 3; t++) {
                for (Rig each : List.of(rig, well)) {
                    if (t < 0) {
                        each.initialize();
                    } else {
                        each.step(t);
                    }
                }
            }
            assertThat(rig.faults).extracting(ClientFault::client).containsExactlyInAnyOrder(0, 1, 4);
            assertThat(rig.faults).extracting(ClientFault::step).containsOnly(2L);
            for (int k = 0; k < BED.clients; k++) {
                assertThat(rig.clients.takesPart(k)).isEqualTo(k == 2 || k == 3);
            }
            for (int k : new int[] {2, 3}) {
                assertThat(rig.floats(k)).usingRecursiveComparison().isEqualTo(well.floats(k));
            }
        }
        try (Rig rig =
                Rig.of(BED, fedCoMuon()).problem(problem).workers(workers).open()) {
            assertThatThrownBy(rig::run)
                    .isInstanceOf(ClientFaultException.class)
                    .hasMessageStartingWith("client 1 failed in step 2: java.io.IOException");
        }
    }

    @Test
    void whenAllHaveFailedNothingHappensToThem() {
        Problem problem =
                failing(Map.of(0, Way.THROWS, 1, Way.THROWS, 2, Way.VALUE, 3, Way.JACOBIAN, 4, Way.THROWS), 2);
        try (Rig rig = Rig.of(BED, new FedAvg(value(0.05)))
                .problem(problem)
                .policy(ClientFault.Policy.DROP)
                .open()) {
            rig.initialize();
            rig.step(0);
            rig.step(1);
            float[] before = rig.floats("W", 3);
            rig.step(2);
            rig.step(3);
            assertThat(rig.faults).hasSize(5);
            assertThat(rig.floats("W", 3)).isEqualTo(before);
        }
    }

    /** A fault of the machine is not the client's. */
    @ParameterizedTest
    @ValueSource(ints = {1, 4})
    void errorsAreNoFaults(int workers) {
        Problem problem = Problem.of(BED.layout, BED.d, BED.clients, k -> new Client() {
            @Override
            public void inner(Sample xi, Point w, Floats value, Jacobian jacobian) {
                throw new LinkageError("broken");
            }

            @Override
            public void outerGradient(Sample zeta, Floats y, Floats gradient) {}
        });
        try (Rig rig = Rig.of(BED, new FedAvg(value(0.05)))
                .problem(problem)
                .policy(ClientFault.Policy.DROP)
                .workers(workers)
                .open()) {
            rig.initialize();
            assertThatThrownBy(() -> rig.step(0))
                    .isInstanceOf(LinkageError.class)
                    .hasMessage("broken");
            assertThat(rig.faults).isEmpty();
        }
    }

    @ParameterizedTest
    @MethodSource("methods")
    void workersDoNotChangeABit(Method method) {
        try (Rig one = Rig.of(BED, method).workers(1).iterations(12).open();
                Rig four = Rig.of(BED, method).workers(4).iterations(12).open()) {
            one.run();
            four.run();
            for (int k = 0; k < BED.clients; k++) {
                assertThat(four.floats(k)).usingRecursiveComparison().isEqualTo(one.floats(k));
            }
        }
    }

    /** Some clients on a device of their own, not all neighbours, draw and fail under their own numbers. */
    @Test
    void clientsKeepTheirNumbersWhereverTheyArePlaced() {
        try (Rig all = Rig.of(BED, fedCoMuon()).tau(100).iterations(9).open();
                Rig some = Rig.of(BED, fedCoMuon())
                        .tau(100)
                        .iterations(9)
                        .placed(0, 2, 3)
                        .open()) {
            all.run();
            some.run();
            for (int k = 0; k < 3; k++) {
                int number = some.clients.number(k);
                assertThat(number).isEqualTo(List.of(0, 2, 3).get(k));
                assertThat(some.floats(k)).usingRecursiveComparison().isEqualTo(all.floats(number));
            }
            assertThat(some.clients.count()).isEqualTo(3);
        }
        try (Rig some = Rig.of(BED, fedCoMuon())
                .problem(failing(Map.of(3, Way.JACOBIAN), 2))
                .placed(0, 2, 3)
                .open()) {
            assertThatThrownBy(some::run).hasMessageStartingWith("client 3 failed in step 1: ");
        }
    }

    static Stream<Muon> muons() {
        return Stream.of(Muon.standard(), Muon.with(new Exact()));
    }

    /** A momentum that has left the range of floats is nobody's fault: the run has diverged. */
    @ParameterizedTest
    @MethodSource("muons")
    void divergenceNamesStepClientAndBlock(Muon muon) {
        var method = new FedCoMuon(value(0.05), value(0.3), value(0.4), muon);
        for (String block : List.of("first", "bias", "second")) {
            try (Rig rig = Rig.of(BED, method).policy(ClientFault.Policy.DROP).open()) {
                rig.initialize();
                rig.clients.admit(new boolean[] {true, false, true, true, false});
                long at = 3L * BED.n + BED.layout.offset(BED.layout.position(block)) + 2;
                rig.variable("M").buffer().copyIn(at, Float.NaN);
                var failure = catchThrowableOfType(DivergedException.class, () -> rig.step(0));
                assertThat(failure)
                        .hasMessage("diverged in step 0: M of client 3 is not finite in block '%s'".formatted(block));
                assertThat(failure.client()).isEqualTo(3);
                assertThat(failure.step()).isZero();
                assertThat(failure.place()).isEqualTo("block '%s'".formatted(block));
            }
        }
    }

    @Test
    void requireConvergingNamesTheBlock() {
        try (Rig rig = Rig.of(BED, new FedAvg(value(0.05))).placed(1, 2, 3, 4).open()) {
            rig.clients.requireConverging(rig.clients.weights());
            rig.clients.enter(7);
            rig.clients.weights().buffer().copyIn(2L * BED.n + BED.layout.offset(1), Float.NEGATIVE_INFINITY);
            assertThatThrownBy(() -> rig.clients.requireConverging(rig.clients.weights()))
                    .isInstanceOf(DivergedException.class)
                    .hasMessage("diverged in step 7: W of client 3 is not finite in block 'bias'");
        }
    }

    @Test
    void anExactHessianNeedsAnOracleThatHasIt() {
        Problem without = Problem.of(BED.layout, BED.d, BED.clients, k -> new Client() {
            private final Client well = BED.client(k);

            @Override
            public void inner(Sample xi, Point w, Floats value, Jacobian jacobian) throws Exception {
                well.inner(xi, w, value, jacobian);
            }

            @Override
            public void outerGradient(Sample zeta, Floats y, Floats gradient) throws Exception {
                well.outerGradient(zeta, y, gradient);
            }
        });
        try (Device device = Devices.open("cpu:0", 1, InstructionSet.AUTO);
                var clients = new Clients(
                        device, without, List.of(0, 1, 2, 3, 4), 1, ClientFault.Policy.FAIL, fault -> {}, 1)) {
            assertThat(clients.hasHessianProduct()).isFalse();
            var exact = new FedMaml(0.1, value(0.1), false);
            assertThatThrownBy(() -> exact.on(clients)).isInstanceOf(IllegalArgumentException.class);
            new FedMaml(0.1, value(0.1), true).on(clients);
        }
    }

    @Test
    void twoStateVariablesHaveTwoNames() {
        try (Rig rig = Rig.of(BED, new FedAvg(value(0.05))).open()) {
            assertThatThrownBy(() -> rig.clients.state("W", 3)).hasMessageContaining("'W'");
            assertThatThrownBy(() -> rig.clients.sharedState("W", 3)).hasMessageContaining("'W'");
        }
    }

    @Test
    void placesOutsideOfTheProblemAreRefused() {
        try (Device device = Devices.open("cpu:0", 1, InstructionSet.AUTO)) {
            assertThatThrownBy(() -> {
                        try (var clients = new Clients(
                                device, BED.problem(), List.of(3, 4, 5), 1, ClientFault.Policy.FAIL, fault -> {}, 1)) {
                            clients.count();
                        }
                    })
                    .isInstanceOf(IndexOutOfBoundsException.class);
            assertThat(device.liveBytes()).isZero();
        }
    }
}
