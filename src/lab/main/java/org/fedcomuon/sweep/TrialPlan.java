package org.fedcomuon.sweep;

import java.nio.file.Path;
import java.util.Map;
import java.util.Optional;
import org.fedcomuon.experiment.Configuration;
import org.fedcomuon.experiment.RunRecord;
import org.fedcomuon.experiment.RunRecordException;

/**
 * A trial that is to be run, or was by an earlier start of the sweep. Immutable.
 *
 * @param settings that the sweep varies
 * @param ranked whether it is of the last rung
 * @param minimized as in {@link Trial}
 */
record TrialPlan(Configuration configuration, Map<String, String> settings, boolean ranked, String minimized) {
    private static final int LONGEST_NAME = 120;

    /** Returns a name for the directory, which other trials may have, too. */
    String name() {
        var text = new StringBuilder(configuration.methodName());
        settings.forEach(
                (name, value) -> text.append('-').append(name).append('=').append(value));
        text.append("-seed=").append(configuration.seed());
        text.append("-steps=").append(configuration.iterations());
        String name = text.toString().replaceAll("[^A-Za-z0-9._=+-]+", "_");
        return name.length() <= LONGEST_NAME ? name : name.substring(0, LONGEST_NAME);
    }

    /** Returns the result that the directory has, if the trial is done or has diverged. */
    Optional<Trial> result(Path directory) {
        RunRecord run;
        try {
            run = RunRecord.read(directory);
        } catch (RunRecordException e) {
            return Optional.empty(); // who resumes the run will say what is wrong
        }
        return switch (run.state()) {
            case FINISHED -> Optional.of(trial(directory, run, Trial.State.DONE, text(run, "stopped_early")));
            case DIVERGED -> Optional.of(trial(directory, run, Trial.State.DIVERGED, text(run, "failure")));
            case STOPPED, UNFINISHED -> Optional.empty();
        };
    }

    /** Returns the result of a trial that could not be completed. */
    Trial failed(Path directory, String reason) {
        return trial(directory, Trial.State.FAILED, reason, Map.of(), 0);
    }

    private Trial trial(Path directory, RunRecord run, Trial.State state, String reason) {
        return trial(
                directory,
                state,
                reason,
                run.last().map(RunRecord.Evaluation::metrics).orElse(Map.of()),
                run.last("seconds").orElse(0));
    }

    private Trial trial(Path directory, Trial.State state, String reason, Map<String, Double> metrics, double seconds) {
        return new Trial(
                String.valueOf(directory.getFileName()),
                configuration.methodName(),
                settings,
                configuration.seed(),
                configuration.iterations(),
                ranked,
                minimized,
                state,
                reason,
                metrics,
                seconds);
    }

    private static String text(RunRecord run, String key) {
        return run.summary()
                .map(summary -> summary.get(key))
                .map(Object::toString)
                .orElse("");
    }
}
