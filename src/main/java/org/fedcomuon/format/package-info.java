/**
 * File formats: {@link org.fedcomuon.format.Npy} for arrays that come from NumPy or go to it, safetensors
 * ({@link org.fedcomuon.format.SafetensorsFile}, {@link org.fedcomuon.format.SafetensorsWriter}) for models and
 * checkpoints, and for datasets IDX, PNG, records and the archives they come in. What is in the files, clients or
 * datasets or checkpoints, is the business of others: this package knows nothing of devices, except what an element is,
 * nor of federations.
 */
@NullMarked
package org.fedcomuon.format;

import org.jspecify.annotations.NullMarked;
