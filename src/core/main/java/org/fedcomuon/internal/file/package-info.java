/**
 * Reading and writing files: transfers that are complete or fail, atomic replacement, and messages that name the file
 * and fit on one line. Not exported: our own modules use it.
 */
@NullMarked
package org.fedcomuon.internal.file;

import org.jspecify.annotations.NullMarked;
