package org.fedcomuon.problem;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class ExponentialRiskTest {
    @Test
    void literalBelowTheCap() {
        var risk = new ExponentialRisk(0.5);
        assertThat(risk.value(1)).isCloseTo(Math.exp(2), within(1e-12));
        assertThat(risk.derivative(1)).isCloseTo(Math.exp(2) / 0.5, within(1e-12));
        assertThat(risk.derivative(2.3)).isCloseTo(199, within(0.1)); // as steep as is said of it
        assertThat(risk.value(-1e30)).isZero();
        assertThat(risk.derivative(-1e30)).isZero();
    }

    /** Value and slope go through the cap without a jump, and the slope stays beyond it. */
    @ParameterizedTest
    @CsvSource({"0.5, 2", "1, 3", "2, 0.5", "0.1, 60"})
    void tangentBeyondTheCap(double lambda, double cap) {
        var risk = new ExponentialRisk(lambda, cap);
        double edge = lambda * cap;
        double slope = Math.exp(cap) / lambda;
        assertThat(risk.value(edge)).isCloseTo(Math.exp(cap), within(1e-9 * Math.exp(cap)));
        assertThat(risk.value(edge * (1 + 1e-12))).isCloseTo(Math.exp(cap), within(1e-9 * Math.exp(cap)));
        for (double beyond : new double[] {0.1, 1, 50, 1e6}) {
            assertThat(risk.derivative(edge + beyond)).isCloseTo(slope, within(1e-12 * slope));
            double line = Math.exp(cap) + slope * beyond;
            assertThat(risk.value(edge + beyond)).isCloseTo(line, within(1e-9 * line));
        }
    }

    @ParameterizedTest
    @CsvSource({"0.5, 2", "1, 60", "3, 1"})
    void derivativeIsTheSlope(double lambda, double cap) {
        var risk = new ExponentialRisk(lambda, cap);
        for (double y : new double[] {-3, 0, 0.4, 0.9 * lambda * cap, 1.1 * lambda * cap, 5 * lambda * cap}) {
            double h = 1e-6 * lambda;
            double slope = (risk.value(y + h) - risk.value(y - h)) / (2 * h);
            assertThat(risk.derivative(y)).as("at %s", y).isCloseTo(slope, within(1e-5 * slope));
        }
    }

    /** Any loss a float can hold; the weight is a float too, and stays one when a gradient comes upon it. */
    @ParameterizedTest
    @ValueSource(doubles = {0, 1e-30, 1, 88, 1e3, 1e30, Float.MAX_VALUE, -1e30, -Float.MAX_VALUE})
    void nothingOverflows(double loss) {
        for (double lambda : new double[] {1e-6, 0.1, 0.5, 1, 1e6}) {
            for (ExponentialRisk risk :
                    new ExponentialRisk[] {new ExponentialRisk(lambda), new ExponentialRisk(lambda, 2)}) {
                assertThat(risk.value(loss)).isFinite().isNotNegative();
                assertThat(risk.derivative(loss)).isFinite().isNotNegative();
                assertThat((float) risk.derivative(loss) * 1e3f).isFinite();
            }
        }
    }

    @Test
    void increasesAlways() {
        var risk = new ExponentialRisk(0.5, 2);
        double last = -1;
        for (double y = -5; y < 20; y += 0.01) {
            assertThat(risk.value(y)).isGreaterThan(last);
            last = risk.value(y);
        }
    }

    @Test
    void worstCaseLiesBetweenTheMeanAndTheMaximum() {
        double[] losses = {0.3, 1.2, 2.5, 0.7};
        double lambda = 0.8;
        double sum = 0;
        for (double loss : losses) {
            sum += Math.exp(loss / lambda) / losses.length;
        }
        assertThat(new ExponentialRisk(lambda).worstCase(losses)).isCloseTo(lambda * Math.log(sum), within(1e-12));
        assertThat(new ExponentialRisk(1e6).worstCase(losses)).isCloseTo(1.175, within(1e-5));
        assertThat(new ExponentialRisk(1e-6).worstCase(losses)).isCloseTo(2.5, within(1e-5));
    }

    @Test
    void worstCaseIsStable() {
        assertThat(new ExponentialRisk(0.5).worstCase(1e30, 1, 2)).isEqualTo(1e30);
        assertThat(new ExponentialRisk(0.5).worstCase(-1e30, -1e30)).isEqualTo(-1e30);
        assertThat(new ExponentialRisk(0.5).worstCase(1e5, 1e5 + 1))
                .isCloseTo(1e5 + 0.5 * Math.log((1 + Math.exp(2)) / 2), within(1e-9));
        assertThat(new ExponentialRisk(0.5).worstCase(3)).isEqualTo(3);
        assertThat(new ExponentialRisk(1e-6).worstCase(1000, 2000, 3000)).isCloseTo(3000, within(1e-5));
    }

    @Test
    void capsAreChecked() {
        for (double cap : new double[] {0, -1, 60.5, Double.NaN, Double.POSITIVE_INFINITY}) {
            assertThatThrownBy(() -> new ExponentialRisk(1, cap))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("exponentCap = " + cap);
        }
        assertThat(new ExponentialRisk(1).exponentCap()).isEqualTo(ExponentialRisk.LARGEST_EXPONENT);
    }
}
