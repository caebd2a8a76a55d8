// The rules that every kernel must follow on every GPU that it is compiled for.
#pragma once

#include <string>
#include <vector>

#include "kernels.h"
#include "listing.h"

namespace gate {

// One line for each violation; empty if there are none.
std::vector<std::string> violations(const std::vector<Kernel> &kernels, const std::vector<Resources> &listing);

}  // namespace gate
