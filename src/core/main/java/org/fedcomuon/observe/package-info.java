/**
 * Observability of runs in a service: {@link org.fedcomuon.observe.FederationMeters} for Micrometer, which is an
 * optional dependency, and {@link org.fedcomuon.observe.TensorBoardEvents} for TensorBoard. Logs go to SLF4J, and a
 * flight recording has the events, both without this package: {@code org.fedcomuon.Round}, {@code Evaluation},
 * {@code Checkpoint} and {@code ClientFault}.
 */
@NullMarked
package org.fedcomuon.observe;

import org.jspecify.annotations.NullMarked;
