package org.fedcomuon.model;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.IntFunction;
import java.util.stream.IntStream;
import org.bytedeco.pytorch.Tensor;
import org.fedcomuon.device.Device;
import org.fedcomuon.problem.ExponentialRisk;
import org.fedcomuon.problem.Floats;
import org.fedcomuon.problem.JointOracle;
import org.fedcomuon.problem.JointOracle.Points;
import org.fedcomuon.problem.Layout;
import org.fedcomuon.problem.Point;
import org.fedcomuon.problem.Problem;
import org.fedcomuon.problem.Sample;
import org.fedcomuon.testing.TestDevices;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;

/** Which clients are differentiated together, where, on which stream, and what is said about the others. */
class JointChoiceIT {
    private static final Network TAKES = new LeNet();

    /** The same network as somebody writes one: for one client. */
    private static final Network TAKES_NOT = new Network() {
        @Override
        public String name() {
            return "my-own";
        }

        @Override
        public Layout layout() {
            return TAKES.layout();
        }

        @Override
        public Tensor logits(Parameters p, Tensor input, Dropout dropout) {
            assertThat(p.clients()).isEmpty();
            return TAKES.logits(p, input, dropout);
        }
    };

    private final List<String> events = new ArrayList<>();
    private final List<String> logged = new ArrayList<>();

    /** Stands in for that of libtorch, which needs CUDA. */
    private final TorchStream recorded = (device, stream, work) -> {
        events.add("on " + device + " " + stream);
        try {
            work.run();
        } finally {
            events.add("off");
        }
    };

    private JointChoice choice(Gradients gradients, boolean cuda) {
        return new JointChoice(gradients, device -> cuda, recorded, logged::add);
    }

    private static Classification problem(Network network) {
        var pixels = new float[6 * 784];
        for (int i = 0; i < pixels.length; i++) {
            pixels[i] = (float) Math.sin(i);
        }
        List<int[]> clients = List.of(new int[] {0, 1, 2}, new int[] {3, 4, 5});
        return new Classification(
                network,
                Examples.of(pixels, new int[] {0, 1, 2, 3, 4, 5}, 1, 28, 28),
                clients,
                2,
                new ExponentialRisk(1));
    }

    private static Optional<JointOracle> joint(Problem problem, Device device) {
        return problem.joint(device, List.of(0, 1));
    }

    @ParameterizedTest
    @EnumSource(Gradients.class)
    void onACpuTheyAreTogetherOnlyIfAskedFor(Gradients gradients) {
        try (Device cpu = TestDevices.open("cpu:0")) {
            Optional<JointOracle> chosen = joint(problem(TAKES).choosing(choice(gradients, false)), cpu);
            assertThat(chosen.isPresent()).isEqualTo(gradients == Gradients.TOGETHER);
            chosen.ifPresent(oracle -> {
                assertThat(oracle).isInstanceOf(Together.class);
                assertThat(oracle.computesOnDevice()).isFalse();
            });
        }
        assertThat(logged).isEmpty();
    }

    /** Simulated GPUs as those that libtorch has no CUDA for: what it computes passes through the host. */
    @ParameterizedTest
    @MethodSource("org.fedcomuon.testing.TestDevices#simulated")
    void whereLibtorchDoesNotComputeItIsAsOnACpu(String name) {
        try (Device device = TestDevices.open(name)) {
            assertThat(joint(problem(TAKES), device)).isEmpty();
            assertThat(joint(problem(TAKES).gradients(Gradients.PER_CLIENT), device))
                    .isEmpty();
            assertThat(joint(problem(TAKES).gradients(Gradients.TOGETHER), device))
                    .hasValueSatisfying(
                            oracle -> assertThat(oracle.computesOnDevice()).isFalse());
        }
    }

    /** With a libtorch that would compute in the memory of simulated GPUs. */
    @ParameterizedTest
    @MethodSource("org.fedcomuon.testing.TestDevices#simulated")
    void onAGpuTheyAreTogetherUnlessAskedOtherwise(String name) {
        try (Device device = TestDevices.open(name)) {
            assertThat(inner(problem(TAKES).choosing(choice(Gradients.AUTO, true)), device))
                    .isInstanceOf(Together.class);
            assertThat(inner(problem(TAKES).choosing(choice(Gradients.TOGETHER, true)), device))
                    .isInstanceOf(Together.class);
            assertThat(inner(problem(TAKES).choosing(choice(Gradients.PER_CLIENT, true)), device))
                    .isInstanceOf(OneByOne.class);
            assertThat(logged).isEmpty();
        }
    }

