// The status of a context: what the first operation has found that found NaN or Inf. The host does not wait for it. Kernels
// that look for NaN or Inf write it, kernels that write operands do nothing once it is set, and the next call that waits
// reads it. So a fault is found before it is written to any operand, and costs no wait of its own.
#pragma once

#include <cstdint>

#include "portable.h"

namespace fcm {

constexpr unsigned long long kNothing = ~0ull;

struct Status {
    unsigned long long ticket;   // the operation, kNothing if nothing was found
    unsigned long long address;  // the lowest address of what it found
};

// What a kernel needs to look for NaN or Inf on behalf of an operation. Tickets ascend in the order of the operations, and
// so do addresses in the order of the clients and their elements: the result does not depend on which thread comes first.
struct Check {
    Status *status;
    unsigned long long ticket;

    __device__ __forceinline__ void found(const void *address) const {
        if (atomicMin(&status->ticket, ticket) >= ticket) {
            atomicMin(&status->address, static_cast<unsigned long long>(reinterpret_cast<uintptr_t>(address)));
        }
    }
};

// Whether an operation before has found something. Only for kernels beside which no other kernel writes the status.
__device__ __forceinline__ bool stopped(const Status *status) { return status->ticket != kNothing; }

}  // namespace fcm
