// Faults of the processor: a kernel that touches what it may not ends as a fault of its device; the host touching
// device memory is told what it touched before it dies. All others go to whoever handled them before (a JVM has its
// own uses for them).
#pragma once

#include <memory>

namespace cudasim {

class DeviceMemories;

namespace trap {

// Installs the handlers, once. `memories` are those to look an address up in from now on; nullptr for none.
void watch(const DeviceMemories *memories);

// A handler cannot run on a stack that has overflowed, so a thread that runs kernels has another one for it.
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
