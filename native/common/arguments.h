// Checks the arguments of an operation (null pointers, sizes, strides, overlap) before any memory is accessed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "failure.h"

namespace fcm {

// The bytes that one operand occupies: `count` pieces of `length` bytes, `stride` bytes apart.
struct Extent {
    const char *name;
    uintptr_t start;
    int64_t count;
    int64_t length;
    int64_t stride;
    bool written;
};

bool overlap(const Extent &a, const Extent &b);

class Arguments {
   public:
    Arguments(const char *function, fcm_error *error) : function_(function), error_(error) {}

    // The first failure is reported; later checks are skipped.
    template <class... Values>
    Arguments &require(bool condition, const char *format, Values... values) {
        if (ok() && !condition) {
            char words[320];
            std::snprintf(words, sizeof words, format, values...);
            status_ = fail(error_, FCM_INVALID_ARGUMENT, {}, "%s: %s", function_, words);
        }
        return *this;
    }

    Arguments &context(const void *context) { return require(context != nullptr, "the context is null"); }
    Arguments &sizes(int64_t clients, int64_t n);
    Arguments &fraction(const char *name, double value);
    // The fraction that is kept. It is less than 1, since keeping everything would mean that nothing ever changes.
    Arguments &decay(const char *name, double value);

    // A batch of `clients` pieces of `n` elements. Pieces that are `written` must not share memory with any other operand.
    Arguments &batch(const char *name, const void *base, int64_t clients, int64_t n, int64_t stride, int64_t element_bytes,
                     bool written);
    Arguments &read(const char *name, const float *base, int64_t clients, int64_t n, int64_t stride) {
        return batch(name, base, clients, n, stride, sizeof(float), false);
    }
    Arguments &write(const char *name, float *base, int64_t clients, int64_t n, int64_t stride) {
        return batch(name, base, clients, n, stride, sizeof(float), true);
    }
    // An input and its output, which may be the same buffer; then the strides must be equal.
    Arguments &mapped(const char *input, const float *x, int64_t x_stride, const char *output, float *y, int64_t y_stride,
                      int64_t clients, int64_t n);
    // The same for matrices with separate row and column strides, both at least 1.
    Arguments &view(const char *name, const void *base, int64_t clients, int64_t stride, int64_t rows, int64_t cols,
                    int64_t row, int64_t col, int64_t element_bytes, bool written);
    Arguments &workspace(const void *base, int64_t bytes, int64_t needed);
    Arguments &disjoint();

    bool ok() const { return status_ == FCM_OK; }
    fcm_status status() const { return status_; }

   private:
    const char *function_;
    fcm_error *error_;
    fcm_status status_ = FCM_OK;
    std::array<Extent, 8> extents_{};
    size_t used_ = 0;
};

// Computes a * b; returns false on overflow.
inline bool product(int64_t a, int64_t b, int64_t *result) { return !__builtin_mul_overflow(a, b, result); }
inline bool sum(int64_t a, int64_t b, int64_t *result) { return !__builtin_add_overflow(a, b, result); }

}  // namespace fcm
