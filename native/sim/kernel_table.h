// The compiled kernels, by the address of the name that LAUNCH gave them: two libraries may have kernels with the same name,
// but not at the same address.
#pragma once

#include <mutex>
#include <unordered_map>

#include "cudasim/launch.h"

namespace cudasim {

using detail::KernelEntry;

struct CompiledKernel {
    const void *function = nullptr;
    KernelEntry entry = nullptr;
};

class KernelTable {
   public:
    void add(const char *name, CompiledKernel kernel) {
        std::lock_guard<std::mutex> lock(mutex_);
        kernels_[name] = kernel;
    }
    CompiledKernel find(const char *name) const {
        std::lock_guard<std::mutex> lock(mutex_);
        const auto found = kernels_.find(name);
        return found == kernels_.end() ? CompiledKernel{} : found->second;
    }

   private:
    mutable std::mutex mutex_;
    std::unordered_map<const char *, CompiledKernel> kernels_;
};

}  // namespace cudasim
