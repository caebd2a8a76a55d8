// A fixed set of threads that run one loop at a time. The caller works too, and nothing is allocated a loop.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

namespace fcm {

class Pool {
   public:
    // threads >= 1 counts the caller.
    explicit Pool(int threads);
    ~Pool();
    Pool(const Pool &) = delete;
    Pool &operator=(const Pool &) = delete;

    int threads() const { return static_cast<int>(workers_.size()) + 1; }

    // Calls body(index, thread) for every index in [0, count), thread in [0, threads()). Who runs which index
    // is not fixed, so a body may write only what belongs to its index (or its thread's scratch).
    // `elements` is the size of the whole loop: a small one is not worth waking anybody for.
    template <class Body>
    void run(int64_t count, int64_t elements, Body &&body) {
        if (workers_.empty() || count <= 1 || elements < kWorthWaking) {
            for (int64_t i = 0; i < count; ++i) body(i, 0);
            return;
        }
        using Callable = std::remove_reference_t<Body>;
        dispatch(count, [](void *erased, int64_t index, int thread) { (*static_cast<Callable *>(erased))(index, thread); },
                 &body);
    }

   private:
    using Call = void (*)(void *, int64_t, int);
    static constexpr int64_t kWorthWaking = 32768;

    void dispatch(int64_t count, Call call, void *body);
    void work(int thread);
    void drain(int thread);

    std::vector<std::thread> workers_;
    std::mutex mutex_;
    std::condition_variable wake_;
    std::condition_variable done_;
    bool stop_ = false;  // guarded by mutex_
    // Changed under mutex_, so that nobody who sleeps misses it; read without it while spinning.
    std::atomic<uint64_t> generation_{0};
    std::atomic<int> busy_{0};

    // Written by the caller before a generation is announced, read by workers of that generation only.
    Call call_ = nullptr;
    void *body_ = nullptr;
    int64_t count_ = 0;
    alignas(64) std::atomic<int64_t> next_{0};
};

}  // namespace fcm
