package org.fedcomuon.sweep;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** The order of settings, and which of them are compared at all. */
class StandingTest {
    private static List<String> order(List<Standing> standings) {
        return standings.stream()
                .map(standing -> standing.method() + " " + standing.text())
                .toList();
    }

    @Test
    void theBestMeanComesFirst() {
        SweepRecord sweep = Sweeps.record(
                Sweeps.ACCURACY,
                Sweeps.done("a", "0.1", 1, "validation_accuracy", 0.5),
                Sweeps.done("a", "0.1", 2, "validation_accuracy", 0.9),
                Sweeps.done("a", "0.2", 1, "validation_accuracy", 0.8),
                Sweeps.done("a", "0.2", 2, "validation_accuracy", 0.8),
                Sweeps.done("b", "0.1", 1, "validation_accuracy", 0.6),
                Sweeps.done("b", "0.1", 2, "validation_accuracy", 0.6));
        assertThat(order(sweep.standings())).containsExactly("a eta 0.2", "a eta 0.1", "b eta 0.1");
        assertThat(sweep.rankings()).hasSize(1);
        assertThat(sweep.best("a").orElseThrow().settings()).isEqualTo(Map.of("eta", "0.2"));
        assertThat(sweep.best("a").orElseThrow().summary().mean()).isEqualTo(0.8);
        assertThat(sweep.best("b").orElseThrow().settings()).isEqualTo(Map.of("eta", "0.1"));
        assertThat(sweep.best("c")).isEmpty();
    }

    @Test
    void ofALossLessIsBetterAndObjectivesAreApart() {
        SweepRecord sweep = Sweeps.record(
                Sweeps.LOSS,
                Sweeps.done("robust", "0.1", 1, "validation_loss", 0.5),
                Sweeps.done("robust", "0.1", 2, "validation_loss", 0.5),
                Sweeps.done("robust", "0.2", 1, "validation_loss", 0.4),
                Sweeps.done("robust", "0.2", 2, "validation_loss", 0.4),
                Sweeps.done("mean", "0.1", 1, "validation_loss", 0.1),
                Sweeps.done("mean", "0.1", 2, "validation_loss", 0.1));
        assertThat(sweep.rankings()).containsOnlyKeys("of robust", "of mean");
        assertThat(order(sweep.rankings().get("of robust"))).containsExactly("robust eta 0.2", "robust eta 0.1");
    }

    @Test
    void settingsWithoutAValueForEverySeedAreLast() {
        SweepRecord sweep = Sweeps.record(
                Sweeps.ACCURACY,
                Sweeps.done("a", "0.1", 1, "validation_accuracy", 0.9),
                Sweeps.ended("a", "0.1", 2, Trial.State.DIVERGED, "step 3: not finite"),
                Sweeps.done("a", "0.2", 1, "validation_accuracy", 0.1),
                Sweeps.done("a", "0.2", 2, "validation_accuracy", 0.1),
                Sweeps.done("a", "0.3", 1, "validation_accuracy", Double.NaN),
                Sweeps.done("a", "0.3", 2, "validation_accuracy", 0.9),
                Sweeps.done("a", "0.4", 1, "validation_accuracy", 0.9));
        assertThat(order(sweep.standings())).containsExactly("a eta 0.2", "a eta 0.1", "a eta 0.3", "a eta 0.4");
        assertThat(sweep.best("a").orElseThrow().settings()).isEqualTo(Map.of("eta", "0.2"));
        assertThat(sweep.isComplete()).isFalse(); // one of eight is missing
    }

    @Test
    void earlierRungsAreNotRanked() {
        Trial last = Sweeps.done("a", "0.1", 1, "validation_accuracy", 0.2);
        SweepRecord sweep = Sweeps.record(
                Sweeps.ACCURACY,
                Sweeps.unranked(Sweeps.done("a", "0.2", 1, "validation_accuracy", 0.9)),
                Sweeps.unranked(Sweeps.done("a", "0.2", 2, "validation_accuracy", 0.9)),
                last,
                Sweeps.done("a", "0.1", 2, "validation_accuracy", 0.2));
        assertThat(order(sweep.standings())).containsExactly("a eta 0.1");
    }
}
