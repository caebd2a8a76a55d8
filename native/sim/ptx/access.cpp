#include "access.h"

namespace fcm::ptx {

void misaligned(uint64_t address, unsigned size) {
    throw Mistake("touches " + std::to_string(size) + " bytes at an address that is " +
        std::to_string(address & (size - 1)) + " more than a multiple of " + std::to_string(size));
}

void outside_local(const Thread &t, uint64_t offset, unsigned size) {
    throw Mistake("touches " + std::to_string(size) + " bytes of local memory at offset " +
        std::to_string(static_cast<int64_t>(offset)) + " of " + std::to_string(t.local_end));
}

void outside_parameters(const Thread &t, uint64_t offset, unsigned size) {
    throw Mistake("reads " + std::to_string(size) + " bytes of the parameters at offset " +
        std::to_string(static_cast<int64_t>(offset)) + " of " + std::to_string(t.block->parameters->size()));
}

void no_store(const char *where) { throw Mistake(std::string("writes to ") + where); }

}  // namespace fcm::ptx
