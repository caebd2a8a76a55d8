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

std::string SharedMemory::place(uint64_t offset) const {
    for (const Extents &variable : variables_) {
        if (offset >= variable.offset && offset - variable.offset < variable.bytes) {
            return "offset " + std::to_string(offset - variable.offset) + " of " + variable.name;
        }
    }
    return "offset " + std::to_string(offset);
}

void SharedMemory::check_pending(uint64_t offset, unsigned size, const char *does) const {
    for (uint64_t at = offset; at < offset + size; ++at) {
        if ((states_[at] & kPending) == 0) continue;
        // Nobody else has been able to write there since the copy began.
        const auto [by, line] = shadow_.writer(at);
        throw Mistake(std::string("race: ") + does + " " + std::to_string(size) + " bytes of shared memory at " +
            place(offset) + ", into which thread " + std::to_string(by.thread()) + " copies with cp.async in line " +
            std::to_string(line) + ": the copy has not been waited for");
    }
}

void SharedMemory::not_writable(uint64_t offset, unsigned size, const char *does) const {
    if (in_range(offset, size) && all_somebodys(offset, size)) check_pending(offset, size, does);
    outside(offset, size);
}

void SharedMemory::not_readable(uint64_t offset, unsigned size) const {
    if (!in_range(offset, size) || !all_somebodys(offset, size)) outside(offset, size);
    check_pending(offset, size, "reads");
    throw Mistake("reads " + std::to_string(size) + " bytes of shared memory at " + place(offset) +
        " that nobody in the block has written");
}

void SharedMemory::begin_copy(const Accessor &by, uint64_t offset, unsigned size, unsigned line) {
    if (!in_range(offset, size) || !all_free(offset, size)) not_writable(offset, size, "copies");
    shadow_.write(by, offset, size, line);
    for (uint64_t at = offset; at < offset + size; ++at) states_[at] |= kPending;
}

void SharedMemory::end_copy(const Accessor &by, uint64_t offset, unsigned size, unsigned line, const uint8_t *from) {
    shadow_.write(by, offset, size, line);
    std::memset(&states_[offset], kWritten, size);
    std::memcpy(&data_[offset], from, size);
}

uint8_t *SharedMemory::strong(Accessor &by, uint64_t offset, unsigned size, bool reads, bool writes, bool acquire,
                              bool release) {
    if (!in_range(offset, size) || !all_free(offset, size)) not_writable(offset, size, "uses atomically");
    if (reads && !all_written(offset, size)) not_readable(offset, size);
    shadow_.strong(by, offset, size, reads, writes, acquire, release);
    if (writes) std::memset(&states_[offset], kWritten, size);
    return &data_[offset];
}

}  // namespace fcm::ptx
