package org.fedcomuon.linalg;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import java.util.List;
import org.fedcomuon.device.Buffer;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.DeviceException;
import org.fedcomuon.device.Devices;
import org.fedcomuon.device.ElementType;
import org.fedcomuon.device.InstructionSet;
import org.fedcomuon.device.Precision;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Schedules for a wanted error on matrices: what rounding leaves of the error that they have in exact arithmetic. */
class PolarExpressIT {
    private static double[] run(Orthogonalizer how, ElementType type, int rows, int cols, Spectrum spectrum) {
        int size = rows * cols;
        try (Device device = Devices.open("cpu:0", 2, InstructionSet.AUTO);
                Buffer m = device.allocate("M", type, size);
                Orthogonalizer.Plan plan = how.plan(device, 1, rows, cols, type, ScaleRule.NONE)) {
            if (type == ElementType.FLOAT32) {
                m.copyIn(0, spectrum.floats());
            } else {
                m.copyIn(0, spectrum.matrix());
            }
            plan.orthogonalize(m.batch(1, size), m.batch(1, size));
            return m.toDoubles(0, size);
        }
    }

    /** Returns the largest distance of a singular value from 1. */
    private static double off(int rows, int cols, double[] o) {
        try (Device device = Devices.open("cpu:0", 1, InstructionSet.AUTO)) {
            Quality quality = Quality.of(device, rows, cols, o, o);
            return Math.max(1 - quality.smallestSingularValue(), quality.largestSingularValue() - 1);
        }
    }

    @ParameterizedTest
    @CsvSource({
        "64, 64, 1e1, 1e-2, 5",
        "120, 256, 1e2, 1e-3, 7",
        "256, 120, 1e3, 1e-4, 9",
        "140, 300, 1e4, 1e-5, 10",
        "64, 64, 1e5, 1e-6, 12"
    })
    void singularValuesEndWithinTheError(int rows, int cols, double condition, double lowerBound, int steps) {
        int side = Math.min(rows, cols);
        Spectrum spectrum = Spectrum.of(rows, cols, Spectrum.logarithmic(side, 3, condition), 5);
        Coefficients until = Coefficients.polarExpressUntil(1e-5, lowerBound);
        assertThat(until.steps()).hasSize(steps);
        for (Orthogonalizer how : List.of(new NewtonSchulz(until), new GramNewtonSchulz(until))) {
            double[] o = run(how, ElementType.FLOAT32, rows, cols, spectrum);
            assertThat(off(rows, cols, o)).as(how.name()).isLessThan(1e-5);
            // Rounding of floats turns the smallest direction by about 1e-7 times the condition number.
            assertThat(o).as(how.name()).containsExactly(spectrum.polar(), within(1e-6 + 2e-7 * condition));
        }
    }

    @Test
    void doublesReachMore() {
        Spectrum spectrum = Spectrum.of(30, 50, Spectrum.logarithmic(30, 1, 1e4), 6);
        Coefficients until = Coefficients.polarExpressUntil(1e-11, 1e-5);
        double[] o = run(new NewtonSchulz(until), ElementType.FLOAT64, 30, 50, spectrum);
        assertThat(off(30, 50, o)).isLessThan(1e-11);
        assertThat(o).containsExactly(spectrum.polar(), within(1e-10));
    }

    /** After division by its norm, its largest singular value is 1 up to rounding, where polynomials end. */
    @Test
    void oneDominantDirectionDoesNotRunAway() {
        double[] values = Spectrum.logarithmic(40, 1e-4, 10);
        values[0] = 1;
        Spectrum spectrum = Spectrum.of(40, 60, values, 7);
        Coefficients until = Coefficients.polarExpressUntil(1e-5, 1e-6);
        assertThat(off(40, 60, run(new NewtonSchulz(until), ElementType.FLOAT32, 40, 60, spectrum)))
                .isLessThan(1e-5);
        Coefficients bare = Coefficients.custom(PolarExpress.steps(1e-6, 1e-5, 0));
        for (Precision precision : List.of(Precision.TF32, Precision.BF16)) {
            double[] o = run(new NewtonSchulz(until, precision), ElementType.FLOAT32, 40, 60, spectrum);
            assertThat(off(40, 60, o)).as(precision.toString()).isLessThan(precision == Precision.TF32 ? 0.01 : 0.1);
            assertThatThrownBy(() -> {
                        double[] astray = run(new NewtonSchulz(bare, precision), ElementType.FLOAT32, 40, 60, spectrum);
                        assertThat(off(40, 60, astray)).isLessThan(0.1);
                    })
                    .as("%s without the margin", precision)
                    .isInstanceOfAny(DeviceException.NotFinite.class, AssertionError.class);
        }
    }

    @Test
    void theGramFormRestartsAsOftenAsItNeedsAndRefusesLess() {
        Coefficients until = Coefficients.polarExpressUntil(1e-6, 1e-6);
        assertThat(new GramNewtonSchulz(until).restarts()).containsExactly(2, 5, 8, 11);
        assertThatThrownBy(() -> new GramNewtonSchulz(until, List.of(2, 5)))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("7 steps without a restart: the Gram form bears 3");
    }
}
