// The shared memory of the running block, with canaries around every array. It is reinitialized for each block, because
// values left by the previous block would hide that an element was never written.
#pragma once

#include <cstddef>
#include <vector>

#include "text.h"

namespace cudasim {

class SharedMemory {
   public:
    // most: the architecture's limit for static and dynamic shared memory together.
    explicit SharedMemory(size_t most);
    ~SharedMemory();
    SharedMemory(const SharedMemory &) = delete;
    SharedMemory &operator=(const SharedMemory &) = delete;

    void start_block(size_t dynamic_bytes, bool poison);

    void *dynamic() const { return dynamic_; }
    // The array declared at a site, created by the first thread that reaches it. nullptr if it does not fit.
    void *array(const void *site, const char *name, size_t bytes, size_t alignment);

    bool intact() const;
    // A message about damaged canaries.
    Words damage() const;

   private:
    struct Piece {
        const void *site;
        const char *name;
        unsigned char *data;
        size_t bytes;
    };

    Piece *place(const void *site, const char *name, size_t bytes);
    const unsigned char *guard_before(size_t piece) const;
    const unsigned char *find_damage(size_t *piece) const;

    size_t most_;
    unsigned char *memory_ = nullptr;
    size_t mapped_ = 0;
    unsigned char *arena_ = nullptr;
    unsigned char *arena_end_ = nullptr;
    unsigned char *end_ = nullptr;  // end of the memory that this block uses, including the last canary
    unsigned char *dynamic_ = nullptr;
    bool poison_ = false;
    size_t static_bytes_ = 0;
    size_t dynamic_bytes_ = 0;
    std::vector<Piece> pieces_;
};

}  // namespace cudasim
