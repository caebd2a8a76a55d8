// Loaded PTX files, and the launches of their kernels.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "code.h"
#include "fault.h"
#include "memory.h"
#include "order.h"

namespace fcm::ptx {

class Observer;

struct Argument {
    const void *data;
    size_t bytes;
};

struct Launch {
    std::string kernel;
    Dim grid, block;
    uint64_t shared_bytes = 0;  // dynamic
    std::vector<Argument> arguments;
    Order order;
    int64_t most_jumps = int64_t(1) << 28;  // backward jumps per thread
    Observer *observer = nullptr;           // of a profile
};

class Program {
public:
    Program();
    ~Program();

    // Throws Unreadable with file and line.
    void load(std::string_view text, const std::string &file);
    void load_file(const std::string &path);

    bool has(const std::string &kernel) const { return entries_.count(kernel) != 0; }
    std::vector<std::string> kernels() const;

    // Runs every block, one after another. Returns the number of instructions of all threads; throws Fault, or Mistake if
    // the launch itself is invalid.
    uint64_t launch(const Launch &launch, const Memory &memory);

private:
    struct Storage;
    Storage &storage(const Module &module, int device);

    std::vector<std::unique_ptr<Module>> modules_;
    std::map<std::string, std::pair<const Module *, const Function *>> entries_;
    std::mutex mutex_;
    std::map<std::pair<const Module *, int>, std::unique_ptr<Storage>> storages_;
};

}  // namespace fcm::ptx
