// Top-k: keeps the elements of largest magnitude of every client. The smallest magnitude that is kept is found by a radix
// search, digit by digit, the highest digit first; among elements equal to it, the last index that is kept is found in the
// same way. Counts are integers, so the order in which they are added does not matter, and the result is bit-identical to
// the CPU.
#include <algorithm>

#include "context.h"
#include "device.h"
#include "device_functions.h"

namespace fcm {

// The magnitudes of floats have the same order as their 31 bits without the sign.
constexpr int kDigitWidth = 11;
constexpr int kDigitValues = 1 << kDigitWidth;
struct Digit {
    int32_t shift;
    int32_t width;
};
constexpr Digit kMagnitudeDigits[] = {{20, 11}, {10, 10}, {0, 10}};

// The state of one client's search.
struct Search {
    unsigned long long alike;   // number of elements with the digits found so far
    unsigned long long wanted;  // how many of those are kept
    unsigned long long end;     // elements equal to `bits` are kept before this index, which is found digit by digit as well
    unsigned bits;
    int32_t done;  // all of `alike` are kept: the remaining digits are zero, and no tie has to be broken
};

// One client's part of the scratch buffer.
struct Counts {
    Search search;
    unsigned long long of[kDigitValues];
};

// The digit of element j that is counted, or -1 for elements that are no longer candidates.
struct MagnitudeDigit {
    Digit digit;

    __device__ __forceinline__ int of(const Search &search, float value, int64_t) const {
        const unsigned bits = __float_as_uint(value) & 0x7fffffffu;
        const unsigned above = static_cast<unsigned>(digit.shift + digit.width);
        if (bits >> above != search.bits >> above) return -1;
        return static_cast<int>(bits >> digit.shift & ((1u << digit.width) - 1u));
    }
};

// Lower indices are preferred, so the digits of the index are counted in reverse.
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

// Adds the block's contribution to every client's counts. Blocks take kTopPiece elements at a time.
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
        if (search.done != 0) continue;  // the same for all threads of the block
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

// Finds the digit of the wanted-th element, counted from the largest digit down. Every thread has a run of digits; the
// thread whose run contains the element searches it.
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
        // A narrower digit has no counts above its range; if no element is wanted, the highest digit is taken.
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
                // Reversed again. Once all digits are known, `end` is the index of the last element that is kept.
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

// Initializes a search.
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

// Runs between the search for magnitudes and the one for indices: if all equal elements are kept, the index does not matter.
extern "C" __global__ void __launch_bounds__(kThreads) fcm_k_top_k_ties(int64_t clients, fcm::Counts *counts) {
    for (int64_t client = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; client < clients;
         client += static_cast<int64_t>(gridDim.x) * kThreads) {
        fcm::Search &search = counts[client].search;
        if (search.done != 0) search.end = ~0ull;
    }
}

// Changes `end` from the index of the last element that is kept to the one after it.
extern "C" __global__ void __launch_bounds__(kThreads) fcm_k_top_k_end(int64_t clients, fcm::Counts *counts) {
    for (int64_t client = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; client < clients;
         client += static_cast<int64_t>(gridDim.x) * kThreads) {
        fcm::Search &search = counts[client].search;
        if (search.end != ~0ull) search.end += 1;
    }
}

extern "C" __global__ void __launch_bounds__(kThreads)
    fcm_k_keep(int64_t clients, int64_t n, int32_t vectors, fcm::Keep op, const fcm::Status *status) {
    if (!fcm::stopped(status)) fcm::for_elements(clients, n, vectors != 0, op);
}

namespace fcm {
namespace {

// The number of clients that fit the scratch buffer at a time.
constexpr int64_t kClientsAtOnce = kScratchBytes / static_cast<int64_t>(sizeof(Counts));
static_assert(kClientsAtOnce >= 32, "the scratch is too small");

// Enough for 2^55 elements, more than the address space holds.
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
           Keep{x, x_stride, y, y_stride, counts}, context->status);
    launched("fcm_k_keep", clients, n);
}

}  // namespace

fcm_status device::top_k(fcm_context *context, int64_t clients, int64_t n, int64_t k, const float *x, int64_t x_stride,
                         float *y, int64_t y_stride, fcm_error *error) {
    constexpr const char *function = "fcm_top_k";
    return on_device(function, context, error, [&] {
        look_for_not_finite(context, clients, n, x, x_stride, nullptr, 0,
                            ask(context, Question::about(function, "x", Sought::kNotFinite, clients, x, x_stride)));
        for (int64_t first = 0; first < clients; first += kClientsAtOnce) {
            fcm::top_k(context, std::min(kClientsAtOnce, clients - first), n, k, x + first * x_stride, x_stride,
                       y + first * y_stride, y_stride);
        }
    });
}

}  // namespace fcm
