#include "trap.h"

#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <vector>

#include "block.h"
#include "device_memories.h"
#include "sanitizer.h"
#include "text.h"

namespace cudasim::trap {

namespace {

constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE};
struct sigaction previous_action[sizeof kSignals / sizeof kSignals[0]];
std::atomic<const DeviceMemories *> watched{nullptr};

int position_of(int signal) {
    int i = 0;
    while (kSignals[i] != signal) ++i;
    return i;
}

void chain(int signal, siginfo_t *info, void *context) {
    const struct sigaction &before = previous_action[position_of(signal)];
    if ((before.sa_flags & SA_SIGINFO) != 0 && before.sa_sigaction != nullptr) {
        before.sa_sigaction(signal, info, context);
    } else if (before.sa_handler == SIG_DFL || before.sa_handler == SIG_IGN) {
        // Restores the default action: the instruction faults again, and the process ends as it would have.
        sigaction(signal, &before, nullptr);
    } else {
        before.sa_handler(signal);
    }
}

Words reason(int signal, const siginfo_t &info, const Block &block) {
    if (signal == SIGFPE) return words("integer division by zero");
    if (block.running_stack().guards(info.si_addr)) return words("stack overflow");
    // A non-canonical address or a misaligned vector access is reported without an address.
    if (info.si_code == SI_KERNEL || signal == SIGBUS) return words("misaligned or impossible address");
    const DeviceMemories *memories = watched.load();
    if (memories == nullptr) return words("illegal address %p", info.si_addr);
    return words("illegal address: %s", memories->describe(info.si_addr).c_str());
}

#if defined(__x86_64__)

CUDASIM_UNCHECKED __attribute__((noinline)) void land() { Block::running()->abandon(); }

// When the handler returns, the kernel thread continues in land(), on an almost empty stack.
bool redirect(const Block &block, void *context) {
    const Stack &stack = block.running_stack();
    ASAN_UNPOISON_MEMORY_REGION(stack.bottom, stack.bytes);
    auto &registers = static_cast<ucontext_t *>(context)->uc_mcontext.gregs;
    registers[REG_RSP] = static_cast<greg_t>(reinterpret_cast<uintptr_t>(stack.top()) - 8);
    registers[REG_RIP] = static_cast<greg_t>(reinterpret_cast<uintptr_t>(&land));
    return true;
}

#else

bool redirect(const Block &, void *) { return false; }

#endif

void report_host(const siginfo_t &info) {
    const DeviceMemories *memories = watched.load();
    if (memories == nullptr || memories->owner(info.si_addr) < 0) return;
    std::fprintf(stderr, "cudasim: the host touched device memory: %s\n", memories->describe(info.si_addr).c_str());
    std::fflush(stderr);
}

void handle(int signal, siginfo_t *info, void *context) {
    Block *block = Block::running();
    if (block != nullptr) {
        block->note_trap(reason(signal, *info, *block).c_str());
        if (redirect(*block, context)) return;
    } else if (signal == SIGSEGV && info->si_code != SI_USER) {
        report_host(*info);
    }
    chain(signal, info, context);
}

void install() {
    for (const int signal : kSignals) {
        struct sigaction &before = previous_action[position_of(signal)];
        sigaction(signal, nullptr, &before);
        struct sigaction ours {};
        ours.sa_sigaction = &handle;
        ours.sa_mask = before.sa_mask;
        ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
        sigaction(signal, &ours, nullptr);
    }
}

}  // namespace

void watch(const DeviceMemories *memories) {
    static std::once_flag once;
    std::call_once(once, install);
    watched.store(memories);
}

struct HandlerStack::Previous {
    stack_t stack{};
};

HandlerStack::HandlerStack() : previous_(std::make_unique<Previous>()) {
    thread_local std::vector<unsigned char> memory(64 * 1024);
    stack_t ours{};
    ours.ss_sp = memory.data();
    ours.ss_size = memory.size();
    sigaltstack(&ours, &previous_->stack);
}

HandlerStack::~HandlerStack() { sigaltstack(&previous_->stack, nullptr); }

}  // namespace cudasim::trap
