package org.fedcomuon.experiment;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.fedcomuon.data.Mnist;
import org.fedcomuon.data.Partition;
import org.fedcomuon.problem.Point;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Training examples that are held back for validation, and runs that end by them. */
class ValidationIT {
    private static final String ARRAYS = "largest=100; others=20; batch=10";

    @TempDir
    private Path temporary;

    private static Configuration configuration(String preset, String settings) {
        var changes = new LinkedHashMap<String, String>();
        for (String setting : settings.split("; ", -1)) {
            int at = setting.indexOf('=');
            changes.put(setting.substring(0, at), setting.substring(at + 1));
        }
        return Configuration.of(Preset.load(preset), changes);
    }

    private static NetworkTask task(Configuration c) {
        return new NetworkTask(c, Optional.empty(), 1, 1, 1, memory -> {});
    }

    private static Map<String, Double> atTheBeginning(NetworkTask task) throws Exception {
        return task.evaluate(0, new Point(task.problem().layout(), task.initial()));
    }

    private Training training(Configuration c, Path directory) {
        var options = new Training.Options(
                List.of("cpu:0"),
                Optional.empty(),
                1,
                Optional.empty(),
                OptionalLong.empty(),
                Optional.of(Training.checkpoints(directory)),
                false,
                "test");
        return new Training(c, options, directory, Optional.empty(), List.of(), note -> {});
    }

    @Test
    void presetsHoldNothingBack() throws Exception {
        for (String preset : Preset.NAMES) {
            assertThat(Configuration.of(Preset.load(preset), Map.of()).values())
                    .doesNotContainKeys("validationShare", "earlyStopping");
        }
        try (NetworkTask task = task(configuration("mnist-robust", ARRAYS))) {
            assertThat(task.sizes()).containsExactly(100, 20, 20, 20, 20, 20, 20, 20, 20, 20);
            assertThat(atTheBeginning(task).keySet()).noneMatch(name -> name.startsWith(ValidationMetric.PREFIX));
            assertThat(task.validationExamples()).isZero();
        }
    }

    /** With the same W0, what is the same examples has the same loss. */
    @Test
    void validationExamplesAreTrainingExamplesOfTheirClientAndNeverTestExamples() throws Exception {
        Map<String, Double> all;
        try (NetworkTask task = task(configuration("mnist-robust", ARRAYS))) {
            all = atTheBeginning(task);
        }
        try (NetworkTask task = task(configuration("mnist-robust", ARRAYS + "; validationShare=0.2"))) {
            assertThat(task.sizes()).containsExactly(80, 16, 16, 16, 16, 16, 16, 16, 16, 16);
            assertThat(task.validationExamples()).isEqualTo(20 + 9 * 4);
            Map<String, Double> some = atTheBeginning(task);
            for (String metric : List.of("test_loss", "test_accuracy")) {
                assertThat(some.get(metric)).isEqualTo(all.get(metric));
            }
            // 224 training examples and 56 for validation are the 280 of the clients
            assertThat((224 * some.get("train_loss_pooled") + 56 * some.get("validation_loss")) / 280)
                    .isCloseTo(all.get("train_loss_pooled"), within(1e-5));
            assertThat(some.get("validation_loss")).isNotEqualTo(some.get("train_loss_pooled"));
            assertThat(some.get("validation_worst_client_loss")).isGreaterThan(some.get("validation_loss"));
            assertThat(some.get("validation_worst_client_accuracy"))
                    .isLessThanOrEqualTo(some.get("validation_accuracy"));
            assertThat(task.validationMetrics())
                    .extracting(ValidationMetric::name)
                    .containsExactlyInAnyOrderElementsOf(some.keySet().stream()
                            .filter(name -> name.startsWith(ValidationMetric.PREFIX))
                            .toList());
        }
    }

