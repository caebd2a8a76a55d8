/**
 * Runs: a {@link org.fedcomuon.method.Method} on a {@link org.fedcomuon.problem.Problem}, in rounds, over any list of
 * devices. {@link org.fedcomuon.federation.Federation} is where to start.
 *
 * <p>Every device has a platform thread that runs the same steps for the clients placed on it, and all synchronize at
 * every exchange. Averages are exact sums, samples depend on (seed, client, draw) alone, and a checkpoint is by client:
 * so results are bit-identical whatever the number of devices and interruptions.
 */
@NullMarked
package org.fedcomuon.federation;

import org.jspecify.annotations.NullMarked;
