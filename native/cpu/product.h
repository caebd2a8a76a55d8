// A matrix product of any size, declared for each instruction set (FCM_ISA).
#pragma once

#include "kernels.h"

namespace fcm {

#define FCM_DECLARE_PRODUCT(isa)                                                                                          \
    void product_pack_left_##isa(const Product &p, int64_t row, int64_t rows, int64_t k, int64_t depth, float *packed);   \
    void product_pack_right_##isa(const Product &p, int64_t col, int64_t k, int64_t depth, float *packed);                \
    void product_rows_##isa(const Product &p, int64_t row, int64_t rows, int64_t k, int64_t depth, const float *left,     \
                            const float *right);                                                                          \
    void product_mirror_##isa(const Product &p, int64_t row, int64_t rows);                                               \
    void round_to_bf16_##isa(int64_t n, float *x);

FCM_DECLARE_PRODUCT(baseline)
FCM_DECLARE_PRODUCT(avx2)
FCM_DECLARE_PRODUCT(avx512)
FCM_DECLARE_PRODUCT(avx512_bf16)

}  // namespace fcm
