package org.fedcomuon.experiment;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.fedcomuon.federation.Evaluation;
import org.fedcomuon.federation.Listener;

/**
 * Ends a run when its first validation metric has not improved in a number of evaluations. What counts are evaluations
 * and not time, so that equal runs end after the same step.
 */
final class EarlyStopping implements Listener {
    private static final String NAME = Configuration.EARLY_STOPPING.name();

    private final int patience;
    private final ValidationMetric metric;
    private final long iterations;
    private final Runnable stop;

    // Confined to the thread that evaluates.
    private double best = Double.NaN;
    private long bestStep;
    private int since; // evaluations after the best one
    private boolean over;

    /** @param stop ends the run after the current step; called once */
    EarlyStopping(Configuration c, ValidationMetric metric, Runnable stop) {
        patience = c.integer(NAME);
        this.metric = metric;
        iterations = c.iterations();
        this.stop = stop;
    }

    /** Returns what is wrong with the settings that it depends on, which have their canonical form. */
    static List<String> mistakes(Map<String, String> values) {
        String given = "%s = %s".formatted(NAME, values.get(NAME));
        var mistakes = new ArrayList<String>();
        if (!values.containsKey(Configuration.VALIDATION_SHARE.name())) {
            mistakes.add("%s needs validation examples; %s=0.1 holds a tenth back"
                    .formatted(given, Configuration.VALIDATION_SHARE.name()));
        }
        if ("0".equals(values.get("evaluateEvery"))) {
            mistakes.add("%s needs evaluations during the run, but evaluateEvery = 0".formatted(given));
        }
        return mistakes;
    }

    /**
     * Takes up what an earlier part of the run has found.
     *
     * @throws ConfigurationException when that part has ended early, so that there is nothing to go on with
     */
    void resume(Path directory, long step) {
        RunRecord.read(directory).evaluations().stream()
                .filter(evaluation -> evaluation.step() <= step)
                .forEach(evaluation -> look(evaluation.step(), evaluation.metrics()));
        if (since >= patience) {
            throw new ConfigurationException(
                    "--resume %s: the run has ended early, because %s; --set %s=N with more patience continues it"
                            .formatted(directory, reason(), NAME));
        }
    }

    @Override
    public void onEvaluation(Evaluation evaluation) {
        look(evaluation.step(), evaluation.metrics());
        if (since >= patience && evaluation.step() < iterations && !over) {
            over = true;
            stop.run();
        }
    }

    private void look(long step, Map<String, Double> metrics) {
        double value = metrics.getOrDefault(metric.name(), Double.NaN);
        if (metric.isBetter(value, best)) {
            best = value;
            bestStep = step;
            since = 0;
        } else {
            since++;
        }
    }

    private String reason() {
        return "%s has not improved in %d evaluations since step %d".formatted(metric.name(), since, bestStep);
    }

    /** Returns what the summary says: a run that has ended early is not one that was stopped, and is complete. */
    Map<String, Object> facts() {
        var facts = new LinkedHashMap<String, Object>();
        facts.put("best_step", bestStep);
        if (over) {
            facts.put("stopped", false);
            facts.put("stopped_early", reason());
        }
        return facts;
    }
}
