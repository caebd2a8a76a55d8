// average, average_rows, and the steps of means whose clients are on several devices: mean_exponents, mean_sums, mean_combine and
// mean_finish. Where the steps are one kernel, rows are in registers between the first two of them (kHeldRows): the paper's ten
// clients then are read once, and so are rows in the memory of other GPUs. Two blocks per multiprocessor have the registers for 16
// rows, and as many loads per thread under way at once. Shared memory instead would hold 4 KiB per row and block, so that Turing
// had one block with ten rows.
#include "means.h"

#include <algorithm>
#include <initializer_list>

#include "context.h"
#include "device_functions.h"

namespace fcm {
namespace {

// The addresses of a few operands are passed as a launch parameter, with their weights; more are listed in memory of the device.
constexpr int64_t kFewRows = 128;
constexpr int64_t kFewTargets = 16;
constexpr int64_t kFewParts = 64;
static_assert(kHeldRows <= kFewWeights, "read without a loop");

}  // namespace

template <class T, int64_t Few>
struct Table {
    T *const *listed;  // null: the addresses are in the array
    T *few[Few];

    __device__ __forceinline__ T *of(int64_t k) const { return listed != nullptr ? listed[k] : few[k]; }
};

struct RowTable {
    Table<const float, kFewRows> rows;
    Table<float, kFewTargets> targets;
    Weights weights;
};

template <int W>
__device__ __forceinline__ void load_exponents(const uint8_t *from, int (&exponent)[W]) {
    static_assert(W == 1 || W == 2 || W == 4, "one element, or a vector of two or four");
    if constexpr (W == 4) {
        const uchar4 four = *reinterpret_cast<const uchar4 *>(from);
        exponent[0] = four.x;
        exponent[1] = four.y;
        exponent[2] = four.z;
        exponent[3] = four.w;
    } else if constexpr (W == 2) {
        const uchar2 two = *reinterpret_cast<const uchar2 *>(from);
        exponent[0] = two.x;
        exponent[1] = two.y;
    } else {
        exponent[0] = from[0];
    }
}

template <int W>
__device__ __forceinline__ void store_exponents(uint8_t *to, const int (&exponent)[W]) {
    const auto byte = [&exponent](int i) { return static_cast<uint8_t>(exponent[i]); };
    if constexpr (W == 4) {
        *reinterpret_cast<uchar4 *>(to) = make_uchar4(byte(0), byte(1), byte(2), byte(3));
    } else {
        to[0] = byte(0);
    }
}

// Two sums are a vector, so that kernels with sums take two elements per thread, and every load touches whole sectors.
constexpr int kSumVector = 2;

template <int W>
__device__ __forceinline__ void add_sums(const int64_t *from, unsigned long long (&sum)[W]) {
    if constexpr (W == kSumVector) {
        const longlong2 two = *reinterpret_cast<const longlong2 *>(from);
        sum[0] += static_cast<unsigned long long>(two.x);
        sum[1] += static_cast<unsigned long long>(two.y);
    } else {
        sum[0] += static_cast<unsigned long long>(from[0]);
    }
}

template <int W>
__device__ __forceinline__ void store_sums(int64_t *to, const unsigned long long (&sum)[W]) {
    if constexpr (W == kSumVector) {
        *reinterpret_cast<longlong2 *>(to) = make_longlong2(static_cast<long long>(sum[0]), static_cast<long long>(sum[1]));
    } else {
        to[0] = static_cast<int64_t>(sum[0]);
    }
}

// The terms of a mean that are in one batch.
struct MeanTerms {
    int64_t clients;
    int32_t bits;
    const float *x;
    int64_t x_stride;
};

struct Average {
    int64_t clients;
    int32_t bits;
    double total;
    float *x;
    int64_t x_stride;
    const Weights *weights;

