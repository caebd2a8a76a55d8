// Matrix products of any size and of any number of shapes, of all clients in one launch. Every element is one chain of fused
// multiply-adds in the order of k, so results depend neither on the tiles nor on what else is in the launch, and are
// bit-identical to the CPU's products with AVX2 or AVX-512. tiles.h and fma_tiles.h have the map of tiles and threads.
#include "products.h"

#include <algorithm>

#include "context.h"
#include "device_functions.h"
#include "fma_tiles.h"

using fcm::kThreads;

extern "C" __global__ void __launch_bounds__(kThreads, 2) fcm_k_products(const FCM_GRID_CONSTANT fcm::Products p) {
    SHARED(__align__(16) fcm::TileRoom, room, [1]);
    SHARED(fcm::TileWork<float>, work, [1]);
    if (p.status->ticket <= p.stop_from) return;
    for (int64_t task = blockIdx.x; task < p.clients * p.tiles; task += gridDim.x) {
        if (threadIdx.x == 0) work[0] = fcm::tile_of<float>(p, task);
        __syncthreads();
        const bool bad = fcm::any_tile(work[0], room[0]);
        if (bad && work[0].flag != nullptr) atomicExch(work[0].flag, 1u);
        __syncthreads();  // everybody is done with this tile
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
        p.single.pitch = cols;
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
