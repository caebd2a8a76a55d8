/**
 * Compositional problems {@code min_W (1/K) sum_k f^k(E[g^k(W; xi)])}: what a user writes to bring their own.
 *
 * <p>A {@link org.fedcomuon.problem.Problem} has a {@link org.fedcomuon.problem.Layout} of named parameter blocks and a
 * {@link org.fedcomuon.problem.Client} for each participant, which evaluates g, its Jacobian and the gradient of f on a
 * {@link org.fedcomuon.problem.Sample}. Where g is one loss, a {@link org.fedcomuon.problem.Loss} and a
 * {@link org.fedcomuon.problem.Risk} are all that is needed: {@code Problem.ofLosses(layout, losses, risk)}.
 * {@link org.fedcomuon.problem.OuterFunction} has f for problems with more than one inner value.
 *
 * <p>Clients are evaluated side by side, on threads that are not theirs. Points and gradients are views of the buffers
 * that the methods work on, so nothing is copied.
 */
@NullMarked
package org.fedcomuon.problem;

import org.jspecify.annotations.NullMarked;
