/** Datasets and array files. */
@NullMarked
package org.fedcomuon.data;

import org.jspecify.annotations.NullMarked;
