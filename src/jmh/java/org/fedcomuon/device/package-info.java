/**
 * Benchmarks of single calls into native code, for {@code fedcomuon bench ffi}. In the package whose calls they are, on
 * a class path of their own.
 */
@NullMarked
package org.fedcomuon.device;

import org.jspecify.annotations.NullMarked;
