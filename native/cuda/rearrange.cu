// Copies between matrices with different layouts, in squares through shared memory: each matrix is accessed along its own
// smaller stride, so that reads and writes are both coalesced.
#include "context.h"
#include "device.h"
#include "device_functions.h"

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
                      fcm::Layout to, const fcm::Status *status) {
    SHARED(uint32_t, square, [kSquare][kSquare + 1]);
    if (fcm::stopped(status)) return;
    fcm::rearrange<uint32_t>(clients, rows, cols, x, from, y, to, square);
}

extern "C" __global__ void __launch_bounds__(kThreads)
    fcm_k_rearrange_8(int64_t clients, int64_t rows, int64_t cols, const uint64_t *x, fcm::Layout from, uint64_t *y,
                      fcm::Layout to, const fcm::Status *status) {
    SHARED(uint64_t, square, [kSquare][kSquare + 1]);
    if (fcm::stopped(status)) return;
    fcm::rearrange<uint64_t>(clients, rows, cols, x, from, y, to, square);
}

namespace fcm {

fcm_status device::rearrange(fcm_context *context, int64_t clients, int64_t rows, int64_t cols, int32_t element_bytes,
                             const void *x, int64_t x_stride, int64_t x_row, int64_t x_col, void *y, int64_t y_stride,
                             int64_t y_row, int64_t y_col, fcm_error *error) {
    return on_device("fcm_rearrange", context, error, [&] {
        const Layout from{x_stride, x_row, x_col};
        const Layout to{y_stride, y_row, y_col};
        const unsigned blocks = blocks_for(clients * parts_of(rows, kSquare) * parts_of(cols, kSquare));
        if (element_bytes == 4) {
            LAUNCH(fcm_k_rearrange_4, blocks, kThreads, 0, context->stream, clients, rows, cols,
                   static_cast<const uint32_t *>(x), from, static_cast<uint32_t *>(y), to, context->status);
            launched("fcm_k_rearrange_4", clients, rows * cols);
        } else {
            LAUNCH(fcm_k_rearrange_8, blocks, kThreads, 0, context->stream, clients, rows, cols,
                   static_cast<const uint64_t *>(x), from, static_cast<uint64_t *>(y), to, context->status);
            launched("fcm_k_rearrange_8", clients, rows * cols);
        }
    });
}

}  // namespace fcm
