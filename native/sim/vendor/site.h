// What the three simulated libraries have in common: how they see the simulated devices, and how they refuse.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#define VENDOR_API extern "C" __attribute__((visibility("default")))

namespace vendor {

// Says on stderr why a call is refused. A status code alone would leave a test guessing.
__attribute__((format(printf, 2, 3))) void complain(const char *function, const char *format, ...);

int current_device();

// Whether a library bound to `device` may work now: its device is current on this thread, as the real ones need it.
bool is_current(const char *function, int device);

// Whether the stream is one of `device`; NULL is its default stream.
bool belongs(const char *function, void *stream, int device);

// Whether [address, address + bytes) is live memory of `device`. A host pointer given for a device pointer, another
// device's, freed or too short: these are the mistakes that the simulated libraries are here to find.
bool on_device(const char *function, const char *operand, const void *address, std::int64_t bytes, int device);

// Whether the host may read it: alpha, beta, and where answers go.
bool on_host(const char *function, const char *operand, const void *address);

// The bytes a column-major matrix spans.
inline std::int64_t span(std::int64_t rows, std::int64_t cols, std::int64_t ld, std::size_t element) {
    return rows == 0 || cols == 0 ? 0 : ((cols - 1) * ld + rows) * static_cast<std::int64_t>(element);
}

// Work for a stream, with the memory of `devices` in reach. False when the simulated device refuses it.
bool enqueue(const char *function, void *stream, std::function<void()> work, const std::vector<int> &devices);

}  // namespace vendor
