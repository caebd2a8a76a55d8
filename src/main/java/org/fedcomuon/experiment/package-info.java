/** Experiments and what they measured. */
@NullMarked
package org.fedcomuon.experiment;

import org.jspecify.annotations.NullMarked;
