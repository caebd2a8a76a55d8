// TEMPORARY: limits that kernels do not keep yet, with what they have. This list is to become empty.
#include "limits.h"

namespace fcm::profile {

const std::vector<Exception> &exceptions() {
    static const std::vector<Exception> kAll = {
        // Stores of four floats that nvcc splits into four of one.
        {"fcm_k_average", "average, 2 x 16384", Figure::coalesced, 2.9592},
        {"fcm_k_average", "average, 2 x 16384, 2", Figure::coalesced, 2.4769},
    };
    return kAll;
}

}  // namespace fcm::profile
