// The inner loops, as one table per instruction set. kernels.cpp, means.cpp, product.cpp and small_schulz.cpp are compiled once
// for each set.
#pragma once

#include <cstdint>

#include "fedcomuon.h"

namespace fcm {

// The layout of a Newton-Schulz matrix during the iteration: Y = X^T has `length` rows (the long side) of `width` floats
// (the short side, padded with zeros). X X^T = Y^T Y and B X = (Y B)^T then both run along contiguous rows, and no step
// needs a transposition.
struct SmallSchulz {
    int64_t side;    // short side n
    int64_t width;   // n rounded up to kSchulzPad
    int64_t length;  // long side
    int64_t pitch;   // row stride of gram and poly: an odd number of cache lines, so that a strip of columns stays cached
    float *y;        // length x width
    float *gram;     // width x pitch: A = X X^T
    float *poly;     // width x pitch: B = b A + c A A
    float *panel;    // kSchulzPanel x width
    float *pairs;    // kSchulzPairs: operands as bf16, two numbers in the place of a float, or rounded to tf32; not in fp32
    int32_t precision;
};
constexpr int64_t kSchulzPad = 16;
constexpr int64_t kSchulzPanel = 64;
// The pairs of a square of the longest side with its pitch, and beside them those of a panel.
constexpr int64_t kSchulzPairs = FCM_SMALL_SIDE / 2 * (FCM_SMALL_SIDE + kSchulzPad + kSchulzPanel);

// out = base_factor base + product_factor A B with A[i, k] = a[i * a_row + k * a_col] and B[k, j] = b[k * b_row + j *
// b_col]; base and out are row-major without gaps. The sum over k is cut into stretches. For each stretch, B is packed once
// for all threads, and A is packed by the thread that works on the block of rows.
struct Product {
    int64_t rows;
    int64_t cols;
    int64_t depth;
    bool symmetric;  // the result is symmetric: tiles below the diagonal are skipped and mirrored at the end
    const float *a;
    int64_t a_row;
    int64_t a_col;
    const float *b;
    int64_t b_row;
    int64_t b_col;
    const float *base;  // may be null
    float *out;
    float base_factor;
    float product_factor;
    // FCM_TF32: the factors are rounded. FCM_BF16: the factors, the base and the result are.
    int32_t precision;
};
constexpr int64_t kProductDepth = 256;  // depth of a stretch
constexpr int64_t kProductRows = 24;    // rows of a block
constexpr int64_t kProductPanel = 48;   // columns of B packed side by side, a multiple of the width of every tile

// Sums run over pieces of this many elements, and the sums of the pieces are added in order. The size never depends on the
// number of threads, so that results are bit-identical for any number of them.
constexpr int64_t kSumPiece = 16384;
constexpr int kSumsAtOnce = 4;  // pieces that are summed side by side, each on its own

// The server step of FedAdam and FedYogi.
struct AdaptiveStep {
    bool yogi;
    double beta1;
    double beta2;
    double epsilon;
    double eta;
};

// Rows at the addresses of a table, or, if there is none, `stride` apart.
struct Rows {
    float *const *table;
    float *base;
    int64_t stride;

