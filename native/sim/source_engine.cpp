#include "source_engine.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <string>

#include "trap.h"

namespace cudasim {

namespace {

// The first fault ends the launch: blocks that have not started are not run.
class FirstFault {
   public:
    bool any() const { return any_.load(std::memory_order_relaxed); }
    void set(const char *words) {
        std::lock_guard<std::mutex> lock(mutex_);
        if (!any()) words_ = words;
        any_.store(true, std::memory_order_relaxed);
    }
    void raise() const {
        if (any()) throw KernelFault(words_);
    }

   private:
    std::mutex mutex_;
    std::atomic<bool> any_{false};
    std::string words_;
};

constexpr int64_t kPiecesPerThread = 16;  // balances threads of different speed
constexpr int64_t kWorkPerThread = 8;     // cost of a kernel thread in elements of a plain loop

}  // namespace

SourceEngine::SourceEngine(const Settings &settings, const KernelTable &kernels)
    : kernels_(kernels), order_(settings.order, settings.seed), poison_(settings.poison), pool_(settings.threads) {
    for (int i = 0; i < settings.threads; ++i) blocks_.push_back(std::make_unique<Block>(settings));
}

void SourceEngine::launch(const char *kernel, Dim3 grid, Dim3 block, size_t shared_bytes, const void *args,
                          const size_t *, const size_t *, int, const MemoryMap &) {
    const CompiledKernel compiled = kernels_.find(kernel);
    if (compiled.entry == nullptr) throw KernelFault("no compiled kernel");
    const Grid all{kernel,       compiled.function, compiled.entry, static_cast<const unsigned char *>(args),
                   grid,         block,             shared_bytes,   poison_};
    for (const auto &runner : blocks_) runner->start(all);

    const auto count = static_cast<int64_t>(all.blocks());
    const int64_t pieces = std::min<int64_t>(count, pool_.threads() * kPiecesPerThread);
    FirstFault fault;
    pool_.run(pieces, count * all.threads() * kWorkPerThread, [&](int64_t piece, int thread) {
        try {
            const trap::HandlerStack handler_stack;
            Block &runner = *blocks_[static_cast<size_t>(thread)];
            const int64_t end = count * (piece + 1) / pieces;
            for (int64_t i = count * piece / pieces; i < end && !fault.any(); ++i) {
                runner.run(order_.block(static_cast<uint64_t>(i), static_cast<uint64_t>(count)));
            }
        } catch (const std::exception &e) {
            fault.set(e.what());
        }
    });
    fault.raise();
}

}  // namespace cudasim
