#include "fiber.h"

#include <cstdint>
#include <cstdlib>

namespace cudasim {

namespace {

// The fiber that is about to run for the first time; entry() has no other way to receive it.
thread_local Fiber *starting = nullptr;

}  // namespace

#if defined(__x86_64__)

// Saves the callee-saved registers and switches stacks; the caller has saved the others. Kernels do not change the rounding
// mode, so the floating-point control words are not saved.
asm(R"(
    .text
    .p2align 4
    .hidden cudasim_switch_stacks
    .globl cudasim_switch_stacks
    .type cudasim_switch_stacks, @function
cudasim_switch_stacks:
    .cfi_startproc
    endbr64
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .cfi_endproc
    .size cudasim_switch_stacks, .-cudasim_switch_stacks
)");
extern "C" __attribute__((visibility("hidden"))) void cudasim_switch_stacks(void **save, void *load);

void Fiber::prepare(Body body) {
    body_ = body;
    forget_history();
    // Stack memory poisoned by an abandoned thread must not be reported as an error of the next one.
    ASAN_UNPOISON_MEMORY_REGION(stack_.bottom, stack_.bytes);
    auto **slot = reinterpret_cast<void **>(stack_.top());
    *--slot = nullptr;  // return address of entry(): a debugger stops here, and the alignment is that of a call
    *--slot = reinterpret_cast<void *>(&Fiber::entry);
    for (int saved = 0; saved < 6; ++saved) *--slot = nullptr;
    stack_pointer_ = slot;
}

#else

void Fiber::prepare(Body body) {
    body_ = body;
    forget_history();
    ASAN_UNPOISON_MEMORY_REGION(stack_.bottom, stack_.bytes);
    getcontext(&context_);
    context_.uc_stack.ss_sp = stack_.bottom;
    context_.uc_stack.ss_size = stack_.bytes;
    context_.uc_link = nullptr;
    makecontext(&context_, &Fiber::entry, 0);
}

#endif

Fiber::~Fiber() {
#if defined(__SANITIZE_THREAD__)
    if (tsan_own_) __tsan_destroy_fiber(tsan_);
#endif
}

// ThreadSanitizer keeps a call stack per fiber, and a body never returns, so the calls accumulate. Recreating the
// sanitizer's fiber is slow, so this is done before there are too many calls rather than each time.
void Fiber::forget_history() {
#if defined(__SANITIZE_THREAD__)
    constexpr int kMostStarts = 1000;
    if (!tsan_own_ || ++tsan_starts_ < kMostStarts) return;
    __tsan_destroy_fiber(tsan_);
    tsan_ = nullptr;
    tsan_own_ = false;
    tsan_starts_ = 0;
#endif
}

void Fiber::entry() {
    Fiber &self = *starting;
    self.arrived();
    const Body body = self.body_;
    self.body_ = nullptr;
    body(self);
    std::abort();  // a body must not return: it has no caller
}

void Fiber::arrived() {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(fake_stack_, &previous_->known_bottom_, &previous_->known_bytes_);
    fake_stack_ = nullptr;
#endif
}

void Fiber::change(Fiber &from, Fiber &to, bool for_good) {
    (void)for_good;
    to.previous_ = &from;
    if (to.body_ != nullptr) starting = &to;
#if defined(__SANITIZE_ADDRESS__)
    const bool own = to.stack_.bottom != nullptr;
    __sanitizer_start_switch_fiber(for_good ? nullptr : &from.fake_stack_, own ? to.stack_.bottom : to.known_bottom_,
                                   own ? to.stack_.bytes : to.known_bytes_);
#endif
#if defined(__SANITIZE_THREAD__)
    if (from.tsan_ == nullptr) from.tsan_ = __tsan_get_current_fiber();
    if (to.tsan_ == nullptr) {
        to.tsan_ = __tsan_create_fiber(0);
        to.tsan_own_ = true;
    }
    __tsan_switch_to_fiber(to.tsan_, 0);
#endif
#if defined(__x86_64__)
    cudasim_switch_stacks(&from.stack_pointer_, to.stack_pointer_);
#else
    swapcontext(&from.context_, &to.context_);
#endif
}

void Fiber::switch_to(Fiber &from, Fiber &to) {
    change(from, to, false);
    from.arrived();
}

void Fiber::leave_to(Fiber &from, Fiber &to) {
    change(from, to, true);
    std::abort();
}

}  // namespace cudasim
