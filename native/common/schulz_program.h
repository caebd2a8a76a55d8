// The products that Newton-Schulz consists of for one matrix, where the iteration is not one kernel: the same on every
// device, so that results are bit-identical.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "fedcomuon.h"

namespace fcm {

// What a product reads and writes: the matrix and its successor, rows x cols, or one of the squares of the short side.
enum class SchulzOperand : int8_t { kX, kY, kSquare0, kSquare1, kSquare2, kSquare3, kSquare4, kNone };

constexpr int64_t kSchulzMatrices = 2;
constexpr int64_t kSchulzSquares = 2;      // of the plain form
constexpr int64_t kSchulzGramSquares = 5;  // of the Gram form

// out = base_factor base + product_factor a b; `also`, if it is not kNone, receives out + diagonal I.
struct SchulzProduct {
    SchulzOperand a;
    SchulzOperand b;
    SchulzOperand base;
    SchulzOperand out;
    SchulzOperand also;
    bool a_transposed;
    bool b_transposed;
    bool symmetric;
    double product_factor;
    double base_factor;
    double diagonal;
};

inline int64_t side_of(const fcm_matrix_block &block) { return std::min(block.rows, block.cols); }

// Whether the iteration of a matrix is one kernel.
inline bool is_small(const fcm_matrix_block &block) {
    return block.gram == 0 && side_of(block) <= FCM_SMALL_SIDE;
}

inline bool is_matrix(SchulzOperand operand) { return static_cast<int64_t>(operand) < kSchulzMatrices; }

// The sides of a product.
struct SchulzSides {
    int64_t rows;
    int64_t cols;
    int64_t depth;
};

inline SchulzSides sides_of(const fcm_matrix_block &block, const SchulzProduct &p) {
    const int64_t side = side_of(block);
    const int64_t depth = !is_matrix(p.a) ? side : p.a_transposed ? block.rows : block.cols;
    return {is_matrix(p.out) ? block.rows : side, is_matrix(p.out) ? block.cols : side, depth};
}

inline int64_t squares_of(const fcm_matrix_block &block) { return block.gram != 0 ? kSchulzGramSquares : kSchulzSquares; }

// Calls visit(stage, product) for every product in order. Products of the same stage do not depend on each other.
template <class Visit>
class SchulzProgram {
   public:
    SchulzProgram(const fcm_matrix_block &block, const fcm_schulz &schulz, Visit &visit)
        : wide_(block.rows <= block.cols), coefficients_(schulz.coefficients), visit_(visit) {}

    // Per step: A = X X^T, B = b A + c A A, X = a X + B X.
    void plain(int64_t steps) {
        constexpr SchulzOperand kA = SchulzOperand::kSquare0;
        constexpr SchulzOperand kB = SchulzOperand::kSquare1;
        for (int64_t i = 0; i < steps; ++i) {
            const double *c = coefficients_ + 3 * i;
            gram_of_x(kA);
            if (c[2] != 0.0) visit_(stage_++, square(kA, kA, c[2], c[1], kA, kB));
            apply(c[2] != 0.0 ? kB : kA, c[2] != 0.0 ? 1.0 : c[1], c[0], x_);
        }
    }

    // R = X X^T, Q = I; per step: Z = b R + c R R, Q = Q Z + a Q, P = R Z + a R, R = Z P + a P; at the end X = Q X.
    void gram(int64_t first, int64_t end) {
        constexpr SchulzOperand kR = SchulzOperand::kSquare0;
        constexpr SchulzOperand kZ = SchulzOperand::kSquare1;
        constexpr SchulzOperand kP = SchulzOperand::kSquare2;
        SchulzOperand q = SchulzOperand::kSquare3;
        SchulzOperand next_q = SchulzOperand::kSquare4;
        gram_of_x(kR);
        for (int64_t i = first; i < end; ++i) {
            const double *c = coefficients_ + 3 * i;
            const bool last = i + 1 == end;
            SchulzProduct z = square(kR, kR, c[2], c[1], kR, kZ);
            if (i == first) {  // Q = I Z + a I
                z.also = q;
                z.diagonal = c[0];
            }
            visit_(stage_++, z);
            if (i > first) {
                visit_(stage_, square(q, kZ, 1.0, c[0], q, next_q));
                std::swap(q, next_q);
            }
            if (!last) visit_(stage_, square(kR, kZ, 1.0, c[0], kR, kP));
            if (i > first || !last) ++stage_;
            if (!last) visit_(stage_++, square(kZ, kP, 1.0, c[0], kP, kR));
        }
        apply(q, 1.0, 0.0, SchulzOperand::kNone);
    }

    SchulzOperand result() const { return x_; }

   private:
    // A product of symmetric matrices that commute.
    static SchulzProduct square(SchulzOperand a, SchulzOperand b, double product_factor, double base_factor, SchulzOperand base,
                                SchulzOperand out) {
        return {a, b, base, out, SchulzOperand::kNone, false, false, true, product_factor, base_factor, 0.0};
    }

    void gram_of_x(SchulzOperand out) {
        constexpr SchulzOperand kNone = SchulzOperand::kNone;
        visit_(stage_++, SchulzProduct{x_, x_, kNone, out, kNone, !wide_, wide_, true, 1.0, 0.0, 0.0});
    }

    // X = base_factor base + factor B X, or with B on the other side of a tall X.
    void apply(SchulzOperand b, double factor, double base_factor, SchulzOperand base) {
        visit_(stage_++, SchulzProduct{wide_ ? b : x_, wide_ ? x_ : b, base, y_, SchulzOperand::kNone, false, false, false, factor,
                                       base_factor, 0.0});
        std::swap(x_, y_);
    }

    bool wide_;
    const double *coefficients_;
    Visit &visit_;
    int64_t stage_ = 0;
    SchulzOperand x_ = SchulzOperand::kX;
    SchulzOperand y_ = SchulzOperand::kY;
};

// Visits the products of a block and returns where the result is then. Allocates nothing.
template <class Visit>
SchulzOperand visit_products(const fcm_matrix_block &block, const fcm_schulz &schulz, Visit &&visit) {
    SchulzProgram<std::remove_reference_t<Visit>> program(block, schulz, visit);
    if (block.gram == 0) {
        program.plain(schulz.steps);
        return program.result();
    }
    int64_t first = 0;
    for (int64_t i = 0; i <= schulz.restart_count; ++i) {
        const int64_t end = i < schulz.restart_count ? schulz.restarts[i] : schulz.steps;
        if (end > first) program.gram(first, end);
        first = end;
    }
    return program.result();
}

}  // namespace fcm
