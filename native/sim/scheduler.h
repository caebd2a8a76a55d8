// Runs the tasks of streams when a caller waits for them. Nothing runs on its own: in the lazy mode work stays queued until
// it is needed, so that a program that fails to synchronize reads the old values.
//
// One task runs at a time over all devices, because only then can the memory of all other devices be inaccessible. A kernel
// that waits for others (Task::over) does not run until its wait is over; it only keeps its stream from going on.
#pragma once

#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "device_faults.h"
#include "device_memories.h"
#include "stream.h"

namespace cudasim {

class Scheduler {
   public:
    Scheduler(const DeviceMemories &memories, DeviceFaults &faults) : memories_(memories), faults_(faults) {}

    // Runs everything needed to reach the mark: its stream up to the mark, and the work that it depends on. Does not return
    // while a kernel on the way waits for others: CUDA would wait forever, and here the device fails after two minutes.
    void finish(const Mark &mark);
    // The same, but returns when nothing more can be done now.
    void try_finish(const Mark &mark);
    // Runs one task towards the mark, for a caller that polls. Returns true if the mark has been reached.
    bool advance(const Mark &mark);

    // Runs `body` immediately, while no task is running; used for freeing memory.
    template <class Body>
    void between_tasks(Body &&body) {
        std::lock_guard<std::mutex> lock(execution_);
        body();
    }

   private:
    class Session;

    bool run_all(const Mark &mark);

    const DeviceMemories &memories_;
    DeviceFaults &faults_;
    std::mutex execution_;
};

}  // namespace cudasim
