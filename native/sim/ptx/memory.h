// Device memory as the interpreter sees it. The memory itself is owned by the runtime.
#pragma once

#include <cstdint>
#include <string>

namespace fcm::ptx {

// A live allocation with its exact size: the byte after it does not belong to it.
struct Extent {
    uint64_t base = 0, bytes = 0;
};

class Memory {
public:
    virtual ~Memory() = default;
    virtual int device() const = 0;
    // The allocation at an address, if the kernel may access it.
    virtual bool find(uint64_t address, Extent &extent) const = 0;
    // A description of the address for a report.
    virtual std::string describe(uint64_t address) const = 0;
};

// Generic addresses of the other state spaces. No host pointer is that high.
constexpr uint64_t kWindowMask = 0xffff'0000'0000'0000;
constexpr uint64_t kSharedWindow = 0x00f1'0000'0000'0000;
constexpr uint64_t kLocalWindow = 0x00f2'0000'0000'0000;
constexpr uint64_t kParamWindow = 0x00f3'0000'0000'0000;

}  // namespace fcm::ptx
