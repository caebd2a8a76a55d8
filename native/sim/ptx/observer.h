// Watches a launch as a GPU would issue it: instruction by instruction of a warp, with the lanes that execute it together.
#pragma once

#include <cstdint>

#include "thread.h"

namespace fcm::ptx {

struct Launch;

// An instruction that a warp is about to execute. The registers of its lanes are those before the execution.
struct Issue {
    uint32_t warp = 0;
    const Function *function = nullptr;
    const Instruction *at = nullptr;
    uint32_t active = 0;              // the lanes that execute it
    const Thread *threads = nullptr;  // the lanes of the warp; those that exist begin with lane 0

    size_t index() const { return static_cast<size_t>(at - function->code.data()); }
};

class Observer {
public:
    enum class Plan { observe, run, leave_out };

    virtual ~Observer() = default;
    virtual void begin(const Launch &launch, const Function &kernel) = 0;
    // What is done with a block: it runs in lockstep and is observed, it only runs, or it does not run at all.
    virtual Plan begin_block(uint32_t number) = 0;
    virtual void issue(const Issue &issue) = 0;
    virtual void end_block() = 0;  // of an observed block
    virtual void end() = 0;
};

}  // namespace fcm::ptx
