#include "thread.h"

#include <algorithm>
#include <cstring>

namespace fcm::ptx {

namespace {

// Far more than the stack that a GPU gives a thread; infinite recursion ends here.
constexpr uint64_t kMostLocal = 1u << 20;

// Not zero: unwritten memory must not look like an intended value.
constexpr uint8_t kUnwritten = 0xff;

}  // namespace

void Thread::enter(const Function &function, const Instruction *back, const Call *call) {
    const size_t first = frames.empty() ? 0 : frames.back().registers + frames.back().function->image.size();
    const uint64_t memory = (local_end + 15) & ~15ull;
    if (memory + function.frame_bytes > kMostLocal) throw Mistake("calls nested too deep for the local memory");
    if (register_stack.size() < first + function.image.size()) register_stack.resize(first + function.image.size());
    if (local.size() < memory + function.frame_bytes) local.resize(memory + function.frame_bytes);
    if (function.frame_bytes != 0) std::memset(&local[memory], kUnwritten, function.frame_bytes);
    if (call != nullptr) {
        for (size_t i = 0; i < call->arguments.size(); ++i) {
            std::memcpy(&local[memory + function.parameters[i].offset], &local[local_begin + call->arguments[i].offset],
                        function.parameters[i].bytes);
        }
    }
    frames.push_back({&function, back, call, first, memory});
    registers = register_stack.data() + first;
    std::copy(function.image.begin(), function.image.end(), registers);
    local_begin = memory;
    local_end = memory + function.frame_bytes;
    frame_memory = local.data() + memory;
    for (const SpecialSlot &s : function.specials) registers[s.slot] = specials[static_cast<size_t>(s.special)];
    for (const FrameSlot &s : function.frame_slots) registers[s.slot] = memory + s.offset;
    for (const GlobalSlot &s : function.global_slots) registers[s.slot] = (*block->globals)[s.variable] + s.offset;
    next = function.code.data();
}

void Thread::leave() {
    const Frame frame = frames.back();
    frames.pop_back();
    if (frames.empty()) {
        state = State::exited;
        return;
    }
    const Frame &caller = frames.back();
    for (size_t i = 0; i < frame.call->results.size(); ++i) {
        std::memcpy(&local[caller.local + frame.call->results[i].offset],
                    &local[frame.local + frame.function->results[i].offset], frame.function->results[i].bytes);
    }
    registers = register_stack.data() + caller.registers;
    local_begin = caller.local;
    local_end = caller.local + caller.function->frame_bytes;
    frame_memory = local.data() + caller.local;
    next = frame.back;
}

Region &Regions::add(uint64_t base, uint64_t bytes, uint8_t *data, bool constant, std::string name) {
    regions_.push_back(std::make_unique<Region>(base, bytes, data, constant, std::move(name)));
    return *regions_.back();
}

Region &Regions::find_slowly(uint32_t access, uint64_t address, unsigned size) {
    for (const auto &region : regions_) {
        const uint64_t offset = address - region->base;
        if (offset >= region->bytes) continue;
        if (region->bytes - offset < size) {
            throw Mistake("touches " + std::to_string(size) + " bytes at offset " + std::to_string(offset) +
                " of an allocation of " + std::to_string(region->bytes));
        }
        cache_[access] = region.get();
        return *region;
    }
    Extent extent;
    if (!memory_.find(address, extent)) {
        throw Mistake("touches " + std::to_string(size) + " bytes at " + memory_.describe(address));
    }
    // The owner of the memory is queried once per allocation; later accesses are served and checked by the loop above.
    add(extent.base, extent.bytes, reinterpret_cast<uint8_t *>(extent.base), false,
        "global allocation of " + std::to_string(extent.bytes) + " bytes");
    return find_slowly(access, address, size);
}

}  // namespace fcm::ptx
