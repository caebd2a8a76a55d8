// Processor faults. A kernel that accesses memory it may not access ends as a fault of its device; if the host accesses
// device memory, a message says what was accessed before the process ends. All other faults are passed to the previous
// handlers (a JVM uses them).
#pragma once

#include <memory>

namespace cudasim {

class DeviceMemories;

namespace trap {

// Installs the handlers, once. `memories` is used to look up addresses from now on; nullptr for none.
void watch(const DeviceMemories *memories);

// A handler cannot run on a stack that has overflowed, so a thread that runs kernels has an alternate signal stack.
class HandlerStack {
   public:
    HandlerStack();
    ~HandlerStack();
    HandlerStack(const HandlerStack &) = delete;
    HandlerStack &operator=(const HandlerStack &) = delete;

   private:
    struct Previous;
    std::unique_ptr<Previous> previous_;
};

}  // namespace trap
}  // namespace cudasim
