// The GPUs that the kernels are compiled for, and the occupancy of a kernel on one of their multiprocessors.
#pragma once

#include <cstdint>
#include <vector>

#include "listing.h"

namespace gate {

// One GPU for each architecture. Limits are from the CUDA programming guide, peak rates are from NVIDIA's data sheets.
struct DeviceClass {
    const char *name;
    int arch;
    int multiprocessors;
    int threads;             // resident threads per multiprocessor
    int64_t shared;          // bytes per multiprocessor
    int64_t shared_optin;    // maximum bytes per block
    int64_t shared_reserve;  // bytes per block reserved by the driver
    double bandwidth;        // bytes per second
    double fp32;             // operations per second; a fused multiply-add counts as two
    double fp64;
    double bf16;  // of tensor cores with sums in fp32, without sparsity; 0 if there are none
    double tf32;
};

const std::vector<DeviceClass> &device_classes();
const DeviceClass *device_class(int arch);  // null if there is none

// A launch configuration as used by the library.
struct LaunchShape {
    int threads = 0;
    int64_t dynamic_shared = 0;
};

struct Occupancy {
    int blocks = 0;      // resident blocks per multiprocessor; 0 if the launch is refused
    double warps = 0.0;  // fraction of the maximum number of resident warps
};

Occupancy occupancy(const DeviceClass &device, const Resources &resources, const LaunchShape &launch);

}  // namespace gate
