package org.fedcomuon.experiment;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The errors that trackers settle at are those of trackers that are simulated. */
class TrackerErrorsTest {
    private static final int SAMPLES = 200_000;
    private static final double CHANGE = -0.01;

    /** g = 3 + noise; before it was 3 - CHANGE + noise that is much the same. */
    private static TrackerErrors samples() {
        var random = new Random(7);
        var here = new double[SAMPLES][1];
        var before = new double[SAMPLES][1];
        for (int i = 0; i < SAMPLES; i++) {
            double noise = random.nextGaussian();
            here[i][0] = 3 + noise;
            before[i][0] = 3 - CHANGE + noise + 0.05 * random.nextGaussian();
        }
        return new TrackerErrors(here, before);
    }

    @Test
    void momentsOfTheSamples() {
        TrackerErrors errors = samples();
        assertThat(errors.mean()[0]).isCloseTo(3, within(0.01));
        assertThat(errors.deviation()).isCloseTo(1, within(0.01));
        assertThat(errors.deviationOfChange()).isCloseTo(0.05, within(0.001));
        assertThat(errors.change()).isCloseTo(-CHANGE, within(0.001));
    }

    /** A tracker is run over the samples, while g goes on changing as it does between the two iterates. */
    @ParameterizedTest
    @ValueSource(doubles = {1, 0.5, 0.1, 0.03})
    void aSimulatedTrackerSettlesThere(double alpha) {
        TrackerErrors errors = samples();
        double average = 3;
        double reduced = 3;
        double squares = 0;
        double squaresReduced = 0;
        for (int i = 0; i < SAMPLES; i++) {
            double moved = i * CHANGE; // of both iterates
            double g = errors.here()[i][0] + moved;
            average = (1 - alpha) * average + alpha * g;
            reduced = g + (1 - alpha) * (reduced - errors.before()[i][0] - moved);
            squares += Math.pow(average - 3 - moved, 2) / SAMPLES;
            squaresReduced += Math.pow(reduced - 3 - moved, 2) / SAMPLES;
        }
        assertThat(Math.sqrt(squares)).isCloseTo(errors.ofMovingAverage(alpha), within(0.03));
        assertThat(Math.sqrt(squaresReduced)).isCloseTo(errors.ofVarianceReduction(alpha), within(0.03));
    }

    @Test
    void theLeastErrorIsLeast() {
        TrackerErrors errors = samples();
        for (TrackerErrors.Least least :
                new TrackerErrors.Least[] {errors.leastOfMovingAverage(), errors.leastOfVarianceReduction()}) {
            assertThat(least.alpha()).isBetween(1e-3, 1.0);
        }
        TrackerErrors.Least average = errors.leastOfMovingAverage();
        TrackerErrors.Least reduced = errors.leastOfVarianceReduction();
        for (double alpha = 0.01; alpha <= 1; alpha += 0.01) {
            assertThat(errors.ofMovingAverage(alpha)).isGreaterThan(0.999 * average.error());
            assertThat(errors.ofVarianceReduction(alpha)).isGreaterThan(0.999 * reduced.error());
        }
        assertThat(reduced.error()).isLessThan(average.error()); // the change is much less noisy than g
    }

    /** Where the change of g is as noisy as g, the last sample alone is as good as variance reduction. */
    @Test
    void independentNoiseIsNotReduced() {
        var random = new Random(7);
        var here = new double[10_000][2];
        var before = new double[10_000][2];
        for (int i = 0; i < here.length; i++) {
            for (int j = 0; j < 2; j++) {
                here[i][j] = random.nextGaussian();
                before[i][j] = random.nextGaussian();
            }
        }
        var errors = new TrackerErrors(here, before);
        assertThat(errors.deviation()).isCloseTo(Math.sqrt(2), within(0.03));
        assertThat(errors.leastOfVarianceReduction().alpha()).isEqualTo(1);
    }

    @Test
    void twoSamplesAreNeeded() {
        assertThatThrownBy(() -> new TrackerErrors(new double[1][1], new double[1][1]))
                .isInstanceOf(IllegalArgumentException.class);
    }
}
