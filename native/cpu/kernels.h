// The inner loops, one table an instruction set. kernels.cpp and small_schulz.cpp are compiled once for each.
#pragma once

#include <cstdint>

namespace fcm {

// How a Newton-Schulz matrix is laid out while it is worked on: Y = X^T, `length` rows (the long side) of
// `width` floats (the short side, padded with zeros), so that X X^T = Y^T Y and B X = (Y B)^T both run
// along contiguous rows without a transposition a step.
struct SmallSchulz {
    int64_t side;    // short side n
    int64_t width;   // n rounded up to kSchulzPad
    int64_t length;  // long side
    int64_t pitch;   // from row to row of gram and poly, an odd number of cache lines so that a strip of columns stays cached
    float *y;        // length x width
    float *gram;     // width x pitch: A = X X^T
    float *poly;     // width x pitch: B = b A + c A A
    float *panel;    // kSchulzPanel x width
};
constexpr int64_t kSchulzPad = 16;
constexpr int64_t kSchulzPanel = 64;

// out = base_factor base + product_factor A B; A[i, k] = a[i * a_row + k * a_col], B[k, j] = b[k * b_row + j * b_col],
// base and out row-major without gaps. The sum over k is cut into stretches; for each, B is packed once for all and A
// by whoever works on a block of its rows.
struct Product {
    int64_t rows;
    int64_t cols;
    int64_t depth;
    bool symmetric;  // the result is: tiles below the diagonal are left out and mirrored in the end
    const float *a;
    int64_t a_row;
    int64_t a_col;
    const float *b;
    int64_t b_row;
    int64_t b_col;
    const float *base;  // null for none
    float *out;
    float base_factor;
    float product_factor;
};
constexpr int64_t kProductDepth = 256;  // of a stretch
constexpr int64_t kProductRows = 24;    // of a block
constexpr int64_t kProductPanel = 48;   // columns of B packed side by side, a multiple of every tile's width

// Sums run over pieces of this many elements; piece sums are added in order. Never a function of threads.
constexpr int64_t kSumPiece = 16384;

// The server's step of FedAdam and FedYogi.
struct AdaptiveStep {
    bool yogi;
    double beta1;
    double beta2;
    double epsilon;
    double eta;
};

// Magnitudes of floats order like their bits without the sign, 31 of them. They are searched digit by digit, the
// highest first; a table of counts a digit stays in the first-level cache.
struct Digit {
    int shift;
    int width;
};
constexpr Digit kMagnitudeDigits[] = {{20, 11}, {10, 10}, {0, 10}};
constexpr int64_t kDigitValues = int64_t{1} << 11;  // of the widest

struct Kernels {
    // y = a x + keep y
    void (*ema)(int64_t n, float a, float keep, const float *x, float *y);
    // m = keep m + b sum_i v_i h_i, h_i = h + i * block; keep == 0 does not read m
    void (*compose)(int64_t n, int64_t d, int64_t block, float b, float keep, const float *h, const float *v, float *m);
    // h_i = scale h_i first, in the same pass; 0 < scale < 1, below the range of float too
    void (*scale_compose)(int64_t n, int64_t d, int64_t block, double scale, float b, float keep, float *h, const float *v,
                          float *m);
    // h = g_new + keep (h - g_old); returns the sum of squares of the result
    double (*storm)(int64_t n, float keep, const float *g_new, const float *g_old, float *h);
    double (*sum_of_squares)(int64_t n, const float *x);
    // w -= step m; the product is rounded once, so that 1 / ||m|| may leave the range of float
    void (*step)(int64_t n, double step, const float *m, float *w);
    // Every row becomes the weighted mean: sum_k weights[k] x_k / total in double, in order. weights null: 1 each.
    void (*average)(int64_t clients, int64_t n, const double *weights, double total, float *x, int64_t stride);
    // The first index that is NaN or Inf, or -1.
    int64_t (*first_not_finite)(int64_t n, const float *x);
    void (*triad)(int64_t n, float s, const float *b, const float *c, float *a);
    void (*triad_non_temporal)(int64_t n, float s, const float *b, const float *c, float *a);

    // y = x * factor in double, rounded once; x is rows x cols row-major.
    void (*schulz_load)(const SmallSchulz &w, const float *x, int64_t rows, int64_t cols, double factor);
    // X = a X + b (X X^T) X + c (X X^T)^2 X
    void (*schulz_step)(const SmallSchulz &w, float a, float b, float c);
    // o = X and target -= step X, both rows x cols row-major, either may be null.
    void (*schulz_store)(const SmallSchulz &w, int64_t rows, int64_t cols, float *o, float *target, float step);

    // Rows [row, row + rows) of A over [k, k + depth), for product_rows.
    void (*product_pack_left)(const Product &p, int64_t row, int64_t rows, int64_t k, int64_t depth, float *packed);
    // The panel of kProductPanel columns from `col` on of B.
    void (*product_pack_right)(const Product &p, int64_t col, int64_t k, int64_t depth, float *packed);
    // These rows of the result over [k, k + depth). `right` holds all panels of B, one after the other.
    void (*product_rows)(const Product &p, int64_t row, int64_t rows, int64_t k, int64_t depth, const float *left,
                         const float *right);
    // Rows [row, row + rows) of the result's upper triangle, copied below the diagonal.
    void (*product_mirror)(const Product &p, int64_t row, int64_t rows);

    // y = factor x, rounded once, so that the factor may leave the range of float; x may be y
    void (*scale)(int64_t n, double factor, const float *x, float *y);

    void (*adaptive_step)(int64_t n, const AdaptiveStep &s, const float *delta, float *m, float *v, float *w);

    // counts[i] += how many magnitudes have the value i in this digit, of those that have `above` above it
    void (*count_digits)(int64_t n, Digit digit, uint32_t above, const float *x, uint32_t *counts);
    // Where the magnitude `bits` occurs for the `nth` time, counted from 1; it does.
    int64_t (*find_magnitude)(int64_t n, uint32_t bits, int64_t nth, const float *x);
    // y = x where the magnitude is at least `least`, 0 elsewhere; x may be y
    void (*keep_magnitudes)(int64_t n, uint32_t least, const float *x, float *y);
};

const Kernels &kernels_baseline();
#ifdef FCM_X86_64
const Kernels &kernels_avx2();
const Kernels &kernels_avx512();
#endif

}  // namespace fcm
