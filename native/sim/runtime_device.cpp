// The runtime interface: devices.
#include <cstdio>
#include <cstring>

#include "cudasim/control.h"
#include "host_thread.h"
#include "text.h"

namespace cudasim {

namespace {

constexpr int kVersion = 13000;
constexpr int kMultiprocessors = 128;

void check_pointer(const void *where) {
    if (where == nullptr) throw ApiError(cudaErrorInvalidValue, "a null pointer for the result");
}

cudaDeviceProp properties_of(const Settings &settings, int device) {
    cudaDeviceProp p{};
    std::snprintf(p.name, sizeof p.name, "Simulated CUDA device %d (sm_%d)", device, settings.arch);
    p.totalGlobalMem = settings.memory;
    p.sharedMemPerBlock = kPlainShared;
    p.regsPerBlock = 65536;
    p.warpSize = warpSize;
    p.maxThreadsPerBlock = kMostThreads;
    p.maxThreadsDim[0] = p.maxThreadsDim[1] = 1024;
    p.maxThreadsDim[2] = 64;
    p.maxGridSize[0] = 2147483647;
    p.maxGridSize[1] = p.maxGridSize[2] = 65535;
    p.totalConstMem = 65536;
    p.major = settings.arch / 10;
    p.minor = settings.arch % 10;
    p.multiProcessorCount = kMultiprocessors;
    p.canMapHostMemory = 1;
    p.concurrentKernels = 1;
    p.pciBusID = device + 1;
    p.asyncEngineCount = 2;
    p.unifiedAddressing = 1;
    p.memoryBusWidth = 384;
    p.l2CacheSize = 72 << 20;
    p.maxThreadsPerMultiProcessor = 1536;
    p.sharedMemPerMultiprocessor = settings.shared_per_multiprocessor();
    p.regsPerMultiprocessor = 65536;
    p.sharedMemPerBlockOptin = settings.most_shared();
    p.maxBlocksPerMultiProcessor = 24;
    p.reservedSharedMemPerBlock = 1024;
    p.memoryPoolsSupported = 1;
    return p;
}

int attribute_of(const cudaDeviceProp &p, cudaDeviceAttr attribute) {
    switch (attribute) {
        case cudaDevAttrMaxThreadsPerBlock: return p.maxThreadsPerBlock;
        case cudaDevAttrMaxSharedMemoryPerBlock: return static_cast<int>(p.sharedMemPerBlock);
        case cudaDevAttrWarpSize: return p.warpSize;
        case cudaDevAttrMaxRegistersPerBlock: return p.regsPerBlock;
        case cudaDevAttrMultiProcessorCount: return p.multiProcessorCount;
        case cudaDevAttrComputeCapabilityMajor: return p.major;
        case cudaDevAttrComputeCapabilityMinor: return p.minor;
        case cudaDevAttrMaxSharedMemoryPerMultiprocessor: return static_cast<int>(p.sharedMemPerMultiprocessor);
        case cudaDevAttrMaxSharedMemoryPerBlockOptin: return static_cast<int>(p.sharedMemPerBlockOptin);
        case cudaDevAttrMemoryPoolsSupported: return p.memoryPoolsSupported;
    }
    throw ApiError(cudaErrorInvalidValue, text("device attribute %d is not simulated", static_cast<int>(attribute)));
}

}  // namespace

cudaError_t cudaGetDeviceCount(int *count) {
    return call([&](Machine &machine, HostThread &) {
        check_pointer(count);
        *count = machine.devices();
        if (*count == 0) throw ApiError(cudaErrorNoDevice, "FEDCOMUON_CUDASIM_DEVICES=0");
    });
}

cudaError_t cudaSetDevice(int device) {
    return call([&](Machine &machine, HostThread &thread) {
        machine.need_context(device);  // if this fails, the current device stays as it was
        thread.device = device;
    });
}

cudaError_t cudaGetDevice(int *device) {
    return call([&](Machine &, HostThread &thread) {
        check_pointer(device);
        *device = thread.device;
    });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int device) {
    return call([&](Machine &machine, HostThread &) {
        check_pointer(properties);
        machine.check_device(device);
        *properties = properties_of(machine.settings(), device);
    });
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int device) {
    return call([&](Machine &machine, HostThread &) {
        check_pointer(value);
        machine.check_device(device);
        *value = attribute_of(properties_of(machine.settings(), device), attribute);
    });
}

cudaError_t cudaDeviceSynchronize() {
    return call_in_context([&](Machine &machine, HostThread &thread) {
        machine.check_device(thread.device);
        machine.trace().add_wait(thread.device, nullptr, "cudaDeviceSynchronize");
        machine.finish_device(thread.device);
        machine.check_healthy(thread.device);
    });
}

cudaError_t cudaDeviceReset() {
    return call([&](Machine &machine, HostThread &thread) {
        machine.check_device(thread.device);
        machine.reset_device(thread.device);
        thread.last = cudaSuccess;
    });
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer) {
    return call([&](Machine &machine, HostThread &) {
        check_pointer(can);
        machine.check_device(device);
        machine.check_device(peer);
        *can = device != peer && machine.settings().peers;
    });
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
    return call_in_context([&](Machine &machine, HostThread &thread) {
        machine.check_healthy(thread.device);
        machine.check_device(peer);
        const bool never = peer == thread.device || !machine.settings().peers;
        if (flags != 0 || never) {
            throw ApiError(never ? cudaErrorInvalidDevice : cudaErrorInvalidValue,
                           text("peer access of device %d to device %d, flags %u", thread.device, peer, flags));
        }
        if (machine.memories().peer(thread.device, peer)) {
            throw ApiError(cudaErrorPeerAccessAlreadyEnabled, text("device %d to device %d", thread.device, peer));
        }
        machine.memories().set_peer(thread.device, peer, true);
    });
}

cudaError_t cudaDeviceDisablePeerAccess(int peer) {
    return call_in_context([&](Machine &machine, HostThread &thread) {
        machine.check_healthy(thread.device);
        machine.check_device(peer);
        if (!machine.memories().peer(thread.device, peer)) {
            throw ApiError(cudaErrorPeerAccessNotEnabled, text("device %d to device %d", thread.device, peer));
        }
        machine.memories().set_peer(thread.device, peer, false);
    });
}

cudaError_t cudaDriverGetVersion(int *version) {
    return call([&](Machine &, HostThread &) {
        check_pointer(version);
        *version = kVersion;
    });
}

cudaError_t cudaRuntimeGetVersion(int *version) { return cudaDriverGetVersion(version); }

cudaError_t cudaFuncSetAttribute(const void *function, cudaFuncAttribute attribute, int value) {
    return call_in_context([&](Machine &machine, HostThread &thread) {
        machine.check_healthy(thread.device);
        if (function == nullptr) throw ApiError(cudaErrorInvalidDeviceFunction, "a null pointer for the kernel");
        if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return;  // only a hint
        const auto most = static_cast<int>(machine.settings().most_shared());
        if (value < 0 || value > most) {
            throw ApiError(cudaErrorInvalidValue, text("%d bytes of dynamic shared memory: sm_%d has %d a block", value,
                                                       machine.settings().arch, most));
        }
        machine.allow_shared(thread.device, function, static_cast<size_t>(value));
    });
}

namespace {

// cuDevicePrimaryCtxGetState; the results are the driver's: success, invalid value, invalid device.
int primary_context_state(int device, unsigned *flags, int *active) {
    if (flags == nullptr || active == nullptr) return 1;
    const auto machine = Machine::get();
    if (device < 0 || device >= machine->devices()) return 101;
    *flags = 0;
    *active = machine->has_context(device) ? 1 : 0;
    return 0;
}

}  // namespace

cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **function, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult *found) {
    return call([&](Machine &, HostThread &) {
        check_pointer(symbol);
        check_pointer(function);
        const bool known = std::strcmp(symbol, "cuDevicePrimaryCtxGetState") == 0;
        *function = known ? reinterpret_cast<void *>(&primary_context_state) : nullptr;
        if (found != nullptr) *found = known ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    });
}

