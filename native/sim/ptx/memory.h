// Device memory as the interpreter sees it: who owns an address. The owner is somebody else.
#pragma once

#include <cstdint>
#include <string>

namespace fcm::ptx {

// A live allocation, exactly: the byte after it belongs to nobody.
struct Extent {
    uint64_t base = 0, bytes = 0;
};

class Memory {
public:
    virtual ~Memory() = default;
    virtual int device() const = 0;
    // The allocation at an address, if the kernel may touch it.
    virtual bool find(uint64_t address, Extent &extent) const = 0;
    // What the address is, for a report.
    virtual std::string describe(uint64_t address) const = 0;
};

// Generic addresses of what is not device memory. No pointer of the host is that high.
constexpr uint64_t kWindowMask = 0xffff'0000'0000'0000;
constexpr uint64_t kSharedWindow = 0x00f1'0000'0000'0000;
constexpr uint64_t kLocalWindow = 0x00f2'0000'0000'0000;
constexpr uint64_t kParamWindow = 0x00f3'0000'0000'0000;

}  // namespace fcm::ptx
