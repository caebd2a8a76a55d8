/** Pages that show what experiments measured: each one file, which needs neither network nor server. */
@NullMarked
package org.fedcomuon.report;

import org.jspecify.annotations.NullMarked;
