// Decoded PTX, ready for execution. Names, types and modifiers are resolved to handlers and numbers.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "syntax.h"

namespace fcm::ptx {

struct Thread;
struct Instruction;
using Handler = void (*)(Thread &, const Instruction &);

// Operands are slots of the thread's register frame. Constants, special registers and the addresses of variables have slots
// as well, so that a handler does not distinguish between kinds of operands.
struct Instruction {
    Handler run = nullptr;
    uint32_t slot[6] = {};
    uint32_t extra = 0;
    uint32_t line = 0;  // in the PTX file
    int64_t number = 0;
};

enum class Special : uint8_t {
    tid_x, tid_y, tid_z, ntid_x, ntid_y, ntid_z, ctaid_x, ctaid_y, ctaid_z, nctaid_x, nctaid_y, nctaid_z,
    laneid, warpid, nwarpid, lanemask_eq, lanemask_lt, lanemask_le, lanemask_gt, lanemask_ge,
    dynamic_smem_size, total_smem_size, count
};

struct FrameVariable {
    uint64_t offset = 0, bytes = 0;
};

// The registers of ldmatrix or mma, which are more than an instruction has slots for.
struct MatrixOperation {
    bool tensor = false;      // mma: factors of tf32, otherwise bf16
    unsigned depth = 0;       // mma: the length of the sums
    unsigned count = 0;       // ldmatrix: the number of matrices
    bool transposed = false;  // ldmatrix
    bool generic = false;     // ldmatrix: the address is generic
    uint32_t address = 0;     // ldmatrix: a slot, and an offset
    int64_t offset = 0;
    uint32_t d[4] = {}, a[4] = {}, b[2] = {}, c[4] = {};
};

struct Function;

struct Call {
    const Function *callee = nullptr;
    std::string name;
    std::vector<FrameVariable> arguments;  // in the caller's frame
    std::vector<FrameVariable> results;
};

// Slots whose values differ between threads, frames or devices.
struct SpecialSlot {
    uint32_t slot;
    Special special;
};
struct FrameSlot {
    uint32_t slot;
    uint64_t offset;  // of a variable in the frame's local memory
};
struct GlobalSlot {
    uint32_t slot;
    size_t variable;  // index in the module
    uint64_t offset;
};

struct SharedVariable {
    std::string name;
    uint64_t offset = 0, bytes = 0;
};

struct Function {
    std::string name;
    bool entry = false;
    unsigned line = 0;
    std::vector<Instruction> code;
    std::vector<Line> lines;  // one per instruction
    // The initial image of a frame: unwritten registers, and constants.
    std::vector<uint64_t> image;
    std::vector<SpecialSlot> specials;
    std::vector<FrameSlot> frame_slots;
    std::vector<GlobalSlot> global_slots;
    std::vector<Call> calls;
    std::vector<std::vector<int64_t>> tables;  // branch targets
    std::vector<MatrixOperation> matrices;
    uint64_t frame_bytes = 0;                  // parameters, results, arguments of calls, local variables
    std::vector<FrameVariable> parameters;     // those of an entry are in the parameter space instead
    std::vector<FrameVariable> results;
    uint64_t parameter_bytes = 0;  // of an entry
    uint64_t most_threads = 0, threads = 0;
    std::vector<size_t> shared;  // variables of the module used here; for an entry, also by its callees
    bool dynamic_shared = false;
};

struct GlobalVariable {
    std::string name;
    uint64_t bytes = 0, align = 1;
    bool constant = false;
    std::vector<uint8_t> image;
    std::vector<std::pair<uint64_t, std::string>> addresses;  // offset, and name of the variable whose address it holds
};

struct Module {
    std::string file;
    std::map<unsigned, std::string> sources;
    std::vector<GlobalVariable> globals;
    std::vector<SharedVariable> shared;
    uint64_t shared_bytes = 0;  // static variables with gaps between them; dynamic shared memory starts here
    std::vector<Function> functions;
    std::unordered_map<std::string, size_t> by_name;
    uint32_t accesses = 0;  // memory instructions, numbered because each has its own cache
};

}  // namespace fcm::ptx