    float *row(int64_t k) const { return table != nullptr ? table[k] : base + k * stride; }
};

// The terms of a mean, of which each has this many bits. If weights is null, each weight is 1.
struct MeanTerms {
    int64_t clients;
    const double *weights;
    int bits;
    Rows rows;  // only read
};

// The magnitudes of floats have the same order as their 31 bits without the sign. They are searched digit by digit, the
// highest digit first; the table of counts for one digit fits the L1 cache.
struct Digit {
    int shift;
    int width;
};
constexpr Digit kMagnitudeDigits[] = {{20, 11}, {10, 10}, {0, 10}};
constexpr int64_t kDigitValues = int64_t{1} << 11;  // values of the widest digit

// The step of the state of SplitMix64, whose numbers are therefore known by their position.
constexpr uint64_t kSplitMixStep = 0x9e3779b97f4a7c15u;

struct Kernels {
    // y = a x + keep y
    void (*ema)(int64_t n, float a, float keep, const float *x, float *y);
    // m = keep m + b sum_i v_i h_i, h_i = h + i * block; m is not read if keep == 0
    void (*compose)(int64_t n, int64_t d, int64_t block, float b, float keep, const float *h, const float *v, float *m);
    // The same after h_i = scale h_i, in one pass; 0 < scale < 1, and scale may lie below the range of float
    void (*scale_compose)(int64_t n, int64_t d, int64_t block, double scale, float b, float keep, float *h, const float *v,
                          float *m);
    // h = g_new + keep (h - g_old); returns the sum of squares of the result
    double (*storm)(int64_t n, float keep, const float *g_new, const float *g_old, float *h);
    double (*sum_of_squares)(int64_t n, const float *x);
    // The same of kSumsAtOnce whole pieces, one after the other in memory; a sum for each.
    void (*sums_of_squares)(const float *x, double *sums);
    // w -= step m; the product is computed in double and rounded once, so that 1 / ||m|| may leave the range of float
    void (*step)(int64_t n, double step, const float *m, float *w);
    // Elements [at, at + n) of a mean in one pass over memory, written to all targets. `total` is the sum of the weights.
    void (*average)(const MeanTerms &terms, int64_t at, int64_t n, double total, int64_t target_count, const Rows &targets);
    // The steps of a mean, for elements [at, at + n).
    void (*mean_exponents)(const MeanTerms &terms, int64_t at, int64_t n, uint8_t *exponents);
    void (*mean_sums)(const MeanTerms &terms, int64_t at, int64_t n, const uint8_t *exponents, int64_t *sums);
    void (*mean_combine)(int64_t parts, int64_t at, int64_t n, const uint8_t *const *exponents, uint8_t *to);
    void (*mean_finish)(int64_t parts, int64_t at, int64_t n, int bits, double total, const int64_t *const *sums,
                        const uint8_t *exponents, int64_t target_count, const Rows &targets);
    // Returns the first index with NaN or Inf, or -1.
    int64_t (*first_not_finite)(int64_t n, const float *x);
    void (*triad)(int64_t n, float s, const float *b, const float *c, float *a);
    void (*triad_non_temporal)(int64_t n, float s, const float *b, const float *c, float *a);

    // y = x * factor, computed in double and rounded once, to bf16 if that is the precision; x is rows x cols, row-major.
    void (*schulz_load)(const SmallSchulz &w, const float *x, int64_t rows, int64_t cols, double factor);
    // X = a X + b (X X^T) X + c (X X^T)^2 X
    void (*schulz_step)(const SmallSchulz &w, float a, float b, float c);
    // o = X and target -= step X, both rows x cols, row-major; either may be null.
    void (*schulz_store)(const SmallSchulz &w, int64_t rows, int64_t cols, float *o, float *target, float step);

    // Packs rows [row, row + rows) of A over [k, k + depth) for product_rows.
    void (*product_pack_left)(const Product &p, int64_t row, int64_t rows, int64_t k, int64_t depth, float *packed);
    // Packs the panel of B with the kProductPanel columns that start at `col`.
    void (*product_pack_right)(const Product &p, int64_t col, int64_t k, int64_t depth, float *packed);
    // Computes these rows of the result over [k, k + depth). `right` holds all panels of B, one after the other.
    void (*product_rows)(const Product &p, int64_t row, int64_t rows, int64_t k, int64_t depth, const float *left,
                         const float *right);
    // Copies rows [row, row + rows) of the upper triangle of the result below the diagonal.
    void (*product_mirror)(const Product &p, int64_t row, int64_t rows);
    // Rounds as FCM_BF16 says.
    void (*round_to_bf16)(int64_t n, float *x);

    // y = factor x, computed in double and rounded once, so that the factor may leave the range of float; x may be y
    void (*scale)(int64_t n, double factor, const float *x, float *y);

    void (*adaptive_step)(int64_t n, const AdaptiveStep &s, const float *delta, float *m, float *v, float *w);

    // mask[j] = 1 where 16 bits of the generator SplitMix64, which has the state `state`, are a number below `left`; one of its
    // numbers serves four elements
    void (*dropout_mask)(int64_t n, int32_t left, uint64_t state, uint8_t *mask);

    // counts[i] += the number of elements whose magnitude has the value i in this digit and the bits `above` above it
    void (*count_digits)(int64_t n, Digit digit, uint32_t above, const float *x, uint32_t *counts);
    // Returns the index of the `nth` occurrence (counted from 1) of the magnitude `bits`, which must exist.
    int64_t (*find_magnitude)(int64_t n, uint32_t bits, int64_t nth, const float *x);
    // y = x where the magnitude is at least `least`, and 0 elsewhere; x may be y
    void (*keep_magnitudes)(int64_t n, uint32_t least, const float *x, float *y);
};

const Kernels &kernels_baseline();
#ifdef FCM_X86_64
const Kernels &kernels_avx2();
const Kernels &kernels_avx512();
const Kernels &kernels_avx512_bf16();
#endif

}  // namespace fcm
