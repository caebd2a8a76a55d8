/**
 * Bindings of NVIDIA's cuBLAS, cuSOLVER and NCCL, through Panama or JCuda. Not exported: nothing here is API.
 *
 * <p>A binding passes calls on and returns the library's status. It knows neither buffers nor devices; the package
 * {@code device} checks operands, chooses routines and turns a status into an exception.
 */
@NullMarked
package org.fedcomuon.internal.vendor;

import org.jspecify.annotations.NullMarked;
