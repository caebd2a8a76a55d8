// Code shared by the three simulated libraries: access to the simulated devices, and how calls are refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#define VENDOR_API extern "C" __attribute__((visibility("default")))

namespace vendor {

// Prints the reason for a refusal to stderr, because a status code alone does not explain a failed test.
__attribute__((format(printf, 2, 3))) void complain(const char *function, const char *format, ...);

int current_device();

// Whether a library bound to `device` can be called now: its device is current on this thread, as the real ones require.
bool is_current(const char *function, int device);

// Whether the stream belongs to `device`; NULL is its default stream.
bool belongs(const char *function, void *stream, int device);

// Whether [address, address + bytes) is live memory of `device`. The simulated libraries exist to find such errors: a host
// pointer in place of a device pointer, memory of another device, freed memory, or a buffer that is too short.
bool on_device(const char *function, const char *operand, const void *address, std::int64_t bytes, int device);

// Whether the host may read it: alpha, beta, and the addresses of results.
bool on_host(const char *function, const char *operand, const void *address);

// The number of bytes that a column-major matrix spans.
inline std::int64_t span(std::int64_t rows, std::int64_t cols, std::int64_t ld, std::size_t element) {
    return rows == 0 || cols == 0 ? 0 : ((cols - 1) * ld + rows) * static_cast<std::int64_t>(element);
}

// Submits work to a stream; the memory of `devices` is accessible while it runs. Returns false if the simulated device
// refuses it.
bool enqueue(const char *function, void *stream, std::function<void()> work, const std::vector<int> &devices);

}  // namespace vendor
