// Executes the kernels that were compiled with the program, with the blocks distributed over OS threads.
#pragma once

#include <memory>
#include <vector>

#include "block.h"
#include "engine.h"
#include "kernel_table.h"
#include "pool.h"
#include "settings.h"

namespace cudasim {

class SourceEngine : public Engine {
   public:
    SourceEngine(const Settings &settings, const KernelTable &kernels);

    void launch(const char *kernel, Dim3 grid, Dim3 block, size_t shared_bytes, const void *args,
                const size_t *arg_offsets, const size_t *arg_sizes, int arg_count, const MemoryMap &memory) override;

   private:
    const KernelTable &kernels_;
    Order order_;
    bool poison_;
    fcm::Pool pool_;
    std::vector<std::unique_ptr<Block>> blocks_;  // one per thread of the pool
};

}  // namespace cudasim
