// What this machine can compute on, and why not on the rest.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

#include "arguments.h"
#include "context.h"

namespace {

template <size_t N>
void put(char (&to)[N], const std::string &text) {
    std::snprintf(to, N, "%s", text.c_str());
}

std::string cpu_name() {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);) {
        const auto colon = line.find(": ");
        if (line.rfind("model name", 0) == 0 && colon != std::string::npos) return line.substr(colon + 2);
    }
    return "CPU";
}

// The CPU build cannot run CUDA kernels; it can still say whether a driver is there, which is what a user wants to know.
std::string why_no_cuda() {
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
    if (driver == nullptr) {
        const char *words = dlerror();
        return std::string("no NVIDIA driver: ") + (words == nullptr ? "libcuda.so.1 does not load" : words);
    }
    dlclose(driver);
    return "an NVIDIA driver is installed, but this build has no CUDA kernels";
}

constexpr int32_t kDevices = 2;

}  // namespace

int32_t fcm_abi_version(void) { return FCM_ABI_VERSION; }

const char *fcm_build_info(void) { return "fedcomuon " FCM_VERSION ", cpu, " FCM_COMPILER; }

fcm_status fcm_device_count(int32_t *count, fcm_error *error) {
    fcm::Arguments arguments("fcm_device_count", error);
    arguments.require(count != nullptr, "the place for the answer is null");
    if (arguments.ok()) *count = kDevices;
    return arguments.status();
}

fcm_status fcm_device_describe(int32_t position, fcm_device_info *info, fcm_error *error) {
    constexpr const char *function = "fcm_device_describe";
    return fcm::guarded(function, error, [&] {
        fcm::Arguments arguments(function, error);
        arguments.require(info != nullptr, "the place for the answer is null")
            .require(position >= 0 && position < kDevices, "position %d is outside [0, %d)", position, kDevices);
        if (!arguments.ok()) return arguments.status();
        *info = fcm_device_info{};
        if (position == 0) {
            info->kind = FCM_CPU;
            info->available = 1;
            info->isa = fcm::best_isa();
            info->memory_bytes = int64_t{sysconf(_SC_PHYS_PAGES)} * int64_t{sysconf(_SC_PAGESIZE)};
            put(info->name, cpu_name());
        } else {
            info->kind = FCM_CUDA;
            info->ordinal = -1;
            put(info->name, "NVIDIA GPU");
            put(info->reason, why_no_cuda());
        }
        return fcm_status{FCM_OK};
    });
}
