package org.fedcomuon.problem;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class RiskTest {
    /** The slope of the value, by differences. */
    private static void requireDerivative(Risk risk, double... points) {
        for (double y : points) {
            double h = 1e-6 * Math.max(1, Math.abs(y));
            double slope = (risk.value(y + h) - risk.value(y - h)) / (2 * h);
            assertThat(risk.derivative(y)).as("at %s", y).isCloseTo(slope, within(1e-6 * Math.max(1, Math.abs(slope))));
        }
    }

    @Test
    void mean() {
        assertThat(Risk.mean().value(3.5)).isEqualTo(3.5);
        requireDerivative(Risk.mean(), -2, 0, 7);
    }

    @ParameterizedTest
    @ValueSource(doubles = {1, 1.5, 2, 5})
    void power(double power) {
        Risk risk = Risk.power(power);
        assertThat(risk.value(2)).isCloseTo(Math.pow(2, power) / power, within(1e-12));
        requireDerivative(risk, 0.1, 1, 2.5);
        assertThat(risk.value(-1)).isZero();
        assertThat(risk.derivative(-1)).isFinite();
    }

    @Test
    void logarithm() {
        Risk risk = Risk.logarithm(0.5);
        assertThat(risk.value(Math.E)).isCloseTo(0.5, within(1e-12));
        requireDerivative(risk, 0.1, 1, 30);
        for (double y : new double[] {0, -1, -1e30}) {
            assertThat(risk.value(y)).isFinite();
            assertThat(risk.derivative(y)).isFinite().isPositive();
        }
    }

    @Test
    void anyOther() {
        Risk risk = Risk.of(Math::sinh, Math::cosh);
        assertThat(risk.value(1)).isEqualTo(Math.sinh(1));
        requireDerivative(risk, -1, 0.5);
    }

    @Test
    void parametersAreChecked() {
        for (double power : new double[] {0.9, 100, Double.NaN}) {
            assertThatThrownBy(() -> Risk.power(power)).hasMessageContaining("power = " + power);
        }
        for (double lambda : new double[] {0, -1, 1e-7, 1e7, Double.NaN, Double.POSITIVE_INFINITY}) {
            assertThatThrownBy(() -> Risk.logarithm(lambda)).hasMessageContaining("lambda = " + lambda);
            assertThatThrownBy(() -> new ExponentialRisk(lambda)).hasMessageContaining("lambda = " + lambda);
        }
    }
}
