// The host side: CUDA's runtime interface for N simulated devices.
//
// The devices are configured by environment variables, read once by the first call (or by reconfigure() in tests):
//   FEDCOMUON_CUDASIM_DEVICES   number of devices, default 4
//   FEDCOMUON_CUDASIM_MEMORY    bytes of memory per device, default 4 GiB
//   FEDCOMUON_CUDASIM_ARCH      75, 80, 86, 89, 90, 100 or 120: the compute capability and the limits of shared memory, default
//                               89; with PTX for an older or a newer GPU than that, one that its machine code is made for
//   FEDCOMUON_CUDASIM_STREAMS   lazy (default): work runs when something waits for it; eager: work runs immediately
//   FEDCOMUON_CUDASIM_ORDER     forward (default), reverse or random:SEED: the order of threads and blocks
//   FEDCOMUON_CUDASIM_THREADS   OS threads for the blocks of a launch, default 2
//   FEDCOMUON_CUDASIM_ENGINE    source (default): the kernel as compiled; ptx: its PTX, interpreted
//   FEDCOMUON_CUDASIM_PTX       for ptx: a directory, or files separated by ':'
//   FEDCOMUON_CUDASIM_PROTECT   on (default): the host cannot access device memory; off: faster
//   FEDCOMUON_CUDASIM_POISON    on (default): with AddressSanitizer, accessing a canary ends the program; off
//   FEDCOMUON_CUDASIM_PEERS     on (default): devices can be given access to each other's memory; off: they cannot, as on
//                               GeForce cards since the RTX 40 series
//   FEDCOMUON_CUDASIM_EXCLUSIVE numbers of devices, separated by commas, that another process has for itself
//                               (cudaComputeModeExclusiveProcess): a context cannot be created on them
//   FEDCOMUON_CUDASIM_SICK      numbers of devices on which no context can be created because of a memory error
//
// Primary contexts are created when CUDA 12 and later create them: by cudaSetDevice, and by any call that needs a context, for
// the current device, which is device 0 on a new thread. On a GPU each takes about half a gigabyte, and creating it fails if
// the GPU is exclusive and in use. Sources: CUDA Runtime API 13.0, cudaSetDevice (which initializes
// the primary context at once) and "Interactions with the CUDA Driver API"; pytorch/pytorch#94864 for a guard that
// restored device 0; meta-pytorch/torchcomms#777 for a thread that only queried an event.
//
// A copy between devices is direct if the device of its stream has access to the memory of the other: by
// cudaDeviceEnablePeerAccess for memory from cudaMalloc, and by cudaMemPoolSetAccess for that from cudaMallocAsync. Otherwise
// it is staged through the host ("staged copy" in a trace), and here, as it may with a driver, it blocks the caller until all
// work before it is done. Sources: CUDA C++ Programming Guide, "Peer-to-Peer Memory Copy" and "Device Accessibility for
// Multi-GPU Support" (pools do not follow cudaDeviceEnablePeerAccess); CUDA Runtime API 13.0, "Peer Device Memory Access".
//
// The last error is kept for each thread until cudaGetLastError returns it: calls that succeed do not remove it, so that an
// error that somebody ignored is found after a launch that has nothing to do with it. The fault of a kernel is not removed
// at all (a "sticky" error), and every call on that device returns it. Source: CUDA Runtime API 13.0, "Error Handling";
// CUDA C++ Programming Guide, "Error Checking".
#pragma once

#include <cstddef>

#include "types.h"

