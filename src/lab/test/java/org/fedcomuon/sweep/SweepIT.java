package org.fedcomuon.sweep;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.util.ArrayList;
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
        assertThat(BestSettings.read(directory))
                .isEqualTo(new BestSettings(
                        "portfolio",
                        Map.of(
                                "fedcomuon",
                                best,
                                "fedavg",
                                found.best("fedavg").orElseThrow().settings())));
    }

    @Test
    void aSweepThatIsStoppedGoesOnWithWhatIsMissing() throws Exception {
        Path directory = temporary.resolve("sweep");
        var running = new ArrayList<Sweep>();
        running.add(three().listener(new Sweep.Listener() {
                    @Override
                    public void onTrial(Trial trial, boolean isNew, int ended) {
                        running.getFirst().stop();
                    }
                })
                .build(directory));
        SweepRecord part = running.getFirst().run();
        assertThat(part.isComplete()).isFalse();
        assertThat(part.trials()).hasSize(1);
        assertThat(directory.resolve("best-fedcomuon.yaml")).doesNotExist();
        Trial first = part.trials().getFirst();
        Path model = directory.resolve("trials").resolve(first.name()).resolve("model.safetensors");
        FileTime written = Files.getLastModifiedTime(model);

        SweepRecord all = three().build(directory).run();
        assertThat(all.isComplete()).isTrue();
        assertThat(all.trials().getFirst()).isEqualTo(first);
        assertThat(Files.getLastModifiedTime(model)).isEqualTo(written);
        assertThat(directory.resolve("best-fedcomuon.yaml")).exists();
    }

    private static Sweep.Builder three() {
        return Sweep.of(Preset.load("portfolio"))
                .changes(Map.of("iterations", "100"))
                .grid("eta=0.01,0.02,0.03")
                .parallel(1);
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
