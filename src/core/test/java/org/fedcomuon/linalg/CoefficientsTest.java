package org.fedcomuon.linalg;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import java.util.Arrays;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class CoefficientsTest {
    /** The published ranges of the scalar iteration after five steps. */
    @ParameterizedTest
    @CsvSource({
        "jordan, 1e-3, .4705, 1.2024",
        "jordan, 1e-2, .6818, 1.1344",
        "cubic, 1e-3, .0076, 1",
        "cubic, 1e-2, .0758, 1",
        "quintic, 1e-3, .0232, 1",
        "quintic, 1e-2, .2285, 1",
        "you, 1e-3, .4750, 1.1450",
        "you, 1e-2, .9778, 1.0318",
        "polar-express, 1e-3, .8764, 1.1236",
        "polar-express, 1e-2, .8764, 1.1236",
        "polar-express-1.02, 1e-3, .8466, 1.1411",
        "polar-express-1.02, 1e-2, .8589, 1.1411"
    })
    void rangesAfterFiveSteps(String name, double smallest, double low, double high) {
        Coefficients coefficients = Coefficients.parse(name, Optional.empty());
        double least = Double.MAX_VALUE;
        double most = 0;
        int samples = 200_000;
        for (int i = 0; i <= samples; i++) {
            double value = coefficients.map(Math.pow(smallest, 1 - i / (double) samples));
            least = Math.min(least, value);
            most = Math.max(most, value);
        }
        assertThat(least).isCloseTo(low, within(6e-5));
        assertThat(most).isCloseTo(high, within(6e-5));
    }

    /**
     * The tuples of the public tables, written out once more, and the ranges of the scalar iteration over them: what a
     * set makes of singular values from {@code smallest} to 1.
     */
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "aol | 1.2 | 4.0098 -7.0585 2.4635 3.4585 -5.5479 2.5959 2.7573 -3.2939 1.4254 2.7215 -3.0494 1.3169 | 1e-3 | .0866 | 1.0844",
                "aol | 1.2 | 4.0098 -7.0585 2.4635 3.4585 -5.5479 2.5959 2.7573 -3.2939 1.4254 2.7215 -3.0494 1.3169 | 1e-1 | .9874 | 1.0117",
                "cans | 1 | 8.4703 -25.1081 18.6293 4.1828 -3.1087 .5806 3.9619 -2.9541 .5630 3.2866 -2.4647 .5074 2.2737 -1.6447 .4162 | 1e-3 | .8844 | 1.1198",
                "deepseekv4 | 1 | 3.4445 -4.775 2.0315 3.4445 -4.775 2.0315 3.4445 -4.775 2.0315 3.4445 -4.775 2.0315 3.4445 -4.775 2.0315 3.4445 -4.775 2.0315 3.4445 -4.775 2.0315 3.4445 -4.775 2.0315 2 -1.5 .5 2 -1.5 .5 | 1e-3 | 1 | 1.0005"
            })
    void setsOfPublicTables(String name, double divisor, String numbers, double smallest, double low, double high) {
        double[] tuples = Arrays.stream(numbers.split(" "))
                .mapToDouble(Double::parseDouble)
                .toArray();
        Coefficients coefficients = Coefficients.parse(name, Optional.empty());
        assertThat(coefficients.steps()).hasSize(tuples.length / 3);
        double least = Double.MAX_VALUE;
        double most = -Double.MAX_VALUE;
        int samples = 200_000;
        for (int i = 0; i <= samples; i++) {
            double from = Math.pow(smallest, 1 - i / (double) samples);
            double value = from / divisor;
            for (int step = 0; step < tuples.length; step += 3) {
                value = custom(value, tuples[step], tuples[step + 1], tuples[step + 2]);
            }
            assertThat(coefficients.map(from)).isCloseTo(value, within(1e-9));
            least = Math.min(least, value);
            most = Math.max(most, value);
        }
        assertThat(least).isCloseTo(low, within(6e-5));
        assertThat(most).isCloseTo(high, within(6e-5));
    }

    @Test
    void aolWithoutItsDivisorWouldTurnLargeSingularValuesRound() {
        Coefficients aol = Coefficients.aol(4);
        assertThat(new Coefficients("undivided", aol.steps(), 1).map(1)).isLessThan(-0.9);
        assertThat(aol.map(1)).isGreaterThan(0.98);
    }

    @Test
    void polarExpressConvergesInEightSteps() {
        Coefficients raw = Coefficients.polarExpress(8, 1);
        Coefficients safe = Coefficients.polarExpress(8, 1.01);
        for (double s = 1e-3; s <= 1; s *= 1.01) {
            assertThat(raw.map(s)).isCloseTo(1, within(1e-4));
            assertThat(safe.map(s)).isCloseTo(1, within(1e-2));
        }
        assertThat(safe.name()).isEqualTo("polar-express:1.01");
    }

    @Test
    void jordanDoesNotConverge() {
        Coefficients ten = Coefficients.jordan(10);
        double least = 2;
        for (double s = 1e-2; s <= 1; s *= 1.0001) {
            least = Math.min(least, ten.map(s));
        }
        assertThat(least).isBetween(0.67, 0.70);
    }

    @Test
    void theSafetyFactorForgivesWhatIsTooLarge() {
        double f = 1.05;
        Coefficients safe = Coefficients.polarExpress(5, f);
        Coefficients raw = Coefficients.polarExpress(5, 1);
        assertThat(Math.abs(raw.map(f))).isGreaterThan(1.3); // outside what the raw schedule was made for
        assertThat(safe.map(f)).isBetween(0.8, 1.2);
        assertThat(safe.steps().getFirst().b()).isCloseTo(raw.steps().getFirst().b() / (f * f * f), within(1e-12));
    }

    @Test
    void anErrorHasAScheduleByItsName() {
        Coefficients until = Coefficients.parse("polar-express-until:1e-6@1e-5", Optional.empty());
        assertThat(until).isEqualTo(Coefficients.polarExpressUntil(1e-6, 1e-5));
        assertThat(until.toString()).isEqualTo("polar-express-until:1e-6@1e-5 x 10");
        assertThat(Coefficients.parse(until.name(), Optional.of(10))).isEqualTo(until);
        assertThat(Coefficients.parse("polar-express-until:0.0025", Optional.empty()))
                .isEqualTo(Coefficients.polarExpressUntil(2.5e-3, 1e-4))
                .extracting(Coefficients::name)
                .isEqualTo("polar-express-until:0.0025@1e-4");
        assertThatThrownBy(() -> Coefficients.parse(until.name(), Optional.of(5)))
                .hasMessageContaining("polar-express-until:1e-6@1e-5 has 10 steps, not 5");
        assertThatThrownBy(() -> Coefficients.parse("polar-expres-until:1e-6", Optional.empty()))
                .hasMessageContaining("polar-express-until:ERROR@LOWER_BOUND");
    }

    @Test
    void tuplesOfAUser() {
        Coefficients custom = Coefficients.parse("1.5,-0.5,0;2,-1.5,0.5", Optional.empty());
        assertThat(custom.steps()).hasSize(2);
        assertThat(custom.map(0.5)).isCloseTo(custom(custom(0.5, 1.5, -0.5, 0), 2, -1.5, 0.5), within(1e-15));
        assertThat(custom.toString()).isEqualTo("1.5,-0.5,0.0;2.0,-1.5,0.5");
    }

    private static double custom(double s, double a, double b, double c) {
        return a * s + b * Math.pow(s, 3) + c * Math.pow(s, 5);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "jordn",
                "",
                "1,2",
                "1,2,3;",
                "1,2,x",
                "1,2,NaN",
                "polar-express:0.5",
                "polar-express:x",
                "polar-express-until",
                "polar-express-until:",
                "polar-express-until:0",
                "polar-express-until:0.6",
                "polar-express-until:1e-6@",
                "polar-express-until:1e-6@0",
                "polar-express-until:1e-6@1",
                "polar-express-until:1e-6@1e-3@1e-3",
                "polar-express-until:1e-13",
                "polar-express-until:NaN"
            })
    void nonsenseIsRefused(String text) {
        assertThatThrownBy(() -> Coefficients.parse(text, Optional.empty()))
                .isInstanceOf(IllegalArgumentException.class);
    }

    @Test
    void schedulesThatEndAreNotStretched() {
        assertThatThrownBy(() -> Coefficients.you(6)).hasMessageContaining("you has 5 steps, not 6");
        assertThatThrownBy(() -> Coefficients.polarExpress102(6)).isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(() -> Coefficients.jordan(0)).isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(() -> Coefficients.aol(5)).hasMessageContaining("aol has 4 steps, not 5");
        assertThatThrownBy(() -> Coefficients.cans(6)).hasMessageContaining("cans has 5 steps, not 6");
        assertThatThrownBy(() -> Coefficients.parse("deepseekv4", Optional.of(5)))
                .hasMessageContaining("deepseekv4 has 10 steps, not 5");
        assertThat(Coefficients.parse("deepseekv4", Optional.of(10)).steps()).hasSize(10);
        assertThat(Coefficients.polarExpress(20, 1).steps()).hasSize(20);
    }

    @Test
    void scaleRules() {
        assertThat(ScaleRule.NONE.scale(400, 100)).isEqualTo(1);
        assertThat(ScaleRule.ASPECT.scale(400, 100)).isEqualTo(2);
        assertThat(ScaleRule.ASPECT.scale(100, 400)).isEqualTo(1);
        assertThat(ScaleRule.RMS.scale(100, 400)).isCloseTo(4, within(1e-12));
    }
}
