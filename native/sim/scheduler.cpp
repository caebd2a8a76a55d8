#include "scheduler.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <string>
#include <thread>

namespace cudasim {

// Covers all tasks that a caller waits for; memory stays accessible in between.
class Scheduler::Session {
   public:
    Session(const DeviceMemories &memories, DeviceFaults &faults) : memories_(memories), faults_(faults), gate_(memories) {}

    ~Session() {
        for (const int device : worked_) check(device);
    }

    // Runs one task on the way to the mark; returns false if there is none left, or none that can run now.
    bool step(const Mark &goal) {
        // A stream may wait for another that waits for a third: an explicit stack, because the chain is unbounded.
        if (chain_.empty()) chain_.push_back(goal);
        std::set<const Stream *> stuck;  // streams that cannot go on now
        while (!chain_.empty()) {
            const std::shared_ptr<Stream> stream = chain_.back().stream;
            Task *task = stream->front(chain_.back().position);
            if (task == nullptr) {
                chain_.pop_back();
                continue;
            }
            const std::vector<Mark> awaited = awaited_by(*task);
            if (may_run(stream->device(), *task, awaited.empty())) {
                run(stream->device(), *task);
                stream->pop();
                return true;
            }
            if (const Mark *next = movable(awaited, stuck)) {
                chain_.push_back(*next);
            } else {
                stuck.insert(stream.get());
                chain_.pop_back();
            }
        }
        return false;
    }

   private:
    // The marks that the task waits for and that are not reached yet.
    static std::vector<Mark> awaited_by(const Task &task) {
        std::vector<Mark> all;
        if (task.after != nullptr && !task.after->reached()) all.push_back(*task.after);
        for (const auto &peer : task.peers) {
            if (!peer->reached()) all.push_back(*peer);
        }
        return all;
    }

    bool may_run(int device, const Task &task, bool there) const {
        if (!task.over) return there;
        return faults_.failed(device) || task.over(there);  // a device that has failed skips its work, and waits for nobody
    }

    // A stream that may be able to go on towards its mark; null if there is none.
    const Mark *movable(const std::vector<Mark> &peers, const std::set<const Stream *> &stuck) const {
        for (const Mark &peer : peers) {
            const bool waits = std::any_of(chain_.begin(), chain_.end(), [&](const Mark &m) { return m.stream == peer.stream; });
            if (!waits && stuck.count(peer.stream.get()) == 0) return &peer;
        }
        return nullptr;
    }

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

bool Scheduler::run_all(const Mark &mark) {
    std::lock_guard<std::mutex> lock(execution_);
    Session session(memories_, faults_);
    while (session.step(mark)) {
    }
    return mark.reached();
}

void Scheduler::finish(const Mark &mark) {
    constexpr std::chrono::seconds kPatience{120};
    constexpr std::chrono::microseconds kPause{200};
    const auto limit = std::chrono::steady_clock::now() + kPatience;
    while (!mark.reached() && !run_all(mark)) {
        // A kernel waits for something that another thread of the host has to do.
        std::this_thread::sleep_for(kPause);
        if (std::chrono::steady_clock::now() > limit) {
            faults_.set(mark.stream->device(), "a kernel has waited for others for two minutes; it would wait forever");
            return;
        }
    }
}

void Scheduler::try_finish(const Mark &mark) {
    if (!mark.reached()) run_all(mark);
}

bool Scheduler::advance(const Mark &mark) {
    if (mark.reached()) return true;
    std::lock_guard<std::mutex> lock(execution_);
    Session session(memories_, faults_);
    session.step(mark);
    return mark.reached();
}

}  // namespace cudasim
