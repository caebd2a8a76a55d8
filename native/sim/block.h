// Runs the threads of one block one at a time on one OS thread. A thread that has to wait keeps its stack, and the next one
// runs; a thread that never waits passes its stack on to the next, so that kernels without barriers run as plain loops.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "cudasim/device.h"
#include "cudasim/launch.h"
#include "fiber.h"
#include "order.h"
#include "settings.h"
#include "shared_memory.h"
#include "stack_pool.h"
#include "text.h"
#include "warp.h"

namespace cudasim {

using detail::BarrierKind;
using detail::KernelEntry;

// The data shared by all blocks of a launch.
struct Grid {
    const char *kernel;
    const void *function;
    KernelEntry entry;
    const unsigned char *arguments;
    dim3 grid;
    dim3 block;
    size_t shared_bytes;
    bool poison;

    int threads() const { return static_cast<int>(block.x * block.y * block.z); }
    uint64_t blocks() const { return uint64_t{grid.x} * grid.y * grid.z; }
    uint3 block_index(uint64_t linear) const;
};

class Block {
   public:
    explicit Block(const Settings &settings);
    ~Block();
    Block(const Block &) = delete;
    Block &operator=(const Block &) = delete;

    // Prepares for all blocks of a launch that run on this OS thread.
    void start(const Grid &grid);
    // Throws KernelFault.
    void run(uint64_t linear);

    // The block whose thread is running on this OS thread, or nullptr outside of a kernel.
    static Block *running();

    // ---- From within a kernel ----
    int barrier(BarrierKind kind, int predicate, const char *file, int line);
    uint64_t warp_meet(const Warp::Call &call);
    [[noreturn]] void not_aligned(const char *instruction, int over, int bytes, int line);
    void *shared_static(const void *site, const char *name, size_t bytes, size_t alignment);
    void *shared_dynamic() const { return shared_.dynamic(); }
    // Ends the block with this message; the remaining threads never continue.
    [[noreturn]] __attribute__((format(printf, 2, 3))) void fault(const char *format, ...);

    // ---- From a signal handler, on behalf of the interrupted thread ----
    const Stack &running_stack() const { return current_->stack(); }
    void note_trap(const char *words);
    [[noreturn]] void abandon();

   private:
    struct Waiting {
        const char *file;
        int line;
        BarrierKind kind;
        int predicate;
    };

    static void fiber_body(Fiber &fiber);
    void work();
    void begin_thread(int thread);
    void end_thread();
    // Lets other threads run until this one can continue.
    void wait();
    bool pick(int *thread);
    Fiber &fiber_for(int thread);
    Fiber *take_fiber();
    void collect_finished();
    void check_shared();
    [[noreturn]] void stalled();
    Words place(int thread) const;
    unsigned existing_lanes(int warp) const;
    void drop_fibers();

    Order order_;
    size_t most_shared_;
    SharedMemory shared_;
    StackPool stacks_;
    std::vector<std::unique_ptr<Fiber>> fibers_;  // owns all fibers
    std::vector<Fiber *> idle_;
    std::optional<Fiber> main_;

    const Grid *grid_ = nullptr;
    uint64_t kernel_hash_ = 0;
    int threads_ = 0;
    uint3 block_index_{};
    std::vector<uint3> indices_;       // of each thread
    std::vector<Fiber *> waiting_on_;  // the fiber of each waiting thread
    std::vector<Waiting> at_barrier_;
    std::vector<Warp> warps_;

    Fiber *current_ = nullptr;
    Fiber *finished_ = nullptr;  // will not run again, but its stack was still in use when it was left
    int thread_ = 0;             // the running thread
    int live_ = 0;
    int barrier_count_ = 0;
    int barrier_votes_ = 0;
    int barrier_result_ = 0;  // of the last barrier; every thread has read it before the next barrier completes
    int first_at_barrier_ = -1;
    ThreadSet ready_;
    ThreadSet exited_;
    char fault_[512] = {};
};

}  // namespace cudasim
