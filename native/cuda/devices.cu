// Lists the GPUs of this machine, or the reason why there are none.
#include <cstdio>
#include <string>

#include "arguments.h"
#include "context.h"
#include "device_functions.h"

namespace {

template <size_t N>
void put(char (&to)[N], const std::string &text) {
    std::snprintf(to, N, "%s", text.c_str());
}

struct Count {
    int devices;
    std::string reason;  // the reason if there are none
};

Count count_devices() {
    int devices = 0;  // not written by CUDA if there is no driver
    const cudaError_t code = cudaGetDeviceCount(&devices);
    if (code == cudaSuccess && devices > 0) return {devices, ""};
    (void)cudaGetLastError();
    if (code == cudaErrorInsufficientDriver) {
        return {0, std::string("no GPU: insufficient driver (") + cudaGetErrorString(code) + ")"};
    }
    return {0, std::string("no GPU: ") + cudaGetErrorString(code == cudaSuccess ? cudaErrorNoDevice : code)};
}

}  // namespace

const char *fcm_build_info(void) { return "fedcomuon " FCM_VERSION ", " FCM_CUDA_BUILD ", " FCM_COMPILER; }

fcm_status fcm_backend_load(const char *, int32_t *, fcm_error *error) {
    return fcm::fail(error, FCM_UNSUPPORTED, {}, "fcm_backend_load: this library is a backend itself");
}

namespace fcm {

fcm_status device::device_count(int32_t *count, fcm_error *) {
    const int devices = count_devices().devices;
    *count = devices > 0 ? devices : 1;
    return FCM_OK;
}

fcm_status device::device_describe(int32_t position, fcm_device_info *info, fcm_error *error) {
    const Count count = count_devices();
    const int32_t entries = count.devices > 0 ? count.devices : 1;
    Arguments arguments("fcm_device_describe", error);
    arguments.require(position >= 0 && position < entries, "position %d is outside [0, %d)", position, entries);
    if (!arguments.ok()) return arguments.status();
    fcm_device_info answer{};
    answer.kind = kKind;
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
    return FCM_OK;
}

}  // namespace fcm
