#include "thread.h"

#include <algorithm>
#include <cstring>

#include "shared_memory.h"

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

void Thread::end_without_copies() const {
    if (copies.empty()) return;
    throw Mistake("ends while a copy that began with cp.async in line " + std::to_string(copies.front().line) +
        " has not been waited for");
}

namespace {

// A write of the source is a race even if a barrier comes before it: the copy is not finished at the barrier.
void check_source(const Copy &copy) {
    for (unsigned k = 0; k < copy.read; ++k) {
        const auto [by, line] = copy.region->shadow.writer(copy.from + k);
        const Stamp &before = copy.written[k];
        const bool same = by.who == before.who && by.time == before.time && line == copy.written_line[k] &&
                          copy.region->data[copy.from + k] == copy.data[k];
        if (same) continue;
        throw Mistake("race: waits for a copy that began with cp.async in line " + std::to_string(copy.line) +
            ", whose source was written meanwhile" +
            (by.who == 0 ? "" : " by thread " + std::to_string(by.thread()) + " of block " + std::to_string(by.block()) +
                " in line " + std::to_string(line)));
    }
}

}  // namespace

void Thread::wait_for_copies(size_t most, bool all) {
    size_t ended = 0;
    if (all) {
        ended = copies.size();
        copy_groups.clear();
    } else {
        const size_t groups = copy_groups.size() > most ? copy_groups.size() - most : 0;
        for (size_t k = 0; k < groups; ++k) ended += copy_groups[k];
        copy_groups.erase(copy_groups.begin(), copy_groups.begin() + static_cast<std::ptrdiff_t>(groups));
    }
    for (size_t k = 0; k < ended; ++k) {
        const Copy &copy = copies[k];
        check_source(copy);
        block->shared->end_copy(accessor, copy.offset, copy.bytes, copy.line, copy.data);
    }
    copies.erase(copies.begin(), copies.begin() + static_cast<std::ptrdiff_t>(ended));
}

void Thread::leave() {
    if (frames.size() == 1) end_without_copies();
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
