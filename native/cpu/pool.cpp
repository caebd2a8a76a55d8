#include "pool.h"

namespace fcm {

Pool::Pool(int threads) {
    workers_.reserve(static_cast<size_t>(threads - 1));
    try {
        for (int i = 1; i < threads; ++i) workers_.emplace_back([this, i] { work(i); });
    } catch (...) {
        // A constructor that throws runs no destructor, and a joinable thread would end the process.
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
        busy_ = static_cast<int>(workers_.size());
        ++generation_;
    }
    wake_.notify_all();
    drain(0);
    std::unique_lock<std::mutex> lock(mutex_);
    done_.wait(lock, [this] { return busy_ == 0; });
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
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
        wake_.wait(lock, [&] { return stop_ || generation_ != seen; });
        if (stop_) return;
        seen = generation_;
        lock.unlock();
        drain(thread);
        lock.lock();
        if (--busy_ == 0) done_.notify_one();
    }
}

}  // namespace fcm
