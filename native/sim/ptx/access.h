// Memory accesses, one struct per state space. Every access checks bounds and alignment; accesses to memory that threads
// share are reported to the race detector.
#pragma once

#include <cstring>

#include "shared_memory.h"
#include "thread.h"

namespace fcm::ptx {

// Flags of a load or store in slot[5]: the width to which a signed value is extended, and the memory ordering.
constexpr uint32_t kWidthMask = 0xff, kAcquire = 0x100, kRelease = 0x200;

struct Use {
    bool reads, writes, acquire, release;
};

[[noreturn]] void misaligned(uint64_t address, unsigned size);
[[noreturn]] void outside_local(const Thread &t, uint64_t offset, unsigned size);
[[noreturn]] void outside_parameters(const Thread &t, uint64_t offset, unsigned size);
[[noreturn]] void no_store(const char *where);

inline void aligned(uint64_t address, unsigned size) {
    if ((address & (size - 1)) != 0) misaligned(address, size);
}

struct GlobalSpace {
    template <Strength S>
    static const uint8_t *read(Thread &t, const Instruction &i, uint64_t address, unsigned size) {
        t.spend_turn();
        aligned(address, size);
        Region &region = t.block->regions->find(i.extra, address, size);
        const uint64_t offset = address - region.base;
        if constexpr (S == Strength::read_only) region.shadow.read_only(t.accessor, offset, size);
        else if constexpr (S == Strength::weak) region.shadow.read(t.accessor, offset, size);
        else region.shadow.strong(t.accessor, offset, size, true, false, (i.slot[5] & kAcquire) != 0, false);
        return region.data + offset;
    }
    static uint8_t *write(Thread &t, const Instruction &i, uint64_t address, unsigned size) {
        t.spend_turn();
        aligned(address, size);
        Region &region = t.block->regions->find(i.extra, address, size);
        if (region.constant) no_store("a constant");
        region.shadow.write(t.accessor, address - region.base, size, i.line);
        return region.data + (address - region.base);
    }
    static uint8_t *strong(Thread &t, const Instruction &i, uint64_t address, unsigned size, Use use) {
        t.spend_turn();
        aligned(address, size);
        Region &region = t.block->regions->find(i.extra, address, size);
        if (region.constant && use.writes) no_store("a constant");
        region.shadow.strong(t.accessor, address - region.base, size, use.reads, use.writes, use.acquire, use.release);
        return region.data + (address - region.base);
    }
};

struct SharedSpace {
    template <Strength S>
    static const uint8_t *read(Thread &t, const Instruction &i, uint64_t offset, unsigned size) {
        if constexpr (S == Strength::strong) {
            return strong(t, i, offset, size, {true, false, (i.slot[5] & kAcquire) != 0, false});
        }
        t.spend_turn();
        offset &= 0xffffffff;
        aligned(offset, size);
        return t.block->shared->read(t.accessor, offset, size);
    }
    static uint8_t *write(Thread &t, const Instruction &i, uint64_t offset, unsigned size) {
        t.spend_turn();
        offset &= 0xffffffff;
        aligned(offset, size);
        return t.block->shared->write(t.accessor, offset, size, i.line);
    }
    static uint8_t *strong(Thread &t, const Instruction &, uint64_t offset, unsigned size, Use use) {
        t.spend_turn();
        offset &= 0xffffffff;
        aligned(offset, size);
        return t.block->shared->strong(t.accessor, offset, size, use.reads, use.writes, use.acquire, use.release);
    }
};

struct LocalSpace {
    template <Strength S>
    static const uint8_t *read(Thread &t, const Instruction &i, uint64_t offset, unsigned size) {
        return write(t, i, offset, size);
    }
    static uint8_t *write(Thread &t, const Instruction &, uint64_t offset, unsigned size) {
        aligned(offset, size);
        // Includes the frames of callers, which may pass addresses of their local memory.
        if (offset >= t.local_end || t.local_end - offset < size) outside_local(t, offset, size);
        return &t.local[offset];
    }
};

// The parameters of a function, and the arguments of its calls: a fixed place in its frame.
struct FrameSpace {
    template <Strength S>
    static const uint8_t *read(Thread &t, const Instruction &, uint64_t offset, unsigned) {
        return t.frame_memory + offset;
    }
    static uint8_t *write(Thread &t, const Instruction &, uint64_t offset, unsigned) { return t.frame_memory + offset; }
};

struct ParameterSpace {
    template <Strength S>
    static const uint8_t *read(Thread &t, const Instruction &, uint64_t offset, unsigned size) {
        aligned(offset, size);
        const std::vector<uint8_t> &all = *t.block->parameters;
        if (offset >= all.size() || all.size() - offset < size) outside_parameters(t, offset, size);
        return &all[offset];
    }
    static uint8_t *write(Thread &, const Instruction &, uint64_t, unsigned) { no_store("a kernel's parameter"); }
};

struct GenericSpace {
    template <Strength S>
    static const uint8_t *read(Thread &t, const Instruction &i, uint64_t address, unsigned size) {
        switch (address & kWindowMask) {
            case kSharedWindow: return SharedSpace::read<S>(t, i, address - kSharedWindow, size);
            case kLocalWindow: return LocalSpace::read<S>(t, i, address - kLocalWindow, size);
            case kParamWindow: return ParameterSpace::read<S>(t, i, address - kParamWindow, size);
            default: return GlobalSpace::read<S>(t, i, address, size);
        }
    }
    static uint8_t *write(Thread &t, const Instruction &i, uint64_t address, unsigned size) {
        switch (address & kWindowMask) {
            case kSharedWindow: return SharedSpace::write(t, i, address - kSharedWindow, size);
            case kLocalWindow: return LocalSpace::write(t, i, address - kLocalWindow, size);
            case kParamWindow: return ParameterSpace::write(t, i, address - kParamWindow, size);
            default: return GlobalSpace::write(t, i, address, size);
        }
    }
    static uint8_t *strong(Thread &t, const Instruction &i, uint64_t address, unsigned size, Use use) {
        switch (address & kWindowMask) {
            case kSharedWindow: return SharedSpace::strong(t, i, address - kSharedWindow, size, use);
            case kLocalWindow: return LocalSpace::write(t, i, address - kLocalWindow, size);
            case kParamWindow: return ParameterSpace::write(t, i, address - kParamWindow, size);
            default: return GlobalSpace::strong(t, i, address, size, use);
        }
    }
};

}  // namespace fcm::ptx