    template <int W>
    __device__ __forceinline__ void at(int64_t, int64_t j) const {
        const auto row = [this](int64_t k) {
            int64_t offset = k * x_stride;
            keep(offset);  // otherwise those of the first rows are computed before the loop over chunks
            return x + offset;
        };
        float mean[W];
        if (weights->uniform != 0) {
            exact_mean<true, W>(clients, bits, total, *weights, row, j, mean);
        } else {
            exact_mean<false, W>(clients, bits, total, *weights, row, j, mean);
        }
        for (int64_t k = 0; k < clients; ++k) store_whole<W>(row(k) + j, mean);
    }
};

struct AverageRows {
    int64_t clients;
    int32_t bits;
    int64_t target_count;
    double total;
    const RowTable *table;

    template <int W>
    __device__ __forceinline__ void at(int64_t, int64_t j) const {
        const RowTable &t = *table;
        const auto row = [&t](int64_t k) { return t.rows.of(k); };
        float mean[W];
        if (t.weights.uniform != 0) {
            exact_mean<true, W>(clients, bits, total, t.weights, row, j, mean);
        } else {
            exact_mean<false, W>(clients, bits, total, t.weights, row, j, mean);
        }
        for (int64_t i = 0; i < target_count; ++i) store_whole<W>(t.targets.of(i) + j, mean);
    }
};

template <bool Uniform>
struct MeanExponents {
    const MeanTerms &terms;
    const Weights &weights;
    uint8_t *exponents;

    template <int W>
    __device__ __forceinline__ void at(int64_t, int64_t j) const {
        unsigned largest[W] = {};
#pragma unroll 4
        for (int64_t k = 0; k < terms.clients; ++k) {
            const auto term = Term<Uniform>::of(weights, k);
            if (!term.is_read()) continue;
            float x[W];
            load<W>(terms.x + k * terms.x_stride + j, x);
#pragma unroll
            for (int i = 0; i < W; ++i) largest[i] = max(largest[i], term.magnitude(x[i]));
        }
        int exponent[W];
#pragma unroll
        for (int i = 0; i < W; ++i) exponent[i] = static_cast<int>(largest[i] >> kExponentShift);
        store_exponents<W>(exponents + j, exponent);
    }
};

template <bool Uniform>
struct MeanSums {
    const MeanTerms &terms;
    const Weights &weights;
    const uint8_t *exponents;
    int64_t *sums;

    template <int W>
    __device__ __forceinline__ void at(int64_t, int64_t j) const {
        int exponent[W];
        load_exponents<W>(exponents + j, exponent);
        unsigned long long sum[W] = {};
#pragma unroll 4
        for (int64_t k = 0; k < terms.clients; ++k) {
            const auto term = Term<Uniform>::of(weights, k);
            if (!term.is_read()) continue;
            float x[W];
            load<W>(terms.x + k * terms.x_stride + j, x);
#pragma unroll
            for (int i = 0; i < W; ++i) {
                sum[i] += Units<Uniform>(terms.bits, exponent[i]).of(term, x[i]);
            }
        }
#pragma unroll
        for (int i = 0; i < W; ++i) {
            if (exponent[i] == kNotFiniteExponent) sum[i] = 0;
        }
        store_sums<W>(sums + j, sum);
    }
};

using ExponentTable = Table<const uint8_t, kFewParts>;

struct MeanCombine {
    int64_t parts;
    const ExponentTable *exponents;
    uint8_t *to;

    template <int W>
    __device__ __forceinline__ void at(int64_t, int64_t j) const {
        int largest[W];
        load_exponents<W>(exponents->of(0) + j, largest);
        for (int64_t p = 1; p < parts; ++p) {
            int exponent[W];
            load_exponents<W>(exponents->of(p) + j, exponent);
#pragma unroll
            for (int i = 0; i < W; ++i) largest[i] = max(largest[i], exponent[i]);
        }
        store_exponents<W>(to + j, largest);
    }
};

struct SumTable {
    Table<const int64_t, kFewParts> sums;
    Table<float, kFewTargets> targets;
};

struct MeanFinish {
    int64_t parts;
    int32_t bits;
    double total;
    const uint8_t *exponents;
    int64_t target_count;
    const SumTable *table;

