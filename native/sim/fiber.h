// A fiber is a stack and a saved context. Switching is implemented in assembly on x86-64 and with ucontext elsewhere, which
// is about ten times slower, because it saves the signal mask with a system call.
#pragma once

#include <cstddef>

#include "sanitizer.h"
#include "stack_pool.h"

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace cudasim {

class Fiber {
   public:
    using Body = void (*)(Fiber &);

    // The fiber of the calling OS thread.
    Fiber() = default;
    explicit Fiber(const Stack &stack) : stack_(stack) {}
    ~Fiber();
    Fiber(const Fiber &) = delete;
    Fiber &operator=(const Fiber &) = delete;

    const Stack &stack() const { return stack_; }

    // The next switch to the fiber calls body on an empty stack; the previous contents are discarded. body must not return.
    void prepare(Body body);

    // Leaves the running fiber `from`, which continues here when another fiber switches back to it.
    static void switch_to(Fiber &from, Fiber &to);
    // The same if `from` will never continue.
    [[noreturn]] static void leave_to(Fiber &from, Fiber &to);

   private:
    static void change(Fiber &from, Fiber &to, bool for_good);
    static void entry();
    void arrived();
    void forget_history();

    Stack stack_;
    Body body_ = nullptr;
    Fiber *previous_ = nullptr;  // the fiber that switched here last
#if defined(__x86_64__)
    void *stack_pointer_ = nullptr;
#else
    ucontext_t context_{};
#endif
#if defined(__SANITIZE_ADDRESS__)
    void *fake_stack_ = nullptr;
    const void *known_bottom_ = nullptr;
    size_t known_bytes_ = 0;
#endif
#if defined(__SANITIZE_THREAD__)
    void *tsan_ = nullptr;
    bool tsan_own_ = false;
    int tsan_starts_ = 0;
#endif
};

}  // namespace cudasim
