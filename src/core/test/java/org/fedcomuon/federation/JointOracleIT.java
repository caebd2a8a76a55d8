package org.fedcomuon.federation;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.stream.Stream;
import org.fedcomuon.device.Device;
import org.fedcomuon.method.ClientFault;
import org.fedcomuon.method.ClientFaultException;
import org.fedcomuon.method.Method;
import org.fedcomuon.problem.Client;
import org.fedcomuon.problem.Floats;
import org.fedcomuon.problem.HessianProduct;
import org.fedcomuon.problem.Jacobian;
import org.fedcomuon.problem.JointOracle;
import org.fedcomuon.problem.JointOracle.Points;
import org.fedcomuon.problem.Layout;
import org.fedcomuon.problem.MatrixQuadratics;
import org.fedcomuon.problem.OuterFunction;
import org.fedcomuon.problem.Point;
import org.fedcomuon.problem.Problem;
import org.fedcomuon.problem.Risk;
import org.fedcomuon.problem.Sample;
import org.fedcomuon.problem.ThresholdProblem;
import org.fedcomuon.testing.TestDevices;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Oracles of several clients: what they are given, and what becomes of their faults. */
class JointOracleIT {
    private static final int CLIENTS = 6;

    /** What an oracle does before its work. */
    private interface Mischief {
        void visit(List<Sample> xi) throws Exception;
    }

    /**
     * A problem whose oracle of several clients computes what the clients compute, so that runs have the same bits. Its
     * own clients only say what f is.
     */
    private static class Joint implements Problem {
        private final Problem problem;
        private final Mischief mischief;
        final List<List<Integer>> calls = new CopyOnWriteArrayList<>();

        Joint(Problem problem, Mischief mischief) {
            this.problem = problem;
            this.mischief = mischief;
        }

        @Override
        public Layout layout() {
            return problem.layout();
        }

        @Override
        public int innerDimension() {
            return problem.innerDimension();
        }

        @Override
        public int clients() {
            return problem.clients();
        }

        @Override
        public Optional<Floats> initial(long seed) {
            return problem.initial(seed);
        }

        @Override
        public Client client(int k) {
            return new OnlyOuter(problem.client(k));
        }

        @Override
        public Optional<JointOracle> joint(Device device, List<Integer> clients) {
            Map<Integer, Client> here = new HashMap<>();
            clients.forEach(k -> here.put(k, problem.client(k)));
            return Optional.of(new Loop(here, this));
        }
    }

    private record OnlyOuter(Client client) implements Client, HessianProduct {
        @Override
        public void inner(Sample xi, Point w, Floats value, Jacobian jacobian) {
            throw new AssertionError("clients are evaluated together");
        }

        @Override
        public void outerGradient(Sample zeta, Floats y, Floats gradient) throws Exception {
            client.outerGradient(zeta, y, gradient);
        }

        @Override
        public void hessianProduct(Sample xi, Point w, Point direction, Point product) {
            throw new AssertionError("clients are evaluated together");
        }
    }

    private record Loop(Map<Integer, Client> clients, Joint problem) implements JointOracle {
        @Override
        public boolean computesOnDevice() {
            return false;
        }

        private void enter(List<Sample> xi) throws Exception {
            problem.calls.add(xi.stream().map(Sample::client).toList());
            problem.mischief.visit(xi);
        }

        @Override
        public void inner(List<Sample> xi, Points w, Floats value, List<Points> jacobian) throws Exception {
            enter(xi);
            int d = jacobian.size();
            for (int i = 0; i < xi.size(); i++) {
                int k = i;
                var gradients = new Jacobian(
                        jacobian.stream().map(points -> points.of(k)).toList());
                clients.get(xi.get(i).client()).inner(xi.get(i), w.of(i), value.slice((long) i * d, d), gradients);
            }
        }

        @Override
        public void hessianProduct(List<Sample> xi, Points w, Points direction, Points product) throws Exception {
            enter(xi);
            for (int i = 0; i < xi.size(); i++) {
                ((HessianProduct) clients.get(xi.get(i).client()))
                        .hessianProduct(xi.get(i), w.of(i), direction.of(i), product.of(i));
            }
        }
    }

    private static Federation.Builder run(Problem problem, Method method, String... devices) {
        return Federation.of(problem, method)
                .iterations(12)
                .tau(3)
                .seed(7)
                .threads(1)
                .devices(devices);
    }

    static Stream<Method> methods() {
        return AllMethods.all();
    }

    /** With gaps between the clients that take part, on one device and on several, in host memory and beside it. */
    @ParameterizedTest
    @MethodSource("methods")
    void runsHaveTheBitsOfTheClients(Method method) throws Exception {
        Problem plain = AllMethods.problem(method, CLIENTS);
        String expected =
                run(plain, method, "cpu:0").participation(0.6).build().run().sha256();
        for (String[] names : List.of(new String[] {"cpu:0"}, new String[] {"cpu:0", "cpu:1"})) {
            var joint = new Joint(plain, xi -> {});
            assertThat(run(joint, method, names)
                            .participation(0.6)
                            .build()
                            .run()
                            .sha256())
                    .isEqualTo(expected);
            assertThat(joint.calls).anyMatch(call -> call.size() > 1);
        }
    }

