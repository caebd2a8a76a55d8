package org.fedcomuon.bench;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import org.fedcomuon.device.Device;
import org.fedcomuon.experiment.Configuration;
import org.fedcomuon.experiment.Preset;
import org.fedcomuon.experiment.Training;
import org.fedcomuon.federation.Evaluation;
import org.fedcomuon.federation.Listener;

/**
 * A whole run of a preset as {@code train} does it, with its evaluations and files, which the rounds of
 * {@link RoundBench} leave out: what of its time goes where.
 */
final class DefaultRun {
    /** The names of the parts of its time. */
    static final String STEPS = "steps";

    static final String EVALUATIONS = "evaluations";
    static final String OTHER = "other";

    private DefaultRun() {}

    /** The time of a run up to its last evaluation, and the shares of its parts. */
    record Measured(double seconds, Map<String, Double> parts) {
        static Measured of(Evaluation last) {
            double steps = last.stepSeconds() / last.seconds();
            double evaluations = last.evaluateSeconds() / last.seconds();
            var parts = new LinkedHashMap<String, Double>();
            parts.put(STEPS, steps);
            parts.put(EVALUATIONS, evaluations);
            parts.put(OTHER, 1 - steps - evaluations);
            return new Measured(last.seconds(), parts);
        }
    }

    /** Runs a preset on a device; {@code changes} replace settings of the preset. */
    static Measured of(String preset, Map<String, String> changes, Device device) {
        try (var directory = TemporaryDirectory.create()) {
            return run(Configuration.of(Preset.load(preset), changes), device, directory.path());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted while measuring", e);
        }
    }

    private static Measured run(Configuration configuration, Device device, Path directory)
            throws IOException, InterruptedException {
        var evaluations = new ArrayList<Evaluation>();
        var options = new Training.Options(
                List.of(device.name()),
                Optional.empty(),
                device.threads(),
                Optional.empty(),
                OptionalLong.empty(),
                Optional.empty(),
                false,
                "bench");
        var recorder = new Listener() {
            @Override
            public void onEvaluation(Evaluation evaluation) {
                evaluations.add(evaluation);
            }
        };
        new Training(configuration, options, directory, Optional.empty(), List.of(recorder), _ -> {}).run();
        return Measured.of(evaluations.getLast());
    }
}
