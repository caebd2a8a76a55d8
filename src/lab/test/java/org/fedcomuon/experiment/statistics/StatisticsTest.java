package org.fedcomuon.experiment.statistics;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;

/** Statistics have the values of SciPy 1.17.1; the call that printed them stands above each. */
class StatisticsTest {
    private static final List<Double> A = List.of(0.9497, 0.9594, 0.9512, 0.9631, 0.9478, 0.9556, 0.9603);
    private static final List<Double> B = List.of(0.9455, 0.9548, 0.9530, 0.9570, 0.9441, 0.9549, 0.9511);
    private static final List<Double> SKEWED = List.of(1.0, 2.0, 2.0, 3.0, 4.0, 5.0, 8.0, 13.0, 30.0);

    private static Map<Long, Double> bySeed(List<Double> values) {
        var map = new TreeMap<Long, Double>();
        values.forEach(value -> map.put(42L + map.size(), value));
        return map;
    }

    private static PairedSample pairs() {
        return PairedSample.of(bySeed(A), bySeed(B));
    }

    private static PairedSample pairs(Double... differences) {
        return PairedSample.of(
                bySeed(List.of(differences)),
                bySeed(List.of(differences).stream().map(each -> 0.0).toList()));
    }

    // np.mean(a), np.std(a, ddof=1)
    @Test
    void meanAndDeviation() {
        Summary summary = Summary.of(A);
        assertThat(summary.count()).isEqualTo(7);
        assertThat(summary.mean()).isCloseTo(0.9553, within(1e-15));
        assertThat(summary.deviation()).isCloseTo(0.00587593964116946, within(1e-15));
        assertThat(Summary.of(List.of(0.1, 0.1, 0.1))).isEqualTo(new Summary(3, 0.1, 0));
    }

    // st.t.interval(.95, len(a)-1, loc=np.mean(a), scale=st.sem(a))
    // st.t.interval(.99, 1, loc=np.mean(a[:2]), scale=st.sem(a[:2]))
    @Test
    void studentsInterval() {
        Interval seven = Summary.of(A).interval(0.95).orElseThrow();
        assertThat(seven.low()).isCloseTo(0.9498656622054911, within(1e-12));
        assertThat(seven.high()).isCloseTo(0.9607343377945092, within(1e-12));
        Interval two = Summary.of(A.subList(0, 2)).interval(0.99).orElseThrow();
        assertThat(two.low()).isCloseTo(0.6458148053600719, within(1e-11));
        assertThat(two.high()).isCloseTo(1.2632851946399282, within(1e-11));
        assertThat(two.contains(0.7)).isTrue();
        assertThat(two.contains(1.3)).isFalse();
        assertThat(Summary.of(List.of(1.0)).interval(0.95)).isEmpty();
    }

    // st.ttest_rel(a, b, alternative='greater').pvalue, st.ttest_rel(a, b, alternative='less').pvalue,
    // st.ttest_rel(a, b).pvalue
    @Test
    void pairedT() {
        Significance test = pairs().tTest();
        assertThat(test.greater()).isCloseTo(0.01495421063831956, within(1e-12));
        assertThat(test.less()).isCloseTo(0.9850457893616804, within(1e-12));
        assertThat(test.twoSided()).isCloseTo(0.02990842127663912, within(1e-12));
    }

    @Test
    void pairsAreOfTheSameSeed() {
        PairedSample pairs = PairedSample.of(Map.of(1L, 5.0, 2L, 7.0, 4L, 1.0), Map.of(2L, 4.0, 1L, 3.0, 3L, 9.0));
        assertThat(pairs).isEqualTo(new PairedSample(List.of(1L, 2L), List.of(2.0, 3.0)));
        assertThat(pairs.minus(2)).isEqualTo(new PairedSample(List.of(1L, 2L), List.of(0.0, 1.0)));
    }

    /** A t of equal differences is infinite, and would be sure of anything after two seeds. */
    @Test
    void equalDifferencesAreCountedAndNotMeasured() {
        assertThat(pairs(0.5, 0.5).tTest()).isEqualTo(new Significance(0.25, 1));
        double first = 0.9597 - 0.9497;
        double second = 0.8321 - 0.8221;
        assertThat(first).isNotEqualTo(second); // by rounding
        assertThat(pairs(first, second).tTest()).isEqualTo(new Significance(0.25, 1));
        assertThat(pairs(0.0, 0.0, 0.0).tTest()).isEqualTo(new Significance(1, 1));
        assertThat(pairs(0.5).tTest()).isEqualTo(Significance.NONE);
    }

    // st.permutation_test((d,), np.sum, permutation_type='samples', n_resamples=np.inf, alternative=...).pvalue
    @Test
    void signFlips() {
        assertThat(pairs().signFlipTest().greater()).isCloseTo(0.0234375, within(1e-15));
        assertThat(pairs().signFlipTest().less()).isCloseTo(0.984375, within(1e-15));
        PairedSample sixteen = pairs(
                0.1, 0.19, 0.018, -0.167, -0.036, -0.197, 0.118, 0.502, -0.048, -0.086, 0.247, 0.207, 0.132, -0.179,
                0.091, 0.309);
        assertThat(sixteen.signFlipTest().greater()).isCloseTo(0.0701446533203125, within(1e-15));
        assertThat(pairs(1.0).signFlipTest()).isEqualTo(new Significance(0.5, 1));
        assertThat(pairs().minus(100).signFlipTest().less()).isEqualTo(1.0 / 128);
    }

