package org.fedcomuon.problem;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.util.HashSet;
import java.util.Set;
import java.util.random.RandomGenerator;
import org.junit.jupiter.api.Test;

class SampleTest {
    private static final Sample SAMPLE = new Sample(42, 3, Sample.Stream.INNER, 7);

    private static double[] numbers(RandomGenerator random) {
        return random.doubles(20).toArray();
    }

    @Test
    void theSameSampleGivesTheSameNumbers() {
        assertThat(numbers(SAMPLE.random()))
                .isEqualTo(numbers(SAMPLE.random()))
                .isEqualTo(numbers(new Sample(42, 3, Sample.Stream.INNER, 7).random()));
        assertThat(numbers(SAMPLE.random(5))).isEqualTo(numbers(SAMPLE.random(5)));
    }

    @Test
    void everythingAboutASampleMatters() {
        double[] numbers = numbers(SAMPLE.random());
        assertThat(numbers(new Sample(43, 3, Sample.Stream.INNER, 7).random())).isNotEqualTo(numbers);
        assertThat(numbers(new Sample(42, 4, Sample.Stream.INNER, 7).random())).isNotEqualTo(numbers);
        assertThat(numbers(new Sample(42, 3, Sample.Stream.OUTER, 7).random())).isNotEqualTo(numbers);
        assertThat(numbers(new Sample(42, 3, Sample.Stream.INNER, 8).random())).isNotEqualTo(numbers);
    }

    /** Small numbers of all kinds give many seeds: none of them may meet. */
    @Test
    void neighboursDoNotMeet() {
        Set<Long> firsts = new HashSet<>();
        int count = 0;
        for (long seed = 0; seed < 8; seed++) {
            for (int client = 0; client < 16; client++) {
                for (Sample.Stream stream : Sample.Stream.values()) {
                    for (long draw = 0; draw < 100; draw++) {
                        firsts.add(
                                new Sample(seed, client, stream, draw).random().nextLong());
                        count++;
                    }
                }
            }
        }
        assertThat(firsts).hasSize(count);
    }

    @Test
    void anEpochIsTheSameForAllDrawsAndDiffersFromThem() {
        assertThat(numbers(new Sample(42, 3, Sample.Stream.INNER, 900).random(5)))
                .isEqualTo(numbers(SAMPLE.random(5)));
        assertThat(numbers(SAMPLE.random(6))).isNotEqualTo(numbers(SAMPLE.random(5)));
        assertThat(numbers(SAMPLE.random(7))).as("epoch 7 is not draw 7").isNotEqualTo(numbers(SAMPLE.random()));
        assertThat(numbers(new Sample(42, 2, Sample.Stream.INNER, 7).random(5)))
                .isNotEqualTo(numbers(SAMPLE.random(5)));
    }

    /** First numbers of successive draws: mean 0, variance 1, no correlation with the next draw or the next client. */
    @Test
    void firstNumbersOfSuccessiveDrawsAreIndependent() {
        int count = 20_000;
        double sum = 0;
        double squares = 0;
        double nextDraw = 0;
        double nextClient = 0;
        double otherStream = 0;
        for (int i = 0; i < count; i++) {
            double x = new Sample(1, 0, Sample.Stream.INNER, i).random().nextGaussian();
            sum += x;
            squares += x * x;
            nextDraw +=
                    x * new Sample(1, 0, Sample.Stream.INNER, i + 1).random().nextGaussian();
            nextClient += x * new Sample(1, 1, Sample.Stream.INNER, i).random().nextGaussian();
            otherStream += x * new Sample(1, 0, Sample.Stream.OUTER, i).random().nextGaussian();
        }
        double margin = 5 / Math.sqrt(count);
        assertThat(sum / count).isCloseTo(0, within(margin));
        assertThat(squares / count).isCloseTo(1, within(2 * margin));
        assertThat(nextDraw / count).isCloseTo(0, within(margin));
        assertThat(nextClient / count).isCloseTo(0, within(margin));
        assertThat(otherStream / count).isCloseTo(0, within(margin));
    }
}
