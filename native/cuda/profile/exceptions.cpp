// Temporary: limits that kernels do not keep yet, with what they have. The list is to be empty.
#include "limits.h"

namespace fcm::profile {

const std::vector<Exception> &exceptions() {
    static const std::vector<Exception> kAll = {};
    return kAll;
}

}  // namespace fcm::profile
