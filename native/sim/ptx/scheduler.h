// Runs the threads of one block, one at a time, until each waits or has ended; completes barriers, shuffles and votes, and
// reports when they cannot complete.
#pragma once

#include <cstdint>
#include <vector>

#include "order.h"
#include "thread.h"

namespace fcm::ptx {

enum class BarrierVote : uint32_t { none, count, all, any };

class Scheduler {
public:
    Scheduler(Block &block, const Order &order);

    // All threads of the block have been started. Returns the number of instructions executed; throws Fault.
    uint64_t run();

private:
    size_t choose();
    int64_t turns();
    void run_thread(Thread &t);
    void exited(Thread &t);
    void check_mask(const Thread &t) const;
    void try_collective(Thread &t);
    void finish_collective(Thread &t);
    void finish_matrices(Thread &t);
    void try_barrier();
    [[noreturn]] void stuck();
    [[noreturn]] void fault(const Thread &t, const Instruction &at, const std::string &words) const;
    Thread &lane(const Thread &t, unsigned lane) { return block_.threads[t.warp * 32 + lane]; }
    unsigned lanes(const Thread &t) const;
    std::string doing(const Thread &t) const;
    void set_ready(size_t thread, bool ready);

    Block &block_;
    Order order_;
    Random random_;
    std::vector<uint64_t> ready_;
    size_t last_;
    size_t live_, at_barrier_ = 0;
    uint64_t instructions_ = 0;
};

}  // namespace fcm::ptx
