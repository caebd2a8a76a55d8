// How a bug was detected.
#pragma once

#include <string>

#include "process.h"

namespace mutation {

struct Verdict {
    bool caught = false;
    std::string detector;
    std::string words;  // the corresponding line of output
};

Verdict judge(const Outcome &outcome);

}  // namespace mutation
