/**
 * Experiments: configurations and presets, training runs and their files, reproductions of the paper.
 *
 * <p>A data set, a model, a split, an objective or a method is an entry in the registry of its kind
 * ({@code DataChoice}, {@code ModelChoice}, {@code SplitChoice}, {@code ObjectiveChoice}, {@code MethodChoice}), which
 * is the only place that knows it.
 */
@NullMarked
package org.fedcomuon.experiment;

import org.jspecify.annotations.NullMarked;
