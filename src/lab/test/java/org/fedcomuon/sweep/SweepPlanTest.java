package org.fedcomuon.sweep;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.fedcomuon.experiment.ConfigurationException;
import org.fedcomuon.experiment.Preset;
import org.junit.jupiter.api.Test;

/** Plans of sweeps, and what is wrong with those that cannot be. */
class SweepPlanTest {
    private static final Preset PORTFOLIO = Preset.load("portfolio");
    private static final Preset MNIST = Preset.load("mnist-robust");

    private static SweepPlan plan(
            Preset preset, Map<String, String> changes, List<String> methods, List<String> axes, Strategy strategy) {
        return plan(preset, changes, methods, axes, strategy, Optional.empty());
    }

    private static SweepPlan plan(
            Preset preset,
            Map<String, String> changes,
            List<String> methods,
            List<String> axes,
            Strategy strategy,
            Optional<String> metric) {
        return SweepPlan.of(
                new SweepPlan.Request(preset, changes, methods, axes, 2, metric, strategy),
                Optional.<Path>empty(),
                List.of());
    }

    private static void assertRefused(Runnable work, String... words) {
        assertThatThrownBy(work::run).isInstanceOfSatisfying(ConfigurationException.class, e -> {
            assertThat(e.lines()).hasSize(words.length);
            for (String word : words) {
                assertThat(e.lines()).anyMatch(line -> line.contains(word));
            }
        });
    }

    @Test
    void everySettingIsTriedForEverySeedAndHoldsExamplesBack() {
        SweepPlan plan = plan(
                MNIST,
                Map.of("iterations", "10"),
                List.of("fedcomuon", "fedavg"),
                List.of("eta=0.01,0.02", "alpha=0.1,0.2"),
                Strategy.grid());
        assertThat(plan.metric().name()).isEqualTo("validation_accuracy");
        assertThat(plan.seeds()).containsExactly(42L, 43L);
        assertThat(plan.ladder("fedcomuon").settings()).hasSize(4);
        assertThat(plan.ladder("fedavg").settings()) // has no alpha
                .containsExactly(Map.of("eta", "0.01"), Map.of("eta", "0.02"));
        assertThat(plan.size()).isEqualTo(12);
        assertThat(plan.steps()).isEqualTo(120);
        List<TrialPlan> trials = plan.trials("fedavg", plan.ladder("fedavg").settings(), 0);
        assertThat(trials).hasSize(4).allSatisfy(trial -> {
            assertThat(trial.configuration().text("validationShare")).isEqualTo("0.1");
            assertThat(trial.minimized()).isEqualTo("mean");
            assertThat(trial.ranked()).isTrue();
        });
        assertThat(trials)
                .extracting(TrialPlan::name)
                .contains("fedavg-eta=0.01-seed=42-steps=10", "fedavg-eta=0.02-seed=43-steps=10")
                .doesNotHaveDuplicates();
        assertThat(plan.trials("fedcomuon", List.of(Map.of()), 0).getFirst().minimized())
                .isEqualTo("robust");
    }

    @Test
    void aGivenShareIsKept() {
        SweepPlan plan =
                plan(PORTFOLIO, Map.of("validationShare", "0.3"), List.of(), List.of("eta=0.01,0.02"), Strategy.grid());
        assertThat(plan.metric().name()).isEqualTo("validation_objective");
        assertThat(plan.best(plan.methods().getFirst(), Map.of("eta", "0.02")).values())
                .containsEntry("validationShare", "0.3")
                .containsEntry("eta", "0.02");
    }

    @Test
    void theTrialsOfEarlierRungsAreShorterAndNotRanked() {
        SweepPlan plan = plan(
                PORTFOLIO,
                Map.of("iterations", "40", "tau", "5"),
                List.of(),
                List.of("eta=0.01,0.02,0.03,0.04"),
                Strategy.halving());
        String method = plan.methods().getFirst();
        assertThat(plan.ladder(method).rungs())
                .containsExactly(new Strategy.Rung(4, 10), new Strategy.Rung(2, 20), new Strategy.Rung(1, 40));
        TrialPlan trial = plan.trials(method, List.of(Map.of("eta", "0.01")), 1).getFirst();
        assertThat(trial.ranked()).isFalse();
        assertThat(trial.configuration().iterations()).isEqualTo(20);
        assertThat(plan.size()).isEqualTo(2 * (4 + 2 + 1));
        assertThat(plan.steps()).isEqualTo(2 * (40 + 40 + 40));
    }

    @Test
    void allMistakesAreFoundAtOnce() {
        var changes = new HashMap<String, String>();
        changes.put("tau", "5");
        assertRefused(
                () -> plan(
                        MNIST,
                        changes,
                        List.of("fedavg", "fedcomuon"),
                        List.of(
                                "etta=0.1",
                                "eta=-1,0.01",
                                "alpha=7",
                                "tau=1,2",
                                "seed=1,2",
                                "batch=",
                                "lambda=0.1..1",
                                "lambda=0.1,1"),
                        Strategy.grid(),
                        Optional.of("test_accuracy")),
                "did you mean 'eta'?",
                "eta = -1",
                "alpha = 7",
                "tau is given twice, by --grid and otherwise",
                "--grid seed: --seeds",
                "--grid batch=: a value is empty",
                "lambda is given twice",
                "--strategy random or halving with --trials",
                "settings are not chosen by the test set");
    }

    @Test
    void aMetricThatTheRunsDoNotHaveIsRefusedWithThoseTheyHave() {
        assertRefused(
                () -> plan(
                        PORTFOLIO,
                        Map.of(),
                        List.of(),
                        List.of("eta=0.01"),
                        Strategy.grid(),
                        Optional.of("validation_accuracy")),
                "--metric validation_accuracy: unknown; the runs have validation_objective, validation_return");
        assertRefused(
                () -> plan(
                        PORTFOLIO,
                        Map.of(),
                        List.of(),
                        List.of("eta=0.01"),
                        Strategy.grid(),
                        Optional.of("train_loss")),
                "begin with validation_");
    }

    @Test
    void anObjectiveThatVariesIsNoMetric() {
        assertRefused(
                () -> plan(
                        MNIST,
                        Map.of(),
                        List.of(),
                        List.of("lambda=0.5,1"),
                        Strategy.grid(),
                        Optional.of("validation_objective")),
                "the sweep varies the objective itself");
        assertThat(plan(
                                MNIST,
                                Map.of(),
                                List.of("fedavg", "fedcomuon"),
                                List.of("eta=0.5,1"),
                                Strategy.grid(),
                                Optional.of("validation_objective"))
                        .metric()
                        .ofAnyObjective())
                .isFalse();
    }

    @Test
    void valuesThatAreTheSameAreRefused() {
        assertRefused(
                () -> plan(PORTFOLIO, Map.of(), List.of(), List.of("eta=0.01,0.010"), Strategy.grid()),
                "the same settings as others, written differently");
    }

    @Test
    void anObjectiveWithoutValidationIsRefused() {
        assertRefused(
                () -> plan(
                        Preset.load("policy-evaluation"),
                        Map.of(),
                        List.of(),
                        List.of("eta=0.01,0.02"),
                        Strategy.grid()),
                "objective = bellman has no metrics of validation examples");
    }
}
