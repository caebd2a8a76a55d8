#include "stack_pool.h"

#include <sys/mman.h>

#include <new>

#include "sanitizer.h"

namespace cudasim {

namespace {

constexpr size_t kGuard = 64 * 1024;  // more than a page, which a large frame could skip
// Frames are several times larger under a sanitizer. Only pages that are touched cost memory.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr size_t kStackBytes = 512 * 1024;
#else
constexpr size_t kStackBytes = 128 * 1024;
#endif

}  // namespace

bool Stack::guards(const void *address) const {
    const auto *byte = static_cast<const unsigned char *>(address);
    return byte >= bottom - kGuard && byte < bottom;
}

StackPool::~StackPool() {
    for (const Stack &stack : free_) munmap(stack.bottom - kGuard, kStackBytes + kGuard);
}

Stack StackPool::take() {
    if (!free_.empty()) {
        const Stack stack = free_.back();
        free_.pop_back();
        return stack;
    }
    void *memory = mmap(nullptr, kStackBytes + kGuard, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    if (mprotect(memory, kGuard, PROT_NONE) != 0) {
        munmap(memory, kStackBytes + kGuard);
        throw std::bad_alloc();
    }
    // If all stacks ended at the same offset in a page, they would compete for the same cache lines.
    const size_t shift = (made_++ * 5 % 64) * 64;
    return {static_cast<unsigned char *>(memory) + kGuard, kStackBytes - shift};
}

}  // namespace cudasim
