// The products of products.cu on tensor cores, for sm_80 and later. mma_tiles.h has the map of tiles and warps.
#include "context.h"
#include "mma_tiles.h"

using fcm::kThreads;

extern "C" __global__ void __launch_bounds__(kThreads, 2) fcm_k_products_bf16(const FCM_GRID_CONSTANT fcm::Products p) {
#if FCM_TENSOR_CORES
    SHARED(__align__(16) fcm::MmaRoom<fcm::Bf16>, room, [1]);
    SHARED(fcm::TileWork<fcm::Bf16>, work, [1]);
    fcm::multiply_tiles(p, work[0], room[0]);
#endif
}

extern "C" __global__ void __launch_bounds__(kThreads, 2) fcm_k_products_tf32(const FCM_GRID_CONSTANT fcm::Products p) {
#if FCM_TENSOR_CORES
    SHARED(__align__(16) fcm::MmaRoom<float>, room, [1]);
    SHARED(fcm::TileWork<float>, work, [1]);
    fcm::multiply_tiles(p, work[0], room[0]);
#endif
}

namespace fcm {

void launch_products_mma(const fcm_context *context, const Products &products, int32_t precision) {
    if (products.tiles == 0) return;
    const unsigned grid = blocks_for(products.clients * products.tiles);
    if (precision == FCM_BF16) {
        LAUNCH(fcm_k_products_bf16, grid, kThreads, 0, context->stream, products);
        launched("fcm_k_products_bf16", products.clients, products.tiles);
    } else {
        LAUNCH(fcm_k_products_tf32, grid, kThreads, 0, context->stream, products);
        launched("fcm_k_products_tf32", products.clients, products.tiles);
    }
}

}  // namespace fcm
