// A thread of a kernel and its block, as seen by instruction handlers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "code.h"
#include "fault.h"
#include "memory.h"
#include "shadow.h"

namespace fcm::ptx {

class SharedMemory;
struct Block;

enum class State : uint8_t {
    running,
    preempted,  // could continue, but another thread runs next
    barrier,    // waits for its block
    collective,  // waits for lanes of its warp
    exited
};

struct Frame {
    const Function *function;
    const Instruction *back;  // the return address in the caller
    const Call *call;
    size_t registers;  // start of this frame
    uint64_t local;
};

enum class Collective : uint8_t { warp_barrier, shuffle_up, shuffle_down, shuffle_xor, shuffle_index, all, any,
    uniform, ballot, load_matrices, multiply_matrices };

// What a thread waits for, and its operands.
struct Waiting {
    const Instruction *at = nullptr;
    Collective collective = Collective::warp_barrier;
    uint32_t mask = 0;
    uint32_t value = 0, b = 0, c = 0;
};

struct Region;

// A copy from global to shared memory that has begun (cp.async) and has not been waited for.
struct Copy {
    uint32_t line;
    uint32_t offset;  // in shared memory
    uint8_t bytes, read;  // those that are not read from the source are zeros
    uint8_t data[16];
    // The source, and its last write when the copy began: it must stay as it is until the copy has been waited for.
    const Region *region;
    uint64_t from;
    Stamp written[16];
    uint32_t written_line[16];
};

struct Thread {
    uint64_t *registers = nullptr;  // of the current frame
    const Instruction *next = nullptr;
    State state = State::running;
    int64_t turns = 0;  // memory accesses until another thread runs
    int64_t fuel = 0;   // backward jumps until the thread is considered hung
    Block *block = nullptr;
    uint8_t *frame_memory = nullptr;  // of the current frame
    uint64_t local_begin = 0;         // its offset in the thread's local memory
    uint64_t local_end = 0;
    uint32_t index = 0, lane = 0, warp = 0;
    Dim position;
    Accessor accessor;
    Waiting waiting;
    std::vector<Copy> copies;            // in the order in which they began
    std::vector<uint32_t> copy_groups;   // how many copies each committed group has; what remains is not committed
    std::vector<uint64_t> register_stack;
    std::vector<uint8_t> local;
    std::vector<Frame> frames;
    uint64_t specials[static_cast<size_t>(Special::count)] = {};

    void enter(const Function &function, const Instruction *back, const Call *call);
    void leave();

    // Ends all copies but those of the `most` last groups; with `all`, also those that are not committed.
    void wait_for_copies(size_t most, bool all);
    // Nobody could know whether the copies of a thread that ends are carried out.
    void end_without_copies() const;

    // Only memory accesses are visible to other threads, so threads are only switched there.
    void spend_turn() {
        if (--turns <= 0 && state == State::running) state = State::preempted;
    }
};

// An allocation that a launch has accessed.
struct Region {
    uint64_t base, bytes;
    uint8_t *data;
    bool constant;
    Shadow shadow;

    Region(uint64_t base_, uint64_t bytes_, uint8_t *data_, bool constant_, std::string name)
        : base(base_), bytes(bytes_), data(data_), constant(constant_), shadow(bytes_, false, std::move(name)) {}
};

// The device memory that a launch has accessed so far.
class Regions {
public:
    Regions(const Memory &memory, uint32_t accesses) : memory_(memory), cache_(accesses, nullptr) {}

    // The region that contains all of [address, address + size). Each instruction caches its last region.
    Region &find(uint32_t access, uint64_t address, unsigned size) {
        Region *region = cache_[access];
        if (region != nullptr) {
            const uint64_t offset = address - region->base;
            if (offset < region->bytes && region->bytes - offset >= size) return *region;
        }
        return find_slowly(access, address, size);
    }

    Region &add(uint64_t base, uint64_t bytes, uint8_t *data, bool constant, std::string name);

private:
    Region &find_slowly(uint32_t access, uint64_t address, unsigned size);

    const Memory &memory_;
    std::vector<Region *> cache_;
    std::vector<std::unique_ptr<Region>> regions_;
};

struct Block {
    const Module *module = nullptr;
    const Function *kernel = nullptr;
    uint32_t number = 0;
    Dim position;
    uint32_t time = 1;  // see Stamp
    std::vector<Thread> threads;
    Regions *regions = nullptr;
    SharedMemory *shared = nullptr;
    const std::vector<uint8_t> *parameters = nullptr;
    const std::vector<uint64_t> *globals = nullptr;  // addresses of the module's variables on this device
};

}  // namespace fcm::ptx
