// Included by kernel sources instead of CUDA's own header: nvcc compiles them for a GPU, and with FCM_CUDASIM any C++
// compiler compiles them for the simulator. Only the three macros below differ between the two; everything else that a
// kernel or its host code uses has the same name as in CUDA.
//
//   LAUNCH(kernel, grid, block, shared_bytes, stream, arguments...);   errors are reported by cudaGetLastError()
//   SHARED(float, tile, [32][33]);   an array in shared memory, visible to all threads of the block
//   SHARED_DYN(float, workspace);    a pointer to the launch's dynamic shared memory, aligned to 16 bytes
#pragma once

#if defined(FCM_CUDASIM)

#include "cuda_sim.h"

#define LAUNCH(kernel, grid, block, shared_bytes, stream, ...) \
    ::cudasim::detail::Launcher(#kernel, grid, block, shared_bytes, stream).run(kernel __VA_OPT__(, ) __VA_ARGS__)

// The address of `name_site` identifies this declaration, so all threads find the same array.
#define SHARED(type, name, dimensions)          \
    static const char name##_site = 0;          \
    typedef type name##_array dimensions;       \
    auto &name = ::cudasim::detail::shared_array<name##_array>(&name##_site, #name)

#define SHARED_DYN(type, name) type *const name = static_cast<type *>(::cudasim::detail::shared_dynamic())

#else

#include <cuda_runtime.h>

#define LAUNCH(kernel, grid, block, shared_bytes, stream, ...) \
    kernel<<<(grid), (block), (shared_bytes), (stream)>>>(__VA_ARGS__)

#define SHARED(type, name, dimensions) __shared__ type name dimensions

#define SHARED_DYN(type, name)                                               \
    extern __shared__ __align__(16) unsigned char fcm_dynamic_shared[];      \
    type *const name = reinterpret_cast<type *>(fcm_dynamic_shared)

#endif
