/**
 * Models on libtorch as oracles: a {@link org.fedcomuon.model.Network} is a function of named parameter blocks, and
 * {@link org.fedcomuon.model.Classification} makes a federated problem of a network and data, as does
 * {@link org.fedcomuon.model.MetaLearning} for the loss after a step of adaptation. Weights and gradients are the
 * federation's own buffers, seen by libtorch without a copy.
 *
 * <p>libtorch is an optional dependency: without it this package cannot be used, and the rest can. Each thread that
 * evaluates uses one torch thread; clients run in parallel instead.
 */
@NullMarked
package org.fedcomuon.model;

import org.jspecify.annotations.NullMarked;
