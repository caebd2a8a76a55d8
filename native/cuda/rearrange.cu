// Copies between matrices that are laid out differently, in squares through shared memory: each side is walked along its
// own short stride, so both reading and writing go through memory in order.
#include "arguments.h"
#include "context.h"
#include "device.h"

namespace fcm {

constexpr int kSquare = 32;

struct Layout {
    int64_t stride;
    int64_t row;
    int64_t col;
};

template <class Element>
__device__ __forceinline__ void rearrange(int64_t clients, int64_t rows, int64_t cols, const Element *x, Layout from,
                                          Element *y, Layout to, Element (&square)[kSquare][kSquare + 1]) {
    const int64_t bands = parts_of(rows, kSquare);
    const int64_t across = parts_of(cols, kSquare);
    const int fast = static_cast<int>(threadIdx.x) % kSquare;
    const int slow = static_cast<int>(threadIdx.x) / kSquare;
    constexpr int kLines = kThreads / kSquare;
    const bool read_columns = from.row < from.col;
    const bool write_columns = to.row < to.col;
    for (int64_t task = blockIdx.x; task < clients * bands * across; task += gridDim.x) {
        const int64_t client = task / (bands * across);
        const int64_t place = task - client * bands * across;
        const int64_t top = place / across * kSquare;
        const int64_t left = place % across * kSquare;
        const Element *in = x + client * from.stride;
        Element *out = y + client * to.stride;
        for (int line = slow; line < kSquare; line += kLines) {
            const int i = read_columns ? fast : line;
            const int j = read_columns ? line : fast;
            if (top + i < rows && left + j < cols) square[i][j] = in[(top + i) * from.row + (left + j) * from.col];
        }
        __syncthreads();
        for (int line = slow; line < kSquare; line += kLines) {
            const int i = write_columns ? fast : line;
            const int j = write_columns ? line : fast;
            if (top + i < rows && left + j < cols) out[(top + i) * to.row + (left + j) * to.col] = square[i][j];
        }
        __syncthreads();  // before the square is filled again
    }
}

}  // namespace fcm

using fcm::kSquare;
using fcm::kThreads;

extern "C" __global__ void __launch_bounds__(kThreads)
    fcm_k_rearrange_4(int64_t clients, int64_t rows, int64_t cols, const uint32_t *x, fcm::Layout from, uint32_t *y,
                      fcm::Layout to) {
    SHARED(uint32_t, square, [kSquare][kSquare + 1]);
    fcm::rearrange<uint32_t>(clients, rows, cols, x, from, y, to, square);
}

extern "C" __global__ void __launch_bounds__(kThreads)
    fcm_k_rearrange_8(int64_t clients, int64_t rows, int64_t cols, const uint64_t *x, fcm::Layout from, uint64_t *y,
                      fcm::Layout to) {
    SHARED(uint64_t, square, [kSquare][kSquare + 1]);
    fcm::rearrange<uint64_t>(clients, rows, cols, x, from, y, to, square);
}

using fcm::Arguments;

fcm_status fcm_rearrange(fcm_context *context, int64_t clients, int64_t rows, int64_t cols, int32_t element_bytes,
                         const void *x, int64_t x_stride, int64_t x_row, int64_t x_col, void *y, int64_t y_stride,
                         int64_t y_row, int64_t y_col, fcm_error *error) {
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
        if (!arguments.ok()) return arguments.status();
        // (cols - 1) * y_col < y_row, or the other way round; without a product that might not fit
        const bool apart = (y_row - 1) / y_col >= cols - 1 || (y_col - 1) / y_row >= rows - 1;
        arguments.require(apart, "elements of y share a place: strides %" PRId64 " and %" PRId64, y_row, y_col).disjoint();
        if (!arguments.ok()) return arguments.status();
        return fcm::on_device(function, context, error, [&] {
            const fcm::Layout from{x_stride, x_row, x_col};
            const fcm::Layout to{y_stride, y_row, y_col};
            const unsigned blocks =
                fcm::blocks_for(clients * fcm::parts_of(rows, kSquare) * fcm::parts_of(cols, kSquare));
            if (element_bytes == 4) {
                LAUNCH(fcm_k_rearrange_4, blocks, kThreads, 0, context->stream, clients, rows, cols,
                       static_cast<const uint32_t *>(x), from, static_cast<uint32_t *>(y), to);
                fcm::launched("fcm_k_rearrange_4", clients, rows * cols);
            } else {
                LAUNCH(fcm_k_rearrange_8, blocks, kThreads, 0, context->stream, clients, rows, cols,
                       static_cast<const uint64_t *>(x), from, static_cast<uint64_t *>(y), to);
                fcm::launched("fcm_k_rearrange_8", clients, rows * cols);
            }
            return fcm_status{FCM_OK};
        });
    });
}
