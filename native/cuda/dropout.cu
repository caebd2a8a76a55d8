// Masks of dropout: numbers of the generator SplitMix64, each computed from its position alone, so that a thread needs no
// state and the CPU gives the same masks.
#include <algorithm>

#include "context.h"
#include "device.h"
#include "device_functions.h"

namespace fcm {

// The seeds are passed as a launch parameter; more clients take more launches.
constexpr int64_t kSeeds = 256;
struct Seeds {
    uint64_t of[kSeeds];
};

__device__ __forceinline__ uint64_t split_mix(uint64_t seed, int64_t draw) {
    uint64_t z = seed + (static_cast<uint64_t>(draw) + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

struct DropoutMask {
    uint32_t left;
    uint8_t *mask;
    int64_t mask_stride;
    const Seeds *seeds;

    __device__ __forceinline__ uint32_t below(uint64_t draw, int part) const {
        return static_cast<uint32_t>(draw >> (16 * part) & 0xffffu) < left ? 1u : 0u;
    }

    // Four elements are one draw and one word of the mask; the lowest byte of a word comes first.
    template <int W>
    __device__ __forceinline__ void at(int64_t client, int64_t j) const {
        const uint64_t draw = split_mix(seeds->of[client], j / 4);
        uint8_t *to = mask + client * mask_stride + j;
        if constexpr (W == 4) {
            uint32_t word = 0;
#pragma unroll
            for (int i = 0; i < 4; ++i) word |= below(draw, i) << (8 * i);
            *reinterpret_cast<uint32_t *>(to) = word;
        } else {
            *to = static_cast<uint8_t>(below(draw, static_cast<int>(j % 4)));
        }
    }
};

}  // namespace fcm

using fcm::kThreads;

extern "C" __global__ void __launch_bounds__(kThreads)
    fcm_k_dropout_mask(int64_t clients, int64_t n, int32_t words, uint32_t left, uint8_t *mask, int64_t mask_stride,
                       FCM_GRID_CONSTANT const fcm::Seeds seeds, const fcm::Status *status) {
    if (fcm::stopped(status)) return;
    fcm::for_elements(clients, n, words != 0, fcm::DropoutMask{left, mask, mask_stride, &seeds});
}

namespace fcm {

fcm_status device::dropout_mask(fcm_context *context, int64_t clients, int64_t n, int32_t left, const uint64_t *seeds,
                                uint8_t *mask, int64_t mask_stride, fcm_error *error) {
    return on_device("fcm_dropout_mask", context, error, [&] {
        const bool words = reinterpret_cast<uintptr_t>(mask) % 4 == 0 && (clients == 1 || mask_stride % 4 == 0);
        for (int64_t first = 0; first < clients; first += kSeeds) {
            const int64_t count = std::min(kSeeds, clients - first);
            Seeds carried{};
            std::copy(seeds + first, seeds + first + count, carried.of);
            LAUNCH(fcm_k_dropout_mask, blocks_for(count * parts_of(n, kChunk)), kThreads, 0, context->stream, count, n, words,
                   static_cast<uint32_t>(left), mask + first * mask_stride, mask_stride, carried, context->status);
            launched("fcm_k_dropout_mask", count, n);
        }
    });
}

}  // namespace fcm
