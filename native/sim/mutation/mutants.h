// The bugs that are inserted into the kernels, one at a time, to check that the tests detect them.
#pragma once

#include <string>
#include <vector>

namespace mutation {

// Replaces a text that occurs exactly once in one source file.
struct Edit {
    std::string file;
    std::string search;
    std::string replacement;
};

// How the mutant is run.
enum class Engine {
    kSource,  // compiled by the C++ compiler: threads run in several orders
    kPtx      // the PTX from nvcc, interpreted: every access is checked, and races are found in any order
};

struct Mutant {
    std::string name;
    std::string bug;
    std::vector<Edit> edits;
    std::string unit;  // the file that is recompiled
    Engine engine;
    std::vector<std::string> tests;  // of cuda_device_test
    // Grids of three blocks, so that each block has several tasks; results do not depend on the grid.
    bool few_blocks = false;
    int arch = 89;  // of the GPU, and by it of the PTX: asynchronous copies and tensor cores exist since 80
    bool host_too = false;  // the host code is part of the bug that the interpreter has to detect
};

const std::vector<Mutant> &mutants();
const Edit &few_blocks();

}  // namespace mutation
