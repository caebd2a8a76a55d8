/**
 * Members that {@code mpirun} has started, connected by Open MPI: {@link org.fedcomuon.cluster.mpi.MpiCluster#join} in
 * each of them.
 */
@NullMarked
package org.fedcomuon.cluster.mpi;

import org.jspecify.annotations.NullMarked;
