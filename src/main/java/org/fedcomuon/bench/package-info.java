/**
 * Benchmarks that print ratios. Each suite measures our side and its peer, or the machine's limit, in turns within one
 * run, so that a noisy machine hits both; the ratio is the headline, times are only what it is made of.
 */
@NullMarked
package org.fedcomuon.bench;

import org.jspecify.annotations.NullMarked;