    private static JointOracle inner(Problem problem, Device device) {
        var onStream = (OnStream) joint(problem, device).orElseThrow();
        assertThat(onStream.computesOnDevice()).isTrue();
        assertThat(onStream.device()).isSameAs(device);
        return onStream.oracle();
    }

    @ParameterizedTest
    @MethodSource("org.fedcomuon.testing.TestDevices#simulated")
    void aNetworkThatDoesNotTakeSeveralClientsIsNamedOnce(String name) {
        try (Device device = TestDevices.open(name)) {
            Classification problem = problem(TAKES_NOT).choosing(choice(Gradients.AUTO, true));
            assertThat(inner(problem, device)).isInstanceOf(OneByOne.class);
            assertThat(inner(problem, device)).isInstanceOf(OneByOne.class);
            assertThat(logged)
                    .singleElement()
                    .asString()
                    .startsWith(name + ": my-own ")
                    .contains("client by client");
            logged.clear();
            inner(problem(TAKES_NOT).choosing(choice(Gradients.PER_CLIENT, true)), device);
            assertThat(logged).isEmpty(); // as asked for
        }
    }

    @Test
    void onACpuItIsNamedTooIfTheyAreAskedForTogether() {
        try (Device cpu = TestDevices.open("cpu:0")) {
            assertThat(joint(problem(TAKES_NOT).choosing(choice(Gradients.TOGETHER, false)), cpu))
                    .isEmpty();
            assertThat(logged).singleElement().asString().contains("my-own");
        }
    }

    private static Points rows(int count) {
        long n = TAKES.parameters();
        return new Points(TAKES.layout(), Floats.zeros(count * n), count, n);
    }

    private static List<Sample> samples() {
        return IntStream.range(0, 2)
                .mapToObj(k -> new Sample(1, k, Sample.Stream.INNER, 3))
                .toList();
    }

    /** Everything of libtorch is between the two, even if it fails, and on the stream of the device. */
    @ParameterizedTest
    @MethodSource("org.fedcomuon.testing.TestDevices#simulated")
    void callsAreOnTheStreamOfTheDevice(String name) throws Exception {
        try (Device device = TestDevices.open(name)) {
            String on = "on %s %d".formatted(name, device.stream().address());
            JointOracle fake = new JointOracle() {
                @Override
                public boolean computesOnDevice() {
                    return false;
                }

                @Override
                public void inner(List<Sample> xi, Points w, Floats value, List<Points> jacobian) {
                    events.add("inner");
                }

                @Override
                public void hessianProduct(List<Sample> xi, Points w, Points direction, Points product) {
                    events.add("hessianProduct");
                    throw new IllegalStateException("broken");
                }
            };
            var oracle = new OnStream(fake, device, recorded);
            oracle.inner(samples(), rows(2), Floats.zeros(2), List.of(rows(2)));
            assertThatThrownBy(() -> oracle.hessianProduct(samples(), rows(2), rows(2), rows(2)))
                    .hasMessage("broken");
            assertThat(events).containsExactly(on, "inner", "off", on, "hessianProduct", "off");
        }
    }

    /** What a GPU does for such a network, here in memory of the host: the per-client path, to the bit. */
    @Test
    void oneByOneTheyHaveTheBitsOfTheClients() throws Exception {
        Examples examples = TinyModels.TOKENS.examples(6);
        Network network = TinyModels.TOKENS.network;
        IntFunction<NetworkLoss> losses =
                k -> new NetworkLoss(network, examples, xi -> new int[] {3 * xi.client(), 3 * xi.client() + 1});
        var oracle = new OneByOne(losses);
        Layout layout = network.layout();
        long n = layout.length();
        var w = new Points(layout, Floats.zeros(2 * n), 2, n);
        for (int k = 0; k < 2; k++) {
            w.of(k).values().set(Initialization.uniform(layout, k).toArray());
        }
        Floats value = Floats.zeros(2);
        var gradient = new Points(layout, Floats.zeros(2 * n), 2, n);
        var product = new Points(layout, Floats.zeros(2 * n), 2, n);
        gradient.values().fill(77);
        oracle.inner(samples(), w, value, List.of(gradient));
        oracle.hessianProduct(samples(), w, gradient, product);
        for (int k = 0; k < 2; k++) {
            var expected = new Point(layout, Floats.zeros(n));
            NetworkLoss loss = losses.apply(k);
            assertThat((double) value.get(k)).isEqualTo(loss.evaluate(samples().get(k), w.of(k), expected));
            assertThat(gradient.of(k).values().toArray())
                    .isEqualTo(expected.values().toArray());
            loss.hessianProduct(samples().get(k), w.of(k), gradient.of(k), expected);
            assertThat(product.of(k).values().toArray())
                    .isEqualTo(expected.values().toArray());
        }
    }
}
