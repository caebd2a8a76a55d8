// Copies between matrices with different layouts, on the CPU.
#include <algorithm>

#include "context.h"
#include "device_functions.h"

namespace fcm {
namespace {

struct Layout {
    int64_t stride;
    int64_t row;
    int64_t col;
};

// Squares with this side stay in the cache in whichever direction each matrix is contiguous.
constexpr int64_t kSquare = 32;

template <class Element>
void rearrange(fcm_context *context, int64_t clients, int64_t rows, int64_t cols, const void *from, const Layout &x, void *to,
               const Layout &y) {
    const auto *source = static_cast<const Element *>(from);
    auto *target = static_cast<Element *>(to);
    const int64_t bands = (rows + kSquare - 1) / kSquare;
    context->pool.run(clients * bands, clients * rows * cols, [&](int64_t task, int) {
        const Element *in = source + task / bands * x.stride;
        Element *out = target + task / bands * y.stride;
        const int64_t top = task % bands * kSquare;
        const int64_t bottom = std::min(rows, top + kSquare);
        for (int64_t left = 0; left < cols; left += kSquare) {
            const int64_t right = std::min(cols, left + kSquare);
            for (int64_t i = top; i < bottom; ++i) {
                for (int64_t j = left; j < right; ++j) out[i * y.row + j * y.col] = in[i * x.row + j * x.col];
            }
        }
    });
}

}  // namespace

fcm_status device::rearrange(fcm_context *context, int64_t clients, int64_t rows, int64_t cols, int32_t element_bytes,
                             const void *x, int64_t x_stride, int64_t x_row, int64_t x_col, void *y, int64_t y_stride,
                             int64_t y_row, int64_t y_col, fcm_error *) {
    const Layout from{x_stride, x_row, x_col};
    const Layout to{y_stride, y_row, y_col};
    const auto copy = element_bytes == 4 ? fcm::rearrange<uint32_t> : fcm::rearrange<uint64_t>;
    copy(context, clients, rows, cols, x, from, y, to);
    return FCM_OK;
}

}  // namespace fcm
