// A fiber is a stack and a place to go on. Switching is by hand on x86-64, by ucontext elsewhere (about ten times
// slower, since that saves the signal mask by a call of the operating system).
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

    // The fiber that is the caller's own thread.
    Fiber() = default;
    explicit Fiber(const Stack &stack) : stack_(stack) {}
    ~Fiber();
    Fiber(const Fiber &) = delete;
    Fiber &operator=(const Fiber &) = delete;

    const Stack &stack() const { return stack_; }

    // The next switch to it calls body on an empty stack, whatever was there before. body must not return.
    void prepare(Body body);

    // Leaves the running fiber `from`, which goes on here when somebody switches back to it.
    static void switch_to(Fiber &from, Fiber &to);
    // The same, when nobody ever will.
    [[noreturn]] static void leave_to(Fiber &from, Fiber &to);

   private:
    static void change(Fiber &from, Fiber &to, bool for_good);
    static void entry();
    void arrived();
    void forget_history();

    Stack stack_;
    Body body_ = nullptr;
    Fiber *previous_ = nullptr;  // who switched here last
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