    @Test
    void whatIsTrainedOnIsNotWhatIsHeldBack() {
        Configuration c = configuration("mnist-robust", ARRAYS + "; validationShare=0.2");
        Partition all = Partition.imbalanced(
                Mnist.bundled().train().count(), List.of(100, 20, 20, 20, 20, 20, 20, 20, 20, 20), c.seed());
        try (NetworkTask task = task(c)) {
            for (int k = 0; k < all.clients(); k++) {
                Set<Integer> own = Arrays.stream(all.indices(k)).boxed().collect(Collectors.toSet());
                int[] trained = task.parts().originals(k);
                assertThat(own).containsAll(IntStream.of(trained).boxed().toList());
                assertThat(new HashSet<>(Arrays.stream(trained).boxed().toList()))
                        .hasSize(k == 0 ? 80 : 16);
                assertThat(task.parts().validation(k).count()).isEqualTo(own.size() - trained.length);
            }
        }
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "mnist-auc | perClient=100 | validation_auc validation_objective validation_worst_client_auc",
                "portfolio | days=50 | validation_objective validation_return validation_variance validation_worst_client_objective",
                "wikitext2-robust | depth=1; width=16; heads=2; hidden=16; length=16; judgedTrain=4; judgedTest=4 | validation_loss validation_perplexity validation_objective validation_worst_client_loss",
                "mnist-robust | objective=meta; model=lenet; largest=40; others=20; batch=5; judgedTest=100 | validation_loss validation_accuracy validation_objective validation_worst_client_loss validation_worst_client_accuracy"
            })
    void everyObjectiveWithExamplesHasItsMetrics(String preset, String settings, String metrics) throws Exception {
        try (NetworkTask task = task(configuration(preset, settings + "; validationShare=0.2"))) {
            Map<String, Double> values = atTheBeginning(task);
            assertThat(values).containsKeys(metrics.split(" ", -1));
            assertThat(values.values()).allMatch(Double::isFinite);
            assertThat(task.validationMetrics())
                    .extracting(ValidationMetric::name)
                    .containsExactlyInAnyOrder(metrics.split(" ", -1));
        }
    }

    @Test
    void anObjectiveThatKnowsItsSolutionHasNone() {
        assertThatThrownBy(() -> task(configuration("policy-evaluation", "validationShare=0.1")))
                .isInstanceOf(ConfigurationException.class)
                .hasMessageContaining(
                        "validationShare = 0.1: objective = bellman has no metrics of validation examples");
    }

    @Test
    void clientsWithNothingToSpareAreAMistake() {
        assertThatThrownBy(() -> task(configuration("mnist-robust", "largest=1; others=1; validationShare=0.5")))
                .isInstanceOf(ConfigurationException.class)
                .hasMessageContaining("no client has an example to spare");
    }

    @Test
    void earlyStoppingNeedsValidation() {
        assertThatThrownBy(() -> configuration("mnist-robust", "earlyStopping=2; evaluateEvery=0"))
                .isInstanceOfSatisfying(
                        ConfigurationException.class,
                        e -> assertThat(e.lines())
                                .hasSize(2)
                                .anyMatch(line -> line.contains("validationShare=0.1"))
                                .anyMatch(line -> line.contains("evaluateEvery = 0")));
    }

    @Test
    void aRunEndsWhenValidationNoLongerImproves() throws Exception {
        Path out = temporary.resolve("run");
        // a rate that is too small for floats: every evaluation is like the first
        String settings = ARRAYS + "; method=fedavg; eta=1e-30; iterations=40; evaluateEvery=5; checkpointEvery=1;"
                + " validationShare=0.2; earlyStopping=2";
        Map<String, Object> summary =
                training(configuration("mnist-robust", settings), out).run();
        assertThat(summary)
                .containsEntry("stopped", false)
                .containsEntry("step", 10)
                .containsEntry("best_step", 0)
                .containsEntry("validation_examples", 56);
        assertThat(summary.get("stopped_early"))
                .isEqualTo("validation_loss has not improved in 2 evaluations since step 0");
        assertThat(RunRecord.read(out).state()).isEqualTo(RunRecord.State.FINISHED);
        assertThat(Files.readString(out.resolve("report.html")))
                .contains("ended early: validation_loss has not improved");

        assertThatThrownBy(() ->
                        training(configuration("mnist-robust", settings), out).run())
                .isInstanceOf(ConfigurationException.class)
                .hasMessageContaining("has ended early");
        Map<String, Object> longer = training(
                        configuration("mnist-robust", settings.replace("earlyStopping=2", "earlyStopping=4")), out)
                .run();
        assertThat(longer).containsEntry("step", 20).containsEntry("best_step", 0);
    }

    @Test
    void aRunThatImprovesGoesOnToItsEnd() throws Exception {
        Map<String, Object> summary = training(
                        configuration(
                                "mnist-robust",
                                ARRAYS + "; method=fedavg; eta=0.05; iterations=20; evaluateEvery=5;"
                                        + " validationShare=0.2; earlyStopping=2"),
                        temporary.resolve("run"))
                .run();
        assertThat(summary).containsEntry("step", 20).containsKey("best_step").doesNotContainKey("stopped_early");
    }
}
