// What the simulated machine is like, from the environment (cudasim/runtime.h lists the variables).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace cudasim {

enum class OrderKind { forward, reverse, random };

struct Settings {
    int devices = 4;
    size_t memory = size_t{4} << 30;
    int arch = 89;
    bool lazy = true;
    OrderKind order = OrderKind::forward;
    uint64_t seed = 0;
    int threads = 2;
    bool ptx = false;
    std::string ptx_paths;
    bool protect = true;
    bool poison = true;

    // Dynamic shared memory a kernel can ask for, with cudaFuncSetAttribute.
    size_t most_shared() const;
    size_t shared_per_multiprocessor() const;

    // Throws std::runtime_error that names the variable whose value makes no sense: a test that believes it runs in
    // reverse order must not run forward because of a misspelling.
    static Settings from_environment();
};

constexpr int kMostThreads = 1024;         // of a block
constexpr size_t kPlainShared = 48 * 1024;  // without cudaFuncSetAttribute, on every architecture

}  // namespace cudasim
