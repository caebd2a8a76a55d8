package org.fedcomuon.model;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import java.util.stream.IntStream;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.TensorVector;
import org.bytedeco.pytorch.global.torch;
import org.fedcomuon.data.Mnist;
import org.fedcomuon.problem.ExponentialRisk;
import org.fedcomuon.problem.GradientCheck;
import org.fedcomuon.problem.OuterFunction;
import org.fedcomuon.problem.Problem;
import org.fedcomuon.problem.Risk;
import org.fedcomuon.testing.Slow;
import org.fedcomuon.testing.Soak;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** The check of gradients on networks: single precision, kinks, dropout, tens of thousands of parameters. */
class GradientCheckIT {
    static final Network LENET = new LeNet();

    private static Examples images() {
        return Examples.of(Mnist.bundled().train(), IntStream.range(0, 100).toArray());
    }

    static Problem lenet(Risk risk) {
        Examples images = images();
        List<int[]> clients = List.of(
                IntStream.range(0, 50).toArray(), IntStream.range(50, 100).toArray());
        return new Classification(LENET, images, clients, 20, risk);
    }

    @Tag(Soak.TAG)
    @Test
    void lenetPasses() {
        for (long seed = 1; seed <= Soak.times(1, 3); seed++) {
            Problem problem = lenet(new ExponentialRisk(1));
            assertThat(GradientCheck.of(problem)
                            .at(LENET.initial(seed))
                            .seed(seed)
                            .samples(1)
                            .mistake())
                    .isEmpty();
        }
        assertThat(GradientCheck.of(lenet(Risk.mean())).samples(1).mistake()).isEmpty();
    }

    @Slow
    @Tag(Soak.TAG)
    @ParameterizedTest
    @EnumSource
    void everyNetworkPasses(TinyModels model) {
        Problem problem = new Classification(
                model.network,
                model.examples(12),
                List.of(IntStream.range(0, 12).toArray()),
                6,
                Risk.mean());
        for (long seed = 1; seed <= Soak.times(1, 2); seed++) {
            assertThat(GradientCheck.of(problem)
                            .at(model.network.initial(seed))
                            .seed(seed)
                            .samples(1)
                            .mistake())
                    .isEmpty();
        }
    }

    @Test
    void fourInnerValuesPass() {
        Examples images = images();
        TorchProblem.Inner inner = (w, xi) -> {
            int[] batch = xi.random().ints(20, 0, 100).toArray();
            Tensor scores = LENET.logits(w, images.select(batch).inputs(), Dropout.none())
                    .select(1, 0);
            Tensor positive = scores.narrow(0, 0, 10);
            Tensor negative = scores.narrow(0, 10, 10);
            return torch.stack(new TensorVector(
                    positive.mean(),
                    negative.mean(),
                    positive.square().mean(),
                    negative.square().mean()));
        };
        var problem = new TorchProblem(LENET.layout(), List.of(inner), OuterFunction.areaUnderCurve(1));
        assertThat(GradientCheck.of(problem).at(LENET.initial(1)).samples(1).mistake())
                .isEmpty();
    }
}
