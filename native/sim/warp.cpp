#include "warp.h"

#include <cstring>

namespace cudasim {

namespace {

unsigned bit(int lane) { return 1u << lane; }
int first_of(unsigned lanes) { return __builtin_ctz(lanes); }

bool same_group(const Warp::Call &a, const Warp::Call &b) {
    return a.kind == b.kind && a.mask == b.mask && a.line == b.line && a.width == b.width;
}

}  // namespace

const char *name_of(WarpKind kind) {
    switch (kind) {
        case WarpKind::sync: return "__syncwarp";
        case WarpKind::shuffle: return "__shfl_sync";
        case WarpKind::shuffle_up: return "__shfl_up_sync";
        case WarpKind::shuffle_down: return "__shfl_down_sync";
        case WarpKind::shuffle_xor: return "__shfl_xor_sync";
        case WarpKind::ballot: return "__ballot_sync";
        case WarpKind::any: return "__any_sync";
        case WarpKind::all: return "__all_sync";
        case WarpKind::gather: return "ldmatrix or mma";
    }
    return "?";
}

bool Warp::arrive(int lane, const Call &call, unsigned existing, unsigned exited, Words *fault) {
    const char *name = name_of(call.kind);
    if ((call.mask & bit(lane)) == 0) {
        *fault = words("%s at line %d: lane %d calls it but is not in its mask %08x", name, call.line,
                      lane, call.mask);
        return false;
    }
    if (call.width < 1 || call.width > warpSize || (call.width & (call.width - 1)) != 0) {
        *fault = words("%s at line %d: width %d is no power of two up to 32", name, call.line,
                      call.width);
        return false;
    }
    if ((call.mask & ~existing) != 0) {
        *fault = words("%s at line %d: mask %08x names lane %d, which this warp of the block lacks",
                      name, call.line, call.mask, first_of(call.mask & ~existing));
        return false;
    }
    if ((call.mask & exited) != 0) {
        *fault = words("%s at line %d: mask %08x names lane %d, whose thread has ended", name,
                      call.line, call.mask, first_of(call.mask & exited));
        return false;
    }
    // If the mask of the first waiting lane contains all waiting lanes, they have been compared with it; this is the usual
    // case.
    const bool agreed = (waiting_ & ~call.mask) == 0 && (waiting_ == 0 || same_group(call, calls_[first_of(waiting_)]));
    for (unsigned others = agreed ? 0 : waiting_; others != 0; others &= others - 1) {
        const int other = first_of(others);
        const Call &theirs = calls_[other];
        const bool concerned = (call.mask & bit(other)) != 0 || (theirs.mask & bit(lane)) != 0;
        if (!concerned || same_group(call, theirs)) continue;
        *fault = words(
            "lane %d is at %s, line %d, mask %08x, width %d; lane %d is at %s, line %d, mask %08x, width %d", lane,
                      name, call.line, call.mask, call.width, other, name_of(theirs.kind), theirs.line, theirs.mask,
                      theirs.width);
        return false;
    }
    calls_[lane] = call;
    waiting_ |= bit(lane);
    if ((call.mask & ~waiting_) != 0) return false;
    meet(call);
    return true;
}

void Warp::meet(const Call &call) {
    if (call.kind == WarpKind::gather) {
        // Every lane waits, so that the words are still on its stack.
        for (int lane = 0; lane < warpSize; ++lane) {
            const Call &from = calls_[lane];
            std::memcpy(gathered_[lane], reinterpret_cast<const void *>(from.value), static_cast<size_t>(from.operand) * 4);
            results_[lane] = reinterpret_cast<uint64_t>(&gathered_[0]);
        }
        waiting_ = 0;
        return;
    }
    unsigned votes = 0;
    for (unsigned lanes = call.mask; lanes != 0; lanes &= lanes - 1) {
        const int lane = first_of(lanes);
        if (calls_[lane].value != 0) votes |= bit(lane);
    }
    for (unsigned lanes = call.mask; lanes != 0; lanes &= lanes - 1) {
        const int lane = first_of(lanes);
        switch (call.kind) {
            case WarpKind::sync: results_[lane] = 0; break;
            case WarpKind::ballot: results_[lane] = votes; break;
            case WarpKind::any: results_[lane] = votes != 0; break;
            case WarpKind::all: results_[lane] = votes == call.mask; break;
            default: results_[lane] = shuffled(lane, call.mask); break;
        }
    }
    waiting_ &= ~call.mask;
}

uint64_t Warp::shuffled(int lane, unsigned mask) const {
    const Call &call = calls_[lane];
    const int start = lane & ~(call.width - 1);  // start of the segment of `width` lanes that contains the lane
    const int within = lane - start;
    const auto distance = static_cast<unsigned>(call.operand);
    int source = lane;
    switch (call.kind) {
        case WarpKind::shuffle: source = start + (call.operand & (call.width - 1)); break;
        case WarpKind::shuffle_up:
            if (distance <= static_cast<unsigned>(within)) source = lane - call.operand;
            break;
        case WarpKind::shuffle_down:
            if (distance < static_cast<unsigned>(call.width - within)) source = lane + call.operand;
            break;
        default: {
            // Outside of its segment a lane may read lower lanes but not higher ones.
            const int other = lane ^ call.operand;
            if (other >= 0 && other < start + call.width) source = other;
            break;
        }
    }
    // A lane that does not take part provides an undefined value: NaN as a float, -1 as an integer.
    return (mask & bit(source)) != 0 ? calls_[source].value : ~uint64_t{0};
}

Words Warp::exit(int lane) const {
    for (unsigned others = waiting_; others != 0; others &= others - 1) {
        const int other = first_of(others);
        const Call &theirs = calls_[other];
        if ((theirs.mask & bit(lane)) == 0) continue;
        return words("lane %d ended while lane %d waits for it at %s, line %d, mask %08x", lane, other,
                     name_of(theirs.kind), theirs.line, theirs.mask);
    }
    return {};
}

}  // namespace cudasim
