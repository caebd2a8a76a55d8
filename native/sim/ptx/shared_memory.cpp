#include "shared_memory.h"

#include "fault.h"

namespace fcm::ptx {

namespace {

constexpr uint64_t kTail = 64;         // after the last variable, to detect overruns
constexpr uint8_t kUnwritten = 0xff;  // unwritten memory is NaN

}  // namespace

SharedMemory::SharedMemory(const Module &module, const Function &kernel, uint64_t dynamic_bytes)
    : data_(module.shared_bytes + dynamic_bytes + kTail), states_(data_.size()),
      shadow_(data_.size(), true, "shared memory") {
    for (const size_t index : kernel.shared) {
        const SharedVariable &variable = module.shared[index];
        variables_.push_back({variable.name, variable.offset, variable.bytes});
        static_bytes_ += variable.bytes;
    }
    if (dynamic_bytes != 0) variables_.push_back({"dynamic shared memory", module.shared_bytes, dynamic_bytes});
}

void SharedMemory::begin_block() {
    for (const Extents &variable : variables_) {
        if (variable.bytes == 0) continue;
        std::memset(&states_[variable.offset], kEmpty, variable.bytes);
        std::memset(&data_[variable.offset], kUnwritten, variable.bytes);
    }
    shadow_.begin_block();
}

void SharedMemory::outside(uint64_t offset, unsigned size) const {
    const Extents *before = nullptr;
    for (const Extents &variable : variables_) {
        if (variable.offset <= offset && (before == nullptr || before->offset < variable.offset)) before = &variable;
    }
    std::string where = "offset " + std::to_string(static_cast<int32_t>(offset));
    // Far from every variable, the intended one is unknown.
    if (before != nullptr && offset - before->offset < (1u << 20)) {
        where = "offset " + std::to_string(offset - before->offset) + " of " + before->name + ", which has " +
                std::to_string(before->bytes);
    }
    throw Mistake("touches " + std::to_string(size) + " bytes of shared memory at " + where);
}

void SharedMemory::not_readable(uint64_t offset, unsigned size) const {
    if (!in_range(offset, size) || !all_somebodys(offset, size)) outside(offset, size);
    std::string where = "offset " + std::to_string(offset);
    for (const Extents &variable : variables_) {
        if (offset >= variable.offset && offset - variable.offset < variable.bytes) {
            where = "offset " + std::to_string(offset - variable.offset) + " of " + variable.name;
        }
    }
    throw Mistake("reads " + std::to_string(size) + " bytes of shared memory at " + where +
        " that nobody in the block has written");
}

uint8_t *SharedMemory::strong(Accessor &by, uint64_t offset, unsigned size, bool reads, bool writes, bool acquire,
                              bool release) {
    if (!in_range(offset, size) || !all_somebodys(offset, size)) outside(offset, size);
    if (reads && !all_written(offset, size)) not_readable(offset, size);
    shadow_.strong(by, offset, size, reads, writes, acquire, release);
    if (writes) std::memset(&states_[offset], kWritten, size);
    return &data_[offset];
}

}  // namespace fcm::ptx
