/**
 * File formats: NPY and safetensors, and for datasets IDX, PNG, records and the archives they come in. What is in the
 * files, clients or datasets or checkpoints, is the business of others: this package knows nothing of devices, except
 * what an element is, nor of federations.
 */
@NullMarked
package org.fedcomuon.format;

import org.jspecify.annotations.NullMarked;