namespace cudasim {

enum cudaError_t : int {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorInitializationError = 3,
    cudaErrorInvalidConfiguration = 9,
    cudaErrorInvalidHostPointer = 16,
    cudaErrorInvalidDevicePointer = 17,
    cudaErrorInvalidMemcpyDirection = 21,
    cudaErrorInsufficientDriver = 35,
    cudaErrorDevicesUnavailable = 46,
    cudaErrorInvalidDeviceFunction = 98,
    cudaErrorNoDevice = 100,
    cudaErrorInvalidDevice = 101,
    cudaErrorECCUncorrectable = 214,
    cudaErrorPeerAccessUnsupported = 217,
    cudaErrorInvalidResourceHandle = 400,
    cudaErrorNotReady = 600,
    cudaErrorIllegalAddress = 700,
    cudaErrorLaunchOutOfResources = 701,
    cudaErrorPeerAccessAlreadyEnabled = 704,
    cudaErrorPeerAccessNotEnabled = 705,
    cudaErrorLaunchFailure = 719,
    cudaErrorNotSupported = 801,
    cudaErrorUnknown = 999
};

namespace detail {
class Stream;
class Event;
struct MemoryPool;
}  // namespace detail
using cudaStream_t = detail::Stream *;
using cudaEvent_t = detail::Event *;
using cudaMemPool_t = detail::MemoryPool *;

enum cudaMemcpyKind {
    cudaMemcpyHostToHost = 0,
    cudaMemcpyHostToDevice = 1,
    cudaMemcpyDeviceToHost = 2,
    cudaMemcpyDeviceToDevice = 3,
    cudaMemcpyDefault = 4
};

enum cudaDeviceAttr {
    cudaDevAttrMaxThreadsPerBlock = 1,
    cudaDevAttrMaxSharedMemoryPerBlock = 8,
    cudaDevAttrWarpSize = 10,
    cudaDevAttrMaxRegistersPerBlock = 12,
    cudaDevAttrMultiProcessorCount = 16,
    cudaDevAttrComputeCapabilityMajor = 75,
    cudaDevAttrComputeCapabilityMinor = 76,
    cudaDevAttrMaxSharedMemoryPerMultiprocessor = 81,
    cudaDevAttrMaxSharedMemoryPerBlockOptin = 97,
    cudaDevAttrMemoryPoolsSupported = 115
};

enum cudaFuncAttribute {
    cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
    cudaFuncAttributePreferredSharedMemoryCarveout = 9
};

enum cudaMemPoolAttr { cudaMemPoolAttrReleaseThreshold = 4 };

enum cudaMemLocationType { cudaMemLocationTypeInvalid = 0, cudaMemLocationTypeDevice = 1 };
enum cudaMemAccessFlags {
    cudaMemAccessFlagsProtNone = 0,
    cudaMemAccessFlagsProtRead = 1,
    cudaMemAccessFlagsProtReadWrite = 3
};
struct cudaMemLocation {
    cudaMemLocationType type;
    int id;
};
struct cudaMemAccessDesc {
    cudaMemLocation location;
    cudaMemAccessFlags flags;
};

enum cudaMemoryType {
    cudaMemoryTypeUnregistered = 0,
    cudaMemoryTypeHost = 1,
    cudaMemoryTypeDevice = 2,
    cudaMemoryTypeManaged = 3
};

constexpr unsigned cudaStreamDefault = 0;
constexpr unsigned cudaStreamNonBlocking = 1;
constexpr unsigned cudaEventDefault = 0;
constexpr unsigned cudaEventBlockingSync = 1;
constexpr unsigned cudaEventDisableTiming = 2;
constexpr unsigned cudaEventWaitDefault = 0;
constexpr unsigned cudaHostAllocDefault = 0;
constexpr unsigned cudaHostAllocPortable = 1;
constexpr unsigned cudaHostAllocMapped = 2;
constexpr unsigned cudaHostAllocWriteCombined = 4;

struct cudaDeviceProp {
    char name[256];
    size_t totalGlobalMem;
    size_t sharedMemPerBlock;
    int regsPerBlock;
    int warpSize;
    int maxThreadsPerBlock;
    int maxThreadsDim[3];
    int maxGridSize[3];
    size_t totalConstMem;
    int major;
    int minor;
    int multiProcessorCount;
    int integrated;
    int canMapHostMemory;
    int concurrentKernels;
    int ECCEnabled;
    int pciBusID;
    int pciDeviceID;
    int pciDomainID;
    int asyncEngineCount;
    int unifiedAddressing;
    int memoryBusWidth;
    int l2CacheSize;
    int maxThreadsPerMultiProcessor;
    size_t sharedMemPerMultiprocessor;
    int regsPerMultiprocessor;
    int managedMemory;
    size_t sharedMemPerBlockOptin;
    int maxBlocksPerMultiProcessor;
    size_t reservedSharedMemPerBlock;
    int memoryPoolsSupported;
};

struct cudaPointerAttributes {
    cudaMemoryType type;
    int device;
    void *devicePointer;
    void *hostPointer;
};

// ---- Devices ----
CUDASIM_API cudaError_t cudaGetDeviceCount(int *count);
CUDASIM_API cudaError_t cudaSetDevice(int device);
CUDASIM_API cudaError_t cudaGetDevice(int *device);
CUDASIM_API cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int device);
CUDASIM_API cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int device);
CUDASIM_API cudaError_t cudaDeviceSynchronize();
CUDASIM_API cudaError_t cudaDeviceReset();
CUDASIM_API cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer);
CUDASIM_API cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags);
CUDASIM_API cudaError_t cudaDeviceDisablePeerAccess(int peer);
CUDASIM_API cudaError_t cudaDriverGetVersion(int *version);
CUDASIM_API cudaError_t cudaRuntimeGetVersion(int *version);
CUDASIM_API cudaError_t cudaFuncSetAttribute(const void *function, cudaFuncAttribute attribute, int value);

