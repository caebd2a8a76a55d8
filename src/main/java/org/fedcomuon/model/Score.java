package org.fedcomuon.model;

/**
 * How a model does on some examples.
 *
 * @param loss the mean cross entropy
 * @param accuracy the share that it classifies right
 * @param count of predictions: one an example, or one a token
 */
public record Score(double loss, double accuracy, int count) {
    /** Among how many equally likely classes, or tokens, the model is as undecided: {@code exp(loss)}. */
    public double perplexity() {
        return Math.exp(loss);
    }
}
