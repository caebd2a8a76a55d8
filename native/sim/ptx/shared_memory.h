// Shared memory of the running block: static variables with gaps between them, then the dynamic part. It records which bytes
// belong to a variable, which of those have been written, and which are the target of a copy (cp.async) that its thread has
// not waited for: those keep their content until then, and nobody may use them.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "code.h"
#include "shadow.h"

namespace fcm::ptx {

class SharedMemory {
public:
    SharedMemory(const Module &module, const Function &kernel, uint64_t dynamic_bytes);

    void begin_block();
    uint64_t static_bytes() const { return static_bytes_; }

    // Each checks bounds, reads of unwritten memory and races; the caller checks the alignment.
    const uint8_t *read(const Accessor &by, uint64_t offset, unsigned size) {
        if (!in_range(offset, size) || !all_written(offset, size)) not_readable(offset, size);
        shadow_.read(by, offset, size);
        return &data_[offset];
    }
    uint8_t *write(const Accessor &by, uint64_t offset, unsigned size, unsigned line) {
        if (!in_range(offset, size) || !all_free(offset, size)) not_writable(offset, size, "writes");
        shadow_.write(by, offset, size, line);
        std::memset(&states_[offset], kWritten, size);
        return &data_[offset];
    }
    // A copy begins: from now on its bytes are pending. It may be carried out at any time until it is waited for, so that it
    // must already be ordered after what others do with the bytes.
    void begin_copy(const Accessor &by, uint64_t offset, unsigned size, unsigned line);
    // The copy has been waited for, which is a write of its thread at this time.
    void end_copy(const Accessor &by, uint64_t offset, unsigned size, unsigned line, const uint8_t *from);

    uint8_t *strong(Accessor &by, uint64_t offset, unsigned size, bool reads, bool writes, bool acquire, bool release);

private:
    // kPending is added to one of the two before it.
    enum : uint8_t { kNobodys = 0, kEmpty = 1, kWritten = 2, kPending = 4 };

    bool in_range(uint64_t offset, unsigned size) const {
        return offset < states_.size() && states_.size() - offset >= size;
    }

    // Eight states at a time.
    uint64_t states(uint64_t offset, unsigned size) const {
        uint64_t v = 0;
        std::memcpy(&v, &states_[offset], size);
        return v;
    }
    template <class Test>
    bool each(uint64_t offset, unsigned size, Test test) const {
        for (; size > 8; size -= 8, offset += 8) {
            if (!test(states(offset, 8), 8)) return false;
        }
        return test(states(offset, size), size);
    }
    bool all_written(uint64_t offset, unsigned size) const {
        constexpr uint64_t written = 0x0101010101010101ull * kWritten;
        return each(offset, size, [](uint64_t v, unsigned n) { return v == (written & low_bits(n * 8)); });
    }
    bool all_somebodys(uint64_t offset, unsigned size) const {
        constexpr uint64_t ones = 0x0101010101010101ull;
        const auto test = [](uint64_t v, unsigned n) { return ((v | v >> 1) & ones) == (ones & low_bits(n * 8)); };
        return each(offset, size, test);
    }
    // Somebody's, and not pending.
    bool all_free(uint64_t offset, unsigned size) const {
        constexpr uint64_t ones = 0x0101010101010101ull;
        const auto test = [](uint64_t v, unsigned n) {
            return ((v | v >> 1) & ones) == (ones & low_bits(n * 8)) && (v & ones * kPending) == 0;
        };
        return each(offset, size, test);
    }
    std::string place(uint64_t offset) const;
    void check_pending(uint64_t offset, unsigned size, const char *does) const;
    [[noreturn]] void not_writable(uint64_t offset, unsigned size, const char *does) const;
    [[noreturn]] void not_readable(uint64_t offset, unsigned size) const;
    [[noreturn]] void outside(uint64_t offset, unsigned size) const;

    struct Extents {
        std::string name;
        uint64_t offset, bytes;
    };
    std::vector<Extents> variables_;
    std::vector<uint8_t> data_, states_;
    Shadow shadow_;
    uint64_t static_bytes_ = 0;
};

}  // namespace fcm::ptx
