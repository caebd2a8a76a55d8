// TEMPORARY: limits that kernels do not keep yet, with what they have. This list is to become empty.
#include "limits.h"

namespace fcm::profile {

const std::vector<Exception> &exceptions() {
    static const std::vector<Exception> kAll = {
    };
    return kAll;
}

}  // namespace fcm::profile
