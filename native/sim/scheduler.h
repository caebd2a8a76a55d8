// Runs the tasks of streams when somebody waits for them. Nothing runs by itself: in the lazy mode work stays queued
// until it is needed, so that a program which forgets to wait reads what was there before.
//
// One task runs at a time, of whichever device, since only then can the memory of all other devices be out of reach.
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

    // Runs what it takes for the mark to be reached: its stream up to there, and what that waits for.
    void finish(const Mark &mark);
    // Runs one task towards the mark, for somebody who polls. True when the mark is reached.
    bool advance(const Mark &mark);

    // For what is done between tasks, at once: freeing memory.
    template <class Body>
    void between_tasks(Body &&body) {
        std::lock_guard<std::mutex> lock(execution_);
        body();
    }

   private:
    class Session;

    const DeviceMemories &memories_;
    DeviceFaults &faults_;
    std::mutex execution_;
};

}  // namespace cudasim
