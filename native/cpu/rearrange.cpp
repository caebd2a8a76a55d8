// Copies between matrices that are laid out differently.
#include <algorithm>
#include <cinttypes>

#include "arguments.h"
#include "backend.h"
#include "context.h"

namespace fcm {
namespace {

struct Layout {
    int64_t stride;
    int64_t row;
    int64_t col;
};

// Squares of this side stay in the cache whichever way each of the two runs.
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
}  // namespace fcm

using fcm::Arguments;

fcm_status fcm_rearrange(fcm_context *context, int64_t clients, int64_t rows, int64_t cols, int32_t element_bytes,
                         const void *x, int64_t x_stride, int64_t x_row, int64_t x_col, void *y, int64_t y_stride,
                         int64_t y_row, int64_t y_col, fcm_error *error) {
    if (fcm::is_remote(context)) {
        return context->backend->rearrange(context->remote, clients, rows, cols, element_bytes, x, x_stride, x_row, x_col, y,
                                           y_stride, y_row, y_col, error);
    }
    constexpr const char *function = "fcm_rearrange";
    return fcm::guarded(function, error, [&] {
        Arguments arguments(function, error);
        int64_t all = 0;
        arguments.context(context)
            .require(clients >= 0 && rows >= 0 && cols >= 0, "a size is negative")
            .require(element_bytes == 4 || element_bytes == 8, "elements of %d bytes; 4 and 8 are possible", element_bytes);
        arguments.require(!arguments.ok() || (fcm::product(rows, cols, &all) && fcm::product(all, clients, &all)),
                          "%" PRId64 " matrices of %" PRId64 " x %" PRId64 " do not fit int64", clients, rows, cols);
        if (!arguments.ok() || clients == 0 || rows == 0 || cols == 0) return arguments.status();
        arguments.view("x", x, clients, x_stride, rows, cols, x_row, x_col, element_bytes, false)
            .view("y", y, clients, y_stride, rows, cols, y_row, y_col, element_bytes, true);
        // (cols - 1) * y_col < y_row, or the other way round; without a product that might not fit
        const bool apart = (y_row - 1) / y_col >= cols - 1 || (y_col - 1) / y_row >= rows - 1;
        arguments.require(!arguments.ok() || apart, "elements of y share a place: strides %" PRId64 " and %" PRId64, y_row, y_col)
            .disjoint();
        if (!arguments.ok()) return arguments.status();
        const fcm::Layout from{x_stride, x_row, x_col};
        const fcm::Layout to{y_stride, y_row, y_col};
        if (element_bytes == 4) {
            fcm::rearrange<uint32_t>(context, clients, rows, cols, x, from, y, to);
        } else {
            fcm::rearrange<uint64_t>(context, clients, rows, cols, x, from, y, to);
        }
        return fcm_status{FCM_OK};
    });
}
