// Bugs that are put into the kernels, one at a time, to see whether the tests notice.
#pragma once

#include <string>
#include <vector>

namespace mutation {

// In one source file, a text that is there exactly once becomes another.
struct Edit {
    std::string file;
    std::string search;
    std::string replacement;
};

// Where the bug is looked for.
enum class Engine {
    kSource,  // the kernel as the C++ compiler makes it: threads are run in several orders
    kPtx      // what nvcc makes of it, interpreted: every access is checked, and races are found whatever the order
};

struct Mutant {
    std::string name;
    std::string bug;
    std::vector<Edit> edits;
    std::string unit;  // the file that is compiled again
    Engine engine;
    std::vector<std::string> tests;  // of cuda_device_test
    // Grids of three blocks, so that each has several tasks; results do not depend on it.
    bool few_blocks = false;
    int arch = 89;
    bool host_too = false;  // what the host does is part of the bug that the interpreter is to see
};

const std::vector<Mutant> &mutants();
const Edit &few_blocks();

}  // namespace mutation
