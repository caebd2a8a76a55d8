// What a library implements for its devices: a function fcm::device::NAME with the same signature for each function fcm_NAME
// of the interface. It is called after the arguments have been checked (operations.cpp, contexts.cpp), and it is not called
// for an empty batch.
#pragma once

#include <cstdint>

#include "fedcomuon.h"
#include "functions.h"

namespace fcm {
namespace device {

#define FCM_DECLARE(name) decltype(::fcm_##name) name;
FCM_EVERY_FUNCTION(FCM_DECLARE)
#undef FCM_DECLARE

// The number of elements of a client that are summed into one double of the workspace.
extern const int64_t sum_piece;

}  // namespace device

// The sum of the clients' weights, in client order; each weight is 1 if there are none.
inline double total_weight(int64_t clients, const double *weights) {
    if (weights == nullptr) return static_cast<double>(clients);
    double total = 0.0;
    for (int64_t k = 0; k < clients; ++k) total += weights[k];
    return total;
}

// The bits that a term of a mean has before it is added to as many others: b = 62 - ceil(log2 terms).
inline int term_bits(int64_t terms) {
    int bits = 62;
    while ((int64_t{1} << (62 - bits)) < terms) --bits;
    return bits;
}

}  // namespace fcm
