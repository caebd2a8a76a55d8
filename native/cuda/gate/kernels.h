// The kernels of the library: how they are launched, and the least that they have to do.
#pragma once

#include <cstdint>
#include <vector>

#include "device_classes.h"

namespace gate {

// What one launch has to move and to compute.
struct Work {
    double bytes = 0.0;
    double fp32 = 0.0;     // operations, a fused multiply-add counted as two
    double fp64 = 0.0;     // instructions of the double-precision unit, conversions included
    double longest = 0.0;  // the fp32 operations that one multiprocessor has to do one after the other, at least
};

// LeNet of ten clients; or 10^8 elements, and for matrices the sizes of a transformer's.
enum class Scale { kLeNet, kLarge };

struct Kernel {
    const char *name;
    const char *operations;  // of the ABI, without fcm_
    const char *bytes;       // formulas of `work`, in words
    const char *fp32;
    const char *fp64;
    Work (*work)(Scale scale);
    LaunchShape (*launch)(const DeviceClass &device);  // the one that asks for most
};

const std::vector<Kernel> &kernels();
const Kernel *find_kernel(const char *name);  // null if there is none

enum class Bound { kMemory, kFp32, kFp64, kLongest };
struct Roofline {
    double seconds;
    Bound by;
};
Roofline roofline(const DeviceClass &device, const Work &work);

}  // namespace gate
