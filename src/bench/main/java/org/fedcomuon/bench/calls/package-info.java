/**
 * JMH benchmarks of single calls into native code, for {@code fedcomuon bench ffi}, which starts JMH in its own
 * process.
 */
@NullMarked
package org.fedcomuon.bench.calls;

import org.jspecify.annotations.NullMarked;
