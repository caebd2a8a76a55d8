// The resource usage that ptxas reports for the kernels.
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
    int64_t stack = 0;         // bytes per thread in local memory
    int64_t spill_stores = 0;  // bytes per thread
    int64_t spill_loads = 0;
    int64_t shared = 0;    // static bytes per block
    int64_t constant = 0;  // bytes, including parameters
};

// Parses the output of `nvcc -Xptxas -v` for one architecture or several. A kernel with missing values is an error
// (std::runtime_error): output in an unknown format must not pass as a kernel without spills.
std::vector<Resources> read_listing(std::istream &listing);
std::vector<Resources> read_listings(const std::vector<std::string> &files);

}  // namespace gate
