// Lists the devices of this machine, and the reason why a kind of device is missing.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "backend.h"

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

// The first question of a user is whether a driver is installed.
std::string why_no_cuda() {
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
    if (driver == nullptr) {
        const char *words = dlerror();
        return std::string("no NVIDIA driver: ") + (words == nullptr ? "libcuda.so.1 does not load" : words);
    }
    dlclose(driver);
    return "an NVIDIA driver is installed, but no library with CUDA kernels is loaded";
}

void describe_cpu(fcm_device_info &info) {
    info.kind = FCM_CPU;
    info.available = 1;
    info.isa = fcm::best_isa();
    info.memory_bytes = int64_t{sysconf(_SC_PHYS_PAGES)} * int64_t{sysconf(_SC_PAGESIZE)};
    put(info.name, cpu_name());
}

void describe_missing_cuda(fcm_device_info &info) {
    info.kind = FCM_CUDA;
    info.ordinal = -1;
    put(info.name, "NVIDIA GPU");
    put(info.reason, why_no_cuda());
}

// The CPU, the devices that the backends report (except their CPUs), and a missing CUDA device if no backend is responsible
// for CUDA. Names and reasons are only filled in by device_describe, because they are expensive to find.
struct Entry {
    const fcm::Backend *backend;  // null for a device of this library
    fcm_device_info info;
};

fcm_status list(std::vector<Entry> &all, fcm_error *error) {
    Entry cpu{};
    cpu.info.kind = FCM_CPU;
    all.push_back(cpu);
    bool cuda = false;
    for (const fcm::Backend *backend : fcm::backends()) {
        cuda = cuda || backend->kind == FCM_CUDA;
        int32_t count = 0;
        fcm_status status = backend->device_count(&count, error);
        for (int32_t i = 0; status == FCM_OK && i < count; ++i) {
            Entry entry{backend, {}};
            status = backend->device_describe(i, &entry.info, error);
            if (status == FCM_OK && entry.info.kind == backend->kind) all.push_back(entry);
        }
        if (status != FCM_OK) return status;
    }
    if (!cuda) {
        Entry missing{};
        missing.info.kind = FCM_CUDA;
        all.push_back(missing);
    }
    return FCM_OK;
}

}  // namespace

const char *fcm_build_info(void) { return "fedcomuon " FCM_VERSION ", cpu, " FCM_COMPILER; }

namespace fcm {

fcm_status device::device_count(int32_t *count, fcm_error *error) {
    std::vector<Entry> all;
    const fcm_status status = list(all, error);
    if (status == FCM_OK) *count = static_cast<int32_t>(all.size());
    return status;
}

fcm_status device::device_describe(int32_t position, fcm_device_info *info, fcm_error *error) {
    std::vector<Entry> all;
    const fcm_status status = list(all, error);
    if (status != FCM_OK) return status;
    const auto count = static_cast<int32_t>(all.size());
    Arguments arguments("fcm_device_describe", error);
    arguments.require(position >= 0 && position < count, "position %d is outside [0, %d)", position, count);
    if (!arguments.ok()) return arguments.status();
    const Entry &entry = all[static_cast<size_t>(position)];
    *info = entry.info;
    if (entry.backend == nullptr) {
        if (entry.info.kind == FCM_CPU) {
            describe_cpu(*info);
        } else {
            describe_missing_cuda(*info);
        }
    }
    return FCM_OK;
}

}  // namespace fcm
