// Writes the page about the kernels: their use of resources, their work, and a lower bound on their time.
#pragma once

#include <string>
#include <vector>

#include "kernels.h"
#include "listing.h"
#include "profile_file.h"

namespace gate {

// The page in Markdown. `compiler` is the version of nvcc that made the listing and the PTX of the profiles; another version
// gives other numbers.
std::string page(const std::vector<Resources> &listing, const std::vector<fcm::profile::Profile> &profiles,
                 const std::string &compiler);
// The compiler version stated on a page; empty if there is none.
std::string compiler_of(const std::string &page);

}  // namespace gate
