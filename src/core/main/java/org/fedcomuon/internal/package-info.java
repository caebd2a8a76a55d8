/**
 * Native loading and the glue to the generated bindings. Not exported: nothing here is API.
 *
 * <p>The bindings in {@code org.fedcomuon.internal.bindings} are made by {@code bindings/generate.sh} from the headers
 * in {@code native/include} and are never edited. They resolve symbols in what this class loader has loaded, so
 * {@link org.fedcomuon.internal.NativeLibrary} or {@link org.fedcomuon.internal.OpenBlasLibrary} comes first.
 */
@NullMarked
package org.fedcomuon.internal;

import org.jspecify.annotations.NullMarked;
