// The iteration of a call of Newton-Schulz, as a temporary in the call.
#pragma once

#include <cstdint>

#include "fedcomuon.h"

class Iteration {
   public:
    Iteration() = default;
    Iteration(const double *coefficients, int64_t steps, double divisor = 1.0, int32_t precision = FCM_FP32) {
        schulz_.coefficients = coefficients;
        schulz_.steps = steps;
        schulz_.divisor = divisor;
        schulz_.precision = precision;
    }

    Iteration &&restarting(const int64_t *restarts, int64_t count) && {
        schulz_.restarts = restarts;
        schulz_.restart_count = count;
        return static_cast<Iteration &&>(*this);
    }

    operator const fcm_schulz *() const { return &schulz_; }

   private:
    fcm_schulz schulz_{nullptr, 0, 1.0, nullptr, 0, FCM_FP32};
};
