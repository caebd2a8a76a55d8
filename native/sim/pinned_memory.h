// Pinned host memory: ordinary memory that is registered, because asynchronous copies read it when the stream reaches them.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "cudasim/control.h"

namespace cudasim {

class PinnedMemory {
   public:
    void *allocate(size_t bytes);  // throws std::bad_alloc
    // Returns false if the address is not an allocation. `damage` receives a message about damaged canaries.
    bool release(void *address, std::string *damage);

    // Place::Kind::host if it is not pinned.
    Place find(const void *address) const;
    size_t live() const;

   private:
    struct Release {
        void operator()(unsigned char *memory) const;
    };
    struct Allocation {
        std::unique_ptr<unsigned char, Release> memory;
        size_t bytes;
    };

    mutable std::mutex mutex_;
    std::map<const unsigned char *, Allocation> live_;
    size_t asked_ = 0;
};

}  // namespace cudasim
