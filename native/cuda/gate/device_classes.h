// The GPUs that the kernels are compiled for, and how much of a kernel fits one of their multiprocessors.
#pragma once

#include <cstdint>
#include <vector>

#include "listing.h"

namespace gate {

// One GPU for each architecture. Limits are those of the CUDA programming guide, peaks are the maker's.
struct DeviceClass {
    const char *name;
    int arch;
    int multiprocessors;
    int threads;             // that a multiprocessor holds at a time
    int64_t shared;          // bytes of a multiprocessor
    int64_t shared_optin;    // bytes that a block can ask for
    int64_t shared_reserve;  // bytes of each block that are the driver's
    double bandwidth;        // bytes a second
    double fp32;             // operations a second, a fused multiply-add counted as two
    double fp64;
};

const std::vector<DeviceClass> &device_classes();
const DeviceClass *device_class(int arch);  // null if there is none

// A launch as the library makes it.
struct LaunchShape {
    int threads = 0;
    int64_t dynamic_shared = 0;
};

struct Occupancy {
    int blocks = 0;      // on one multiprocessor at a time; 0: the launch is refused
    double warps = 0.0;  // of those that it could hold
};

Occupancy occupancy(const DeviceClass &device, const Resources &resources, const LaunchShape &launch);

}  // namespace gate