// The driver's functions that the product needs, which it finds by name as with a GPU: cuDevicePrimaryCtxGetState only.
enum cudaDriverEntryPointQueryResult {
    cudaDriverEntryPointSuccess = 0,
    cudaDriverEntryPointSymbolNotFound = 1,
    cudaDriverEntryPointVersionNotSufficent = 2
};
constexpr unsigned long long cudaEnableDefault = 0;
CUDASIM_API cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **function, unsigned version,
                                                         unsigned long long flags, cudaDriverEntryPointQueryResult *found);

// ---- Errors ----
CUDASIM_API cudaError_t cudaGetLastError();
CUDASIM_API cudaError_t cudaPeekAtLastError();
CUDASIM_API const char *cudaGetErrorName(cudaError_t error);
CUDASIM_API const char *cudaGetErrorString(cudaError_t error);

// ---- Streams and events ----
CUDASIM_API cudaError_t cudaStreamCreate(cudaStream_t *stream);
CUDASIM_API cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags);
CUDASIM_API cudaError_t cudaStreamDestroy(cudaStream_t stream);
CUDASIM_API cudaError_t cudaStreamSynchronize(cudaStream_t stream);
CUDASIM_API cudaError_t cudaStreamQuery(cudaStream_t stream);
CUDASIM_API cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags = 0);
CUDASIM_API cudaError_t cudaEventCreate(cudaEvent_t *event);
CUDASIM_API cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags);
CUDASIM_API cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream = nullptr);
CUDASIM_API cudaError_t cudaEventSynchronize(cudaEvent_t event);
CUDASIM_API cudaError_t cudaEventQuery(cudaEvent_t event);
CUDASIM_API cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t end);
CUDASIM_API cudaError_t cudaEventDestroy(cudaEvent_t event);

// ---- Memory ----
CUDASIM_API cudaError_t cudaMalloc(void **address, size_t bytes);
CUDASIM_API cudaError_t cudaFree(void *address);
CUDASIM_API cudaError_t cudaMallocAsync(void **address, size_t bytes, cudaStream_t stream);
CUDASIM_API cudaError_t cudaFreeAsync(void *address, cudaStream_t stream);
CUDASIM_API cudaError_t cudaMallocHost(void **address, size_t bytes, unsigned flags = 0);
CUDASIM_API cudaError_t cudaHostAlloc(void **address, size_t bytes, unsigned flags);
CUDASIM_API cudaError_t cudaFreeHost(void *address);
CUDASIM_API cudaError_t cudaMemGetInfo(size_t *free, size_t *total);
CUDASIM_API cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device);
CUDASIM_API cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void *value);
CUDASIM_API cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc *access, size_t count);
CUDASIM_API cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t bytes_to_keep);
CUDASIM_API cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *attributes, const void *address);
CUDASIM_API cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind);
CUDASIM_API cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                                        cudaStream_t stream = nullptr);
CUDASIM_API cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes,
                                            cudaStream_t stream = nullptr);
CUDASIM_API cudaError_t cudaMemset(void *address, int value, size_t bytes);
CUDASIM_API cudaError_t cudaMemsetAsync(void *address, int value, size_t bytes, cudaStream_t stream = nullptr);

// Also declared in CUDA's C++ header.
template <class T>
cudaError_t cudaMalloc(T **address, size_t bytes) {
    return cudaMalloc(reinterpret_cast<void **>(address), bytes);
}
template <class T>
cudaError_t cudaMallocAsync(T **address, size_t bytes, cudaStream_t stream) {
    return cudaMallocAsync(reinterpret_cast<void **>(address), bytes, stream);
}
template <class T>
cudaError_t cudaMallocHost(T **address, size_t bytes, unsigned flags = 0) {
    return cudaMallocHost(reinterpret_cast<void **>(address), bytes, flags);
}
template <class T>
cudaError_t cudaHostAlloc(T **address, size_t bytes, unsigned flags) {
    return cudaHostAlloc(reinterpret_cast<void **>(address), bytes, flags);
}
template <class T>
cudaError_t cudaFuncSetAttribute(T *function, cudaFuncAttribute attribute, int value) {
    return cudaFuncSetAttribute(reinterpret_cast<const void *>(function), attribute, value);
}

}  // namespace cudasim
