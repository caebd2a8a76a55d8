/**
 * A federation whose clients live in several processes: what its members need of whatever connects them, and means that
 * have the bits of one process.
 */
@NullMarked
package org.fedcomuon.cluster;

import org.jspecify.annotations.NullMarked;
