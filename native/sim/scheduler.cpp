#include "scheduler.h"

#include <exception>
#include <string>

namespace cudasim {

// Covers all tasks that a caller waits for; memory stays accessible in between.
class Scheduler::Session {
   public:
    Session(const DeviceMemories &memories, DeviceFaults &faults) : memories_(memories), faults_(faults), gate_(memories) {}

    ~Session() {
        for (const int device : worked_) check(device);
    }

    // Runs one task on the way to the mark; returns false if there is none left.
    bool step(const Mark &goal) {
        // A stream may wait for another that waits for a third: an explicit stack, because the chain is unbounded.
        if (chain_.empty()) chain_.push_back(goal);
        for (;;) {
            const Mark &mark = chain_.back();
            Task *task = mark.stream->front(mark.position);
            if (task == nullptr) {
                chain_.pop_back();
                if (chain_.empty()) return false;
                continue;
            }
            if (task->after != nullptr && !task->after->reached()) {
                chain_.push_back(*task->after);
                continue;
            }
            const std::shared_ptr<Stream> stream = mark.stream;
            run(stream->device(), *task);
            stream->pop();
            return true;
        }
    }

   private:
    void run(int device, Task &task) {
        if (!task.run || (faults_.failed(device) && !task.even_after_fault)) return;
        try {
            gate_.open(device, task.devices);
            worked_.insert(device);
            task.run();
        } catch (const std::exception &e) {
            faults_.set(device, task.what + ": " + e.what());
        }
    }

    void check(int device) noexcept {
        try {
            gate_.open(device, {});
            const std::string words = memories_.device(device).damage();
            if (!words.empty()) faults_.set(device, words);
        } catch (const std::exception &e) {
            faults_.set(device, e.what());
        }
    }

    const DeviceMemories &memories_;
    DeviceFaults &faults_;
    MemoryGate gate_;
    std::vector<Mark> chain_;
    std::set<int> worked_;
};

void Scheduler::finish(const Mark &mark) {
    if (mark.reached()) return;
    std::lock_guard<std::mutex> lock(execution_);
    Session session(memories_, faults_);
    while (session.step(mark)) {
    }
}

bool Scheduler::advance(const Mark &mark) {
    if (mark.reached()) return true;
    std::lock_guard<std::mutex> lock(execution_);
    Session session(memories_, faults_);
    session.step(mark);
    return mark.reached();
}

}  // namespace cudasim
