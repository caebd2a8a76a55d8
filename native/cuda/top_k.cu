// The largest elements of every client. The least magnitude that stays is searched digit by digit, the highest first;
// among those that are equal to it, the last index that stays is searched in the same way. Counts are whole numbers, so
// the order in which they are added does not matter.
#include <algorithm>

#include "arguments.h"
#include "context.h"
#include "device.h"

namespace fcm {

// Magnitudes of floats order like their bits without the sign, 31 of them.
constexpr int kDigitWidth = 11;
constexpr int kDigitValues = 1 << kDigitWidth;
struct Digit {
    int32_t shift;
    int32_t width;
};
constexpr Digit kMagnitudeDigits[] = {{20, 11}, {10, 10}, {0, 10}};

// What is known of one client's search.
struct Search {
    unsigned long long alike;   // elements that have the digits found so far
    unsigned long long wanted;  // how many of those stay
    unsigned long long end;     // those equal to `bits` stay before this index; found digit by digit as well
    unsigned bits;
    int32_t done;  // all of `alike` stay: the digits below are zero, and there is no tie to be cut
};

// One client's part of the scratch.
struct Counts {
    Search search;
    unsigned long long of[kDigitValues];
};

// The digit of the element at j that is being counted, or -1 for elements that have dropped out.
struct MagnitudeDigit {
    Digit digit;

    __device__ __forceinline__ int of(const Search &search, float value, int64_t) const {
        const unsigned bits = __float_as_uint(value) & 0x7fffffffu;
        const unsigned above = static_cast<unsigned>(digit.shift + digit.width);
        if (bits >> above != search.bits >> above) return -1;
        return static_cast<int>(bits >> digit.shift & ((1u << digit.width) - 1u));
    }
};

// Lower indices come first, so the digits of the index are counted upside down.
struct IndexDigit {
    Digit digit;

    __device__ __forceinline__ int of(const Search &search, float value, int64_t j) const {
        if ((__float_as_uint(value) & 0x7fffffffu) != search.bits) return -1;
        const auto index = static_cast<unsigned long long>(j);
        const int above = digit.shift + digit.width;
        if (index >> above != search.end >> above) return -1;
        const unsigned long long mask = (1ull << digit.width) - 1ull;
        return static_cast<int>(mask - (index >> digit.shift & mask));
    }
};

// Adds the block's share of every client's digits. Blocks take kTopPiece elements at a time.
constexpr int64_t kTopPiece = 16 * kChunk;

template <class DigitOf>
__device__ __forceinline__ void count_digits(int64_t clients, int64_t n, const float *x, int64_t stride, DigitOf digit_of,
                                             Counts *counts, unsigned *own) {
    const int64_t pieces = parts_of(n, kTopPiece);
    for (int64_t task = blockIdx.x; task < clients * pieces; task += gridDim.x) {
        const int64_t client = task / pieces;
        const int64_t start = (task - client * pieces) * kTopPiece;
        const int64_t end = n - start < kTopPiece ? n : start + kTopPiece;
        const Search search = counts[client].search;
        if (search.done != 0) continue;  // the same for all threads
        for (int i = static_cast<int>(threadIdx.x); i < kDigitValues; i += kThreads) own[i] = 0;
        __syncthreads();
        const float *values = x + client * stride;
        for (int64_t j = start + threadIdx.x; j < end; j += kThreads) {
            const int value = digit_of.of(search, values[j], j);
            if (value >= 0) atomicAdd(own + value, 1u);
        }
        __syncthreads();
        for (int i = static_cast<int>(threadIdx.x); i < kDigitValues; i += kThreads) {
            if (own[i] != 0) atomicAdd(counts[client].of + i, static_cast<unsigned long long>(own[i]));
        }
        __syncthreads();  // before `own` is cleared for the next piece
    }
}

// The digit at which the wanted-th element lies, counted from the largest digit down. Every thread has a run of digits;
// the one whose run is reached goes through it.
__device__ __forceinline__ void pick_digit(Counts &counts, bool of_index, int shift, int width, unsigned long long *runs) {
    constexpr int kRun = kDigitValues / kThreads;
    const Search search = counts.search;
    const int highest = kDigitValues - 1 - static_cast<int>(threadIdx.x) * kRun;
    unsigned long long run = 0;
    for (int i = 0; i < kRun; ++i) run += counts.of[highest - i];
    runs[threadIdx.x] = run;
    __syncthreads();
    if (search.done == 0) {
        unsigned long long above = 0;
        for (int i = 0; i < static_cast<int>(threadIdx.x); ++i) above += runs[i];
        // The digits of an incomplete width have no counts above; with nothing wanted the very highest is taken.
        const int most = (1 << width) - 1;
        const bool first = search.wanted == 0 ? threadIdx.x == 0 : above < search.wanted && search.wanted <= above + run;
        if (first) {
            int value = highest;
            unsigned long long left = search.wanted - above;
            while (search.wanted > 0 && counts.of[value] < left) {
                left -= counts.of[value];
                --value;
            }
            if (value > most) value = most;
            const unsigned long long alike = counts.of[value];
            Search next = search;
            next.alike = alike;
            next.wanted = left;
            next.done = left == alike;
            if (of_index) {
                // Upside down again. All digits known, `end` is the index of the last that stays.
                next.end |= static_cast<unsigned long long>(most - value) << shift;
                if (next.done != 0) next.end |= (1ull << shift) - 1ull;
            } else {
                next.bits |= static_cast<unsigned>(value) << shift;
            }
            counts.search = next;
        }
    }
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < kDigitValues; i += kThreads) counts.of[i] = 0;
}

