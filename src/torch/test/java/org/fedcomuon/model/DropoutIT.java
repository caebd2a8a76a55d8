package org.fedcomuon.model;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.lang.foreign.Arena;
import java.util.List;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.global.torch;
import org.fedcomuon.problem.Client;
import org.fedcomuon.problem.Floats;
import org.fedcomuon.problem.Jacobian;
import org.fedcomuon.problem.Point;
import org.fedcomuon.problem.Risk;
import org.fedcomuon.problem.Sample;
import org.junit.jupiter.api.Test;

/** Masks belong to a sample: the same in every evaluation on it, others in another layer or another sample. */
class DropoutIT {
    private static final int SIZE = 100_003; // neither a multiple of a word nor of a chunk

    private final Sample xi = TinyModels.sample(3);

    private static float[] applied(Dropout dropout, double p) {
        Torch.claim();
        Tensor result = dropout.apply(torch.ones(SIZE), p);
        var values = new float[SIZE];
        result.data_ptr_float().get(values);
        return values;
    }

    @Test
    void leavesOutItsShareAndKeepsTheMean() {
        for (double p : new double[] {0.1, 0.5, 0.9}) {
            float[] values = applied(Dropout.of(xi), p);
            int left = 0;
            for (float value : values) {
                if (value == 0) {
                    left++;
                } else {
                    assertThat((double) value).isCloseTo(1 / (1 - p), within(2e-3));
                }
            }
            double deviation = Math.sqrt(p * (1 - p) / SIZE);
            assertThat((double) left / SIZE).isCloseTo(p, within(4 * deviation));
            // Neighbours, and elements four apart, which come from neighbouring numbers, know nothing of each other.
            for (int apart : new int[] {1, 2, 3, 4, 8}) {
                int together = 0;
                for (int i = apart; i < SIZE; i++) {
                    together += values[i] == 0 && values[i - apart] == 0 ? 1 : 0;
                }
                assertThat((double) together / SIZE).isCloseTo(p * p, within(5 * p * deviation + 1e-3));
            }
        }
    }

    @Test
    void theSampleAndTheLayerDecide() {
        float[] first = applied(Dropout.of(xi), 0.1);
        assertThat(applied(Dropout.of(xi), 0.1)).isEqualTo(first);
        assertThat(applied(Dropout.of(TinyModels.sample(4)), 0.1)).isNotEqualTo(first);
        Dropout dropout = Dropout.of(xi);
        assertThat(applied(dropout, 0.1)).isEqualTo(first);
        float[] second = applied(dropout, 0.1);
        assertThat(second).isNotEqualTo(first);
        Dropout other = Dropout.of(xi);
        other.apply(torch.ones(5), 0.3); // a first layer of another size does not change the second
        assertThat(applied(other, 0.1)).isEqualTo(second);
    }

    @Test
    void nothingIsLeftOutWhenJudged() {
        assertThat(applied(Dropout.none(), 0.5)).containsOnly(1);
        assertThat(applied(Dropout.of(xi), 0)).containsOnly(1);
    }

    @Test
    void bothEvaluationsOfVarianceReductionHaveOneMask() throws Exception {
        TinyModels model = TinyModels.LANGUAGE;
        int[] few = {0, 1, 2}; // less than a batch: every sample has the same data, and only the masks differ
        Client client = new Classification(model.network, model.examples(6), List.of(few), 3, Risk.mean()).client(0);
        try (Arena arena = Arena.ofShared()) {
            Point w = model.start(arena);
            Point same = model.start(arena);
            Point gradient = model.point(arena);
            Point gradientOld = model.point(arena);
            var value = new float[2];
            client.innerAtTwo(
                    xi,
                    w,
                    Floats.of(value).slice(0, 1),
                    new Jacobian(List.of(gradient)),
                    same,
                    Floats.of(value).slice(1, 1),
                    new Jacobian(List.of(gradientOld)));
            assertThat(value[0]).isEqualTo(value[1]);
            assertThat(gradient.values().toArray())
                    .isEqualTo(gradientOld.values().toArray());

            var other = new float[1];
            client.inner(TinyModels.sample(4), w, Floats.of(other), new Jacobian(List.of(gradientOld)));
            assertThat(Math.abs(other[0] - value[0])).isGreaterThan(1e-4f);
        }
    }
}
