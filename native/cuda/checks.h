// Arguments that several operations share. The CPU's operations ask the same questions in the same words.
#pragma once

#include <cinttypes>

#include "arguments.h"

namespace fcm {

constexpr int64_t kDouble = sizeof(double);

// The contraction needs d * n elements of H a client.
inline int64_t jacobian_length(Arguments &arguments, int64_t n, int64_t d) {
    int64_t length = 0;
    arguments.require(d >= 1, "d = %" PRId64 " is less than 1", d);
    if (arguments.ok()) {
        arguments.require(product(n, d, &length), "n * d = %" PRId64 " * %" PRId64 " does not fit int64", n, d);
    }
    return length;
}

// What a projection asks for: a radius, and the norms of all clients that have elements.
inline Arguments &projection(Arguments &arguments, int64_t clients, int64_t n, double radius, const double *norms) {
    const int64_t used = n > 0 ? clients : 0;
    return arguments.require(radius > 0.0, "radius = %g is not positive", radius)
        .batch("norms", norms, 1, used, used, kDouble, false);
}

}  // namespace fcm