struct Keep {
    const float *x;
    int64_t x_stride;
    float *y;
    int64_t y_stride;
    const Counts *counts;

    template <int W>
    __device__ __forceinline__ void at(int64_t client, int64_t j) const {
        const Search search = counts[client].search;
        float value[W];
        load<W>(x + client * x_stride + j, value);
#pragma unroll
        for (int i = 0; i < W; ++i) {
            const unsigned bits = __float_as_uint(value[i]) & 0x7fffffffu;
            const bool stays =
                bits > search.bits || (bits == search.bits && static_cast<unsigned long long>(j + i) < search.end);
            if (!stays) value[i] = 0.0f;
        }
        store<W>(y + client * y_stride + j, value);
    }
};

}  // namespace fcm

using fcm::kDigitValues;
using fcm::kThreads;

// A search that has found nothing yet.
extern "C" __global__ void __launch_bounds__(kThreads)
    fcm_k_top_k_begin(int64_t clients, int64_t n, int64_t k, fcm::Counts *counts) {
    for (int64_t client = blockIdx.x; client < clients; client += gridDim.x) {
        for (int i = static_cast<int>(threadIdx.x); i < kDigitValues; i += kThreads) counts[client].of[i] = 0;
        if (threadIdx.x == 0) {
            counts[client].search = fcm::Search{static_cast<unsigned long long>(n), static_cast<unsigned long long>(k), 0, 0,
                                                k == n};
        }
    }
}

extern "C" __global__ void __launch_bounds__(kThreads)
    fcm_k_count_magnitudes(int64_t clients, int64_t n, const float *x, int64_t stride, fcm::Digit digit,
                           fcm::Counts *counts) {
    SHARED(unsigned, own, [kDigitValues]);
    fcm::count_digits(clients, n, x, stride, fcm::MagnitudeDigit{digit}, counts, own);
}

extern "C" __global__ void __launch_bounds__(kThreads)
    fcm_k_count_indices(int64_t clients, int64_t n, const float *x, int64_t stride, fcm::Digit digit, fcm::Counts *counts) {
    SHARED(unsigned, own, [kDigitValues]);
    fcm::count_digits(clients, n, x, stride, fcm::IndexDigit{digit}, counts, own);
}

extern "C" __global__ void __launch_bounds__(kThreads)
    fcm_k_pick_digit(int64_t clients, int32_t of_index, fcm::Digit digit, fcm::Counts *counts) {
    SHARED(unsigned long long, runs, [kThreads]);
    for (int64_t client = blockIdx.x; client < clients; client += gridDim.x) {
        fcm::pick_digit(counts[client], of_index != 0, digit.shift, digit.width, runs);
        __syncthreads();
    }
}

// Between the magnitudes and the indices: where all of the equal ones stay, they do whatever their index.
extern "C" __global__ void __launch_bounds__(kThreads) fcm_k_top_k_ties(int64_t clients, fcm::Counts *counts) {
    for (int64_t client = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; client < clients;
         client += static_cast<int64_t>(gridDim.x) * kThreads) {
        fcm::Search &search = counts[client].search;
        if (search.done != 0) search.end = ~0ull;
    }
}

// From the index of the last that stays to the one behind it.
extern "C" __global__ void __launch_bounds__(kThreads) fcm_k_top_k_end(int64_t clients, fcm::Counts *counts) {
    for (int64_t client = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; client < clients;
         client += static_cast<int64_t>(gridDim.x) * kThreads) {
        fcm::Search &search = counts[client].search;
        if (search.end != ~0ull) search.end += 1;
    }
}

