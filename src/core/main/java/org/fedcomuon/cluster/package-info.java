/**
 * Federations whose clients are in several processes, with results that are bit-identical to those of one process.
 * {@link org.fedcomuon.cluster.InProcessCluster} is where to start, without an engine;
 * {@link org.fedcomuon.federation.Federation.Builder#cluster} takes a member.
 *
 * <p>To connect members in another way, implement {@link org.fedcomuon.cluster.Cluster}: bring the
 * {@link org.fedcomuon.cluster.Cluster.MemberStatus} of each member to all, and reduce the exponents and sums of each
 * {@link org.fedcomuon.cluster.Cluster.MeanBlock} over the members, in any order.
 */
@NullMarked
package org.fedcomuon.cluster;

import org.jspecify.annotations.NullMarked;
