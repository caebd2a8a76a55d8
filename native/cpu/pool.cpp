// The thread pool: workers spin briefly between loops and sleep on a condition variable after that.
#include "pool.h"

namespace fcm {

namespace {

// An operation often has two loops, and a training step has several operations: waking a sleeping thread takes longer than
// the time until the next loop. The spin lasts about 20 us; a longer one would take CPU time from other threads.
template <class Condition>
void spin_until(Condition &&condition) {
    for (int i = 0; i < 400 && !condition(); ++i) {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
    }
}

}  // namespace

Pool::Pool(int threads) {
    workers_.reserve(static_cast<size_t>(threads - 1));
    try {
        for (int i = 1; i < threads; ++i) workers_.emplace_back([this, i] { work(i); });
    } catch (...) {
        // If a constructor throws, the destructor does not run, and destroying a joinable thread would terminate the
        // process.
        {
            std::lock_guard<std::mutex> lock(mutex_);
            stop_ = true;
        }
        wake_.notify_all();
        for (auto &worker : workers_) worker.join();
        throw;
    }
}

Pool::~Pool() {
    {
        std::lock_guard<std::mutex> lock(mutex_);
        stop_ = true;
    }
    wake_.notify_all();
    for (auto &worker : workers_) worker.join();
}

void Pool::dispatch(int64_t count, Call call, void *body) {
    {
        std::lock_guard<std::mutex> lock(mutex_);
        call_ = call;
        body_ = body;
        count_ = count;
        next_.store(0, std::memory_order_relaxed);
        open_ = true;
        generation_.fetch_add(1, std::memory_order_release);
    }
    wake_.notify_all();
    drain(0);
    // A thread that is not awake by now would find nothing to do, and is not waited for.
    {
        std::lock_guard<std::mutex> lock(mutex_);
        open_ = false;
    }
    const auto done = [this] { return busy_.load(std::memory_order_acquire) == 0; };
    spin_until(done);
    std::unique_lock<std::mutex> lock(mutex_);
    done_.wait(lock, done);
}

void Pool::drain(int thread) {
    for (;;) {
        const int64_t index = next_.fetch_add(1, std::memory_order_relaxed);
        if (index >= count_) return;
        call_(body_, index, thread);
    }
}

void Pool::work(int thread) {
    uint64_t seen = 0;
    const auto called = [&] { return generation_.load(std::memory_order_acquire) != seen; };
    for (;;) {
        spin_until(called);
        {
            std::unique_lock<std::mutex> lock(mutex_);
            wake_.wait(lock, [&] { return stop_ || called(); });
            if (stop_) return;
            seen = generation_.load(std::memory_order_relaxed);
            if (!open_) continue;
            busy_.fetch_add(1, std::memory_order_relaxed);
        }
        drain(thread);
        std::lock_guard<std::mutex> lock(mutex_);
        if (busy_.fetch_sub(1, std::memory_order_release) == 1) done_.notify_one();
    }
}

}  // namespace fcm