    @ParameterizedTest
    @MethodSource("org.fedcomuon.testing.TestDevices#simulated")
    void onOtherMemoryTheyHaveThemToo(String device) throws Exception {
        TestDevices.open(device).close();
        for (Method method : List.of(AllMethods.fedCoMuon(), AllMethods.fedCoMuonVr())) {
            Problem plain = AllMethods.problem(method, CLIENTS);
            String expected =
                    run(plain, method, device).participation(0.6).build().run().sha256();
            var joint = new Joint(plain, xi -> {});
            assertThat(run(joint, method, device)
                            .participation(0.6)
                            .build()
                            .run()
                            .sha256())
                    .isEqualTo(expected);
        }
    }

    @ParameterizedTest
    @MethodSource("methods")
    void aThresholdIsAddedToLossesThatAreEvaluatedTogether(Method method) throws Exception {
        if (AllMethods.ofLosses().anyMatch(method::equals)) {
            return; // they compare losses, and a threshold has another value beside them
        }
        var losses = new MatrixQuadratics(CLIENTS, 6, 4, 0.3, 0.05, Risk.mean(), 1);
        var f = OuterFunction.cvarDual(0.5, 0.1);
        String expected = run(new ThresholdProblem(losses, f, 1), method, "cpu:0")
                .build()
                .run()
                .sha256();
        var joint = new Joint(losses, xi -> {}) {
            @Override
            public Client client(int k) {
                return losses.client(k); // products with Hessians are computed one by one
            }
        };
        assertThat(run(new ThresholdProblem(joint, f, 1), method, "cpu:0")
                        .build()
                        .run()
                        .sha256())
                .isEqualTo(expected);
        assertThat(joint.calls).contains(List.of(0, 1, 2, 3, 4, 5));
    }

    private static boolean has(List<Sample> xi, int client, long draw) {
        return xi.stream().anyMatch(sample -> sample.client() == client && sample.draw() == draw);
    }

    /** A call fails as a whole; who is at fault is found out by calling for each alone. */
    @ParameterizedTest
    @MethodSource("org.fedcomuon.testing.TestDevices#kinds")
    void whoThrowsIsNamedAlone(String device) throws Exception {
        TestDevices.open(device).close();
        Method method = AllMethods.fedCoMuon();
        Problem plain = AllMethods.problem(method, CLIENTS);
        Mischief third = xi -> {
            if (has(xi, 3, 4)) {
                throw new IOException("no such file");
            }
        };
        assertThatThrownBy(() ->
                        run(new Joint(plain, third), method, device).build().run())
                .isInstanceOf(ClientFaultException.class)
                .hasMessageContaining("client 3")
                .hasMessageContaining("no such file");

        var joint = new Joint(plain, third);
        Result dropped = run(joint, method, device)
                .onFault(ClientFault.Policy.DROP)
                .build()
                .run();
        assertThat(dropped.faults()).isEqualTo(1);
        // The others have gone on as without it, where clients are evaluated one by one.
        Problem alone = Problem.of(plain.layout(), plain.innerDimension(), CLIENTS, k -> new Client() {
            private final Client client = plain.client(k);

            @Override
            public void inner(Sample xi, Point w, Floats value, Jacobian jacobian) throws Exception {
                third.visit(List.of(xi));
                client.inner(xi, w, value, jacobian);
            }

            @Override
            public void outerGradient(Sample zeta, Floats y, Floats gradient) throws Exception {
                client.outerGradient(zeta, y, gradient);
            }
        });
        Result expected = run(alone, method, device)
                .onFault(ClientFault.Policy.DROP)
                .build()
                .run();
        assertThat(dropped.sha256()).isEqualTo(expected.sha256());
        assertThat(joint.calls.getLast()).contains(3); // it takes part again
    }

    /** As for want of memory: nobody is to blame, and nothing is computed in another way without a word. */
    @ParameterizedTest
    @MethodSource("org.fedcomuon.testing.TestDevices#kinds")
    void whatFailsOnlyTogetherEndsTheRun(String device) {
        TestDevices.open(device).close();
        Method method = AllMethods.fedCoMuon();
        Mischief tooMany = xi -> {
            if (xi.size() > 2) {
                throw new IllegalStateException("out of memory");
            }
        };
        Problem problem = new Joint(AllMethods.problem(method, CLIENTS), tooMany);
        assertThatThrownBy(() -> run(problem, method, device)
                        .onFault(ClientFault.Policy.DROP)
                        .build()
                        .run())
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("6 clients of " + device)
                .hasMessageContaining("out of memory");
    }
}
