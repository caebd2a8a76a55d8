// The lanes of one warp that wait for each other in a primitive such as __shfl_sync. Several groups of lanes may wait at the
// same time, each with its own mask; the lanes of a mask must reach the same primitive with the same mask.
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
        int operand;  // the lane, the distance or the bits, depending on the shuffle
    };

    void reset() { waiting_ = 0; }

    // A lane arrives. `exited` are lanes whose thread has ended, `existing` those that have a thread at all. Returns true if
    // it is the last of its group: then all lanes of call.mask continue. Otherwise it waits. Invalid calls are described in
    // `fault`.
    bool arrive(int lane, const Call &call, unsigned existing, unsigned exited, Words *fault);

    // The result of the primitive for a lane, after its group has met.
    uint64_t result(int lane) const { return results_[lane]; }

    // A thread ends. Returns a message if another lane is waiting for it.
    Words exit(int lane) const;

    unsigned waiting() const { return waiting_; }
    const Call &call(int lane) const { return calls_[lane]; }
    // The lanes that a waiting lane still waits for.
    unsigned missing(int lane) const { return calls_[lane].mask & ~waiting_; }

   private:
    void meet(const Call &call);
    uint64_t shuffled(int lane, unsigned mask) const;

    unsigned waiting_ = 0;
    Call calls_[warpSize] = {};
    uint64_t results_[warpSize] = {};
    detail::Gathered gathered_[warpSize] = {};
};

}  // namespace cudasim
