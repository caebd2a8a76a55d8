// The weighted mean of an element over rows, summed in double in client order: the one sum of all kernels that average.
#pragma once

#include <cstdint>

#include "device.h"

namespace fcm {

// The weights of up to kFewWeights clients are passed as a launch parameter; more weights are stored at `listed`.
constexpr int64_t kFewWeights = 256;
struct Weights {
    const double *listed;  // null: the weights are in `few`, or all 1 if `uniform`
    int32_t uniform;
    double few[kFewWeights];
};

// row(k) is where the elements of row k begin; one with weight 0 is not read.
template <int W, class Row>
__device__ __forceinline__ void weighted_mean(int64_t clients, double total, const Weights &weights, const Row &row, int64_t j,
                                              float (&mean)[W]) {
    double sum[W];
#pragma unroll
    for (int i = 0; i < W; ++i) sum[i] = 0.0;
    for (int64_t k = 0; k < clients; ++k) {
        const double weight = weights.uniform != 0        ? 1.0
                              : weights.listed != nullptr ? weights.listed[k]
                                                          : weights.few[k];
        if (weight == 0.0) continue;
        float value[W];
        load<W>(row(k) + j, value);
#pragma unroll
        for (int i = 0; i < W; ++i) sum[i] += weight * static_cast<double>(value[i]);
    }
#pragma unroll
    for (int i = 0; i < W; ++i) mean[i] = static_cast<float>(sum[i] / total);
}

}  // namespace fcm
