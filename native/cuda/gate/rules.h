// What no kernel may do, on none of the GPUs it is compiled for.
#pragma once

#include <string>
#include <vector>

#include "kernels.h"
#include "listing.h"

namespace gate {

// One line for everything that is wrong; empty when nothing is.
std::vector<std::string> violations(const std::vector<Kernel> &kernels, const std::vector<Resources> &listing);

}  // namespace gate
