// Which GPUs are here, and why not.
#include <cstdio>
#include <string>

#include "arguments.h"
#include "context.h"

namespace {

template <size_t N>
void put(char (&to)[N], const std::string &text) {
    std::snprintf(to, N, "%s", text.c_str());
}

struct Count {
    int devices;
    std::string reason;  // why there are none
};

Count count_devices() {
    int devices = 0;  // left unwritten where there is no driver
    const cudaError_t code = cudaGetDeviceCount(&devices);
    if (code == cudaSuccess && devices > 0) return {devices, ""};
    (void)cudaGetLastError();
    if (code == cudaErrorInsufficientDriver) {
        return {0, std::string("no GPU: insufficient driver (") + cudaGetErrorString(code) + ")"};
    }
    return {0, std::string("no GPU: ") + cudaGetErrorString(code == cudaSuccess ? cudaErrorNoDevice : code)};
}

}  // namespace

int32_t fcm_abi_version(void) { return FCM_ABI_VERSION; }

const char *fcm_build_info(void) { return "fedcomuon " FCM_VERSION ", " FCM_CUDA_BUILD ", " FCM_COMPILER; }

fcm_status fcm_backend_load(const char *, int32_t *, fcm_error *error) {
    return fcm::fail(error, FCM_UNSUPPORTED, {}, "fcm_backend_load: this library is a backend itself");
}

fcm_status fcm_device_count(int32_t *count, fcm_error *error) {
    constexpr const char *function = "fcm_device_count";
    return fcm::guarded(function, error, [&] {
        fcm::Arguments arguments(function, error);
        arguments.require(count != nullptr, "the place for the answer is null");
        if (arguments.ok()) {
            const int devices = count_devices().devices;
            *count = devices > 0 ? devices : 1;
        }
        return arguments.status();
    });
}

fcm_status fcm_device_describe(int32_t position, fcm_device_info *info, fcm_error *error) {
    constexpr const char *function = "fcm_device_describe";
    return fcm::guarded(function, error, [&] {
        const Count count = count_devices();
        const int32_t entries = count.devices > 0 ? count.devices : 1;
        fcm::Arguments arguments(function, error);
        arguments.require(info != nullptr, "the place for the answer is null")
            .require(position >= 0 && position < entries, "position %d is outside [0, %d)", position, entries);
        if (!arguments.ok()) return arguments.status();
        fcm_device_info answer{};
        answer.kind = fcm::kKind;
#ifdef FCM_CUDASIM
        put(answer.name, "simulated GPU");
#else
        put(answer.name, "NVIDIA GPU");
#endif
        if (count.devices == 0) {
            answer.ordinal = -1;
            put(answer.reason, count.reason);
        } else {
            answer.ordinal = position;
            cudaDeviceProp properties{};
            const cudaError_t code = cudaGetDeviceProperties(&properties, position);
            if (code == cudaSuccess) {
                answer.available = 1;
                answer.memory_bytes = static_cast<int64_t>(properties.totalGlobalMem);
#ifndef FCM_CUDASIM
                put(answer.name, properties.name);
#endif
            } else {
                (void)cudaGetLastError();
                put(answer.reason, cudaGetErrorString(code));
            }
        }
        *info = answer;
        return fcm_status{FCM_OK};
    });
}
