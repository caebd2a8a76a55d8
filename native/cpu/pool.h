// A fixed set of threads that run one parallel loop at a time. The calling thread takes part, and a loop allocates no
// memory.
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
    // `threads` >= 1 includes the calling thread.
    explicit Pool(int threads);
    ~Pool();
    Pool(const Pool &) = delete;
    Pool &operator=(const Pool &) = delete;

    int threads() const { return static_cast<int>(workers_.size()) + 1; }

    // Calls body(index, thread) for every index in [0, count), with thread in [0, threads()). The assignment of indices to
    // threads is not fixed, so a body may write only data that belongs to its index, or scratch memory of its thread.
    // `elements` is the size of the whole loop; for a small loop no thread is woken.
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
    bool open_ = false;  // whether threads may still take part in the loop; guarded by mutex_
    // Modified under mutex_, so that no sleeping thread misses a change; read without the mutex while spinning.
    std::atomic<uint64_t> generation_{0};
    std::atomic<int> busy_{0};  // threads that take part, beside the caller

    // Written by the caller before it announces a generation; read only by the workers of that generation.
    Call call_ = nullptr;
    void *body_ = nullptr;
    int64_t count_ = 0;
    alignas(64) std::atomic<int64_t> next_{0};
};

}  // namespace fcm
