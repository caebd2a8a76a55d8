// Dense linear algebra in double precision, column-major. Its purpose is to be correct, not fast: one-sided Jacobi is short
// and accurate, and no code is shared with the libraries that the CPU devices use.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

namespace vendor {

// Rounds to the nearest number with `bits` bits after the leading one, ties to even, as a tensor core does with its inputs.
// TF32 and BF16 have the exponent range of float.
inline float rounded(float value, int bits) {
    std::uint32_t word;
    std::memcpy(&word, &value, sizeof word);
    if ((word & 0x7f800000U) == 0x7f800000U) return value;  // infinity and NaN
    const int drop = 23 - bits;
    const std::uint32_t half = (1U << (drop - 1)) - 1;
    word += half + ((word >> drop) & 1U);
    word &= ~((1U << drop) - 1);
    std::memcpy(&value, &word, sizeof value);
    return value;
}

struct Bfloat16 {
    std::uint16_t bits;
};

inline double load(float value) { return static_cast<double>(value); }
inline double load(double value) { return value; }
inline double load(Bfloat16 value) {
    const std::uint32_t word = static_cast<std::uint32_t>(value.bits) << 16;
    float result;
    std::memcpy(&result, &word, sizeof result);
    return static_cast<double>(result);
}

inline void store(float &to, double value) { to = static_cast<float>(value); }
inline void store(double &to, double value) { to = value; }
inline void store(Bfloat16 &to, double value) {
    const float near = rounded(static_cast<float>(value), 7);
    std::uint32_t word;
    std::memcpy(&word, &near, sizeof word);
    to.bits = static_cast<std::uint16_t>(word >> 16);
}

// A column-major matrix without gaps.
class Dense {
  public:
    Dense() = default;
    Dense(std::int64_t rows, std::int64_t cols) : rows_(rows), cols_(cols), values_(static_cast<std::size_t>(rows * cols)) {}

    std::int64_t rows() const { return rows_; }
    std::int64_t cols() const { return cols_; }
    double &operator()(std::int64_t i, std::int64_t j) { return values_[static_cast<std::size_t>(i + j * rows_)]; }
    double operator()(std::int64_t i, std::int64_t j) const { return values_[static_cast<std::size_t>(i + j * rows_)]; }
    double *column(std::int64_t j) { return values_.data() + j * rows_; }
    const double *column(std::int64_t j) const { return values_.data() + j * rows_; }
    bool finite() const {
        return std::all_of(values_.begin(), values_.end(), [](double x) { return std::isfinite(x); });
    }
    Dense transposed() const {
        Dense result(cols_, rows_);
        for (std::int64_t j = 0; j < cols_; ++j) {
            for (std::int64_t i = 0; i < rows_; ++i) result(j, i) = (*this)(i, j);
        }
        return result;
    }

