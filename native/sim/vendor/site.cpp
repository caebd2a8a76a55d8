#include "site.h"

#include <cstdarg>
#include <cstdio>
#include <utility>

#include "cudasim/control.h"
#include "cudasim/runtime.h"

namespace vendor {

void complain(const char *function, const char *format, ...) {
    char words[512];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(words, sizeof words, format, arguments);
    va_end(arguments);
    std::fprintf(stderr, "cudasim: %s: %s\n", function, words);
}

int current_device() {
    int device = -1;
    return cudasim::cudaGetDevice(&device) == cudasim::cudaSuccess ? device : -1;
}

bool is_current(const char *function, int device) {
    const int current = current_device();
    if (current == device) return true;
    complain(function, "the handle is of device %d, but device %d is current", device, current);
    return false;
}

bool belongs(const char *function, void *stream, int device) {
    const int owner = cudasim::stream_device(static_cast<cudasim::cudaStream_t>(stream));
    if (owner == device) return true;
    complain(function, owner < 0 ? "%p is no stream" : "stream %p is of device %d, not %d", stream, owner, device);
    return false;
}

bool on_device(const char *function, const char *operand, const void *address, std::int64_t bytes, int device) {
    if (bytes == 0) return true;
    const cudasim::Place place = cudasim::place_of(address);
    if (place.kind == cudasim::Place::Kind::device && place.device == device &&
        place.room(address) >= static_cast<std::size_t>(bytes)) {
        return true;
    }
    complain(function, "%s needs %lld bytes of device %d, but %s", operand, static_cast<long long>(bytes), device,
             cudasim::describe(address).c_str());
    return false;
}

bool on_host(const char *function, const char *operand, const void *address) {
    const cudasim::Place::Kind kind = cudasim::place_of(address).kind;
    if (address != nullptr && (kind == cudasim::Place::Kind::host || kind == cudasim::Place::Kind::pinned)) return true;
    complain(function, "%s must be in host memory, but %s", operand,
             address == nullptr ? "it is null" : cudasim::describe(address).c_str());
    return false;
}

bool enqueue(const char *function, void *stream, std::function<void()> work, const std::vector<int> &devices) {
    const cudasim::cudaError_t status =
        cudasim::enqueue(static_cast<cudasim::cudaStream_t>(stream), function, std::move(work), devices);
    if (status == cudasim::cudaSuccess) return true;
    complain(function, "%s", cudasim::cudaGetErrorString(status));
    return false;
}

}  // namespace vendor
