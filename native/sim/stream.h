// A stream is a queue of tasks; an event is a mark in a stream.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cudasim/runtime.h"

namespace cudasim {

// A position in a stream, reached when the task at `position` is complete.
struct Mark {
    std::shared_ptr<detail::Stream> stream;
    uint64_t position = 0;
    std::chrono::steady_clock::time_point time{};

    bool reached() const;
};

struct Task {
    std::string what;
    std::function<void()> run;              // empty: nothing to do
    std::vector<int> devices{};             // additional devices whose memory it needs
    bool even_after_fault = false;          // for frees, so that a failed device does not leak
    std::shared_ptr<const Mark> after{};    // runs only after this is reached

    // A kernel that waits for kernels of other streams occupies its stream until over(there) returns true; `there` says
    // whether those streams have come to `peers`. Takes no lock, because tasks run under that of the scheduler.
    std::function<bool(bool there)> over{};  // empty: it waits for nobody
    std::vector<std::shared_ptr<const Mark>> peers{};
};

namespace detail {

class Stream {
   public:
    Stream(int device, bool blocking) : device_(device), blocking_(blocking) {}

    int device() const { return device_; }
    // Whether it synchronizes with the null stream of its device.
    bool blocking() const { return blocking_; }

    // Returns the position of the task; the first is 1.
    uint64_t push(Task task);
    uint64_t tail() const;
    bool done(uint64_t position) const;

    // The next task to run, which stays in the queue until pop(); nullptr if there is none up to `position`.
    Task *front(uint64_t position);
    void pop();
    void drop_all();

   private:
    int device_;
    bool blocking_;
    mutable std::mutex mutex_;
    std::deque<Task> tasks_;
    uint64_t done_ = 0;
};

class Event {
   public:
    Event(int device, bool timed) : device_(device), timed_(timed) {}

    int device() const { return device_; }
    bool timed() const { return timed_; }
    // nullptr until it is recorded.
    std::shared_ptr<const Mark> mark() const;
    void set_mark(std::shared_ptr<const Mark> mark);

   private:
    int device_;
    bool timed_;
    mutable std::mutex mutex_;
    std::shared_ptr<const Mark> mark_;
};

}  // namespace detail

using detail::Event;
using detail::Stream;

}  // namespace cudasim
