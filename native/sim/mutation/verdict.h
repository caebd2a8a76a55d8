// What it was that noticed a bug.
#pragma once

#include <string>

#include "process.h"

namespace mutation {

struct Verdict {
    bool caught = false;
    std::string detector;
    std::string words;  // the line that says so
};

Verdict judge(const Outcome &outcome);

}  // namespace mutation
