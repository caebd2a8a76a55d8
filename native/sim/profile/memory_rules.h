// How many transactions a memory instruction of a warp takes on a GPU.
#pragma once

#include <array>
#include <cstdint>

namespace fcm::profile {

// The addresses of an access, which is the same number of bytes (a power of two up to 16, aligned) for every active lane.
struct WarpAccess {
    uint32_t active = 0;
    unsigned bytes = 0;
    std::array<uint64_t, 32> address{};
};

// Shared memory has 32 banks of 4 bytes. In a wavefront each bank gives one word, to any number of lanes. Lanes that access 8
// bytes are served by half-warps, 16 bytes by quarter-warps. Without conflicts there is one wavefront for each of these
// parts that has an active lane.
struct Wavefronts {
    uint64_t taken = 0;
    uint64_t least = 0;
};
Wavefronts shared_wavefronts(const WarpAccess &access);

// Global memory moves in sectors of 32 bytes. The least is what the distinct bytes of the access would fill.
struct Sectors {
    uint64_t touched = 0;
    uint64_t least = 0;
    std::array<uint64_t, 64> number{};  // of those touched: address / 32, each once
};
Sectors global_sectors(const WarpAccess &access);

}  // namespace fcm::profile