// ---- cudasim/control.h ----

std::string last_fault() {
    std::string words;
    call([&](Machine &machine, HostThread &) { words = machine.faults().last(); });
    return words;
}

void reconfigure() {
    Machine::remake();
    HostThread::current() = HostThread();
}

bool injected(const char *what, int device) {
    bool hit = false;
    call([&](Machine &machine, HostThread &) { hit = machine.injector().hit(what, device); });
    return hit;
}

}  // namespace cudasim

int cudasim_inject(const char *what, int device, long long after) {
    using namespace cudasim;
    return call([&](Machine &machine, HostThread &) {
        if (what == nullptr) throw ApiError(cudaErrorInvalidValue, "nothing to inject");
        if (std::strcmp(what, "clear") == 0) {
            machine.injector().clear(device);
            return;
        }
        machine.check_device(device);
        if (!Injector::known(what) || after < 1) {
            throw ApiError(cudaErrorInvalidValue, text("no fault \"%s\" after %lld calls", what, after));
        }
        machine.injector().add(what, device, after);
    });
}

long long cudasim_live_bytes(int device) {
    using namespace cudasim;
    size_t bytes = 0;
    const cudaError_t error = call([&](Machine &machine, HostThread &) {
        if (device >= 0) {
            machine.check_device(device);
            bytes = machine.memories().device(device).live();
            return;
        }
        bytes = machine.memories().pinned().live();
        for (int i = 0; i < machine.devices(); ++i) bytes += machine.memories().device(i).live();
    });
    return error == cudaSuccess ? static_cast<long long>(bytes) : -1;
}

int cudasim_contexts(int device) {
    using namespace cudasim;
    int count = 0;
    const cudaError_t error = call([&](Machine &machine, HostThread &) {
        if (device >= 0) {
            count = machine.has_context(device) ? 1 : 0;
            return;
        }
        for (int i = 0; i < machine.devices(); ++i) count += machine.has_context(i) ? 1 : 0;
    });
    return error == cudaSuccess ? count : -1;
}

int cudasim_trace(const char *path) {
    using namespace cudasim;
    return call([&](Machine &machine, HostThread &) {
        if (!machine.trace().open(path)) throw ApiError(cudaErrorInvalidValue, text("no trace can be written to %s", path));
    });
}
