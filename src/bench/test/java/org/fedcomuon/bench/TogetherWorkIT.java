package org.fedcomuon.bench;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.global.torch;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.Devices;
import org.fedcomuon.model.Adaptation;
import org.fedcomuon.model.CifarCnn;
import org.fedcomuon.model.Classification;
import org.fedcomuon.model.Examples;
import org.fedcomuon.model.Gradients;
import org.fedcomuon.model.LanguageModel;
import org.fedcomuon.model.LeNet;
import org.fedcomuon.model.MetaLearning;
import org.fedcomuon.model.Network;
import org.fedcomuon.model.VisionTransformer;
import org.fedcomuon.problem.ExponentialRisk;
import org.fedcomuon.problem.Floats;
import org.fedcomuon.problem.JointOracle;
import org.fedcomuon.problem.JointOracle.Points;
import org.fedcomuon.problem.Problem;
import org.fedcomuon.problem.Sample;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * All clients in one gradient take as many operators of libtorch, and launches, whatever their number. What is recorded
 * is the CPU's; inside of a product or a convolution it loops over clients, where a GPU calls a library once, as
 * {@link TorchWork} counts it.
 */
class TogetherWorkIT {
    private static final int BATCH = 2;

    /** A network and its inputs. */
    record Case(Network network, GradientWork.Inputs inputs) {
        @Override
        public String toString() {
            return network.name();
        }
    }

    static Stream<Case> networks() {
        return Stream.of(
                new Case(new LeNet(), new GradientWork.Inputs.Images(1, 28)),
                new Case(new CifarCnn(new CifarCnn.Sizes(9, 4, 5, 3, 6, 4)), new GradientWork.Inputs.Images(3, 9)),
                new Case(
                        new VisionTransformer(new VisionTransformer.Sizes(8, 4, 2, 8, 2, 4)),
                        new GradientWork.Inputs.Images(3, 8)),
                new Case(
                        new LanguageModel(new LanguageModel.Sizes(11, 6, 2, 8, 2, 12, 0.1)),
                        new GradientWork.Inputs.Words(6)));
    }

    private static Problem problem(Case model, Optional<Adaptation> adaptation, int clients) {
        int count = 2 * BATCH * clients;
        Examples examples = switch (model.inputs()) {
            case GradientWork.Inputs.Images(int channels, int side) ->
                new Examples(torch.zeros(count, channels, side, side), Tensor.create(new long[count]));
            case GradientWork.Inputs.Words(int length) -> {
                Tensor words = Tensor.create(new long[count * length]).view(count, length);
                yield new Examples(words, words);
            }
        };
        List<int[]> shares = IntStream.range(0, clients)
                .mapToObj(
                        k -> IntStream.range(2 * BATCH * k, 2 * BATCH * (k + 1)).toArray())
                .toList();
        var risk = new ExponentialRisk(1);
        return adaptation
                .<Problem>map(step -> new MetaLearning(model.network(), examples, shares, BATCH, step, risk)
                        .gradients(Gradients.TOGETHER))
                .orElseGet(() -> new Classification(model.network(), examples, shares, BATCH, risk)
                        .gradients(Gradients.TOGETHER));
    }

    /** Returns the number of operators that the program calls, of those that a GPU has a kernel of, and of launches. */
    private static List<Long> operators(Case model, Optional<Adaptation> adaptation, int clients, boolean hessian)
            throws Exception {
        Problem problem = problem(model, adaptation, clients);
        JointOracle oracle;
        try (Device cpu = Devices.open("cpu:0")) {
            oracle = problem.joint(cpu, IntStream.range(0, clients).boxed().toList())
                    .orElseThrow();
        }
        List<Sample> xi = IntStream.range(0, clients)
                .mapToObj(k -> new Sample(1, k, Sample.Stream.INNER, 0))
                .toList();
        Points w = points(model, clients);
        Points direction = points(model, clients);
        Points into = points(model, clients);
        Floats value = Floats.zeros(clients);
        TorchRecorder.Work work = hessian
                ? () -> oracle.hessianProduct(xi, w, direction, into)
                : () -> oracle.inner(xi, w, value, List.of(into));
        work.run(); // makes the views, which are kept
        List<TorchOperation> recorded = TorchRecorder.record(work);
        WorkList launched = TorchWork.of(recorded);
        return List.of((long) recorded.size(), (long) launched.all().size(), launched.launches());
    }

    private static Points points(Case model, int clients) {
        long n = model.network().parameters();
        return new Points(model.network().layout(), Floats.zeros(clients * n), clients, n);
    }

    @ParameterizedTest
    @MethodSource("networks")
    void theNumberOfOperatorsDoesNotDependOnThatOfClients(Case model) throws Exception {
        assertThat(operators(model, Optional.empty(), 10, false))
                .isEqualTo(operators(model, Optional.empty(), 2, false))
                .doesNotContain(0L);
    }

    @ParameterizedTest
    @MethodSource("networks")
    void norThatOfHessianProducts(Case model) throws Exception {
        assertThat(operators(model, Optional.empty(), 10, true))
                .isEqualTo(operators(model, Optional.empty(), 2, true))
                .doesNotContain(0L);
    }

    @ParameterizedTest
    @MethodSource("networks")
    void norThatOfMetaGradients(Case model) throws Exception {
        for (boolean firstOrder : List.of(true, false)) {
            var adaptation = Optional.of(new Adaptation(0.1, firstOrder));
            assertThat(operators(model, adaptation, 10, false))
                    .isEqualTo(operators(model, adaptation, 2, false))
                    .doesNotContain(0L);
        }
    }

    /** Less than those of two clients one by one, so that it is worth it from the second client on. */
    @ParameterizedTest
    @MethodSource("networks")
    void theyAreLessThanThoseOfTwoClients(Case model) throws Exception {
        long together = operators(model, Optional.empty(), 10, false).getLast();
        long one = GradientWork.recorded(model.network(), model.inputs(), Optional.empty(), BATCH)
                .work()
                .launches();
        assertThat(together).isLessThan(2 * one);
    }
}
