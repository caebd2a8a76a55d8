package org.fedcomuon.report;

import java.util.List;
import java.util.OptionalDouble;
import org.fedcomuon.chart.Numbers;
import org.fedcomuon.chart.Scale;
import org.fedcomuon.experiment.RunRecord;
import org.fedcomuon.experiment.RunRecord.Evaluation;

/**
 * A number that runs record at each evaluation.
 *
 * @param key its name in the file
 * @param name its name on the page
 */
record Metric(String key, String name, Unit unit, Better better) {
    /** The kind of unit. */
    enum Unit {
        PLAIN,
        SHARE,
        COUNT,
        SECONDS,
        BYTES
    }

    /** Which of two values is better. */
    enum Better {
        GREATER,
        LESS,
        NEITHER
    }

    /** The unit of an axis: its name, and its size in the unit of the file. */
    record Measure(String name, double size) {}

    static final Metric STEP = new Metric("step", "step", Unit.COUNT, Better.NEITHER);
    static final Metric TRAIN_OBJECTIVE = loss("train_objective", "train objective");
    static final Metric TRAIN_LOSS = loss("train_loss", "train loss");
    static final Metric TEST_LOSS = loss("test_loss", "test loss");
    static final Metric TEST_ACCURACY = accuracy("test_accuracy", "test accuracy");
    static final Metric TEST_PERPLEXITY = loss("test_perplexity", "test perplexity");
    static final Metric WORST_LOSS = loss("worst_client_loss", "worst client’s train loss");
    static final Metric WORST_ACCURACY = accuracy("worst_client_accuracy", "worst client’s train accuracy");
    static final Metric TEST_AUC = accuracy("test_auc", "test AUC");
    static final Metric WORST_AUC = accuracy("worst_client_auc", "worst client’s train AUC");
    static final Metric TEST_OBJECTIVE = loss("test_objective", "test objective");
    static final Metric EXCESS = loss("excess_objective", "objective above its minimum");
    static final Metric DISTANCE = loss("solution_distance", "relative distance to the solution");
    static final Metric WORST_OBJECTIVE = loss("worst_client_objective", "worst client’s objective");
    static final Metric VALIDATION_LOSS = loss("validation_loss", "validation loss");
    static final Metric VALIDATION_ACCURACY = accuracy("validation_accuracy", "validation accuracy");
    static final Metric VALIDATION_PERPLEXITY = loss("validation_perplexity", "validation perplexity");
    static final Metric VALIDATION_AUC = accuracy("validation_auc", "validation AUC");
    static final Metric VALIDATION_OBJECTIVE = loss("validation_objective", "validation objective");
    static final Metric WORST_VALIDATION_LOSS = loss("validation_worst_client_loss", "worst client’s validation loss");
    static final Metric WORST_VALIDATION_ACCURACY =
            accuracy("validation_worst_client_accuracy", "worst client’s validation accuracy");
    static final Metric WORST_VALIDATION_AUC = accuracy("validation_worst_client_auc", "worst client’s validation AUC");
    static final Metric SECONDS = new Metric("seconds", "time", Unit.SECONDS, Better.NEITHER);
    static final Metric BYTES = new Metric("communicated_bytes", "sent", Unit.BYTES, Better.NEITHER);
    static final Metric GRADIENTS = new Metric("gradient_evaluations", "gradients", Unit.COUNT, Better.NEITHER);

    static final Metric OPTIMIZER =
            new Metric("optimizer_share", "optimizer’s share of a round", Unit.SHARE, Better.NEITHER);

    static Metric loss(String key, String name) {
        return new Metric(key, name, Unit.PLAIN, Better.LESS);
    }

    static Metric accuracy(String key, String name) {
        return new Metric(key, name, Unit.SHARE, Better.GREATER);
    }

    /** Returns its value; empty if the evaluation does not have it. */
    OptionalDouble of(Evaluation evaluation) {
        if (key.equals(STEP.key)) {
            return OptionalDouble.of((double) evaluation.step());
        }
        Double value = evaluation.metrics().get(key);
        return value == null ? OptionalDouble.empty() : OptionalDouble.of(value);
    }

    /** Returns its last value in a run. */
    OptionalDouble last(RunRecord run) {
        return key.equals(STEP.key) ? run.last().map(this::of).orElse(OptionalDouble.empty()) : run.last(key);
    }

    boolean isIn(RunRecord run) {
        return last(run).isPresent()
                || run.evaluations().stream()
                        .anyMatch(evaluation -> of(evaluation).isPresent());
    }

    String text(double value) {
        return switch (unit) {
            case PLAIN -> Numbers.nearOne(value);
            case SHARE -> Double.isFinite(value) ? Numbers.percent(value, 2) : Numbers.fixed(value, 0);
            case COUNT -> Numbers.fixed(value, 0);
            case SECONDS -> Numbers.duration(value);
            case BYTES -> Numbers.bytes(value);
        };
    }

    /** Returns a unit that gives an axis with these values short labels. */
    Measure measure(List<Double> values) {
        double most = values.stream().filter(Scale::drawable).reduce(0.0, Math::max);
        return switch (unit) {
            case PLAIN, COUNT -> new Measure("", 1);
            case SHARE -> new Measure("%", 0.01);
            case SECONDS ->
                most < 200 ? new Measure("s", 1) : most < 7200 ? new Measure("min", 60) : new Measure("h", 3600);
            case BYTES -> {
                int power = Numbers.byteUnit(most);
                yield new Measure(Numbers.BYTE_UNITS.get(power), Math.pow(1000, power));
            }
        };
    }
}
