// The limits that kernels have to keep in a profile.
#pragma once

#include <string>
#include <vector>

#include "profile_file.h"

namespace fcm::profile {

enum class Figure {
    coalesced,       // sectors over the least: at most
    bank_conflicts,  // extra wavefronts over the least, in all innermost loops together: at most
    active_lanes,    // of all instructions: at least
    active_fma,      // of fused multiply-adds and mma: at least
};
const char *name(Figure figure);
double figure_of(const Profile &profile, Figure figure);

struct Limit {
    std::string kernel;
    std::string title;  // the beginning of a case; empty for all cases with this kernel
    Figure figure;
    double value;
};
const std::vector<Limit> &limits();

// A limit that a kernel does not keep yet, with the value that it has. It may not get worse; and as soon as the limit is kept,
// the exception has to go.
struct Exception {
    std::string kernel;
    std::string title;
    Figure figure;
    double value;
};
const std::vector<Exception> &exceptions();

// A line for each limit that is not kept, for each exception that is not needed, and for each limit without a profile.
std::vector<std::string> violations(const std::vector<Profile> &profiles, const std::vector<Limit> &all,
                                    const std::vector<Exception> &except);

// A JSON object with a member for each figure of a profile that has a limit: the limit, what was found, and the verdict. Empty
// for a kernel without limits.
std::string json_of_limits(const Profile &profile, const std::vector<Limit> &all);

}  // namespace fcm::profile