    template <int W>
    __device__ __forceinline__ void at(int64_t, int64_t j) const {
        unsigned long long sum[W] = {};
        for (int64_t p = 0; p < parts; ++p) add_sums<W>(table->sums.of(p) + j, sum);
        int exponent[W];
        load_exponents<W>(exponents + j, exponent);
        float mean[W];
#pragma unroll
        for (int i = 0; i < W; ++i) mean[i] = finish_mean(sum[i], exponent[i], bits, total);
        for (int64_t t = 0; t < target_count; ++t) store_whole<W>(table->targets.of(t) + j, mean);
    }
};

}  // namespace fcm

using fcm::kThreads;

extern "C" __global__ void __launch_bounds__(kThreads, 2)
    fcm_k_average(int64_t n, int32_t vectors, int64_t clients, int32_t bits, double total, float *x, int64_t x_stride,
                  FCM_GRID_CONSTANT const fcm::Weights weights, const fcm::Status *status) {
    if (fcm::stopped(status)) return;
    fcm::for_elements(1, n, vectors != 0, fcm::Average{clients, bits, total, x, x_stride, &weights});
}

extern "C" __global__ void __launch_bounds__(kThreads, 2)
    fcm_k_average_rows(int64_t n, int32_t vectors, int64_t clients, int32_t bits, int64_t target_count, double total,
                       FCM_GRID_CONSTANT const fcm::RowTable table, const fcm::Status *status) {
    if (fcm::stopped(status)) return;
    fcm::for_elements(1, n, vectors != 0, fcm::AverageRows{clients, bits, target_count, total, &table});
}

extern "C" __global__ void __launch_bounds__(kThreads)
    fcm_k_mean_exponents(int64_t n, int32_t vectors, fcm::MeanTerms terms, uint8_t *exponents,
                         FCM_GRID_CONSTANT const fcm::Weights weights, const fcm::Status *status) {
    if (fcm::stopped(status)) return;
    if (weights.uniform != 0) {
        fcm::for_elements(1, n, vectors != 0, fcm::MeanExponents<true>{terms, weights, exponents});
    } else {
        fcm::for_elements(1, n, vectors != 0, fcm::MeanExponents<false>{terms, weights, exponents});
    }
}

extern "C" __global__ void __launch_bounds__(kThreads)
    fcm_k_mean_sums(int64_t n, int32_t vectors, fcm::MeanTerms terms, const uint8_t *exponents, int64_t *sums,
                    FCM_GRID_CONSTANT const fcm::Weights weights, const fcm::Status *status) {
    if (fcm::stopped(status)) return;
    if (weights.uniform != 0) {
        fcm::for_elements<fcm::kSumVector>(1, n, vectors != 0, fcm::MeanSums<true>{terms, weights, exponents, sums});
    } else {
        fcm::for_elements<fcm::kSumVector>(1, n, vectors != 0, fcm::MeanSums<false>{terms, weights, exponents, sums});
    }
}

extern "C" __global__ void __launch_bounds__(kThreads)
    fcm_k_mean_combine(int64_t n, int32_t vectors, int64_t parts, uint8_t *to,
                       FCM_GRID_CONSTANT const fcm::ExponentTable exponents, const fcm::Status *status) {
    if (fcm::stopped(status)) return;
    fcm::for_elements(1, n, vectors != 0, fcm::MeanCombine{parts, &exponents, to});
}

extern "C" __global__ void __launch_bounds__(kThreads)
    fcm_k_mean_finish(int64_t n, int32_t vectors, int64_t parts, int32_t bits, double total, const uint8_t *exponents,
                      int64_t target_count, FCM_GRID_CONSTANT const fcm::SumTable table, const fcm::Status *status) {
    if (fcm::stopped(status)) return;
    fcm::for_elements<fcm::kSumVector>(1, n, vectors != 0,
                                       fcm::MeanFinish{parts, bits, total, exponents, target_count, &table});
}

namespace fcm {
namespace {

// Memory of the device for the tables of one call.
class Scratch {
   public:
    explicit Scratch(const fcm_context *context) : context_(context) {}

