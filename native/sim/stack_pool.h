// Stacks for fibers, with an inaccessible guard below each; they are reused for later fibers.
#pragma once

#include <cstddef>
#include <vector>

namespace cudasim {

struct Stack {
    unsigned char *bottom = nullptr;  // the lowest usable byte
    size_t bytes = 0;

    unsigned char *top() const { return bottom + bytes; }
    bool guards(const void *address) const;
};

class StackPool {
   public:
    StackPool() = default;
    ~StackPool();
    StackPool(const StackPool &) = delete;
    StackPool &operator=(const StackPool &) = delete;

    Stack take();  // throws std::bad_alloc
    void give(const Stack &stack) { free_.push_back(stack); }

   private:
    std::vector<Stack> free_;
    size_t made_ = 0;
};

}  // namespace cudasim
