package org.fedcomuon.model;

/**
 * How a model does on some examples.
 *
 * @param loss the mean cross entropy
 * @param accuracy the share that it classifies right
 * @param count of examples
 */
public record Score(double loss, double accuracy, int count) {}