    /** Where choices of signs are sampled, their share is near that of the t test, and the same every time. */
    @Test
    void manyPairsAreSampled() {
        var random = new SplittableRandom(3);
        var values = new Double[SignFlips.MOST_EXACT + 1];
        for (int i = 0; i < values.length; i++) {
            values[i] = random.nextDouble() - 0.42;
        }
        PairedSample sampled = pairs(values);
        Significance exact = new PairedSample(
                        sampled.seeds().subList(1, values.length),
                        sampled.differences().subList(1, values.length))
                .signFlipTest();
        assertThat(sampled.signFlipTest()).isEqualTo(sampled.signFlipTest());
        assertThat(sampled.signFlipTest().greater()).isCloseTo(sampled.tTest().greater(), within(0.01));
        assertThat(exact.greater()).isCloseTo(sampled.tTest().greater(), within(0.05));
        assertThat(sampled.signFlipTest().greater() + sampled.signFlipTest().less())
                .isCloseTo(1, within(1e-3));
    }

    // st.binomtest(9, 12, alternative='greater').pvalue, st.binomtest(9, 12, alternative='less').pvalue
    @Test
    void signs() {
        Significance test = PairedSample.signTest(9, 3);
        assertThat(test.greater()).isCloseTo(0.072998046875, within(1e-12));
        assertThat(test.less()).isCloseTo(0.980712890625, within(1e-12));
        assertThat(PairedSample.signTest(0, 0)).isEqualTo(Significance.NONE);
    }

    /** By hand: 3 * 0.01, then 2 * 0.02, which 0.045 must not undercut. */
    @Test
    void holm() {
        assertThat(Holm.adjust(List.of(0.045, 0.01, 0.02))).containsExactly(0.045, 0.03, 0.04);
        assertThat(Holm.adjust(List.of(0.02, 0.01, 0.02))).containsExactly(0.04, 0.03, 0.04);
        assertThat(Holm.adjust(List.of(0.6, 0.7))).containsExactly(1.0, 1.0);
        assertThat(Holm.adjust(List.of())).isEmpty();
    }

    // st.bootstrap((x,), np.mean, n_resamples=1000000, method=..., rng=np.random.default_rng(1)).confidence_interval:
    // percentile 3.0 to 13.889, BCa 3.778 to 17.0; the means are multiples of 1/9
    @Test
    void bootstrap() {
        var bootstrap = new Bootstrap(200_000, 5);
        Interval plain = bootstrap.percentile(SKEWED, 0.95).orElseThrow();
        assertThat(plain.low()).isCloseTo(3.0, within(0.12));
        assertThat(plain.high()).isCloseTo(13.88888888888889, within(0.12));
        Interval corrected = bootstrap.corrected(SKEWED, 0.95).orElseThrow();
        assertThat(corrected.low()).isCloseTo(3.7777777777777777, within(0.12));
        assertThat(corrected.high()).isCloseTo(17.0, within(0.12));
        assertThat(bootstrap.corrected(SKEWED, 0.95)).contains(corrected);
        assertThat(new Bootstrap(200_000, 6).corrected(A, 0.95)).isNotEqualTo(bootstrap.corrected(A, 0.95));
        assertThat(bootstrap.corrected(List.of(2.0, 2.0), 0.95)).isEmpty();
        assertThat(bootstrap.percentile(List.of(2.0), 0.95)).isEmpty();
    }

    // st.nct.sf(st.t.isf(level, n-1), n-1, effect*np.sqrt(n))
    @Test
    void power() {
        assertThat(Power.of(0.5, 20, 0.025)).isCloseTo(0.5644828966786231, within(1e-9));
        assertThat(Power.of(0.8, 3, 0.0025)).isCloseTo(0.014329608075944317, within(1e-9));
        assertThat(Power.of(2, 10, 0.001)).isCloseTo(0.9331556082888486, within(1e-9));
        assertThat(Power.of(0.05, 2, 0.05)).isCloseTo(0.05453574503596565, within(1e-9));
    }

    // the least n from 2 whose st.nct.sf(st.t.isf(level, n-1), n-1, effect*np.sqrt(n)) is at least the power
    @Test
    void pairsForAPower() {
        assertThat(Power.pairs(0.5, 0.025, 0.8)).hasValue(34);
        assertThat(Power.pairs(1, 0.0025, 0.9)).hasValue(21);
        assertThat(Power.pairs(5, 0.025, 0.8)).hasValue(3);
        assertThat(Power.pairs(0.1, 0.025, 0.8)).hasValue(787);
        assertThat(Power.pairs(1e-4, 0.025, 0.8)).isEmpty();
        assertThat(Power.pairs(0, 0.025, 0.8)).isEmpty();
    }

    @Test
    void whatIsNoNumberIsRefused() {
        assertThatThrownBy(() -> Summary.of(List.of())).hasMessage("a summary of no values");
        assertThatThrownBy(() -> Summary.of(List.of(1.0, Double.NaN))).hasMessageContaining("NaN");
        assertThatThrownBy(() -> Summary.of(List.of(1.0, 2.0)).interval(95)).hasMessageContaining("a level of 95.0");
        assertThatThrownBy(() -> pairs(Double.POSITIVE_INFINITY)).hasMessageContaining("not finite");
        assertThatThrownBy(() -> Holm.adjust(List.of(1.5))).hasMessage("a p-value of 1.5");
    }
}
