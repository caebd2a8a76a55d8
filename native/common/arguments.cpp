// Implementation of the argument checks, with an exact overlap test for strided batches.
#include "arguments.h"

#include <algorithm>
#include <cinttypes>

namespace fcm {

namespace {

int64_t hull(const Extent &e) { return (e.count - 1) * e.stride + e.length; }

// No processor has addresses of more than 57 bits.
constexpr int64_t kAddressSpace = int64_t{1} << 57;

// True for one piece, or for one piece that all clients share (stride 0).
bool single(const Extent &e) { return e.count == 1 || e.stride == 0; }

// Returns whether [a, a+a_length) meets any piece of b. Only the pieces around it can.
bool piece_meets(int64_t a, int64_t a_length, const Extent &b, int64_t b_start) {
    if (single(b)) return a < b_start + b.length && b_start < a + a_length;
    int64_t near = (a - b_start) / b.stride;
    for (int64_t k = near - 1; k <= near + (a_length / b.stride) + 1; ++k) {
        if (k < 0 || k >= b.count) continue;
        int64_t piece = b_start + k * b.stride;
        if (a < piece + b.length && piece < a + a_length) return true;
    }
    return false;
}

}  // namespace

bool overlap(const Extent &a, const Extent &b) {
    if (a.count == 0 || b.count == 0 || a.length == 0 || b.length == 0) return false;
    if (a.start >= b.start + hull(b) || b.start >= a.start + hull(a)) return false;
    // The hulls meet. Interleaved batches (one client's operands side by side) may still be disjoint piece by piece.
    const bool a_first = a.start <= b.start;
    const Extent &low = a_first ? a : b;
    const Extent &high = a_first ? b : a;
    const auto high_start = static_cast<int64_t>(high.start - low.start);
    if (single(high)) return piece_meets(high_start, high.length, low, 0);
    if (single(low)) return piece_meets(0, low.length, high, high_start);
    // With a common stride every piece of `high` has the same position relative to the pieces of `low`, except for the first
    // and the last ones. With different strides each piece is checked.
    if (low.stride == high.stride) {
        const int64_t phase = high_start % low.stride;
        return phase < low.length || phase + high.length > low.stride;
    }
    for (int64_t k = 0; k < high.count; ++k) {
        if (piece_meets(high_start + k * high.stride, high.length, low, 0)) return true;
    }
    return false;
}

Arguments &Arguments::sizes(int64_t clients, int64_t n) {
    int64_t all = 0;
    require(clients >= 0, "clients = %" PRId64 " is negative", clients);
    require(n >= 0, "n = %" PRId64 " is negative", n);
    return require(product(clients, n, &all), "%" PRId64 " clients of %" PRId64 " elements do not fit int64", clients, n);
}

Arguments &Arguments::fraction(const char *name, double value) {
    return require(value >= 0.0 && value <= 1.0, "%s = %g is outside [0, 1]", name, value);
}

Arguments &Arguments::decay(const char *name, double value) {
    return require(value >= 0.0 && value < 1.0, "%s = %g is outside [0, 1)", name, value);
}

Arguments &Arguments::batch(const char *name, const void *base, int64_t clients, int64_t n, int64_t stride,
                            int64_t element_bytes, bool written) {
    if (!ok() || clients == 0 || n == 0) return *this;
    const auto address = reinterpret_cast<uintptr_t>(base);
    require(base != nullptr, "%s is null", name);
    require(address % static_cast<uintptr_t>(element_bytes) == 0, "%s is not aligned to its elements of %" PRId64 " bytes",
            name, element_bytes);
    require(stride >= n || (stride == 0 && !written) || clients == 1,
            "the stride of %s, %" PRId64 ", is less than the %" PRId64 " elements of a client", name, stride, n);
    int64_t reach = 0;
    int64_t end = 0;
    if (clients == 1) stride = 0;  // the stride of a single client is irrelevant
    require(stride >= 0 && product(clients - 1, stride, &reach) && sum(reach, n, &reach) &&
                product(reach, element_bytes, &reach) && reach <= kAddressSpace && sum(static_cast<int64_t>(address), reach, &end),
            "%s with %" PRId64 " clients, %" PRId64 " elements and stride %" PRId64 " does not fit the address space", name,
            clients, n, stride);
    if (!ok()) return *this;
    require(used_ < extents_.size(), "too many operands");
    if (ok()) extents_[used_++] = Extent{name, address, clients, n * element_bytes, stride * element_bytes, written};
    return *this;
}

Arguments &Arguments::mapped(const char *input, const float *x, int64_t x_stride, const char *output, float *y,
                             int64_t y_stride, int64_t clients, int64_t n) {
    require(x != y || x_stride == y_stride, "%s is %s but has another stride", output, input);
    if (x != y) read(input, x, clients, n, x_stride);
    return write(output, y, clients, n, y_stride);
}

Arguments &Arguments::view(const char *name, const void *base, int64_t clients, int64_t stride, int64_t rows, int64_t cols,
                           int64_t row, int64_t col, int64_t element_bytes, bool written) {
    int64_t down = 0;
    int64_t across = 0;
    require(row >= 1 && col >= 1, "%s has strides %" PRId64 " and %" PRId64, name, row, col);
    require(!ok() || (product(rows - 1, row, &down) && product(cols - 1, col, &across) && sum(down, across, &down) &&
                      sum(down, 1, &down)),
            "%s does not fit the address space", name);
    return ok() ? batch(name, base, clients, down, stride, element_bytes, written) : *this;
}

Arguments &Arguments::workspace(const void *base, int64_t bytes, int64_t needed) {
    const bool fine = ok();
    require(bytes >= needed, "the workspace has %" PRId64 " bytes, %" PRId64 " are needed", bytes, needed);
    if (fine && !ok() && error_ != nullptr) error_->bytes = needed;
    return batch("workspace", base, 1, needed / static_cast<int64_t>(sizeof(double)), 0, sizeof(double), true);
}

Arguments &Arguments::disjoint() {
    for (size_t i = 0; ok() && i < used_; ++i) {
        for (size_t j = i + 1; ok() && j < used_; ++j) {
            const bool matters = extents_[i].written || extents_[j].written;
            require(!matters || !overlap(extents_[i], extents_[j]), "%s overlaps %s", extents_[j].name, extents_[i].name);
        }
    }
    return *this;
}

}  // namespace fcm