extern "C" __global__ void __launch_bounds__(kThreads)
    fcm_k_keep(int64_t clients, int64_t n, int32_t vectors, fcm::Keep op) {
    fcm::for_elements(clients, n, vectors != 0, op);
}

namespace fcm {
namespace {

// As many clients at a time as the scratch has room for.
constexpr int64_t kClientsAtOnce = kScratchBytes / static_cast<int64_t>(sizeof(Counts));
static_assert(kClientsAtOnce >= 32, "the scratch is too small");

// 2^55 elements: more than an address has bits for.
constexpr int kMostIndexDigits = 5;

void top_k(const fcm_context *context, int64_t clients, int64_t n, int64_t k, const float *x, int64_t x_stride, float *y,
           int64_t y_stride) {
    auto *counts = static_cast<Counts *>(context->scratch);
    const unsigned count_blocks = blocks_for(clients * parts_of(n, kTopPiece));
    const unsigned a_client = blocks_for(clients);
    const unsigned a_thread = blocks_for(parts_of(clients, kThreads));
    LAUNCH(fcm_k_top_k_begin, a_client, kThreads, 0, context->stream, clients, n, k, counts);
    launched("fcm_k_top_k_begin", clients, n);
    for (const Digit digit : kMagnitudeDigits) {
        LAUNCH(fcm_k_count_magnitudes, count_blocks, kThreads, 0, context->stream, clients, n, x, x_stride, digit, counts);
        launched("fcm_k_count_magnitudes", clients, n);
        LAUNCH(fcm_k_pick_digit, a_client, kThreads, 0, context->stream, clients, 0, digit, counts);
        launched("fcm_k_pick_digit", clients, n);
    }
    LAUNCH(fcm_k_top_k_ties, a_thread, kThreads, 0, context->stream, clients, counts);
    launched("fcm_k_top_k_ties", clients, n);
    int digits = 1;
    while (digits < kMostIndexDigits && n > int64_t{1} << (digits * kDigitWidth)) ++digits;
    for (int i = digits - 1; i >= 0; --i) {
        const Digit digit{i * kDigitWidth, kDigitWidth};
        LAUNCH(fcm_k_count_indices, count_blocks, kThreads, 0, context->stream, clients, n, x, x_stride, digit, counts);
        launched("fcm_k_count_indices", clients, n);
        LAUNCH(fcm_k_pick_digit, a_client, kThreads, 0, context->stream, clients, 1, digit, counts);
        launched("fcm_k_pick_digit", clients, n);
    }
    LAUNCH(fcm_k_top_k_end, a_thread, kThreads, 0, context->stream, clients, counts);
    launched("fcm_k_top_k_end", clients, n);
    const bool vectors = vector_aligned(x, clients, x_stride) && vector_aligned(y, clients, y_stride);
    LAUNCH(fcm_k_keep, blocks_for(clients * parts_of(n, kChunk)), kThreads, 0, context->stream, clients, n, vectors,
           Keep{x, x_stride, y, y_stride, counts});
    launched("fcm_k_keep", clients, n);
}

}  // namespace
}  // namespace fcm

fcm_status fcm_top_k(fcm_context *context, int64_t clients, int64_t n, int64_t k, const float *x, int64_t x_stride, float *y,
                     int64_t y_stride, fcm_error *error) {
    constexpr const char *function = "fcm_top_k";
    return fcm::guarded(function, error, [&] {
        fcm::Arguments arguments(function, error);
        arguments.context(context).sizes(clients, n);
        arguments.require(k >= 0 && k <= n, "k = %" PRId64 " is outside [0, %" PRId64 "]", k, n)
            .mapped("x", x, x_stride, "y", y, y_stride, clients, n)
            .disjoint();
        if (!arguments.ok() || clients == 0 || n == 0) return arguments.status();
        return fcm::on_device(function, context, error, [&] {
            const fcm::Place bad = fcm::first_not_finite(context, clients, n, x, x_stride);
            if (bad.client >= 0) return fcm::fail_not_finite(function, "x", bad, error);
            for (int64_t first = 0; first < clients; first += fcm::kClientsAtOnce) {
                fcm::top_k(context, std::min(fcm::kClientsAtOnce, clients - first), n, k, x + first * x_stride, x_stride,
                           y + first * y_stride, y_stride);
            }
            return fcm_status{FCM_OK};
        });
    });
}
