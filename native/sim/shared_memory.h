// The shared memory of the block that runs: as new for each block, since a value left by the one before would hide
// that nobody wrote it, with canaries around every array.
#pragma once

#include <cstddef>
#include <vector>

#include "text.h"

namespace cudasim {

class SharedMemory {
   public:
    // most: static and dynamic shared memory together, as the architecture allows.
    explicit SharedMemory(size_t most);
    ~SharedMemory();
    SharedMemory(const SharedMemory &) = delete;
    SharedMemory &operator=(const SharedMemory &) = delete;

    void start_block(size_t dynamic_bytes, bool poison);

    void *dynamic() const { return dynamic_; }
    // The array declared at a site, made by the first thread that comes there. nullptr when it does not fit.
    void *array(const void *site, const char *name, size_t bytes, size_t alignment);

    bool intact() const;
    // What is wrong with the canaries, in words.
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
    unsigned char *end_ = nullptr;  // of what this block uses, last canary included
    unsigned char *dynamic_ = nullptr;
    bool poison_ = false;
    size_t static_bytes_ = 0;
    size_t dynamic_bytes_ = 0;
    std::vector<Piece> pieces_;
};

}  // namespace cudasim
