// Matrix products of any size, used if cuBLAS is not available. Every element is one chain of fused multiply-adds in the
// order of k, so results do not depend on the tiles and are bit-identical to the CPU's products with AVX2 or AVX-512.
#include "context.h"
#include "device.h"
#include "device_functions.h"

namespace fcm {

// A block computes a square of the result, and a thread 4 x 4 elements of it, from slices of A and B in shared memory.
constexpr int kTile = 64;
constexpr int kSlice = 16;
constexpr int kPatch = 4;
constexpr int kTileThreads = kTile / kPatch;  // along each side
static_assert(kTileThreads * kTileThreads == kThreads, "a thread a patch");

struct View {
    const float *base;
    int64_t stride;
    int64_t row;
    int64_t col;
};

struct Product {
    int64_t clients;
    int64_t rows;
    int64_t cols;
    int64_t depth;
    int32_t symmetric;
    float product_factor;
    float base_factor;
    View a;
    View b;
    const float *base;  // may be null
    int64_t base_stride;
    float *out;
    int64_t out_stride;
};

// slice[k][i] = V(from + i, k) for vectors i with stride `step` and depth k with stride `along`; zero outside. Threads run
// along the smaller stride, so that memory accesses are coalesced.
__device__ __forceinline__ void load_slice(float (&slice)[kSlice][kTile + kPatch], const float *matrix, int64_t from,
                                           int64_t count, int64_t step, int64_t k, int64_t depth, int64_t along) {
    const int thread = static_cast<int>(threadIdx.x);
#pragma unroll
    for (int part = 0; part < kTile * kSlice / kThreads; ++part) {
        const int at = part * kThreads + thread;
        const int i = along < step ? at / kSlice : at % kTile;
        const int d = along < step ? at % kSlice : at / kTile;
        slice[d][i] = from + i < count && k + d < depth ? matrix[(from + i) * step + (k + d) * along] : 0.0f;
    }
}

// The tiles of the upper triangle, row by row: their number, and the position of tile `t`.
__host__ __device__ inline int64_t triangle(int64_t side) { return side % 2 == 0 ? side / 2 * (side + 1) : (side + 1) / 2 * side; }

__device__ __forceinline__ void triangle_place(int64_t t, int64_t side, int64_t &row, int64_t &col) {
    // The rows before `row` hold row * side - row (row - 1) / 2 tiles. The square root may be off by one; this is corrected
    // below.
    const double b = 2.0 * static_cast<double>(side) + 1.0;
    row = static_cast<int64_t>((b - sqrt(b * b - 8.0 * static_cast<double>(t))) / 2.0);
    while (row > 0 && row * side - row * (row - 1) / 2 > t) --row;
    while ((row + 1) * side - (row + 1) * row / 2 <= t) ++row;
    col = row + t - (row * side - row * (row - 1) / 2);
}

__device__ __forceinline__ void product_tile(const Product &p, int64_t client, int64_t top, int64_t left,
                                             float (&a_slice)[kSlice][kTile + kPatch],
                                             float (&b_slice)[kSlice][kTile + kPatch]) {
    const float *a = p.a.base + client * p.a.stride;
    const float *b = p.b.base + client * p.b.stride;
    const int i0 = static_cast<int>(threadIdx.x) / kTileThreads * kPatch;
    const int j0 = static_cast<int>(threadIdx.x) % kTileThreads * kPatch;
    float sum[kPatch][kPatch] = {};
    for (int64_t k = 0; k < p.depth; k += kSlice) {
        load_slice(a_slice, a, top, p.rows, p.a.row, k, p.depth, p.a.col);
        load_slice(b_slice, b, left, p.cols, p.b.col, k, p.depth, p.b.row);
        __syncthreads();
        // The zeros past the end of the depth are skipped, because adding them would turn a sum of -0 into 0.
        const int deep = p.depth - k < kSlice ? static_cast<int>(p.depth - k) : kSlice;
#pragma unroll 4
        for (int d = 0; d < deep; ++d) {
            float rows[kPatch], cols[kPatch];
            load<kPatch>(&a_slice[d][i0], rows);
            load<kPatch>(&b_slice[d][j0], cols);
#pragma unroll
            for (int i = 0; i < kPatch; ++i) {
#pragma unroll
                for (int j = 0; j < kPatch; ++j) sum[i][j] = fmaf(rows[i], cols[j], sum[i][j]);
            }
        }
        __syncthreads();
    }
    const float *base = p.base == nullptr ? nullptr : p.base + client * p.base_stride;
    float *out = p.out + client * p.out_stride;
#pragma unroll
    for (int i = 0; i < kPatch; ++i) {
#pragma unroll
        for (int j = 0; j < kPatch; ++j) {
            const int64_t row = top + i0 + i;
            const int64_t col = left + j0 + j;
            // Of a symmetric result, the upper triangle is computed and mirrored.
            if (row >= p.rows || col >= p.cols || (p.symmetric != 0 && col < row)) continue;
            float value = p.product_factor * sum[i][j];
            if (base != nullptr) value = fmaf(p.base_factor, base[row * p.cols + col], value);
            out[row * p.cols + col] = value;
            if (p.symmetric != 0) out[col * p.cols + row] = value;
        }
    }
}

}  // namespace fcm

