// Matrix products of any size and of any number of shapes, of all clients in one launch. Every element is one chain of fused
// multiply-adds in the order of k, so results depend neither on the tiles nor on what else is in the launch, and are
// bit-identical to the CPU's products with AVX2 or AVX-512. tiles.h has the map of tiles and threads.
#include <algorithm>
#include <cstring>

#include "context.h"
#include "device.h"
#include "device_functions.h"
#include "products.h"
#include "sums.h"
#include "tiles.h"

namespace fcm {

// The last entry that begins at or before `tile`.
__device__ __forceinline__ const ProductEntry &product_at(const Products &p, int64_t tile) {
    return p.listed == nullptr ? p.single : p.listed[entry_at(p.listed, p.count, &ProductEntry::first_tile, tile)];
}

// Where a tile of a client's product reads and writes.
struct TileWork {
    Factor a;
    Factor b;
    const float *base;  // may be null
    float *out;
    float *also;  // may be null
    float product_factor;
    float base_factor;
    float diagonal;
    int64_t rows;
    int64_t cols;
    int64_t top;
    int64_t left;
    bool symmetric;
};

// Where a patch of 4 x 4 elements belongs, and whether it is a whole one, so that it moves in vectors.
struct PatchPlace {
    int64_t row;
    int64_t col;
    bool whole;
};

// Stores a patch, and of a symmetric result the mirror image.
__device__ __forceinline__ void store_patch(const TileWork &t, float *out, const PatchPlace &at,
                                            const float (&value)[kPatch][kPatch]) {
    // The elements below the diagonal are mirror images; they occur in tiles on the diagonal only.
    if (at.whole && (!t.symmetric || t.top != t.left)) {
#pragma unroll
        for (int i = 0; i < kPatch; ++i) store<kPatch>(out + (at.row + i) * t.cols + at.col, value[i]);
        if (!t.symmetric) return;
#pragma unroll
        for (int j = 0; j < kPatch; ++j) {
            const float mirror[kPatch] = {value[0][j], value[1][j], value[2][j], value[3][j]};
            store<kPatch>(out + (at.col + j) * t.cols + at.row, mirror);
        }
        return;
    }
#pragma unroll
    for (int i = 0; i < kPatch; ++i) {
#pragma unroll
        for (int j = 0; j < kPatch; ++j) {
            const int64_t r = at.row + i;
            const int64_t c = at.col + j;
            if (r >= t.rows || c >= t.cols || (t.symmetric && c < r)) continue;
            out[r * t.cols + c] = value[i][j];
            if (t.symmetric) out[c * t.cols + r] = value[i][j];
        }
    }
}

// value = base_factor base + product_factor sum; returns whether a value is not finite.
__device__ __forceinline__ bool finish_patch(const TileWork &t, const PatchPlace &at, float (&value)[kPatch][kPatch]) {
    bool bad = false;
#pragma unroll
    for (int i = 0; i < kPatch; ++i) {
        float from[kPatch] = {};
        const float *base = t.base == nullptr ? nullptr : t.base + (at.row + i) * t.cols + at.col;
        if (base != nullptr && at.whole) {
            load<kPatch>(base, from);
        } else if (base != nullptr) {
#pragma unroll
            for (int j = 0; j < kPatch; ++j) {
                if (at.row + i < t.rows && at.col + j < t.cols) from[j] = base[j];
            }
        }
#pragma unroll
        for (int j = 0; j < kPatch; ++j) {
            const float product = t.product_factor * value[i][j];
            value[i][j] = t.base == nullptr ? product : fmaf(t.base_factor, from[j], product);
            bad = bad || (not_finite(value[i][j]) && at.row + i < t.rows && at.col + j < t.cols);
        }
    }
    return bad;
}

// Stores the patches of a thread; returns whether a value is not finite.
template <int P, int Q>
__device__ __forceinline__ bool store_patches(const TileWork &t, const float (&sum)[P * kPatch][Q * kPatch], int row, int col) {
    bool bad = false;
    const bool aligned = t.cols % kPatch == 0 && is_vector_aligned(t.out) && is_vector_aligned(t.base) && is_vector_aligned(t.also);
#pragma unroll
    for (int p = 0; p < P; ++p) {
#pragma unroll
        for (int q = 0; q < Q; ++q) {
            PatchPlace at{t.top + row + p * kHalfTile, t.left + col + q * kHalfTile, false};
            if (at.row >= t.rows || at.col >= t.cols) continue;
            at.whole = aligned && at.row + kPatch <= t.rows && at.col + kPatch <= t.cols;
            float value[kPatch][kPatch];
#pragma unroll
            for (int i = 0; i < kPatch; ++i) {
#pragma unroll
                for (int j = 0; j < kPatch; ++j) value[i][j] = sum[p * kPatch + i][q * kPatch + j];
            }
            bad = finish_patch(t, at, value) || bad;
            store_patch(t, t.out, at, value);
            if (t.also == nullptr) continue;
#pragma unroll
            for (int i = 0; i < kPatch; ++i) {
#pragma unroll
                for (int j = 0; j < kPatch; ++j) {
                    if (at.row + i == at.col + j) value[i][j] += t.diagonal;
                }
            }
            store_patch(t, t.also, at, value);
        }
    }
    return bad;
}

template <int P, int Q>
__device__ __forceinline__ bool product_tile(const TileWork &t, Slice (&a)[2], Slice (&b)[2]) {
    const int row = patch_row();
    const int col = patch_col();
    float sum[P * kPatch][Q * kPatch] = {};
    const int64_t depth = t.a.depth;
    fetch_slice(a[0], t.a, t.top, P * kHalfTile, 0);
    fetch_slice(b[0], t.b, t.left, Q * kHalfTile, 0);
    commit_copies();
    int now = 0;
#pragma unroll 1
    for (int64_t k = 0; k < depth; k += kSlice) {
        if (k + kSlice < depth) {
            fetch_slice(a[1 - now], t.a, t.top, P * kHalfTile, k + kSlice);
            fetch_slice(b[1 - now], t.b, t.left, Q * kHalfTile, k + kSlice);
            commit_copies();
            wait_copies<1>();
        } else {
            wait_copies<0>();
        }
        __syncthreads();
        // What follows the last element is skipped, because adding zeros would turn a sum of -0 into 0.
        add_slice<P, Q>(sum, a[now], b[now], depth - k < kSlice ? static_cast<int>(depth - k) : kSlice, row, col);
        __syncthreads();
        now = 1 - now;
    }
    return store_patches<P, Q>(t, sum, row, col);
}

__device__ __forceinline__ bool any_tile(const TileWork &t, Slice (&a)[2], Slice (&b)[2]) {
    const bool high = t.rows - t.top > kHalfTile;
    const bool wide = t.cols - t.left > kHalfTile;
    if (high && wide) return product_tile<2, 2>(t, a, b);
    if (high) return product_tile<2, 1>(t, a, b);
    if (wide) return product_tile<1, 2>(t, a, b);
    return product_tile<1, 1>(t, a, b);
}

}  // namespace fcm

