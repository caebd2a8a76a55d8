/** Members that {@code mpirun} has started, connected by Open MPI. */
@NullMarked
package org.fedcomuon.cluster.mpi;

import org.jspecify.annotations.NullMarked;
