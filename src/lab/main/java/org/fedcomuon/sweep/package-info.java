/**
 * Sweeps: trials of a preset with many settings, each a training run, compared by examples that no trial trains on.
 *
 * <p>{@link org.fedcomuon.sweep.Sweep} is where to start. It plans trials from a {@code SearchSpace} and a
 * {@link org.fedcomuon.sweep.Strategy}, has them run by a {@code TrialRunner} in worker processes, and leaves a
 * {@code SweepRecord} as files.
 */
@NullMarked
package org.fedcomuon.sweep;

import org.jspecify.annotations.NullMarked;
