package org.fedcomuon.sweep;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What settings a sweep may try, and which of them a strategy tries for how long. */
class SearchSpaceTest {
    private static SearchSpace space(String... axes) {
        return new SearchSpace(Stream.of(axes).map(SearchSpace::parse).toList());
    }

    @Test
    void theLastSettingVariesFastest() {
        assertThat(space("eta=0.1,0.2", "tau=1,5").product())
                .containsExactly(
                        Map.of("eta", "0.1", "tau", "1"),
                        Map.of("eta", "0.1", "tau", "5"),
                        Map.of("eta", "0.2", "tau", "1"),
                        Map.of("eta", "0.2", "tau", "5"));
        assertThat(space("eta=0.1,0.2", "tau=1,5").size()).isEqualTo(4);
        assertThat(space().product()).containsExactly(Map.of());
    }

    @Test
    void aCommaInParenthesesIsPartOfAValue() {
        assertThat(space("eta=cosine(0.02, 0.001),0.01").product())
                .containsExactly(Map.of("eta", "cosine(0.02, 0.001)"), Map.of("eta", "0.01"));
    }

    @Test
    void pathsAreNoRanges() {
        assertThat(SearchSpace.parse("train.x=../a.npy")).isInstanceOf(SearchSpace.Values.class);
    }

    @ParameterizedTest
    @ValueSource(strings = {"eta", "=1", "eta=", "eta=1,,2", "eta=1,1", "eta=2..1", "eta=0..1", "eta=-1..1"})
    void whatIsNoAxisIsRefusedByItsText(String text) {
        assertThatThrownBy(() -> SearchSpace.parse(text))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("--grid " + text);
    }

    @Test
    void rangesAreDrawnByOrdersOfMagnitude() {
        SearchSpace space = space("eta=0.001..1", "batch=1..64");
        List<Map<String, String>> drawn = space.draw(400, new SplittableRandom(1));
        assertThat(drawn).hasSize(400).doesNotHaveDuplicates();
        assertThat(drawn).allSatisfy(each -> {
            assertThat(Double.parseDouble(each.get("eta"))).isBetween(0.001, 1.0);
            assertThat(Integer.parseInt(each.get("batch"))).isBetween(1, 64);
        });
        assertThat(drawn.stream()
                        .filter(each -> Double.parseDouble(each.get("eta")) < 0.01)
                        .count())
                .isBetween(90L, 180L); // a third of them
        assertThat(space.draw(400, new SplittableRandom(1))).isEqualTo(drawn);
        assertThat(space.draw(400, new SplittableRandom(2))).isNotEqualTo(drawn);
    }

    @Test
    void chanceTakesNoCombinationTwice() {
        SearchSpace space = space("eta=1,2,3", "tau=1,2");
        assertThat(space.draw(4, new SplittableRandom(5))).hasSize(4).doesNotHaveDuplicates();
        assertThat(new HashSet<>(space.draw(100, new SplittableRandom(5)))).isEqualTo(new HashSet<>(space.product()));
        assertThat(space("tau=1..3").draw(100, new SplittableRandom(5))).hasSize(3);
    }

    @Test
    void aGridAndARandomSearchHaveOneRungOfAllSteps() {
        SearchSpace space = space("eta=1,2,3", "tau=1,2");
        assertThat(space.settings(Strategy.grid(), 1)).isEqualTo(space.product());
        assertThat(Strategy.grid().rungs(6, 100, 5)).containsExactly(new Strategy.Rung(6, 100));
        assertThat(space.settings(Strategy.random(2), 1)).hasSize(2);
        assertThat(Strategy.random(2).rungs(2, 100, 5)).containsExactly(new Strategy.Rung(2, 100));
    }

    @Test
    void halvingEndsWithAllSteps() {
        Strategy halving = Strategy.halving();
        assertThat(halving.rungs(9, 500, 5))
                .containsExactly(
                        new Strategy.Rung(9, 65), // an eighth, in whole rounds of 5 steps
                        new Strategy.Rung(5, 125),
                        new Strategy.Rung(3, 250),
                        new Strategy.Rung(2, 500));
        assertThat(halving.rungs(2, 500, 5)).containsExactly(new Strategy.Rung(2, 250), new Strategy.Rung(1, 500));
        assertThat(halving.rungs(1, 500, 5)).containsExactly(new Strategy.Rung(1, 500));
        assertThat(halving.rungs(8, 4, 5))
                .allSatisfy(rung -> assertThat(rung.iterations()).isEqualTo(4));
        assertThat(Strategy.halving(3).trials()).hasValue(3);
    }
}
