/**
 * Orthogonalization: {@code M -> U V^T}, exactly by singular value decomposition or approximately by Newton-Schulz, as
 * equals behind {@link org.fedcomuon.linalg.Orthogonalizer}. Written once over a device's kernels, products and solver.
 *
 * <p>An orthogonalizer is a description and may be shared; {@link org.fedcomuon.linalg.Orthogonalizer#plan} prepares it
 * for one shape on one device, with the workspace it needs, and the plan is used in every step.
 * {@link org.fedcomuon.linalg.Auto} is where to start.
 */
@NullMarked
package org.fedcomuon.linalg;

import org.jspecify.annotations.NullMarked;
