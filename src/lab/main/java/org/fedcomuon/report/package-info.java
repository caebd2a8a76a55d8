/** Pages with the results of experiments. Each is one file that needs neither network nor server. */
@NullMarked
package org.fedcomuon.report;

import org.jspecify.annotations.NullMarked;
