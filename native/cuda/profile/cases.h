// What is profiled: every operation that launches kernels, at stated sizes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "fedcomuon.h"

namespace fcm::profile {

struct Case {
    std::string title;    // the operation and its sizes
    uint64_t blocks = 0;  // of a launch at most so many are observed, and the others only run; 0 for all
    double bytes = 0;     // that all blocks have to move, if not all are observed
    std::function<void(fcm_context *, const std::function<void()> &started)> run;  // calls `started` before the operation
};

std::vector<Case> all_cases();

}  // namespace fcm::profile
