// Means whose bits do not depend on the order of their terms: fedcomuon.h has the three steps, ADR 16 why they are exact. This
// file is compiled once for each instruction set. Everything before the rounding of a term is exact or rounded once, and what
// follows is the arithmetic of integers, so that all sets give the same bits.
#include "means.h"

#include <cstring>
#include <type_traits>
#if defined(__AVX512DQ__)
#include <immintrin.h>
#endif

namespace fcm {
namespace {

// Reads of the same memory as another type.
typedef uint32_t Word __attribute__((may_alias));

// An exponent is kept where a float has it.
constexpr uint32_t kExponentBits = 0x7f800000u;
constexpr int kExponentShift = 23;

// Elements of a tile. Its exponents, sums and means stay in the L1 cache, and its rows, which are read twice and written, in
// the L2 cache if they fit. Tiles are short, so that reads of later ones, which come while this one is summed, and writes are
// spread evenly: with 512 elements the memory was used by a third less.
constexpr int64_t kTile = 128;
constexpr int64_t kLeastTile = 64;
constexpr int64_t kTileBytes = 256 * 1024;

// How far ahead of a tile's sums rows are fetched: several tiles, because its other passes fetch nothing.
constexpr int64_t kAhead = 512;

// At most `most` elements, fewer if there are so many rows that they would not fit.
int64_t fitting(int64_t clients, int64_t most) {
    const int64_t fit = kTileBytes / static_cast<int64_t>(sizeof(float)) / clients / kLeastTile * kLeastTile;
    return fit < kLeastTile ? kLeastTile : fit > most ? most : fit;
}

// So many rows are read at a time: one core then reaches more of the memory bandwidth than with one stream. Up to so many
// clients are summed in registers.
constexpr int kGroup = 16;
constexpr int64_t kBlock = 64;
constexpr int64_t kLine = 64 / sizeof(float);

struct Tile {
    alignas(64) uint32_t exponent[kTile];
    alignas(64) uint64_t sum[kTile];
};

// Rows with positive weights, from the first element of a tile on.
struct Group {
    const float *row[kGroup];
    double weight[kGroup];
};

template <bool Weighted>
inline double term(float x, double weight) {
    return Weighted ? weight * static_cast<double>(x) : static_cast<double>(x);
}

// ---- Exponents ----

#if defined(__AVX512DQ__)

typedef uint64_t EightSums __attribute__((vector_size(8 * sizeof(uint64_t))));
typedef double EightDoubles __attribute__((vector_size(8 * sizeof(double))));
constexpr __mmask8 kAll = 0xff;
inline __mmask8 first_of_eight(int64_t count) { return static_cast<__mmask8>((1u << count) - 1u); }

// The terms of eight elements; only those of the mask are read. (Intrinsics without a mask make this version of GCC warn of
// what they leave undefined, and it converts a vector by halves.)
template <bool Weighted>
inline EightDoubles eight_terms(__mmask8 some, const float *row, double weight) {
    const auto values = (EightDoubles)_mm512_maskz_cvtps_pd(kAll, _mm256_maskz_loadu_ps(some, row));
    return Weighted ? weight * values : values;
}

#endif

template <int G>
inline void raise_block(int64_t n, const float *const *row, uint32_t *__restrict exponent) {
#pragma GCC ivdep
    for (int64_t j = 0; j < n; ++j) {
        uint32_t largest = exponent[j];
#pragma GCC unroll 16
        for (int i = 0; i < G; ++i) {
            const uint32_t bits = reinterpret_cast<const Word *>(row[i])[j] & kExponentBits;
            largest = bits > largest ? bits : largest;
        }
        exponent[j] = largest;
    }
}

#if defined(__AVX512DQ__)

template <int G>
inline void raise_eight(__mmask8 some, const float *const *row, const double *weight, int64_t j, uint32_t *exponent) {
    __m256i largest = _mm256_maskz_loadu_epi32(some, exponent + j);
#pragma GCC unroll 16
    for (int i = 0; i < G; ++i) {
        const EightDoubles terms = eight_terms<true>(some, row[i] + j, weight[i]);
        const __m256i bits = _mm256_castps_si256(_mm512_maskz_cvtpd_ps(kAll, (__m512d)terms));
        largest = _mm256_max_epi32(largest, _mm256_and_si256(bits, _mm256_set1_epi32(kExponentBits)));
    }
    _mm256_mask_storeu_epi32(exponent + j, some, largest);
}

template <int G>
inline void raise_weighted_block(int64_t n, const float *const *row, const double *weight, uint32_t *exponent) {
    int64_t j = 0;
    for (; j + 8 <= n; j += 8) raise_eight<G>(kAll, row, weight, j, exponent);
    if (j < n) raise_eight<G>(first_of_eight(n - j), row, weight, j, exponent);
}

#else

template <int G>
inline void raise_weighted_block(int64_t n, const float *const *row, const double *weight, uint32_t *__restrict exponent) {
#pragma GCC ivdep
    for (int64_t j = 0; j < n; ++j) {
        uint32_t largest = exponent[j];
#pragma GCC unroll 16
        for (int i = 0; i < G; ++i) {
            const auto rounded = static_cast<float>(term<true>(row[i][j], weight[i]));
            uint32_t bits;
            std::memcpy(&bits, &rounded, sizeof bits);
            bits &= kExponentBits;
            largest = bits > largest ? bits : largest;
        }
        exponent[j] = largest;
    }
}

#endif

// ---- Sums ----

#if defined(__AVX512DQ__)

template <int G, bool Weighted>
inline void add_eight(__mmask8 some, const float *const *row, const double *weight, int64_t j, uint64_t offset,
                      const uint32_t *exponent, uint64_t *sum) {
    const auto exponents = (EightSums)_mm512_maskz_cvtepu32_epi64(kAll, _mm256_maskz_loadu_epi32(some, exponent + j));
    const auto scale = (EightDoubles)(offset - (exponents << (52 - kExponentShift)));
    auto total = (EightSums)_mm512_maskz_loadu_epi64(some, sum + j);
#pragma GCC unroll 16
    for (int i = 0; i < G; ++i) {
        const EightDoubles scaled = eight_terms<Weighted>(some, row[i] + j, weight[i]) * scale;
        total += (EightSums)_mm512_maskz_cvtpd_epi64(kAll, (__m512d)scaled);
    }
    _mm512_mask_storeu_epi64(sum + j, some, (__m512i)total);
}

template <int G, bool Weighted>
inline void add_block(int64_t n, int bits, const float *const *row, const double *weight, const uint32_t *exponent,
                      uint64_t *sum) {
    const uint64_t offset = static_cast<uint64_t>(bits + 126 + 1023) << 52;
    int64_t j = 0;
    for (; j + 8 <= n; j += 8) add_eight<G, Weighted>(kAll, row, weight, j, offset, exponent, sum);
    if (j < n) add_eight<G, Weighted>(first_of_eight(n - j), row, weight, j, offset, exponent, sum);
}

#else

// Without an instruction that rounds doubles to 64-bit integers, a term is taken apart. Adding 1.5 2^52 rounds a double to an
// integer, which the bits of the result then hold as a number in two's complement. The term, in units of 2^32, is rounded in
// this way; the difference is exact and at most a half, and adding 1.5 2^20 rounds it to a multiple of 2^-32, which is a unit
// of the sum. Both round ties to even, and the first part is an even number of units, so that together they round the term.
constexpr double kHighMagic = 0x1.8p52;
constexpr double kLowMagic = 0x1.8p20;
constexpr uint64_t kLowMagicBits = 0x4138000000000000u;

typedef float FourFloats __attribute__((vector_size(4 * sizeof(float))));
typedef uint32_t FourWords __attribute__((vector_size(4 * sizeof(uint32_t))));
typedef double FourDoubles __attribute__((vector_size(4 * sizeof(double))));
typedef uint64_t FourSums __attribute__((vector_size(4 * sizeof(uint64_t))));

template <class To, class From>
inline To as(From value) {
    static_assert(sizeof(To) == sizeof(From), "the same bits");
    To result;
    std::memcpy(&result, &value, sizeof result);
    return result;
}
inline FourDoubles widened(FourFloats values) { return __builtin_convertvector(values, FourDoubles); }
inline FourSums widened(FourWords values) { return __builtin_convertvector(values, FourSums); }
inline double widened(float value) { return static_cast<double>(value); }
inline uint64_t widened(uint32_t value) { return value; }

// One element of each row, or four.
template <int G, bool Weighted, class Floats, class Words, class Doubles, class Sums>
inline void add_some(const float *const *row, const double *weight, int64_t j, uint64_t offset, const uint32_t *exponent,
                     uint64_t *sum) {
    Words exponents;
    std::memcpy(&exponents, exponent + j, sizeof exponents);
    const auto scale = as<Doubles>(offset - (widened(exponents) << (52 - kExponentShift)));
    Sums high{};  // the bits of the magic number are above the 32 that are used
    Sums low{};
#pragma GCC unroll 16
    for (int i = 0; i < G; ++i) {
        Floats x;
        std::memcpy(&x, row[i] + j, sizeof x);
        const Doubles term = Weighted ? weight[i] * widened(x) : widened(x);
        const Doubles value = term * scale;
        const Doubles whole = value + kHighMagic;
        high += as<Sums>(whole);
        low += as<Sums>((value - (whole - kHighMagic)) + kLowMagic);
    }
    Sums total;
    std::memcpy(&total, sum + j, sizeof total);
    total += (high << 32) + (low - static_cast<uint64_t>(G) * kLowMagicBits);
    std::memcpy(sum + j, &total, sizeof total);
}

template <int G, bool Weighted>
inline void add_block(int64_t n, int bits, const float *const *row, const double *weight, const uint32_t *exponent,
                      uint64_t *sum) {
    const uint64_t offset = static_cast<uint64_t>(bits + 126 - 32 + 1023) << 52;
    const int64_t fours = n - n % 4;
    for (int64_t j = 0; j < fours; j += 4) {
        add_some<G, Weighted, FourFloats, FourWords, FourDoubles, FourSums>(row, weight, j, offset, exponent, sum);
    }
    for (int64_t j = fours; j < n; ++j) {
        add_some<G, Weighted, float, uint32_t, double, uint64_t>(row, weight, j, offset, exponent, sum);
    }
}

#endif

// ---- All rows ----

// Calls body(G, row, weight, j, length) for blocks of n elements, whose length is a constant; the rest comes row by row. Before
// each block, the elements that are `ahead` of it are brought to the L2 cache.
template <int G, class Body>
inline void for_blocks(const Group &group, int64_t n, int64_t ahead, Body &&body) {
    const int64_t whole = n - n % kBlock;
    for (int64_t j = 0; j < whole; j += kBlock) {
        const float *row[G];
        for (int i = 0; i < G; ++i) {
            row[i] = group.row[i] + j;
            for (int64_t l = 0; l < kBlock && ahead > 0; l += kLine) __builtin_prefetch(row[i] + ahead + l, 0, 2);
        }
        body(std::integral_constant<int, G>(), row, group.weight, j, std::integral_constant<int64_t, kBlock>());
    }
    for (int i = 0; i < G && whole < n; ++i) {
        const float *row = group.row[i] + whole;
        body(std::integral_constant<int, 1>(), &row, group.weight + i, whole, n - whole);
    }
}

template <int G, bool Weighted>
void raise(const Group &group, int64_t n, int64_t ahead, uint32_t *exponent) {
    for_blocks<G>(group, n, ahead, [&](auto rows, const float *const *row, const double *weight, int64_t j, auto length) {
        if constexpr (Weighted) {
            raise_weighted_block<rows>(length, row, weight, exponent + j);
        } else {
            raise_block<rows>(length, row, exponent + j);
        }
    });
}

template <int G, bool Weighted>
void add(const Group &group, int64_t n, int bits, int64_t ahead, const uint32_t *exponent, uint64_t *sum) {
    for_blocks<G>(group, n, ahead, [&](auto rows, const float *const *row, const double *weight, int64_t j, auto length) {
        add_block<rows, Weighted>(length, bits, row, weight, exponent + j, sum + j);
    });
}

// Calls body(G, group) for groups of G rows with positive weights, from element `at` on; G is a constant.
template <int G = kGroup, class Body>
inline void with_constant(int count, const Group &group, Body &&body) {
    if constexpr (G > 0) {
        if (count == G) return body(std::integral_constant<int, G>(), group);
        with_constant<G - 1>(count, group, body);
    }
}
template <class Body>
inline void for_groups(const MeanTerms &terms, int64_t at, Body &&body) {
    Group group{};
    int count = 0;
    for (int64_t k = 0; k < terms.clients; ++k) {
        const double weight = terms.weights == nullptr ? 1.0 : terms.weights[k];
        if (weight == 0.0) continue;
        group.row[count] = terms.rows.row(k) + at;
        group.weight[count++] = weight;
        if (count < kGroup) continue;
        body(std::integral_constant<int, kGroup>(), group);
        count = 0;
    }
    if (count > 0) with_constant(count, group, body);
}

__attribute__((noinline)) void exponents_of_tile(const MeanTerms &terms, int64_t at, int64_t n, int64_t ahead,
                                                 uint32_t *exponent) {
    std::memset(exponent, 0, static_cast<size_t>(n) * sizeof *exponent);
    for_groups(terms, at, [&](auto count, const Group &group) {
        if (terms.weights == nullptr) {
            raise<count, false>(group, n, ahead, exponent);
        } else {
            raise<count, true>(group, n, ahead, exponent);
        }
    });
}

__attribute__((noinline)) void sums_of_tile(const MeanTerms &terms, int64_t at, int64_t n, int64_t ahead,
                                            const uint32_t *exponent, uint64_t *sum) {
    std::memset(sum, 0, static_cast<size_t>(n) * sizeof *sum);
    for_groups(terms, at, [&](auto count, const Group &group) {
        if (terms.weights == nullptr) {
            add<count, false>(group, n, terms.bits, ahead, exponent, sum);
        } else {
            add<count, true>(group, n, terms.bits, ahead, exponent, sum);
        }
    });
}

// The sum, as a signed number. Its halves become the last bits of 2^84 + 2^63 and of 2^52; the subtraction of these is exact,
// so that the sum is rounded once, in the last addition. AVX2 has no instruction for it.
inline double to_double(uint64_t sum) {
    const uint64_t high_bits = (sum >> 32) ^ 0x4530000080000000u;
    const uint64_t low_bits = (sum & 0xffffffffu) | 0x4330000000000000u;
    double high;
    double low;
    std::memcpy(&high, &high_bits, sizeof high);
    std::memcpy(&low, &low_bits, sizeof low);
    return (high - 0x1.0000080100000p84) + low;
}

void finish_tile(int64_t n, int bits, double total, const uint32_t *__restrict exponent, const uint64_t *__restrict sum,
                 float *__restrict mean) {
    const uint64_t offset = static_cast<uint64_t>(1023 - 126 - bits) << 52;
    for (int64_t j = 0; j < n; ++j) {
        const uint64_t scale_bits = offset + (static_cast<uint64_t>(exponent[j]) << (52 - kExponentShift));
        double scale;
        std::memcpy(&scale, &scale_bits, sizeof scale);
        const auto value = static_cast<float>(to_double(sum[j]) * scale / total);
        uint32_t value_bits;
        std::memcpy(&value_bits, &value, sizeof value);
        value_bits = exponent[j] == kExponentBits ? 0x7fc00000u : value_bits;
        std::memcpy(mean + j, &value_bits, sizeof value_bits);
    }
}

typedef float Line __attribute__((vector_size(kLine * sizeof(float))));

// Copies of a few hundred elements; memcpy is slower for them.
void write(int64_t n, const float *mean, int64_t at, int64_t target_count, const Rows &targets) {
    const int64_t whole = n - n % kBlock;
    for (int64_t t = 0; t < target_count; ++t) {
        float *target = targets.row(t) + at;
        for (int64_t j = 0; j < whole; j += kBlock) {
            Line lines[kBlock / kLine];
            std::memcpy(lines, mean + j, sizeof lines);
            std::memcpy(target + j, lines, sizeof lines);
        }
        std::memcpy(target + whole, mean + whole, static_cast<size_t>(n - whole) * sizeof *mean);
    }
}

template <class Body>
inline void for_tiles(int64_t rows, int64_t at, int64_t n, Body &&body) {
    const int64_t tile = fitting(rows, kTile);
    for (int64_t start = 0; start < n; start += tile) body(at + start, n - start < tile ? n - start : tile);
}

}  // namespace

#define FCM_JOIN_(a, b) a##b
#define FCM_JOIN(a, b) FCM_JOIN_(a, b)

void FCM_JOIN(average_, FCM_ISA)(const MeanTerms &terms, int64_t at, int64_t n, double total, int64_t target_count,
                                 const Rows &targets) {
    Tile tile;
    alignas(64) float mean[kTile];
    const int64_t ahead = fitting(terms.clients, kAhead);
    for_tiles(terms.clients, at, n, [&](int64_t start, int64_t length) {
        exponents_of_tile(terms, start, length, 0, tile.exponent);
        sums_of_tile(terms, start, length, ahead, tile.exponent, tile.sum);
        finish_tile(length, terms.bits, total, tile.exponent, tile.sum, mean);
        write(length, mean, start, target_count, targets);
    });
}

void FCM_JOIN(mean_exponents_, FCM_ISA)(const MeanTerms &terms, int64_t at, int64_t n, uint8_t *exponents) {
    alignas(64) uint32_t exponent[kTile];
    const int64_t ahead = fitting(terms.clients, kAhead);
    for_tiles(1, at, n, [&](int64_t start, int64_t length) {
        exponents_of_tile(terms, start, length, ahead, exponent);
        for (int64_t j = 0; j < length; ++j) exponents[start + j] = static_cast<uint8_t>(exponent[j] >> kExponentShift);
    });
}

void FCM_JOIN(mean_sums_, FCM_ISA)(const MeanTerms &terms, int64_t at, int64_t n, const uint8_t *exponents, int64_t *sums) {
    Tile tile;
    const int64_t ahead = fitting(terms.clients, kAhead);
    for_tiles(1, at, n, [&](int64_t start, int64_t length) {
        for (int64_t j = 0; j < length; ++j) tile.exponent[j] = static_cast<uint32_t>(exponents[start + j]) << kExponentShift;
        sums_of_tile(terms, start, length, ahead, tile.exponent, tile.sum);
        for (int64_t j = 0; j < length; ++j) {
            sums[start + j] = tile.exponent[j] == kExponentBits ? 0 : static_cast<int64_t>(tile.sum[j]);
        }
    });
}

void FCM_JOIN(mean_combine_, FCM_ISA)(int64_t parts, int64_t at, int64_t n, const uint8_t *const *exponents, uint8_t *to) {
    alignas(64) uint8_t largest[kTile];  // `to` may be a part
    for_tiles(1, at, n, [&](int64_t start, int64_t length) {
        std::memcpy(largest, exponents[0] + start, static_cast<size_t>(length));
        for (int64_t p = 1; p < parts; ++p) {
            const uint8_t *__restrict part = exponents[p] + start;
            for (int64_t j = 0; j < length; ++j) largest[j] = part[j] > largest[j] ? part[j] : largest[j];
        }
        std::memcpy(to + start, largest, static_cast<size_t>(length));
    });
}

void FCM_JOIN(mean_finish_, FCM_ISA)(int64_t parts, int64_t at, int64_t n, int bits, double total, const int64_t *const *sums,
                                     const uint8_t *exponents, int64_t target_count, const Rows &targets) {
    Tile tile;
    alignas(64) float mean[kTile];
    for_tiles(1, at, n, [&](int64_t start, int64_t length) {
        for (int64_t j = 0; j < length; ++j) tile.exponent[j] = static_cast<uint32_t>(exponents[start + j]) << kExponentShift;
        std::memcpy(tile.sum, sums[0] + start, static_cast<size_t>(length) * sizeof *tile.sum);
        for (int64_t p = 1; p < parts; ++p) {
            const int64_t *__restrict part = sums[p] + start;
            for (int64_t j = 0; j < length; ++j) tile.sum[j] += static_cast<uint64_t>(part[j]);
        }
        finish_tile(length, bits, total, tile.exponent, tile.sum, mean);
        write(length, mean, start, target_count, targets);
    });
}

}  // namespace fcm
