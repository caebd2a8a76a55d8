package org.fedcomuon.sweep;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.fedcomuon.experiment.Preset;
import org.fedcomuon.testing.Slow;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A sweep from Java. */
@Slow
class SweepIT {
    @TempDir
    private Path temporary;

    @Test
    void aProgramSweeps() throws Exception {
        Path directory = temporary.resolve("sweep");
        // @start region="sweep"
        Sweep sweep = Sweep.of(Preset.load("portfolio"))
                .changes(Map.of("iterations", "20"))
                .methods(List.of("fedcomuon", "fedavg"))
                .grid("eta=0.001..0.1")
                .strategy(Strategy.random(2))
                .seeds(2)
                .build(directory);
        SweepRecord found = sweep.run();
        Map<String, String> best = found.best("fedcomuon").orElseThrow().settings();
        // @end
        assertThat(sweep.trials()).isEqualTo(8);
        assertThat(found.isComplete()).isTrue();
        assertThat(found.trials()).hasSize(8).allMatch(trial -> trial.state() == Trial.State.DONE);
        assertThat(best).containsOnlyKeys("eta");
        assertThat(found.metric().name()).isEqualTo("validation_objective");
        assertThat(found.rankings()).containsOnlyKeys("mean-variance", "mean"); // not together by an objective
        assertThat(directory.resolve("best-fedavg.yaml")).exists();
    }

    @Test
    void aSweepThatIsStoppedBeforeItBeginsRunsNothing() throws Exception {
        Sweep sweep = Sweep.of(Preset.load("portfolio")).grid("eta=0.01,0.02").build(temporary.resolve("sweep"));
        sweep.stop();
        SweepRecord found = sweep.run();
        assertThat(found.trials()).isEmpty();
        assertThat(found.isComplete()).isFalse();
    }
}
