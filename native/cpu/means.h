// Means whose bits do not depend on the order of their terms, declared for each instruction set (FCM_ISA).
#pragma once

#include "kernels.h"

namespace fcm {

#define FCM_DECLARE_MEANS(isa)                                                                                              \
    void average_##isa(const MeanTerms &terms, int64_t at, int64_t n, double total, int64_t target_count,                   \
                       const Rows &targets);                                                                                \
    void mean_exponents_##isa(const MeanTerms &terms, int64_t at, int64_t n, uint8_t *exponents);                           \
    void mean_sums_##isa(const MeanTerms &terms, int64_t at, int64_t n, const uint8_t *exponents, int64_t *sums);           \
    void mean_combine_##isa(int64_t parts, int64_t at, int64_t n, const uint8_t *const *exponents, uint8_t *to);            \
    void mean_finish_##isa(int64_t parts, int64_t at, int64_t n, int bits, double total, const int64_t *const *sums,        \
                           const uint8_t *exponents, int64_t target_count, const Rows &targets);

FCM_DECLARE_MEANS(baseline)
FCM_DECLARE_MEANS(avx2)
FCM_DECLARE_MEANS(avx512)
FCM_DECLARE_MEANS(avx512_bf16)

}  // namespace fcm
