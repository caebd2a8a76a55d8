// What ptxas says about the kernels it compiled.
#pragma once

#include <cstdint>
#include <istream>
#include <string>
#include <vector>

namespace gate {

struct Resources {
    std::string kernel;
    int arch = 0;  // 89 for sm_89
    int registers = 0;
    int barriers = 0;
    int64_t stack = 0;         // bytes a thread, in memory
    int64_t spill_stores = 0;  // bytes a thread
    int64_t spill_loads = 0;
    int64_t shared = 0;    // bytes a block, without what a launch asks for
    int64_t constant = 0;  // bytes, parameters included
};

// The output of `nvcc -Xptxas -v`, for one architecture or several. A kernel of which something is missing is an error
// (std::runtime_error): a listing in words that are not known here must not pass for one without spills.
std::vector<Resources> read_listing(std::istream &listing);
std::vector<Resources> read_listings(const std::vector<std::string> &files);

}  // namespace gate
