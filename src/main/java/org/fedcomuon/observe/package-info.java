/**
 * Runs as a service's operators see them: {@link org.fedcomuon.observe.FederationMeters} for Micrometer, which is to be
 * added to the class path by whoever uses it. Logs go to SLF4J and need nothing of this, and neither does a flight
 * recording, which has the events {@code org.fedcomuon.Round}, {@code Evaluation}, {@code Checkpoint} and
 * {@code ClientFault}.
 */
@NullMarked
package org.fedcomuon.observe;

import org.jspecify.annotations.NullMarked;
