/**
 * Benchmarks that print ratios. Each suite measures our side and its peer, or the machine's limit, in turns within one
 * run, so that noise on the machine affects both; the ratio is the result, and times only explain it.
 */
@NullMarked
package org.fedcomuon.bench;

import org.jspecify.annotations.NullMarked;
