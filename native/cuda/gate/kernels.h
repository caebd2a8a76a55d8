// The kernels of the library: their launch configurations, and the least work that they have to do.
#pragma once

#include <cstdint>
#include <vector>

#include "device_classes.h"

namespace gate {

// The memory traffic and the computation of one launch.
struct Work {
    double bytes = 0.0;
    double fp32 = 0.0;     // operations; a fused multiply-add counts as two
    double fp64 = 0.0;     // instructions of the double-precision unit, including conversions
    double longest = 0.0;  // the least number of operations, in fp32 or of tensor cores, that one multiprocessor has to do alone
    double bf16 = 0.0;     // operations of tensor cores
    double tf32 = 0.0;
};

// LeNet with ten clients; or 10^8 elements, and for matrices the sizes of a transformer.
enum class Scale { kLeNet, kLarge };

struct Kernel {
    const char *name;
    const char *operations;  // of the ABI, without fcm_
    const char *bytes;       // the formulas of `work` as text
    const char *fp32;
    const char *fp64;
    Work (*work)(Scale scale);
    LaunchShape (*launch)(const DeviceClass &device);  // the launch with the most shared memory
};

const std::vector<Kernel> &kernels();
const Kernel *find_kernel(const char *name);  // null if there is none

enum class Bound { kMemory, kFp32, kFp64, kLongest, kTensor };
struct Roofline {
    double seconds;
    Bound by;
};
// Infinite if the GPU has no tensor cores that the kernel needs.
Roofline roofline(const DeviceClass &device, const Work &work);

}  // namespace gate
