/**
 * Problems whose exact objective is known, for measuring rates of convergence. Not exported: our own modules use it.
 */
@NullMarked
package org.fedcomuon.problem.testbed;

import org.jspecify.annotations.NullMarked;
