/**
 * Statistics over repeated runs: summaries, intervals, paired tests, a correction for several tests, and how many pairs
 * a decision needs. All of it is deterministic.
 */
@NullMarked
package org.fedcomuon.experiment.statistics;

import org.jspecify.annotations.NullMarked;
