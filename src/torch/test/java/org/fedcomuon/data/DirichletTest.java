package org.fedcomuon.data;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.util.Arrays;
import java.util.SplittableRandom;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Moments that are known in closed form, up to five standard errors. */
class DirichletTest {
    private static final int TRIALS = 40_000;

    /** The mean and the variance of the logarithm of a gamma variate are the digamma and the trigamma function. */
    @ParameterizedTest
    @CsvSource({
        "0.1, -10.4237549404110768, 101.433299150792758",
        "0.5, -1.9635100260214235, 4.9348022005446793",
        "1, -0.5772156649015329, 1.6449340668482264",
        "3, 0.9227843350984671, 0.3949340668482264",
        "50, 3.9019896734278921, 0.0202013333",
    })
    void logarithmsOfGammaVariatesHaveTheirMeanAndVariance(double shape, double mean, double variance) {
        var random = new SplittableRandom(7);
        double sum = 0;
        double squares = 0;
        for (int i = 0; i < TRIALS; i++) {
            double value = Dirichlet.logGamma(shape, random);
            sum += value;
            squares += (value - mean) * (value - mean);
        }
        assertThat(sum / TRIALS).isCloseTo(mean, within(5 * Math.sqrt(variance / TRIALS)));
        // The fourth moment is at most nine times the square of the second: that of an exponential distribution.
        assertThat(squares / TRIALS).isCloseTo(variance, within(5 * variance * Math.sqrt(8.0 / TRIALS)));
    }

    @ParameterizedTest
    @ValueSource(doubles = {1e-6, 1e-3, 0.3, 1, 20, 1e6})
    void sharesAddUp(double concentration) {
        var random = new SplittableRandom(3);
        var sums = new double[5];
        for (int i = 0; i < 1000; i++) {
            double[] shares = Dirichlet.draw(5, concentration, random);
            assertThat(Arrays.stream(shares).sum()).isCloseTo(1, within(1e-12));
            assertThat(Arrays.stream(shares)).allMatch(share -> share >= 0 && share <= 1);
            Arrays.setAll(sums, k -> sums[k] + shares[k]);
        }
        double deviation = Math.sqrt(4.0 / 25 / (5 * concentration + 1) / 1000);
        for (double sum : sums) {
            assertThat(sum / 1000).isCloseTo(0.2, within(5 * deviation + 1e-12));
        }
    }
}