    // The source is pageable memory, so the call returns after the table has been read, and the caller may reuse it.
    template <class T>
    const T *list(const T *table, int64_t count) {
        auto *to = static_cast<unsigned char *>(context_->scratch) + used_;
        const auto bytes = count * static_cast<int64_t>(sizeof(T));
        check(cudaMemcpyAsync(to, table, static_cast<size_t>(bytes), cudaMemcpyHostToDevice, context_->stream),
              "cudaMemcpyAsync", bytes);
        used_ += bytes;
        return reinterpret_cast<const T *>(to);
    }

   private:
    const fcm_context *context_;
    int64_t used_ = 0;
};

// The most entries of tables that are listed beside each other: addresses and weights of rows, addresses of targets.
constexpr int64_t kMostListed = kScratchBytes / static_cast<int64_t>(sizeof(double) + sizeof(float *)) / 2;

fcm_status fail_listed(const char *function, fcm_error *error, int64_t count, const char *what) {
    return fail(error, FCM_UNSUPPORTED, {}, "%s: %" PRId64 " %s; a GPU takes %" PRId64 " at most", function, count, what,
                kMostListed);
}

void fill(Weights &to, Scratch &scratch, int64_t clients, const double *weights) {
    to.uniform = weights == nullptr;
    if (weights == nullptr) return;
    if (clients <= kFewWeights) {
        std::copy(weights, weights + clients, to.few);
    } else {
        to.listed = scratch.list(weights, clients);
    }
}

template <class T, int64_t Few>
void fill(Table<T, Few> &to, Scratch &scratch, int64_t count, T *const *addresses) {
    if (count <= Few) {
        std::copy(addresses, addresses + count, to.few);
    } else {
        to.listed = scratch.list(addresses, count);
    }
}

bool is_aligned(const void *address, int64_t bytes) {
    return reinterpret_cast<uintptr_t>(address) % static_cast<uintptr_t>(bytes) == 0;
}

template <class T>
bool all_aligned(T *const *addresses, int64_t count, int64_t bytes) {
    return std::all_of(addresses, addresses + count, [bytes](T *one) { return is_aligned(one, bytes); });
}

// Whether `elements` of every client can be read as one vector.
bool rows_aligned(const float *x, int64_t clients, int64_t stride, int64_t elements) {
    return is_aligned(x, elements * static_cast<int64_t>(sizeof(float))) && (clients == 1 || stride % elements == 0);
}

constexpr int64_t kPairBytes = kSumVector * static_cast<int64_t>(sizeof(float));
constexpr int64_t kSumPairBytes = kSumVector * static_cast<int64_t>(sizeof(int64_t));

unsigned quad_blocks(int64_t n) { return blocks_for(parts_of(n, kChunk)); }
unsigned pair_blocks(int64_t n) { return blocks_for(parts_of(n, int64_t{kSumVector} * kThreads)); }

}  // namespace

fcm_status device::average(fcm_context *context, int64_t clients, int64_t n, const double *weights, int64_t terms, float *x,
                           int64_t x_stride, fcm_error *error) {
    if (weights != nullptr && clients > kMostListed) return fail_listed("fcm_average", error, clients, "weights");
    return on_device("fcm_average", context, error, [&] {
        Scratch scratch(context);
        Weights carried{};
        fill(carried, scratch, clients, weights);
        LAUNCH(fcm_k_average, quad_blocks(n), kThreads, 0, context->stream, n, rows_aligned(x, clients, x_stride, 4), clients,
               term_bits(terms), total_weight(clients, weights), x, x_stride, carried, context->status);
        launched("fcm_k_average", clients, n);
    });
}

fcm_status device::average_rows(fcm_context *context, int64_t clients, int64_t n, const double *weights, int64_t terms,
                                const float *const *rows, int64_t target_count, float *const *targets, fcm_error *error) {
    if (clients > kMostListed) return fail_listed("fcm_average_rows", error, clients, "rows");
    if (target_count > kMostListed) return fail_listed("fcm_average_rows", error, target_count, "targets");
    return on_device("fcm_average_rows", context, error, [&] {
        Scratch scratch(context);
        RowTable table{};
        fill(table.rows, scratch, clients, rows);
        fill(table.targets, scratch, target_count, targets);
        fill(table.weights, scratch, clients, weights);
        constexpr int64_t kQuadBytes = 4 * sizeof(float);
        const bool vectors = all_aligned(rows, clients, kQuadBytes) && all_aligned(targets, target_count, kQuadBytes);
        LAUNCH(fcm_k_average_rows, quad_blocks(n), kThreads, 0, context->stream, n, vectors, clients, term_bits(terms),
               target_count, total_weight(clients, weights), table, context->status);
        launched("fcm_k_average_rows", clients, n);
    });
}

fcm_status device::mean_exponents(fcm_context *context, int64_t clients, int64_t n, const double *weights, const float *x,
                                  int64_t x_stride, uint8_t *exponents, fcm_error *error) {
    if (weights != nullptr && clients > kMostListed) return fail_listed("fcm_mean_exponents", error, clients, "weights");
    return on_device("fcm_mean_exponents", context, error, [&] {
        Scratch scratch(context);
        Weights carried{};
        fill(carried, scratch, clients, weights);
        const bool vectors = rows_aligned(x, clients, x_stride, 4) && is_aligned(exponents, 4);
        LAUNCH(fcm_k_mean_exponents, quad_blocks(n), kThreads, 0, context->stream, n, vectors,
               MeanTerms{clients, 0, x, x_stride}, exponents, carried, context->status);
        launched("fcm_k_mean_exponents", clients, n);
    });
}

fcm_status device::mean_sums(fcm_context *context, int64_t clients, int64_t n, const double *weights, int64_t terms,
                             const float *x, int64_t x_stride, const uint8_t *exponents, int64_t *sums, fcm_error *error) {
    if (weights != nullptr && clients > kMostListed) return fail_listed("fcm_mean_sums", error, clients, "weights");
    return on_device("fcm_mean_sums", context, error, [&] {
        Scratch scratch(context);
        Weights carried{};
        fill(carried, scratch, clients, weights);
        const bool vectors = rows_aligned(x, clients, x_stride, kSumVector) && is_aligned(exponents, kSumVector) &&
                             is_aligned(sums, kSumPairBytes);
        LAUNCH(fcm_k_mean_sums, pair_blocks(n), kThreads, 0, context->stream, n, vectors,
               MeanTerms{clients, term_bits(terms), x, x_stride}, exponents, sums, carried, context->status);
        launched("fcm_k_mean_sums", clients, n);
    });
}

fcm_status device::mean_combine(fcm_context *context, int64_t parts, int64_t n, const uint8_t *const *exponents, uint8_t *to,
                                fcm_error *error) {
    if (parts > kMostListed) return fail_listed("fcm_mean_combine", error, parts, "parts");
    return on_device("fcm_mean_combine", context, error, [&] {
        Scratch scratch(context);
        ExponentTable table{};
        fill(table, scratch, parts, exponents);
        const bool vectors = all_aligned(exponents, parts, 4) && is_aligned(to, 4);
        LAUNCH(fcm_k_mean_combine, quad_blocks(n), kThreads, 0, context->stream, n, vectors, parts, to, table, context->status);
        launched("fcm_k_mean_combine", parts, n);
    });
}

fcm_status device::mean_finish(fcm_context *context, int64_t parts, int64_t n, int64_t terms, double total,
                               const int64_t *const *sums, const uint8_t *exponents, int64_t target_count, float *const *targets,
                               fcm_error *error) {
    if (parts > kMostListed) return fail_listed("fcm_mean_finish", error, parts, "parts");
    if (target_count > kMostListed) return fail_listed("fcm_mean_finish", error, target_count, "targets");
    return on_device("fcm_mean_finish", context, error, [&] {
        Scratch scratch(context);
        SumTable table{};
        fill(table.sums, scratch, parts, sums);
        fill(table.targets, scratch, target_count, targets);
        const bool vectors = all_aligned(sums, parts, kSumPairBytes) && is_aligned(exponents, kSumVector) &&
                             all_aligned(targets, target_count, kPairBytes);
        LAUNCH(fcm_k_mean_finish, pair_blocks(n), kThreads, 0, context->stream, n, vectors, parts, term_bits(terms), total,
               exponents, target_count, table, context->status);
        launched("fcm_k_mean_finish", parts, n);
    });
}

}  // namespace fcm
