package org.fedcomuon.device;

import static org.assertj.core.api.Assertions.assertThat;
import static org.fedcomuon.device.Operands.assertRefused;

import java.util.Random;
import org.junit.jupiter.api.Test;

class MeanWeightsTest {
    @Test
    void theLargestIsInTheUpperHalfOfOne() {
        assertThat(MeanWeights.scaled(3, 1, 0)).containsExactly(0.75, 0.25, 0);
        assertThat(MeanWeights.scaled(1, 1)).containsExactly(1, 1);
        assertThat(MeanWeights.scaled(4)).containsExactly(1);
        assertThat(MeanWeights.scaled(0.5, 0.25)).containsExactly(1, 0.5);
        assertThat(MeanWeights.scaled(1.0 / 3, 0.1)).containsExactly(2 * (1.0 / 3), 0.2);
        assertThat(MeanWeights.scaled(600, 1234)).containsExactly(600.0 / 2048, 1234.0 / 2048);
        assertThat(MeanWeights.scaled(Double.MIN_VALUE, 0)).containsExactly(1, 0);
        assertThat(MeanWeights.scaled(3 * Double.MIN_VALUE)).containsExactly(0.75);
        assertThat(MeanWeights.scaled(Double.MIN_NORMAL, Double.MIN_VALUE)).containsExactly(1, 0x1p-52);
        assertThat(MeanWeights.scaled(Double.MAX_VALUE)[0]).isEqualTo(1 - 0x1p-53);
    }

    @Test
    void scalingIsByAPowerOfTwo() {
        var random = new Random(5);
        for (int repetition = 0; repetition < 1000; repetition++) {
            double[] weights = random.doubles(5)
                    .map(w -> Math.scalb(w, random.nextInt(600) - 300))
                    .toArray();
            double[] scaled = MeanWeights.scaled(weights);
            double largest = 0;
            for (int k = 0; k < weights.length; k++) {
                assertThat(scaled[k] / scaled[0]).isEqualTo(weights[k] / weights[0]);
                assertThat(Math.getExponent(weights[k]) - Math.getExponent(scaled[k]))
                        .isEqualTo(Math.getExponent(weights[0]) - Math.getExponent(scaled[0]));
                largest = Math.max(largest, scaled[k]);
            }
            assertThat(largest).isGreaterThan(0.5).isLessThanOrEqualTo(1);
        }
    }

    @Test
    void theTotalIsInClientOrder() {
        assertThat(MeanWeights.total(1, 0x1p-53, 0x1p-53)).isEqualTo(1);
        assertThat(MeanWeights.total(0x1p-53, 0x1p-53, 1)).isEqualTo(1 + 0x1p-52);
        assertThat(MeanWeights.total()).isZero();
    }

    @Test
    void whatIsNoWeightIsRefused() {
        assertRefused(() -> MeanWeights.scaled(1, -1), "weight 1 is -1.0");
        assertRefused(() -> MeanWeights.scaled(Double.NaN), "weight 0 is NaN");
        assertRefused(() -> MeanWeights.scaled(Double.POSITIVE_INFINITY), "weight 0 is Infinity");
        assertRefused(() -> MeanWeights.scaled(0, 0), "sum to 0");
        assertRefused(MeanWeights::scaled, "sum to 0");
    }
}
