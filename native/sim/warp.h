// The lanes of one warp that wait for each other in a primitive such as __shfl_sync. Several groups of lanes may wait
// at a time, each with a mask of its own; lanes that name each other must come to the same primitive with the same mask.
#pragma once

#include <cstdint>

#include "cudasim/device.h"
#include "text.h"

namespace cudasim {

using detail::WarpKind;

const char *name_of(WarpKind kind);

class Warp {
   public:
    struct Call {
        WarpKind kind;
        unsigned mask;
        int width;
        const char *file;
        int line;
        uint64_t value;
        int operand;  // the lane, the distance or the bits, as the shuffle has it
    };

    void reset() { waiting_ = 0; }

    // A lane comes. `exited` are lanes whose thread has ended, `existing` those that have a thread at all. True when it
    // is the last of its group: then all of call.mask go on. Otherwise it waits. What is not allowed is put into words
    // in `fault`.
    bool arrive(int lane, const Call &call, unsigned existing, unsigned exited, Words *fault);

    // What the primitive gives a lane, once its group has met.
    uint64_t result(int lane) const { return results_[lane]; }

    // A thread ends. Whoever waits for its lane waits in vain.
    Words exit(int lane) const;

    unsigned waiting() const { return waiting_; }
    const Call &call(int lane) const { return calls_[lane]; }
    // Those that a waiting lane still waits for.
    unsigned missing(int lane) const { return calls_[lane].mask & ~waiting_; }

   private:
    void meet(const Call &call);
    uint64_t shuffled(int lane, unsigned mask) const;

    unsigned waiting_ = 0;
    Call calls_[warpSize] = {};
    uint64_t results_[warpSize] = {};
};

}  // namespace cudasim
