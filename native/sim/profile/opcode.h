// What an instruction is to a profile, by its opcode.
#pragma once

#include <cstdint>
#include <string>

namespace fcm::profile {

enum class Class : uint8_t {
    global,   // loads and stores of global memory, and asynchronous copies from there to shared memory
    shared,   // loads and stores of shared memory, ldmatrix
    local,
    fma,      // fused multiply-adds of fp32
    mma,      // products of tensor cores
    real,     // other fp32, and the 16-bit formats
    fp64,
    convert,  // between formats
    integer,
    move,     // registers and their halves, parameters, address spaces: most of them are no instructions of a GPU
    control,
    barrier,
    shuffle,  // and votes
    atomic,
    count
};
constexpr unsigned kClasses = static_cast<unsigned>(Class::count);
const char *name(Class c);

enum class Traffic : uint8_t { none, global, shared, generic, async_copy, matrix };

struct Kind {
    Class of = Class::move;
    Traffic traffic = Traffic::none;
    bool reads = false, writes = false;
    unsigned bytes = 0;     // that a lane accesses; of an asynchronous copy the instruction tells
    uint64_t products = 0;  // multiply-adds of a whole warp, for mma
    bool tf32 = false;
    unsigned weight = 1;    // instructions of the GPU that it stands for
};

// Throws std::runtime_error for an opcode that it does not know: it must not be counted as something else.
Kind kind_of(const std::string &opcode);

}  // namespace fcm::profile
