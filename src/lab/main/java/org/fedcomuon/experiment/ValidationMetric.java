package org.fedcomuon.experiment;

import java.util.List;

/**
 * A metric of validation examples, by which settings are chosen and runs are stopped early.
 *
 * <p>Immutable.
 *
 * @param name in {@code metrics.jsonl}; begins with {@code validation_}
 * @param greaterIsBetter otherwise less is
 * @param ofAnyObjective whether methods that minimize different objectives can be compared by it: by an accuracy they
 *     can, by a loss the one that minimizes just this loss has an advantage
 */
public record ValidationMetric(String name, boolean greaterIsBetter, boolean ofAnyObjective) {
    /** What the names of all of them begin with. */
    public static final String PREFIX = "validation_";

    static final ValidationMetric LOSS = less("loss");
    static final ValidationMetric OBJECTIVE = less("objective");
    static final ValidationMetric AUC = greater("auc");

    private static ValidationMetric less(String name) {
        return new ValidationMetric(PREFIX + name, false, false);
    }

    private static ValidationMetric greater(String name) {
        return new ValidationMetric(PREFIX + name, true, true);
    }

    /** Returns those of a classifier, or of a language model. */
    static List<ValidationMetric> ofNetworks(boolean perplexity) {
        return perplexity
                ? List.of(LOSS, less("perplexity"), OBJECTIVE, less("worst_client_loss"))
                : List.of(
                        LOSS,
                        greater("accuracy"),
                        OBJECTIVE,
                        less("worst_client_loss"),
                        greater("worst_client_accuracy"));
    }

    /** Returns those of a score for two classes. */
    static List<ValidationMetric> ofScores() {
        return List.of(AUC, OBJECTIVE, greater("worst_client_auc"));
    }

    /** Returns those of a portfolio, whose return alone says little: it may have been bought with variance. */
    static List<ValidationMetric> ofReturns() {
        return List.of(
                OBJECTIVE,
                new ValidationMetric(PREFIX + "return", true, false),
                less("variance"),
                less("worst_client_objective"));
    }

    /** Returns whether it is the objective itself, whose values depend on the settings of the objective. */
    public boolean isOfObjective() {
        return name.endsWith("objective");
    }

    /** Returns whether a value is better than another one; one that is not a number is worse than any. */
    public boolean isBetter(double value, double than) {
        return !Double.isNaN(value) && (Double.isNaN(than) || (greaterIsBetter ? value > than : value < than));
    }
}
