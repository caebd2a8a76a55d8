/**
 * File formats: {@link org.fedcomuon.format.Npy} for arrays that come from NumPy or go to it, safetensors
 * ({@link org.fedcomuon.format.SafetensorsFile}, {@link org.fedcomuon.format.SafetensorsWriter}) for models and
 * checkpoints. This package knows nothing of devices, except what an element is, nor of federations.
 */
@NullMarked
package org.fedcomuon.format;

import org.jspecify.annotations.NullMarked;
