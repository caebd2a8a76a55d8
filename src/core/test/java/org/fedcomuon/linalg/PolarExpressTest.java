package org.fedcomuon.linalg;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.util.List;
import org.fedcomuon.device.NewtonSchulzSpec;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class PolarExpressTest {
    private static Coefficients set(List<NewtonSchulzSpec.Step> steps) {
        return Coefficients.custom(steps);
    }

    /** The largest distance from 1 of what becomes of singular values from {@code lowest} to 1. */
    private static double worst(Coefficients set, double lowest) {
        double worst = 0;
        int samples = 100_000;
        for (int i = 0; i <= samples; i++) {
            double distance = Math.abs(set.map(Math.pow(lowest, i / (double) samples)) - 1);
            worst = distance <= worst ? worst : distance; // NaN stays
        }
        return worst;
    }

    /** The table of the paper is for singular values from 1e-3 on. Its seventh tuple is 1e-9 from the limit. */
    @Test
    void isThePublishedTable() {
        List<NewtonSchulzSpec.Step> published = Coefficients.polarExpress(7, 1).steps();
        List<NewtonSchulzSpec.Step> computed = PolarExpress.steps(1e-3, 1e-8, 0);
        assertThat(computed).hasSize(7);
        for (int i = 0; i < 7; i++) {
            double digits = i < 6 ? 1e-13 : 1e-9;
            NewtonSchulzSpec.Step is = computed.get(i);
            NewtonSchulzSpec.Step should = published.get(i);
            assertThat(is.a()).isCloseTo(should.a(), within(digits * Math.abs(should.a())));
            assertThat(is.b()).isCloseTo(should.b(), within(digits * Math.abs(should.b())));
            assertThat(is.c()).isCloseTo(should.c(), within(digits * Math.abs(should.c())));
        }
    }

    /** Of all polynomials, the nearest is as far above 1 as below, at the ends and between. */
    @Test
    void theNearestPolynomialIsAsFarAboveAsBelow() {
        NewtonSchulzSpec.Step step = PolarExpress.steps(0.1, 0.5, 0).getFirst();
        Coefficients one = set(List.of(step));
        double most = 0;
        double least = 2;
        for (double s = 0.1; s <= 1; s += 1e-5) {
            most = Math.max(most, one.map(s));
            least = Math.min(least, one.map(s));
        }
        double distance = 1 - one.map(0.1);
        assertThat(one.map(1) - 1).isCloseTo(distance, within(1e-12));
        assertThat(most - 1).isCloseTo(distance, within(1e-8));
        assertThat(1 - least).isCloseTo(distance, within(1e-8));
        double inside = 0;
        for (double s = 0.2; s < 0.9; s += 1e-5) {
            inside = Math.max(inside, Math.abs(one.map(s) - 1));
        }
        assertThat(inside).isCloseTo(distance, within(1e-8)); // also at the extrema
    }

    @ParameterizedTest
    @CsvSource({"1e-3, 7", "1e-4, 9", "1e-5, 10", "1e-6, 12"})
    void stepsToAnErrorOfAMillionth(double lowest, int steps) {
        assertThat(PolarExpress.steps(lowest, 1e-6, PolarExpress.MARGIN)).hasSize(steps);
        assertThat(PolarExpress.steps(lowest, 1e-6, 0)).hasSize(steps);
    }

    @ParameterizedTest
    @CsvSource({
        "0.5, 1e-1",
        "0.5, 1e-12",
        "0.1, 1e-2",
        "1e-2, 1e-3",
        "1e-3, 1e-1",
        "1e-3, 1e-6",
        "1e-4, 1e-6",
        "1e-5, 1e-3",
        "1e-6, 1e-6",
        "1e-7, 1e-10",
        "1e-9, 0.5",
        "1e-12, 1e-2",
        "1e-12, 1e-12",
        "0.999, 1e-6"
    })
    void everySingularValueEndsWithinTheErrorAndNoStepIsTooMany(double lowest, double error) {
        for (double margin : new double[] {0.001, PolarExpress.MARGIN}) {
            List<NewtonSchulzSpec.Step> steps = PolarExpress.steps(lowest, error, margin);
            assertThat(worst(set(steps), lowest)).isLessThanOrEqualTo(error + 1e-14);
            if (steps.size() > 1) {
                assertThat(worst(set(steps.subList(0, steps.size() - 1)), lowest))
                        .isGreaterThan(error);
            }
        }
    }

    /** What is a little too large, as rounding makes it, would run away without the margin. */
    @Test
    void theMarginForgivesWhatIsTooLarge() {
        Coefficients bare = set(PolarExpress.steps(1e-6, 1e-6, 0));
        Coefficients safe = set(PolarExpress.steps(1e-6, 1e-6, PolarExpress.MARGIN));
        assertThat(bare.map(1)).isCloseTo(1, within(1e-6));
        assertThat(bare.map(1 + 1e-7))
                .satisfiesAnyOf(
                        value -> assertThat(value).isNaN(),
                        value -> assertThat(Math.abs(value)).isGreaterThan(2));
        for (double s = 1; s <= 1.01; s += 1e-5) {
            assertThat(safe.map(s)).isCloseTo(1, within(1e-6));
        }
    }
}