using fcm::kPatch;
using fcm::kSlice;
using fcm::kThreads;
using fcm::kTile;

extern "C" __global__ void __launch_bounds__(kThreads) fcm_k_multiply(fcm::Product p, const fcm::Status *status) {
    // The padding keeps rows aligned for vector loads and distributes columns over the banks.
    SHARED(__align__(16) float, a_slice, [kSlice][kTile + kPatch]);
    SHARED(__align__(16) float, b_slice, [kSlice][kTile + kPatch]);
    if (fcm::stopped(status)) return;
    const int64_t down = fcm::parts_of(p.rows, kTile);
    const int64_t across = fcm::parts_of(p.cols, kTile);
    const int64_t tiles = p.symmetric != 0 ? fcm::triangle(across) : down * across;
    for (int64_t task = blockIdx.x; task < p.clients * tiles; task += gridDim.x) {
        const int64_t client = task / tiles;
        const int64_t tile = task - client * tiles;
        int64_t row = tile / across;
        int64_t col = tile - row * across;
        if (p.symmetric != 0) fcm::triangle_place(tile, across, row, col);
        fcm::product_tile(p, client, row * kTile, col * kTile, a_slice, b_slice);
    }
}

namespace fcm {
// The slices are in shared memory, so no workspace is needed.
fcm_status device::multiply_workspace(const fcm_context *, int64_t, int64_t, int64_t, int64_t, int64_t *bytes, fcm_error *) {
    *bytes = 0;
    return FCM_OK;
}

fcm_status device::multiply(fcm_context *context, int64_t clients, int64_t rows, int64_t cols, int64_t depth,
                            int32_t symmetric, double product_factor, const float *a, int64_t a_stride, int64_t a_row,
                            int64_t a_col, const float *b, int64_t b_stride, int64_t b_row, int64_t b_col,
                            double base_factor, const float *base, int64_t base_stride, float *out, int64_t out_stride,
                            void *, int64_t, fcm_error *error) {
    return on_device("fcm_multiply", context, error, [&] {
        const Product p{clients,
                        rows,
                        cols,
                        depth,
                        symmetric != 0,
                        static_cast<float>(product_factor),
                        static_cast<float>(base_factor),
                        {a, a_stride, a_row, a_col},
                        {b, b_stride, b_row, b_col},
                        base,
                        base_stride,
                        out,
                        out_stride};
        const int64_t down = parts_of(rows, kTile);
        const int64_t across = parts_of(cols, kTile);
        const int64_t tiles = symmetric != 0 ? triangle(across) : down * across;
        LAUNCH(fcm_k_multiply, blocks_for(clients * tiles), kThreads, 0, context->stream, p, context->status);
        launched("fcm_k_multiply", clients, rows * cols);
    });
}

}  // namespace fcm
