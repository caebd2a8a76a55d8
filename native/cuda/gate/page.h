// The page of the kernels: what each takes of a GPU, what it has to do, and how long that takes at least.
#pragma once

#include <string>
#include <vector>

#include "kernels.h"
#include "listing.h"

namespace gate {

// In Markdown. `compiler` is the nvcc that made the listing: another one gives other numbers.
std::string page(const std::vector<Resources> &listing, const std::string &compiler);
// The compiler that a page says it was made with; empty if it says none.
std::string compiler_of(const std::string &page);

}  // namespace gate
