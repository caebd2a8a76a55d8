#include "device_classes.h"

#include <climits>
#include <stdexcept>
#include <string>

#include "cuda_occupancy.h"

namespace gate {
namespace {

constexpr int kWarp = 32;
constexpr int kMostThreads = 1024;
constexpr int kRegisters = 65536;
constexpr int64_t kSharedWithoutAsking = 49152;

}  // namespace

const std::vector<DeviceClass> &device_classes() {
    static const std::vector<DeviceClass> kAll = {
        {"T4", 75, 40, 1024, 65536, 65536, 0, 320e9, 8.1e12, 0.253e12, 0.0, 0.0},
        {"A100 80GB SXM", 80, 108, 2048, 167936, 166912, 1024, 2039e9, 19.5e12, 9.7e12, 312e12, 156e12},
        {"RTX 3090", 86, 82, 1536, 102400, 101376, 1024, 936e9, 35.6e12, 0.556e12, 71e12, 35.6e12},
        {"RTX 4090", 89, 128, 1536, 102400, 101376, 1024, 1008e9, 82.6e12, 1.29e12, 165.2e12, 82.6e12},
        {"H100 SXM", 90, 132, 2048, 233472, 232448, 1024, 3350e9, 67e12, 34e12, 989e12, 494e12},
        {"B200", 100, 148, 2048, 233472, 232448, 1024, 8000e9, 80e12, 40e12, 2250e12, 1125e12},
        {"RTX 5090", 120, 170, 1536, 102400, 101376, 1024, 1792e9, 104.8e12, 1.64e12, 209.5e12, 104.8e12},
    };
    return kAll;
}

const DeviceClass *device_class(int arch) {
    for (const DeviceClass &device : device_classes()) {
        if (device.arch == arch) return &device;
    }
    return nullptr;
}

Occupancy occupancy(const DeviceClass &device, const Resources &resources, const LaunchShape &launch) {
    cudaOccDeviceProp properties;
    properties.computeMajor = device.arch / 10;
    properties.computeMinor = device.arch % 10;
    properties.maxThreadsPerBlock = kMostThreads;
    properties.maxThreadsPerMultiprocessor = device.threads;
    properties.regsPerBlock = kRegisters;
    properties.regsPerMultiprocessor = kRegisters;
    properties.warpSize = kWarp;
    properties.sharedMemPerBlock = static_cast<size_t>(kSharedWithoutAsking);
    properties.sharedMemPerMultiprocessor = static_cast<size_t>(device.shared);
    properties.numSms = device.multiprocessors;
    properties.sharedMemPerBlockOptin = static_cast<size_t>(device.shared_optin);
    properties.reservedSharedMemPerBlock = static_cast<size_t>(device.shared_reserve);

    cudaOccFuncAttributes attributes;
    attributes.maxThreadsPerBlock = INT_MAX;
    attributes.numRegs = resources.registers;
    attributes.sharedSizeBytes = static_cast<size_t>(resources.shared);
    attributes.partitionedGCConfig = PARTITIONED_GC_OFF;
    // The library raises the limit of dynamic shared memory for the kernels that need it.
    attributes.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
    attributes.maxDynamicSharedSizeBytes = static_cast<size_t>(launch.dynamic_shared);
    attributes.numBlockBarriers = resources.barriers;

    const cudaOccDeviceState state;
    cudaOccResult result;
    const cudaOccError error = cudaOccMaxActiveBlocksPerMultiprocessor(
        &result, &properties, &attributes, &state, launch.threads, static_cast<size_t>(launch.dynamic_shared));
    if (error != CUDA_OCC_SUCCESS) {
        throw std::runtime_error("cuda_occupancy.h: error " + std::to_string(error) + " for " + resources.kernel +
                                 " on sm_" + std::to_string(device.arch));
    }
    const int blocks = result.activeBlocksPerMultiprocessor;
    const int warps = (launch.threads + kWarp - 1) / kWarp;
    return {blocks, static_cast<double>(blocks * warps) * kWarp / device.threads};
}

}  // namespace gate
