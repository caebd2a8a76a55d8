package org.fedcomuon.model;

import static org.assertj.core.api.Assertions.assertThat;

import org.fedcomuon.problem.Client;
import org.fedcomuon.problem.Floats;
import org.fedcomuon.problem.GradientCheck;
import org.fedcomuon.problem.Jacobian;
import org.fedcomuon.problem.Point;
import org.fedcomuon.problem.Problem;
import org.fedcomuon.problem.Risk;
import org.fedcomuon.problem.Sample;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What the check of gradients has to find in a network: a wrong factor or sign in one block. */
class GradientMistakesIT {
    @ParameterizedTest
    @CsvSource({
        "conv1.weight, 1.05", "conv1.bias, -1", "conv2.weight, 0.95", "conv2.bias, 1.05", "dense1.weight, 1.05",
        "dense1.weight, 0", "dense1.bias, 1.05", "dense2.weight, 1.05", "dense2.bias, 0.95", "dense2.weight, -1"
    })
    void mistakesInLeNetAreFound(String block, double factor) {
        Problem right = GradientCheckIT.lenet(Risk.mean());
        Problem wrong = Problem.of(right.layout(), 1, 1, k -> new Client() {
            private final Client client = right.client(k);

            @Override
            public void inner(Sample xi, Point w, Floats value, Jacobian jacobian) throws Exception {
                client.inner(xi, w, value, jacobian);
                Floats part = jacobian.component(0).block(block);
                for (long i = 0; i < part.length(); i++) {
                    part.set(i, factor * part.get(i));
                }
            }

            @Override
            public void outerGradient(Sample zeta, Floats y, Floats gradient) throws Exception {
                client.outerGradient(zeta, y, gradient);
            }
        });
        assertThat(GradientCheck.of(wrong)
                        .at(GradientCheckIT.LENET.initial(1))
                        .samples(3)
                        .mistake())
                .hasValueSatisfying(message -> assertThat(message)
                        .startsWith("client 0: component 0 of the Jacobian, block '%s', ".formatted(block)));
    }
}
