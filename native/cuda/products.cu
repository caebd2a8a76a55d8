// Matrix products of any size and of any number of shapes, of all clients in one launch. Every element is one chain of fused
// multiply-adds in the order of k, so results depend neither on the tiles nor on what else is in the launch, and are
// bit-identical to the CPU's products with AVX2 or AVX-512. tiles.h has the map of tiles and threads.
#include <algorithm>
#include <cstring>

#include "context.h"
#include "device.h"
#include "device_functions.h"
#include "tiles.h"

namespace fcm {

// A product, and where its tiles begin among those of a client.
struct ProductEntry {
    fcm_product what;
    int64_t first_tile;
    int64_t tiles;
};

struct Products {
    int64_t clients;
    const ProductEntry *listed;  // null: there is one product, `single`
    ProductEntry single;
    int64_t count;
    int64_t tiles;  // of a client
    const float *a;
    const float *b;
    const float *base;
    float *out;
    const float *of;
    int64_t of_stride;
};

__host__ __device__ inline int64_t tiles_of(const fcm_product &p) {
    const int64_t across = parts_of(p.cols, kTile);
    return p.symmetric != 0 ? triangle(across) : parts_of(p.rows, kTile) * across;
}

// The last entry that begins at or before `tile`; entries without tiles begin where the next one does.
__device__ __forceinline__ const ProductEntry &product_at(const Products &p, int64_t tile) {
    if (p.listed == nullptr) return p.single;
    int64_t low = 0;
    int64_t high = p.count;
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if (p.listed[middle].first_tile <= tile) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return p.listed[low];
}

// Where a tile of a client's product reads and writes.
struct TileWork {
    Factor a;
    Factor b;
    const float *base;  // may be null
    float *out;
    float product_factor;
    float base_factor;
    int64_t rows;
    int64_t cols;
    int64_t top;
    int64_t left;
    bool symmetric;
};

// Stores the patches of a thread, and of a symmetric result the mirror image; returns whether a value is not finite.
template <int P, int Q>
__device__ __forceinline__ bool store_patches(const TileWork &t, const float (&sum)[P * kPatch][Q * kPatch], int row, int col) {
    bool bad = false;
    // The elements below the diagonal are mirror images; they occur in tiles on the diagonal only.
    const bool whole = !t.symmetric || t.top != t.left;
    const bool aligned = t.cols % kPatch == 0 && reinterpret_cast<uintptr_t>(t.out) % 16 == 0 &&
                         (t.base == nullptr || reinterpret_cast<uintptr_t>(t.base) % 16 == 0);
#pragma unroll
    for (int p = 0; p < P; ++p) {
#pragma unroll
        for (int q = 0; q < Q; ++q) {
            const int64_t first_row = t.top + row + p * kHalfTile;
            const int64_t first_col = t.left + col + q * kHalfTile;
            if (first_row >= t.rows || first_col >= t.cols) continue;
            const bool full = first_row + kPatch <= t.rows && first_col + kPatch <= t.cols;
            float value[kPatch][kPatch];
#pragma unroll
            for (int i = 0; i < kPatch; ++i) {
                float from[kPatch] = {};
                const float *base = t.base == nullptr ? nullptr : t.base + (first_row + i) * t.cols + first_col;
                if (base != nullptr && aligned && full) {
                    load<kPatch>(base, from);
                } else if (base != nullptr) {
#pragma unroll
                    for (int j = 0; j < kPatch; ++j) {
                        if (first_row + i < t.rows && first_col + j < t.cols) from[j] = base[j];
                    }
                }
#pragma unroll
                for (int j = 0; j < kPatch; ++j) {
                    const float product = t.product_factor * sum[p * kPatch + i][q * kPatch + j];
                    value[i][j] = t.base == nullptr ? product : fmaf(t.base_factor, from[j], product);
                    bad = bad || (not_finite(value[i][j]) && first_row + i < t.rows && first_col + j < t.cols);
                }
            }
            if (aligned && full && whole) {
#pragma unroll
                for (int i = 0; i < kPatch; ++i) store<kPatch>(t.out + (first_row + i) * t.cols + first_col, value[i]);
                if (!t.symmetric) continue;
#pragma unroll
                for (int j = 0; j < kPatch; ++j) {
                    const float mirror[kPatch] = {value[0][j], value[1][j], value[2][j], value[3][j]};
                    store<kPatch>(t.out + (first_col + j) * t.cols + first_row, mirror);
                }
                continue;
            }
#pragma unroll
            for (int i = 0; i < kPatch; ++i) {
#pragma unroll
                for (int j = 0; j < kPatch; ++j) {
                    const int64_t r = first_row + i;
                    const int64_t c = first_col + j;
                    if (r >= t.rows || c >= t.cols || (t.symmetric && c < r)) continue;
                    t.out[r * t.cols + c] = value[i][j];
                    if (t.symmetric) t.out[c * t.cols + r] = value[i][j];
                }
            }
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

extern "C" __global__ void __launch_bounds__(kThreads, 2)
    fcm_k_products(const FCM_GRID_CONSTANT fcm::Products p, fcm::Check check) {
    SHARED(__align__(16) fcm::Slice, a_slices, [2]);
    SHARED(__align__(16) fcm::Slice, b_slices, [2]);
    SHARED(int, stop, [1]);
    // Blocks may report a result while others begin, so the status is read by an atomic operation, which leaves it as it is.
    if (threadIdx.x == 0) stop[0] = atomicMin(&check.status->ticket, fcm::kNothing) < check.ticket ? 1 : 0;
    __syncthreads();
    if (stop[0] != 0) return;
    for (int64_t task = blockIdx.x; task < p.clients * p.tiles; task += gridDim.x) {
        const fcm::ProductEntry &entry = fcm::product_at(p, task / p.clients);
        // The tiles of a matrix follow each other, because they share its rows and columns.
        const int64_t local = task - entry.first_tile * p.clients;
        const int64_t client = local / entry.tiles;
        const int64_t tile = local - client * entry.tiles;
        const fcm_product &what = entry.what;
        const int64_t across = fcm::parts_of(what.cols, fcm::kTile);
        int64_t row = tile / across;
        int64_t col = tile - row * across;
        if (what.symmetric != 0) fcm::triangle_place(tile, across, row, col);
        const fcm::TileWork work{
            {p.a + what.a_offset + client * what.a_stride, what.a_row, what.a_col, what.rows, what.depth},
            {p.b + what.b_offset + client * what.b_stride, what.b_col, what.b_row, what.cols, what.depth},
            what.base_offset < 0 ? nullptr : p.base + what.base_offset + client * what.base_stride,
            p.out + what.out_offset + client * what.out_stride,
            static_cast<float>(what.product_factor),
            static_cast<float>(what.base_factor),
            what.rows,
            what.cols,
            row * fcm::kTile,
            col * fcm::kTile,
            what.symmetric != 0};
        const bool bad = fcm::any_tile(work, a_slices, b_slices);
        if (bad && what.of_offset >= 0) check.found(p.of + client * p.of_stride + what.of_offset);
    }
}

namespace fcm {
namespace {

// The grid does not decide results: enough blocks for the largest GPU, so that the queue of tiles stays balanced.
void launch(const fcm_context *context, const Products &p, Check check) {
    LAUNCH(fcm_k_products, blocks_for(p.clients * p.tiles), kThreads, 0, context->stream, p, check);
    launched("fcm_k_products", p.clients, p.tiles);
}

uint64_t digest_of(const fcm_product *products, int64_t count) {
    return fcm::digest_of(products, count * static_cast<int64_t>(sizeof(fcm_product)));
}

bool checks_any(const fcm_product *products, int64_t count) {
    return std::any_of(products, products + count, [](const fcm_product &p) { return p.of_offset >= 0; });
}

int64_t tiles_of(const fcm_product *products, int64_t count) {
    int64_t tiles = 0;
    for (int64_t i = 0; i < count; ++i) tiles += fcm::tiles_of(products[i]);
    return tiles;
}

}  // namespace

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
        fcm_product &what = p.single.what;
        what = {rows,  cols,     depth, symmetric != 0, product_factor, base_factor, 0, a_stride, a_row, a_col, 0,
                b_stride, b_row, b_col, base == nullptr ? -1 : 0, base_stride, 0, out_stride, -1};
        p.single.tiles = fcm::tiles_of(what);
        p.count = 1;
        p.tiles = p.single.tiles;
        p.a = a;
        p.b = b;
        p.base = base;
        p.out = out;
        launch(context, p, {context->status, kNothing});
    });
}

fcm_status device::products_workspace(const fcm_context *, int64_t, const fcm_product *, int64_t count, int64_t *bytes,
                                      fcm_error *) {
    *bytes = count * static_cast<int64_t>(sizeof(ProductEntry));
    return FCM_OK;
}

fcm_status device::products_prepare(fcm_context *context, int64_t, const fcm_product *products, int64_t count, void *workspace,
                                    int64_t, fcm_error *error) {
    return on_device("fcm_products_prepare", context, error, [&] {
        std::vector<ProductEntry> entries;
        auto spans = std::make_shared<Spans>();
        for (int64_t i = 0; i < count; ++i) {
            entries.push_back({products[i], 0, fcm::tiles_of(products[i])});
            const bool checked = products[i].of_offset >= 0;
            spans->push_back({checked ? products[i].of_offset : 0, checked ? products[i].rows * products[i].cols : 0});
        }
        // The deepest first, so that no long tile begins at the end.
        std::stable_sort(entries.begin(), entries.end(),
                         [](const ProductEntry &x, const ProductEntry &y) { return x.what.depth > y.what.depth; });
        std::vector<char> table(entries.size() * sizeof(ProductEntry));
        int64_t first_tile = 0;
        for (ProductEntry &entry : entries) {
            entry.first_tile = first_tile;
            first_tile += entry.tiles;
        }
        std::memcpy(table.data(), entries.data(), table.size());
        prepare(context, workspace, workspace, table, {digest_of(products, count), std::move(spans)});
    });
}

fcm_status device::products(fcm_context *context, int64_t clients, const fcm_product *products, int64_t count, float *room,
                            int64_t, const float *of, int64_t of_stride, void *workspace, int64_t, fcm_error *error) {
    constexpr const char *function = "fcm_products";
    return on_device(function, context, error, [&] {
        const auto spans = prepared_blocks(context, workspace, digest_of(products, count));
        if (spans == nullptr) return fail_unprepared(function, error);
        Products p{};
        p.clients = clients;
        p.listed = static_cast<const ProductEntry *>(workspace);
        p.count = count;
        p.tiles = tiles_of(products, count);
        p.a = p.b = p.base = p.out = room;
        p.of = of;
        p.of_stride = of_stride;
        if (p.tiles == 0) return fcm_status{FCM_OK};
        Check check{context->status, kNothing};
        if (checks_any(products, count)) {
            check = ask(context, Question::about(function, "of", Sought::kOutOfRange, clients, of, of_stride, spans));
        }
        launch(context, p, check);
        return fcm_status{FCM_OK};
    });
}

}  // namespace fcm
