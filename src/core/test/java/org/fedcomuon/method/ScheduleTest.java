package org.fedcomuon.method;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class ScheduleTest {
    private static Method.Step step(long t, long iterations) {
        return new Method.Step(t, 5, iterations);
    }

    @Test
    void constant() {
        Schedule schedule = Schedule.constant(0.25);
        assertThat(schedule.at(step(0, 100))).isEqualTo(0.25);
        assertThat(schedule.at(step(99, 100))).isEqualTo(0.25);
        assertThat(schedule.least(100)).isEqualTo(0.25);
        assertThat(schedule.greatest(100)).isEqualTo(0.25);
        assertThat(schedule).hasToString("0.25").isEqualTo(Schedule.constant(0.25));
    }

    /** eta = T^-3/4 and its like: the same in every step of a run. */
    @ParameterizedTest
    @CsvSource({"1, -0.75, 256, 0.015625", "1, -0.5, 10000, 0.01", "3, -1, 6, 0.5", "2, 0.5, 16, 8", "0.7, -1, 0, 0.7"})
    void power(double factor, double exponent, long iterations, double expected) {
        Schedule schedule = Schedule.power(factor, exponent);
        assertThat(schedule.at(step(0, iterations))).isCloseTo(expected, within(1e-15));
        assertThat(schedule.at(step(Math.max(0, iterations - 1), iterations))).isCloseTo(expected, within(1e-15));
        assertThat(schedule.least(iterations)).isCloseTo(expected, within(1e-15));
        assertThat(schedule.greatest(iterations)).isCloseTo(expected, within(1e-15));
    }

    @ParameterizedTest
    @CsvSource({"0.1, 0.01", "0.01, 0.1", "0.5, 0.5", "1, 0"})
    void cosine(double first, double last) {
        Schedule schedule = Schedule.cosine(first, last);
        assertThat(schedule.at(step(0, 101))).isCloseTo(first, within(1e-15));
        assertThat(schedule.at(step(25, 101)))
                .isCloseTo(last + (first - last) * (0.5 + Math.sqrt(0.125)), within(1e-15));
        assertThat(schedule.at(step(50, 101))).isCloseTo((first + last) / 2, within(1e-15));
        assertThat(schedule.at(step(100, 101))).isCloseTo(last, within(1e-15));
        assertThat(schedule.least(101)).isEqualTo(Math.min(first, last));
        assertThat(schedule.greatest(101)).isEqualTo(Math.max(first, last));
        for (int t = 0; t < 101; t++) {
            assertThat(schedule.at(step(t, 101)))
                    .isBetween(schedule.least(101) - 1e-15, schedule.greatest(101) + 1e-15);
        }
    }

    @Test
    void cosineOfARunOfOneStepOrNoneOrBeyondItsEnd() {
        Schedule schedule = Schedule.cosine(0.1, 0.01);
        assertThat(schedule.at(step(0, 1))).isEqualTo(0.1);
        assertThat(schedule.at(step(0, 0))).isEqualTo(0.1);
        assertThat(schedule.at(step(7, 5))).isCloseTo(0.01, within(1e-15));
    }

    @Test
    void namesAreHowConfigurationsWriteThem() {
        assertThat(Schedule.power(1, -0.75)).hasToString("power(1.0, -0.75)");
        assertThat(Schedule.cosine(0.1, 0.01)).hasToString("cosine(0.1, 0.01)");
    }

    @Test
    void stepsKnowTheirRound() {
        assertThat(step(0, 20).startsRound()).isTrue();
        assertThat(step(4, 20).isSync()).isTrue();
        assertThat(step(3, 20).isSync()).isFalse();
        assertThat(step(5, 20).startsRound()).isTrue();
        assertThat(step(4, 20).round()).isZero();
        assertThat(step(5, 20).round()).isEqualTo(1);
        assertThat(new Method.Step(0, 1, 1).isSync()).isTrue();
        assertThatThrownBy(() -> new Method.Step(-1, 1, 1)).isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(() -> new Method.Step(0, 0, 1)).isInstanceOf(IllegalArgumentException.class);
    }
}
