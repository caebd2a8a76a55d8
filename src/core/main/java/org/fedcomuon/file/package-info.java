/** Errors of files of any format. */
@NullMarked
package org.fedcomuon.file;

import org.jspecify.annotations.NullMarked;
