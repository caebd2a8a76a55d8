// Building blocks for the references of several tests, in double and without optimizations.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

namespace reference {

// The maximum relative error of rounding to float (half an eps); below the normal range it is kTiny / 2.
constexpr double kRound = 0x1p-24;
constexpr double kTiny = 0x1p-149;

// `size` is the sum of the absolute values of all terms: rounding errors are proportional to it, not to a value that may be
// small because of cancellation.
struct Number {
    double value = 0.0;
    double size = 0.0;

    void add(double term) {
        value += term;
        size += std::fabs(term);
    }
};

// Element j of (1-b) M + b sum_i v_i scale H_i.
inline Number compose(int64_t n, int64_t d, double b, double scale, const float *h, const float *v, float m,
                      int64_t j) {
    Number result;
    for (int64_t i = 0; i < d; ++i) result.add(b * double{v[i]} * scale * double{h[i * n + j]});
    if (b != 1.0) result.add((1.0 - b) * double{m});
    return result;
}

// w - step m.
inline Number step(double step, float m, float w) {
    Number result;
    result.add(double{w});
    result.add(-step * double{m});
    return result;
}

// Computed in double and rounded to float once: an error of one u of the value. The error of double, about 2^-53 of the
// terms, is 1e-7 u of them.
inline Number rounded_once(const Number &exact) { return {exact.value, std::fabs(exact.value) + 1e-7 * exact.size}; }

// Means as fedcomuon.h defines them, with the functions of the C library.

inline int mean_bits(int64_t terms) {
    int bits = 62;
    for (int64_t most = 1; most < terms; most *= 2) --bits;
    return bits;
}

inline uint8_t mean_exponent(double term) {
    const auto rounded = static_cast<float>(term);
    if (!std::isfinite(rounded)) return 255;
    return static_cast<uint8_t>(std::max(std::ilogb(std::max(std::fabs(rounded), 0x1p-149f)) + 127, 0));
}

// The sum of a client's term; those of several clients are added modulo 2^64.
inline uint64_t mean_term(double term, uint8_t exponent, int bits) {
    if (exponent == 255) return 0;
    return static_cast<uint64_t>(std::llrint(std::ldexp(static_cast<long double>(term), bits - (exponent - 126))));
}

inline float finished_mean(uint64_t sum, uint8_t exponent, int bits, double total) {
    if (exponent == 255) return std::numeric_limits<float>::quiet_NaN();
    return static_cast<float>(std::ldexp(static_cast<double>(static_cast<int64_t>(sum)), exponent - 126 - bits) / total);
}

// One element of a mean, from the terms of all clients with positive weights.
inline float mean_of(const std::vector<double> &terms, int bits, double total) {
    uint8_t exponent = 0;
    for (const double term : terms) exponent = std::max(exponent, mean_exponent(term));
    uint64_t sum = 0;
    for (const double term : terms) sum += mean_term(term, exponent, bits);
    return finished_mean(sum, exponent, bits, total);
}

// Indices ordered by decreasing magnitude; of equal magnitudes, the lowest index comes first.
inline std::vector<int64_t> by_magnitude(int64_t n, const float *x) {
    std::vector<int64_t> order(static_cast<size_t>(n));
    std::iota(order.begin(), order.end(), int64_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t i, int64_t j) { return std::fabs(x[i]) > std::fabs(x[j]); });
    return order;
}

inline double norm(int64_t n, const float *x) {
    long double sum = 0.0L;
    for (int64_t j = 0; j < n; ++j) sum += static_cast<long double>(x[j]) * static_cast<long double>(x[j]);
    return static_cast<double>(std::sqrt(sum));
}

// A dense matrix, row-major.
struct Matrix {
    int64_t rows;
    int64_t cols;
    std::vector<double> values;

    Matrix(int64_t r, int64_t c) : rows(r), cols(c), values(static_cast<size_t>(r * c)) {}
    double &at(int64_t i, int64_t j) { return values[static_cast<size_t>(i * cols + j)]; }
    double at(int64_t i, int64_t j) const { return values[static_cast<size_t>(i * cols + j)]; }
};

inline Matrix transposed(const Matrix &a) {
    Matrix result(a.cols, a.rows);
    for (int64_t i = 0; i < a.rows; ++i) {
        for (int64_t j = 0; j < a.cols; ++j) result.at(j, i) = a.at(i, j);
    }
    return result;
}

inline Matrix times(const Matrix &a, const Matrix &b) {
    Matrix result(a.rows, b.cols);
    for (int64_t i = 0; i < a.rows; ++i) {
        for (int64_t k = 0; k < a.cols; ++k) {
            const double factor = a.at(i, k);
            for (int64_t j = 0; j < b.cols; ++j) result.at(i, j) += factor * b.at(k, j);
        }
    }
    return result;
}

// v kron I_n for a column v: d n rows, n columns.
template <class Numbers>
Matrix kronecker_identity(const Numbers &v, int64_t n) {
    Matrix result(static_cast<int64_t>(v.size()) * n, n);
    for (int64_t i = 0; i < static_cast<int64_t>(v.size()); ++i) {
        for (int64_t j = 0; j < n; ++j) result.at(i * n + j, j) = double{v[static_cast<size_t>(i)]};
    }
    return result;
}

// coefficients: one (a, b, c) per step. The Gram matrix is formed on the shorter side, as X X^T of X or of X^T; in exact
// arithmetic both are equal.
inline Matrix newton_schulz(int64_t rows, int64_t cols, const float *m, const std::vector<double> &coefficients,
                            double divisor) {
    Matrix x(rows, cols);
    const double size = norm(rows * cols, m);
    if (size == 0.0) return x;
    for (int64_t i = 0; i < rows * cols; ++i) x.values[static_cast<size_t>(i)] = double{m[i]} / (size * divisor);
    const bool tall = rows > cols;
    if (tall) x = transposed(x);
    for (size_t step = 0; step + 2 < coefficients.size(); step += 3) {
        const Matrix gram = times(x, transposed(x));
        const Matrix square = times(gram, gram);
        Matrix poly(x.rows, x.rows);
        for (size_t i = 0; i < poly.values.size(); ++i) {
            poly.values[i] = coefficients[step + 1] * gram.values[i] + coefficients[step + 2] * square.values[i];
        }
        for (int64_t i = 0; i < x.rows; ++i) poly.at(i, i) += coefficients[step];
        x = times(poly, x);
    }
    return tall ? transposed(x) : x;
}

}  // namespace reference