  private:
    std::int64_t rows_ = 0;
    std::int64_t cols_ = 0;
    std::vector<double> values_;
};

// bits < 23 rounds each input element.
template <typename T>
Dense read(const T *from, std::int64_t ld, std::int64_t rows, std::int64_t cols, bool transpose, int bits = 23) {
    Dense result(transpose ? cols : rows, transpose ? rows : cols);
    for (std::int64_t j = 0; j < cols; ++j) {
        for (std::int64_t i = 0; i < rows; ++i) {
            double value = load(from[i + j * ld]);
            if (bits < 23) value = static_cast<double>(rounded(static_cast<float>(value), bits));
            (transpose ? result(j, i) : result(i, j)) = value;
        }
    }
    return result;
}

template <typename T>
void write(const Dense &from, T *to, std::int64_t ld) {
    for (std::int64_t j = 0; j < from.cols(); ++j) {
        for (std::int64_t i = 0; i < from.rows(); ++i) store(to[i + j * ld], from(i, j));
    }
}

inline Dense product(const Dense &a, const Dense &b) {
    Dense c(a.rows(), b.cols());
    for (std::int64_t j = 0; j < b.cols(); ++j) {
        double *const to = c.column(j);
        for (std::int64_t l = 0; l < a.cols(); ++l) {
            const double factor = b(l, j);
            const double *const from = a.column(l);
            for (std::int64_t i = 0; i < a.rows(); ++i) to[i] += factor * from[i];
        }
    }
    return c;
}

inline double dot(const double *x, const double *y, std::int64_t n) {
    double sum = 0;
    for (std::int64_t i = 0; i < n; ++i) sum += x[i] * y[i];
    return sum;
}

struct Svd {
    Dense u;                // rows x min
    std::vector<double> s;  // descending
    Dense v;                // cols x min
    bool converged = true;
};

// Fills the columns starting at `from` so that they are orthonormal to the preceding columns and to each other. A
// rank-deficient or full decomposition needs such columns, which the data does not determine.
inline void complete(Dense &q, std::int64_t from) {
    for (std::int64_t j = from; j < q.cols(); ++j) {
        // The unit vector that is covered least by the existing columns.
        std::int64_t best = 0;
        double least = std::numeric_limits<double>::infinity();
        for (std::int64_t i = 0; i < q.rows(); ++i) {
            double covered = 0;
            for (std::int64_t k = 0; k < j; ++k) covered += q(i, k) * q(i, k);
            if (covered < least) {
                least = covered;
                best = i;
            }
        }
        double *const column = q.column(j);
        std::fill(column, column + q.rows(), 0.0);
        column[best] = 1;
        for (int pass = 0; pass < 2; ++pass) {  // two passes are sufficient
            for (std::int64_t k = 0; k < j; ++k) {
                const double along = dot(q.column(k), column, q.rows());
                for (std::int64_t i = 0; i < q.rows(); ++i) column[i] -= along * q(i, k);
            }
        }
        const double length = std::sqrt(dot(column, column, q.rows()));
        for (std::int64_t i = 0; i < q.rows(); ++i) column[i] /= length;
    }
}

// One-sided Jacobi: rotates pairs of columns of A until all are orthogonal; their lengths are the singular values.
inline Svd decompose(Dense a, double tolerance, int sweeps) {
    if (a.rows() < a.cols()) {
        Svd flipped = decompose(a.transposed(), tolerance, sweeps);
        std::swap(flipped.u, flipped.v);
        return flipped;
    }
    const std::int64_t m = a.rows(), n = a.cols();
    Svd result;
    Dense v(n, n);
    for (std::int64_t j = 0; j < n; ++j) v(j, j) = 1;
    if (!a.finite()) {
        const double nan = std::numeric_limits<double>::quiet_NaN();
        result.u = Dense(m, n);
        result.v = std::move(v);
        result.s.assign(static_cast<std::size_t>(n), nan);
        for (std::int64_t j = 0; j < n; ++j) std::fill(result.u.column(j), result.u.column(j) + m, nan);
        result.converged = false;
        return result;
    }
    tolerance = std::max(tolerance, 1e-15);
    double squares = 0;
    for (std::int64_t j = 0; j < n; ++j) squares += dot(a.column(j), a.column(j), m);
    // A zero column contains only rounding errors: its direction is arbitrary, and rotating it would never converge.
    const double noise = 4e-15 * std::sqrt(squares);
    bool rotated = n > 1;
    for (int sweep = 0; rotated && sweep < sweeps; ++sweep) {
        rotated = false;
        for (std::int64_t p = 0; p < n - 1; ++p) {
            for (std::int64_t q = p + 1; q < n; ++q) {
                double *const x = a.column(p), *const y = a.column(q);
                const double xx = dot(x, x, m), yy = dot(y, y, m), xy = dot(x, y, m);
                if (std::abs(xy) <= tolerance * std::sqrt(xx * yy) || std::min(xx, yy) <= noise * noise) continue;
                rotated = true;
                const double zeta = (yy - xx) / (2 * xy);
                const double t = std::copysign(1.0, zeta) / (std::abs(zeta) + std::hypot(1.0, zeta));
                const double c = 1 / std::hypot(1.0, t), s = c * t;
                const auto turn = [c, s](double *one, double *other, std::int64_t count) {
                    for (std::int64_t i = 0; i < count; ++i) {
                        const double before = one[i];
                        one[i] = c * before - s * other[i];
                        other[i] = s * before + c * other[i];
                    }
                };
                turn(x, y, m);
                turn(v.column(p), v.column(q), n);
            }
        }
    }
    result.converged = !rotated;

    std::vector<std::pair<double, std::int64_t>> order;
    for (std::int64_t j = 0; j < n; ++j) order.emplace_back(std::sqrt(dot(a.column(j), a.column(j), m)), j);
    std::stable_sort(order.begin(), order.end(), [](const auto &x, const auto &y) { return x.first > y.first; });
    result.u = Dense(m, n);
    result.v = Dense(n, n);
    std::int64_t rank = 0;
    for (std::int64_t j = 0; j < n; ++j) {
        const auto [length, from] = order[static_cast<std::size_t>(j)];
        result.s.push_back(length);
        std::copy(v.column(from), v.column(from) + n, result.v.column(j));
        if (length > noise) {
            for (std::int64_t i = 0; i < m; ++i) result.u(i, j) = a(i, from) / length;
            rank = j + 1;
        }
    }
    complete(result.u, rank);
    return result;
}

struct Eigen {
    std::vector<double> w;  // ascending
    Dense v;                // n x n
    bool converged = true;
};

// Jacobi's method: rotates pairs of rows and columns of a symmetric A until it is diagonal.
inline Eigen diagonalize(Dense a, int sweeps) {
    const std::int64_t n = a.rows();
    Eigen result;
    Dense v(n, n);
    for (std::int64_t j = 0; j < n; ++j) v(j, j) = 1;
    if (!a.finite()) {
        result.w.assign(static_cast<std::size_t>(n), std::numeric_limits<double>::quiet_NaN());
        result.v = std::move(v);
        result.converged = false;
        return result;
    }
    double squares = 0;
    for (std::int64_t j = 0; j < n; ++j) squares += dot(a.column(j), a.column(j), n);
    // What is left beside the diagonal moves an eigenvalue by less than rounding does.
    const double noise = 1e-17 * std::sqrt(squares);
    bool rotated = n > 1;
    for (int sweep = 0; rotated && sweep < sweeps; ++sweep) {
        rotated = false;
        for (std::int64_t p = 0; p < n - 1; ++p) {
            for (std::int64_t q = p + 1; q < n; ++q) {
                if (std::abs(a(p, q)) <= noise) continue;
                rotated = true;
                const double theta = (a(q, q) - a(p, p)) / (2 * a(p, q));
                const double t = std::copysign(1.0, theta) / (std::abs(theta) + std::hypot(1.0, theta));
                const double c = 1 / std::hypot(1.0, t), s = c * t;
                const auto turn = [c, s](double &one, double &other) {
                    const double before = one;
                    one = c * before - s * other;
                    other = s * before + c * other;
                };
                for (std::int64_t i = 0; i < n; ++i) turn(a(i, p), a(i, q));
                for (std::int64_t i = 0; i < n; ++i) turn(a(p, i), a(q, i));
                for (std::int64_t i = 0; i < n; ++i) turn(v(i, p), v(i, q));
                a(p, q) = a(q, p) = 0;  // and not the rounding of it
            }
        }
    }
    result.converged = !rotated;
    std::vector<std::pair<double, std::int64_t>> order;
    for (std::int64_t j = 0; j < n; ++j) order.emplace_back(a(j, j), j);
    std::stable_sort(order.begin(), order.end(), [](const auto &x, const auto &y) { return x.first < y.first; });
    result.v = Dense(n, n);
    for (std::int64_t j = 0; j < n; ++j) {
        const auto [value, from] = order[static_cast<std::size_t>(j)];
        result.w.push_back(value);
        std::copy(v.column(from), v.column(from) + n, result.v.column(j));
    }
    return result;
}

// The same columns, completed to a square matrix.
inline Dense widened(const Dense &q) {
    Dense result(q.rows(), q.rows());
    for (std::int64_t j = 0; j < q.cols(); ++j) std::copy(q.column(j), q.column(j) + q.rows(), result.column(j));
    complete(result, q.cols());
    return result;
}

}  // namespace vendor
