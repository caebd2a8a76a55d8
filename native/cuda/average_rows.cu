// The mean of rows in the memory of several GPUs, read directly by one of them.
#include <algorithm>

#include "average.h"
#include "context.h"
#include "device_functions.h"

namespace fcm {
namespace {

// The addresses of a few rows and targets are passed as a launch parameter, with their weights; more are listed in memory of
// the device.
constexpr int64_t kFewRows = 128;
constexpr int64_t kFewTargets = 16;
static_assert(kFewRows <= kFewWeights, "whose weights are passed too");

}  // namespace

struct RowTable {
    const float *const *rows;  // null: both are in the arrays
    float *const *targets;
    Weights weights;
    const float *few_rows[kFewRows];
    float *few_targets[kFewTargets];
};

struct AverageRows {
    int64_t clients;
    int64_t target_count;
    double total;
    const RowTable *table;

    template <int W>
    __device__ __forceinline__ void at(int64_t, int64_t j) const {
        const RowTable &t = *table;
        float mean[W];
        weighted_mean<W>(
            clients, total, t.weights, [&t](int64_t k) { return t.rows != nullptr ? t.rows[k] : t.few_rows[k]; }, j, mean);
        for (int64_t i = 0; i < target_count; ++i) {
            store<W>((t.targets != nullptr ? t.targets[i] : t.few_targets[i]) + j, mean);
        }
    }
};

}  // namespace fcm

extern "C" __global__ void __launch_bounds__(fcm::kThreads, 3)
    fcm_k_average_rows(int64_t n, int32_t vectors, int64_t clients, int64_t target_count, double total,
                       FCM_GRID_CONSTANT const fcm::RowTable table, const fcm::Status *status) {
    if (fcm::stopped(status)) return;
    fcm::for_elements(1, n, vectors != 0, fcm::AverageRows{clients, target_count, total, &table});
}

namespace fcm {
namespace {

// Copies a table to the context's scratch memory, at `used`, which is advanced. The source is pageable memory, so the call
// returns after the table has been read, and the caller may reuse it.
template <class T>
const T *list(const fcm_context *context, int64_t *used, const T *table, int64_t count) {
    auto *to = static_cast<unsigned char *>(context->scratch) + *used;
    const auto bytes = count * static_cast<int64_t>(sizeof(T));
    check(cudaMemcpyAsync(to, table, static_cast<size_t>(bytes), cudaMemcpyHostToDevice, context->stream), "cudaMemcpyAsync",
          bytes);
    *used += bytes;
    return reinterpret_cast<const T *>(to);
}

bool all_aligned(const float *const *addresses, int64_t count) {
    return std::all_of(addresses, addresses + count, [](const float *one) { return vector_aligned(one, 1, 0); });
}

}  // namespace

fcm_status device::average_rows(fcm_context *context, int64_t clients, int64_t n, const double *weights,
                                const float *const *rows, int64_t target_count, float *const *targets, fcm_error *error) {
    constexpr int64_t kMost = kScratchBytes / static_cast<int64_t>(sizeof(double) + sizeof(float *)) / 2;
    if (clients > kMost || target_count > kMost) {
        return fail(error, FCM_UNSUPPORTED, {},
                    "fcm_average_rows: %" PRId64 " rows and %" PRId64 " targets; a GPU takes %" PRId64 " at most", clients,
                    target_count, kMost);
    }
    return on_device("fcm_average_rows", context, error, [&] {
        RowTable table{};
        table.weights.uniform = weights == nullptr;
        if (clients <= kFewRows && target_count <= kFewTargets) {
            std::copy(rows, rows + clients, table.few_rows);
            std::copy(targets, targets + target_count, table.few_targets);
            if (weights != nullptr) std::copy(weights, weights + clients, table.weights.few);
        } else {
            int64_t used = 0;
            table.rows = list(context, &used, rows, clients);
            table.targets = list(context, &used, targets, target_count);
            if (weights != nullptr) table.weights.listed = list(context, &used, weights, clients);
        }
        const bool vectors = all_aligned(rows, clients) && all_aligned(targets, target_count);
        LAUNCH(fcm_k_average_rows, blocks_for(parts_of(n, kChunk)), kThreads, 0, context->stream, n, vectors ? 1 : 0, clients,
               target_count, total_weight(clients, weights), table, context->status);
        launched("fcm_k_average_rows", clients, n);
    });
}

}  // namespace fcm
