// Counts what the warps of a launch do, instruction by instruction.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_set>
#include <vector>

#include "memory_rules.h"
#include "observer.h"
#include "opcode.h"

namespace fcm::profile {

// Of one instruction, or of many together.
struct Counts {
    struct Of {
        uint64_t issued = 0;  // warp instructions
        uint64_t lanes = 0;   // active ones, of all of them
    };
    std::array<Of, kClasses> by_class{};
    uint64_t off = 0;              // issued for lanes whose guard is false for all; among the control instructions
    uint64_t weight = 0;           // instructions of the GPU; those of the class move are none
    uint64_t fp64_lanes = 0;       // with the weight of divisions and roots
    uint64_t mma_products = 0;     // multiply-adds
    uint64_t mma_cost = 0;         // those of tf32 twice, because a tensor core does half as many of them
    uint64_t shared_loads = 0, shared_requests = 0, shared_taken = 0, shared_least = 0;  // wavefronts
    uint64_t global_requests = 0, sectors = 0, least_sectors = 0;

    uint64_t issued() const;
    uint64_t lanes() const;
    const Of &of(Class c) const { return by_class[static_cast<unsigned>(c)]; }
    void add(const Counts &other);
};

// The innermost loop in which most instructions are issued: the code from the target of a backward branch to the branch.
struct Loop {
    unsigned first_line = 0, last_line = 0;  // in the PTX file
    Counts counts;
};

// An instruction that takes more wavefronts or sectors than the least.
struct Waste {
    unsigned line = 0;  // in the PTX file
    std::string opcode;
    Counts counts;
};

// Of all launches of a kernel.
struct KernelCounts {
    std::string kernel;
    uint64_t launches = 0, blocks = 0, observed = 0;
    uint64_t threads = 0;  // of a block
    Counts all;
    Loop loop;
    Counts inner;             // all innermost loops together
    std::vector<Waste> waste;  // in the order of the code
    uint64_t average_warp = 0, busiest_warp = 0;  // fma and mma of a block's warps, times the number of warps; summed over blocks
    uint64_t busiest_scheduler = 0;               // instructions of the busiest of four, summed over blocks
    uint64_t distinct_sectors = 0;                // read in a launch, and written, each once; summed over launches
};

class Counters : public ptx::Observer {
public:
    // Of a launch with more blocks than that only so many are observed, evenly distributed. `others` says what is done with
    // the rest. 0: all blocks are observed.
    void sample(uint64_t blocks, Plan others);

    void begin(const ptx::Launch &launch, const ptx::Function &kernel) override;
    Plan begin_block(uint32_t number) override;
    void issue(const ptx::Issue &issue) override;
    void end_block() override;
    void end() override;

    // What has been counted since the last call, in the order of the first launches.
    std::vector<KernelCounts> take();

private:
    struct Line {
        Kind kind;
        bool counted = false;
        int guard = -1;  // 0: lanes go on if the predicate is false; 1: if it is true
        Counts counts;
    };
    struct Code {
        std::vector<Line> lines;
    };
    struct Kernel {
        KernelCounts counts;
        std::map<const ptx::Function *, Code> code;
    };

    Code &code_of(const ptx::Function &function);
    void traffic(const ptx::Issue &issue, const Kind &kind, Counts &counts);
    void shared(const WarpAccess &access, bool loads, Counts &counts);
    void global(const WarpAccess &access, bool writes, Counts &counts);

    std::vector<Kernel> kernels_;
    size_t current_ = 0;
    uint64_t most_ = 0, grid_ = 0;
    Plan others_ = Plan::run;
    const ptx::Function *last_function_ = nullptr;
    Code *last_code_ = nullptr;
    std::vector<uint64_t> warp_products_;
    std::array<uint64_t, 4> scheduler_{};
    std::unordered_set<uint64_t> read_, written_;
};

}  // namespace fcm::profile