using fcm::kThreads;

extern "C" __global__ void __launch_bounds__(kThreads, 2) fcm_k_products(const FCM_GRID_CONSTANT fcm::Products p) {
    SHARED(__align__(16) fcm::Slice, a_slices, [2]);
    SHARED(__align__(16) fcm::Slice, b_slices, [2]);
    if (p.status->ticket <= p.stop_from) return;
    for (int64_t task = blockIdx.x; task < p.clients * p.tiles; task += gridDim.x) {
        const fcm::ProductEntry &entry = fcm::product_at(p, task / p.clients);
        // The tiles of a matrix follow each other, because they share its rows and columns.
        const int64_t local = task - entry.first_tile * p.clients;
        const int64_t client = local / entry.tiles;
        const int64_t tile = local - client * entry.tiles;
        const int64_t across = fcm::parts_of(entry.cols, fcm::kTile);
        int64_t row = tile / across;
        int64_t col = tile - row * across;
        if (entry.symmetric != 0) fcm::triangle_place(tile, across, row, col);
        float *out = p.out + client * p.out_stride;
        const fcm::TileWork work{
            {p.a + client * p.a_stride + entry.a, entry.a_row, entry.a_col, entry.rows, entry.depth},
            {p.b + client * p.b_stride + entry.b, entry.b_col, entry.b_row, entry.cols, entry.depth},
            entry.base < 0 ? nullptr : p.base + client * p.base_stride + entry.base,
            out + entry.out,
            entry.also < 0 ? nullptr : out + entry.also,
            entry.product_factor,
            entry.base_factor,
            entry.diagonal,
            entry.rows,
            entry.cols,
            row * fcm::kTile,
            col * fcm::kTile,
            entry.symmetric != 0};
        const bool bad = fcm::any_tile(work, a_slices, b_slices);
        if (bad && entry.matrix >= 0) atomicExch(p.flags + client * p.flag_stride + entry.matrix, 1u);
    }
}

namespace fcm {
namespace {

int64_t tiles_of(const ProductEntry &entry) {
    const int64_t across = parts_of(entry.cols, kTile);
    return entry.symmetric != 0 ? triangle(across) : parts_of(entry.rows, kTile) * across;
}

}  // namespace

int64_t number_tiles(std::vector<ProductEntry> &entries) {
    // The deepest first, so that no long tile begins at the end.
    std::stable_sort(entries.begin(), entries.end(),
                     [](const ProductEntry &x, const ProductEntry &y) { return x.depth > y.depth; });
    int64_t first_tile = 0;
    for (ProductEntry &entry : entries) {
        entry.first_tile = first_tile;
        entry.tiles = tiles_of(entry);
        first_tile += entry.tiles;
    }
    return first_tile;
}

// The grid does not decide results: enough blocks for the largest GPU, so that the queue of tiles stays balanced.
void launch_products(const fcm_context *context, const Products &products) {
    if (products.tiles == 0) return;
    LAUNCH(fcm_k_products, blocks_for(products.clients * products.tiles), kThreads, 0, context->stream, products);
    launched("fcm_k_products", products.clients, products.tiles);
}

// A single product needs no table, and slices are in shared memory.
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
        Products p{};
        p.clients = clients;
        p.single.rows = rows;
        p.single.cols = cols;
        p.single.depth = depth;
        p.single.a_row = a_row;
        p.single.a_col = a_col;
        p.single.b_row = b_row;
        p.single.b_col = b_col;
        p.single.base = base == nullptr ? -1 : 0;
        p.single.also = -1;
        p.single.matrix = -1;
        p.single.product_factor = static_cast<float>(product_factor);
        p.single.base_factor = static_cast<float>(base_factor);
        p.single.symmetric = symmetric != 0;
        p.single.tiles = tiles_of(p.single);
        p.count = 1;
        p.tiles = p.single.tiles;
        p.a = a;
        p.a_stride = a_stride;
        p.b = b;
        p.b_stride = b_stride;
        p.base = base;
        p.base_stride = base_stride;
        p.out = out;
        p.out_stride = out_stride;
        p.stop_from = kNothing - 1;  // whatever was found
        p.status = context->status;
        launch_products(context, p);
    });
}

}  // namespace fcm
