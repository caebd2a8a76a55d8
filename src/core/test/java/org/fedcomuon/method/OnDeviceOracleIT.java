package org.fedcomuon.method;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;
import org.fedcomuon.device.Device;
import org.fedcomuon.problem.Block;
import org.fedcomuon.problem.Client;
import org.fedcomuon.problem.Floats;
import org.fedcomuon.problem.Jacobian;
import org.fedcomuon.problem.JointOracle;
import org.fedcomuon.problem.JointOracle.Points;
import org.fedcomuon.problem.Layout;
import org.fedcomuon.problem.Point;
import org.fedcomuon.problem.Problem;
import org.fedcomuon.problem.Sample;
import org.fedcomuon.testing.TestDevices;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * An oracle that computes in the memory of a device, by operations on its stream, as libtorch does where it has CUDA:
 * here by the operations of the device itself, {@code g = w_0} and {@code grad g = 2 w}.
 */
class OnDeviceOracleIT {
    private static final int CLIENTS = 4;
    private static final int N = 3;

    private final Layout layout = Layout.of(Block.vector("w", N));
    private final List<List<Integer>> calls = new ArrayList<>();

    private static final class OnlyOuter implements Client {
        @Override
        public void inner(Sample xi, Point w, Floats value, Jacobian jacobian) {
            throw new AssertionError("clients are evaluated on their device");
        }

        @Override
        public void outerGradient(Sample zeta, Floats y, Floats gradient) {
            gradient.set(0, 10 * y.get(0));
        }
    }

    /** The variables of the test, found by their addresses. */
    private final class OnDevice implements JointOracle {
        private final Device device;
        private final List<Variable> variables = new ArrayList<>();

        OnDevice(Device device) {
            this.device = device;
        }

        private Variable at(Floats values, Run run) {
            assertThat(values.device()).contains(device.name());
            return variables.stream()
                    .filter(variable -> variable.buffer().address() + run.first() * variable.length() * Float.BYTES
                            == values.address())
                    .findFirst()
                    .orElseThrow();
        }

        @Override
        public boolean computesOnDevice() {
            return true;
        }

        @Override
        public void inner(List<Sample> xi, Points w, Floats value, List<Points> jacobian) {
            calls.add(xi.stream().map(Sample::client).toList());
            var run = new Run(xi.getFirst().client(), xi.size());
            assertThat(w.count()).isEqualTo(xi.size());
            assertThat(value.length()).isEqualTo(xi.size());
            Variable from = at(w.values(), run);
            Variable gradient = at(jacobian.getFirst().values(), run);
            Variable g = at(value, run);
            device.ema(1, from.of(run), gradient.of(run));
            device.vectorStep(-1, from.of(run), gradient.of(run));
            device.ema(1, from.of(run).slice(0, 1), g.of(run));
        }

        @Override
        public void hessianProduct(List<Sample> xi, Points w, Points direction, Points product) {
            throw new UnsupportedOperationException();
        }
    }

    private Problem problem(List<OnDevice> made) {
        return new Problem() {
            @Override
            public Layout layout() {
                return layout;
            }

            @Override
            public int innerDimension() {
                return 1;
            }

            @Override
            public int clients() {
                return CLIENTS;
            }

            @Override
            public Client client(int k) {
                return new OnlyOuter();
            }

            @Override
            public Optional<JointOracle> joint(Device device, List<Integer> clients) {
                assertThat(clients).containsExactly(0, 1, 2, 3);
                assertThat(device.stream().address()).isNotZero();
                var oracle = new OnDevice(device);
                made.add(oracle);
                return Optional.of(oracle);
            }
        };
    }

    @ParameterizedTest
    @MethodSource("org.fedcomuon.testing.TestDevices#simulated")
    void valuesStayOnTheDeviceUntilTheyAreRead(String name) {
        var made = new ArrayList<OnDevice>();
        List<Integer> numbers = IntStream.range(0, CLIENTS).boxed().toList();
        try (Device device = TestDevices.open(name);
                var clients = new Clients(device, problem(made), numbers, 1, ClientFault.Policy.FAIL, fault -> {}, 2)) {
            Variable w = clients.weights();
            Variable value = clients.scratch("g", 1);
            Variable gradient = clients.scratch("gradient", N);
            Variable outer = clients.scratch("grad f", 1);
            made.getFirst().variables.addAll(List.of(w, value, gradient));
            w.buffer().copyIn(0, new float[] {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
            clients.inner(w, value, gradient);
            clients.outerGradient(value, outer); // reads them
            assertThat(gradient.buffer().toDoubles(0, CLIENTS * N))
                    .containsExactly(2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24);
            assertThat(outer.buffer().toDoubles(0, CLIENTS)).containsExactly(10, 40, 70, 100);

            clients.admit(new boolean[] {true, true, false, true});
            w.buffer().copyIn(0, new float[] {-1, 0, 0});
            clients.inner(w, value, gradient);
            assertThat(calls).containsExactly(List.of(0, 1, 2, 3), List.of(0, 1), List.of(3));
            assertThat(value.buffer().toDoubles(0, CLIENTS)).containsExactly(-1, 4, 7, 10);

            // The losses of two steps, of one, and of two.
            assertThat(IntStream.range(0, CLIENTS).mapToDouble(clients::meanLoss))
                    .containsExactly(0.0, 4.0, 7.0, 10.0);
            clients.inner(w, value, gradient);
            assertThat(clients.meanLoss(0)).isEqualTo((1 - 1 - 1) / 3.0);
            assertThat(clients.meanLoss(2)).isEqualTo(7);
            clients.inner(w, value, gradient);
            clients.forgetLosses();
            assertThat(clients.meanLoss(1)).isNaN();
            clients.inner(w, value, gradient);
            assertThat(clients.meanLoss(1)).isEqualTo(4);
        }
    }
}
