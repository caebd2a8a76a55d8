/**
 * A federation whose clients live in several processes: what its members need of whatever connects them, and means that
 * have the bits of one process. {@link org.fedcomuon.cluster.InProcessCluster} is where to start, without an engine;
 * {@link org.fedcomuon.federation.Federation.Builder#cluster} takes a member.
 *
 * <p>Who connects members in another way implements {@link org.fedcomuon.cluster.Cluster}, by
 * {@link org.fedcomuon.cluster.OrderedMean} and {@link org.fedcomuon.cluster.Wire}, which all of them need.
 */
@NullMarked
package org.fedcomuon.cluster;

import org.jspecify.annotations.NullMarked;
