package org.fedcomuon.model;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.List;
import java.util.SplittableRandom;
import java.util.stream.IntStream;
import org.bytedeco.pytorch.Scalar;
import org.bytedeco.pytorch.Tensor;
import org.fedcomuon.federation.Federation;
import org.fedcomuon.federation.Result;
import org.fedcomuon.method.ClientFaultException;
import org.fedcomuon.method.FedCoMuon;
import org.fedcomuon.method.FedCoMuonVr;
import org.fedcomuon.method.FedMaml;
import org.fedcomuon.method.Method;
import org.fedcomuon.method.Muon;
import org.fedcomuon.method.Schedule;
import org.fedcomuon.problem.ExponentialRisk;
import org.fedcomuon.problem.Problem;
import org.fedcomuon.testing.TestDevices;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Training of all clients together against training of one after the other. */
class TogetherRunIT {
    private static final int CLIENTS = 5;
    private static final int EACH = 12;

    private static Schedule constant(double value) {
        return Schedule.constant(value);
    }

    private static Method fedCoMuon() {
        return new FedCoMuon(constant(0.01), constant(0.3), constant(0.2), Muon.standard());
    }

    /** Images as large as digits; the last client has less than a batch. */
    private static Examples images() {
        var random = new SplittableRandom(3);
        var pixels = new float[CLIENTS * EACH * 784];
        for (int i = 0; i < pixels.length; i++) {
            pixels[i] = (float) random.nextDouble();
        }
        return Examples.of(pixels, random.ints(CLIENTS * EACH, 0, 10).toArray(), 1, 28, 28);
    }

    private static List<int[]> clients() {
        return IntStream.range(0, CLIENTS)
                .mapToObj(k -> IntStream.range(k * EACH, k == CLIENTS - 1 ? k * EACH + 4 : (k + 1) * EACH)
                        .toArray())
                .toList();
    }

    private static Federation.Builder run(Problem problem, Method method, String device) {
        return Federation.of(problem, method)
                .iterations(12)
                .tau(4)
                .seed(5)
                .threads(1)
                .participation(0.7)
                .devices(device);
    }

    /** Relative to the largest weight. */
    private static double distance(Result a, Result b) {
        float[] x = a.weights().values().toArray();
        float[] y = b.weights().values().toArray();
        double largest = 0;
        double distance = 0;
        for (int i = 0; i < x.length; i++) {
            largest = Math.max(largest, Math.abs(x[i]));
            distance = Math.max(distance, Math.abs(x[i] - y[i]));
        }
        return distance / largest;
    }

    private static void assertClose(Problem together, Problem alone, Method method, String device) throws Exception {
        Result expected = run(alone, method, device).build().run();
        Result actual = run(together, method, device).build().run();
        assertThat(distance(actual, expected)).isLessThan(1e-4);
        assertThat(actual.sha256()).isNotEqualTo(expected.sha256()); // it has been another path
    }

    /** The form of mnist-robust, small. */
    @ParameterizedTest
    @MethodSource("org.fedcomuon.testing.TestDevices#kinds")
    void robustTrainingEndsWhereItDoesPerClient(String device) throws Exception {
        TestDevices.open(device).close();
        var problem = new Classification(new LeNet(), images(), clients(), 8, new ExponentialRisk(0.5));
        assertClose(problem.gradients(Gradients.TOGETHER), problem, fedCoMuon(), device);
        var vr = new FedCoMuonVr(
                constant(0.01), constant(0.2), constant(0.8), constant(0.9), constant(0.2), 10, 10, 3, Muon.standard());
        assertClose(problem.gradients(Gradients.TOGETHER), problem, vr, device);
    }

    @ParameterizedTest
    @MethodSource("org.fedcomuon.testing.TestDevices#kinds")
    void metaTrainingDoesToo(String device) throws Exception {
        TestDevices.open(device).close();
        var problem =
                new MetaLearning(new LeNet(), images(), clients(), 4, Adaptation.exact(0.05), new ExponentialRisk(1));
        assertClose(problem.gradients(Gradients.TOGETHER), problem, fedCoMuon(), device);
        Classification plain = problem.plain();
        Method maml = new FedMaml(0.02, constant(0.05), false);
        assertClose(plain.gradients(Gradients.TOGETHER), plain, maml, device);
        assertClose(problem.gradients(Gradients.TOGETHER).plain(), plain, maml, device);
    }

    @Test
    void automaticallyACpuIsPerClient() throws Exception {
        var problem = new Classification(new LeNet(), images(), clients(), 8, new ExponentialRisk(0.5));
        assertThat(run(problem, fedCoMuon(), "cpu:0").build().run().sha256())
                .isEqualTo(run(problem.gradients(Gradients.PER_CLIENT), fedCoMuon(), "cpu:0")
                        .build()
                        .run()
                        .sha256());
    }

    /** Only one client's examples are not finite, or have no such class. */
    @ParameterizedTest
    @MethodSource("org.fedcomuon.testing.TestDevices#kinds")
    void aFaultIsThatOfOneClient(String device) {
        TestDevices.open(device).close();
        Examples notFinite = images();
        notFinite.inputs().narrow(0, EACH, EACH).fill_(new Scalar(Float.NaN));
        assertFaultOfClientOne(notFinite, device, "not finite");
        Examples wrong = images();
        Tensor labels = wrong.labels().narrow(0, EACH, EACH);
        labels.fill_(new Scalar(10L));
        assertFaultOfClientOne(wrong, device, "out of bounds");
    }

    private static void assertFaultOfClientOne(Examples examples, String device, String what) {
        Problem problem = new Classification(new LeNet(), examples, clients(), 8, new ExponentialRisk(0.5))
                .gradients(Gradients.TOGETHER);
        assertThatThrownBy(() -> run(problem, fedCoMuon(), device)
                        .participation(1)
                        .build()
                        .run())
                .isInstanceOf(ClientFaultException.class)
                .hasMessageStartingWith("client 1 ")
                .hasMessageContaining(what);
    }
}
