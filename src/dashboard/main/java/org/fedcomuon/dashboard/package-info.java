/** A page that shows a run while it goes on, served by the process that runs it. */
@NullMarked
package org.fedcomuon.dashboard;

import org.jspecify.annotations.NullMarked;
