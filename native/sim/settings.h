// The settings of the simulated machine, from the environment (cudasim/runtime.h lists the variables).
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
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
    bool peers = true;  // whether devices can access each other's memory
    std::set<int> exclusive{};  // devices that another process has for itself
    std::set<int> sick{};       // devices that no process can use

    // The maximum dynamic shared memory of a kernel, set with cudaFuncSetAttribute.
    size_t most_shared() const;
    size_t shared_per_multiprocessor() const;

    // Throws std::runtime_error that names the variable with an invalid value: because of a misspelling, a test for the
    // reverse order must not silently run in forward order.
    static Settings from_environment();
};

constexpr int kMostThreads = 1024;         // per block
constexpr size_t kPlainShared = 48 * 1024;  // without cudaFuncSetAttribute, on every architecture

}  // namespace cudasim
