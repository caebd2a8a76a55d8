// Newton-Schulz for one small matrix, declared for each instruction set (FCM_ISA).
#pragma once

#include "kernels.h"

namespace fcm {

#define FCM_DECLARE_SMALL_SCHULZ(isa)                                                                         \
    void schulz_load_##isa(const SmallSchulz &w, const float *x, int64_t rows, int64_t cols, double factor);  \
    void schulz_step_##isa(const SmallSchulz &w, float a, float b, float c);                                  \
    void schulz_store_##isa(const SmallSchulz &w, int64_t rows, int64_t cols, float *o, float *target, float step);

FCM_DECLARE_SMALL_SCHULZ(baseline)
FCM_DECLARE_SMALL_SCHULZ(avx2)
FCM_DECLARE_SMALL_SCHULZ(avx512)
FCM_DECLARE_SMALL_SCHULZ(avx512_bf16)

}  // namespace fcm
