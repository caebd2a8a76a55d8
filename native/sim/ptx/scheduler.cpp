#include "scheduler.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>

#include "observer.h"

#include "matrix.h"

namespace fcm::ptx {

namespace {

// A thread that polls memory for another thread must eventually let it run.
constexpr int64_t kLongTurn = 1 << 16;

std::string hexadecimal(uint32_t v) {
    char text[16];
    std::snprintf(text, sizeof text, "0x%08x", v);
    return text;
}

}  // namespace

Scheduler::Scheduler(Block &block, const Order &order)
    : block_(block), order_(order), random_(order.seed * 0x2545f4914f6cdd1dull + block.number),
      ready_((block.threads.size() + 63) / 64),
      last_(order.kind == Order::Kind::forward ? block.threads.size() - 1 : 0),
      live_(block.threads.size()) {
    for (size_t i = 0; i < block.threads.size(); ++i) set_ready(i, true);
}

void Scheduler::set_ready(size_t thread, bool ready) {
    const uint64_t bit = 1ull << (thread & 63);
    if (ready) ready_[thread >> 6] |= bit;
    else ready_[thread >> 6] &= ~bit;
}

// The next ready thread after `last_` in the direction of the order, or the number of threads if none is ready.
size_t Scheduler::choose() {
    const size_t count = block_.threads.size();
    const size_t words = ready_.size();
    if (order_.kind == Order::Kind::reverse) {
        // last_ - 1 down to 0, then from the top.
        const size_t from = last_ == 0 ? count - 1 : last_ - 1;
        for (size_t k = 0; k <= words; ++k) {
            const size_t word = (from / 64 + words - k) % words;
            uint64_t bits = ready_[word];
            if (k == 0) bits &= low_bits(static_cast<unsigned>(from % 64 + 1));
            if (bits != 0) return word * 64 + 63 - static_cast<size_t>(__builtin_clzll(bits));
        }
        return count;
    }
    const size_t from = order_.kind == Order::Kind::random ? random_.below(count) : (last_ + 1) % count;
    for (size_t k = 0; k <= words; ++k) {
        const size_t word = (from / 64 + k) % words;
        uint64_t bits = ready_[word];
        if (k == 0) bits &= ~low_bits(static_cast<unsigned>(from % 64));
        if (bits != 0) return word * 64 + static_cast<size_t>(__builtin_ctzll(bits));
    }
    return count;
}

int64_t Scheduler::turns() {
    if (order_.kind != Order::Kind::random) return kLongTurn;
    // Mostly short, sometimes long: a bug may require one thread to be far ahead of the others.
    const uint64_t draw = random_.next();
    return static_cast<int64_t>(1 + (draw >> 8) % ((draw & 7) == 0 ? 256 : 8));
}

uint64_t Scheduler::run() {
    const size_t count = block_.threads.size();
    while (live_ > 0) {
        const size_t index = choose();
        if (index == count) stuck();
        last_ = index;
        Thread &t = block_.threads[index];
        run_thread(t);
        stopped(t);
    }
    return instructions_;
}

// After a thread has run: what its state means for others.
void Scheduler::stopped(Thread &t) {
    switch (t.state) {
        case State::running:
        case State::preempted: break;
        case State::exited:
            set_ready(t.index, false);
            --live_;
            exited(t);
            try_barrier();
            break;
        case State::barrier:
            set_ready(t.index, false);
            ++at_barrier_;
            try_barrier();
            break;
        case State::collective:
            set_ready(t.index, false);
            check_mask(t);
            try_collective(t);
            break;
    }
}

uint64_t Scheduler::run_in_step(Observer &observer) {
    const auto warps = static_cast<uint32_t>((block_.threads.size() + 31) / 32);
    while (live_ > 0) {
        bool moved = false;
        for (uint32_t warp = 0; warp < warps; ++warp) {
            for (int64_t i = 0; i < kLongTurn && step(warp, observer); ++i) moved = true;
        }
        if (!moved) stuck();
    }
    observer.end_block();
    return instructions_;
}

// One instruction of a warp; false if none of its lanes can go on.
bool Scheduler::step(uint32_t warp, Observer &observer) {
    Thread *const first = &block_.threads[warp * 32];
    const unsigned count = lanes(*first);
    Issue issue;
    size_t depth = 0;
    for (unsigned k = 0; k < count; ++k) {
        const Thread &t = first[k];
        if (t.state != State::running && t.state != State::preempted) continue;
        const size_t deep = t.frames.size();
        if (issue.active != 0 && deep == depth && t.next == issue.at) {
            issue.active |= 1u << k;
        } else if (issue.active == 0 || deep > depth || (deep == depth && std::less<>()(t.next, issue.at))) {
            issue.active = 1u << k;
            issue.at = t.next;
            issue.function = t.frames.back().function;
            depth = deep;
        }
    }
    if (issue.active == 0) return false;
    issue.warp = warp;
    issue.threads = first;
    observer.issue(issue);
    for (uint32_t left = issue.active; left != 0; left &= left - 1) {
        Thread &t = first[__builtin_ctz(left)];
        t.state = State::running;
        t.turns = kLongTurn;
        const Instruction &i = *t.next++;
        try {
            i.run(t, i);
        } catch (const Mistake &mistake) {
            fault(t, t.next[-1], mistake.what());
        }
        ++instructions_;
        stopped(t);
    }
    return true;
}

void Scheduler::run_thread(Thread &t) {
    t.state = State::running;
    t.turns = turns();
    uint64_t count = 0;
    try {
        while (t.state == State::running) {
            const Instruction &i = *t.next++;
            ++count;
            i.run(t, i);
        }
    } catch (const Mistake &mistake) {
        fault(t, t.next[-1], mistake.what());
    }
    instructions_ += count;
}

void Scheduler::fault(const Thread &t, const Instruction &at, const std::string &words) const {
    const Function &function = *t.frames.back().function;
    const Line &line = function.lines[static_cast<size_t>(&at - function.code.data())];
    const auto name = [this](unsigned file, unsigned number) {
        const auto found = block_.module->sources.find(file);
        return (found == block_.module->sources.end() ? "file " + std::to_string(file) : found->second) + ":" +
               std::to_string(number);
    };
    std::string source;
    if (line.file != 0) source = name(line.file, line.line);
    if (line.inlined_file != 0) source += " (inlined at " + name(line.inlined_file, line.inlined_line) + ")";
    throw Fault(block_.kernel->name, block_.position, t.position, block_.module->file, line.ptx, source, words);
}

unsigned Scheduler::lanes(const Thread &t) const {
    return static_cast<unsigned>(std::min<size_t>(32, block_.threads.size() - t.warp * 32));
}

// ---- lanes of a warp

void Scheduler::check_mask(const Thread &t) const {
    const Waiting &w = t.waiting;
    if ((w.mask >> t.lane & 1) == 0) {
        fault(t, *w.at, "lane " + std::to_string(t.lane) + " is not in its own mask " + hexadecimal(w.mask));
    }
    const unsigned count = lanes(t);
    if (count < 32 && (w.mask >> count) != 0) {
        fault(t, *w.at, "the mask " + hexadecimal(w.mask) + " names lanes that the warp of " + std::to_string(count) +
            " threads does not have");
    }
    for (unsigned k = 0; k < count; ++k) {
        if ((w.mask >> k & 1) && block_.threads[t.warp * 32 + k].state == State::exited) {
            fault(t, *w.at, "the mask " + hexadecimal(w.mask) + " names lane " + std::to_string(k) +
                ", which has exited");
        }
    }
}

void Scheduler::exited(Thread &t) {
    for (unsigned k = 0; k < lanes(t); ++k) {
        const Thread &other = lane(t, k);
        if (other.state == State::collective && (other.waiting.mask >> t.lane & 1)) {
            fault(other, *other.waiting.at, "the mask " + hexadecimal(other.waiting.mask) + " names lane " +
                std::to_string(t.lane) + ", which has exited");
        }
    }
}

namespace {

bool of_matrices(Collective collective) {
    return collective == Collective::load_matrices || collective == Collective::multiply_matrices;
}

// Two lanes match if they execute the same kind of operation for the same lanes; their positions in the code may differ,
// except for instructions that are .aligned.
bool together(const Thread &a, const Thread &b) {
    return a.state == State::collective && b.state == State::collective && a.waiting.mask == b.waiting.mask &&
           a.waiting.collective == b.waiting.collective &&
           (!of_matrices(a.waiting.collective) || a.waiting.at == b.waiting.at);
}

}  // namespace

void Scheduler::try_collective(Thread &t) {
    const Waiting &w = t.waiting;
    for (unsigned k = 0; k < 32; ++k) {
        if ((w.mask >> k & 1) == 0) continue;
        if (!together(t, lane(t, k))) return;
    }
    finish_collective(t);
}

namespace {

// The lane that a shuffle reads, and whether it is in the segment.
unsigned shuffle_from(Collective mode, unsigned lane, uint32_t b, uint32_t c, bool &found) {
    const int bval = static_cast<int>(b & 31), clamp = static_cast<int>(c & 31),
        segment = static_cast<int>(c >> 8 & 31);
    const int self = static_cast<int>(lane);
    const int most = (self & segment) | (clamp & ~segment), least = self & segment;
    int from = 0;
    switch (mode) {
        case Collective::shuffle_up:
            from = self - bval;
            found = from >= most;
            break;
        case Collective::shuffle_down:
            from = self + bval;
            found = from <= most;
            break;
        case Collective::shuffle_xor:
            from = self ^ bval;
            found = from <= most;
            break;
        default:
            from = least | (bval & ~segment);
            found = from <= most;
            break;
    }
    return found ? static_cast<unsigned>(from) : lane;
}

}  // namespace

void Scheduler::finish_matrices(Thread &t) {
    const Instruction &i = *t.waiting.at;
    const MatrixOperation &operation = t.frames.back().function->matrices[i.extra];
    std::array<uint64_t *, 32> registers;
    for (unsigned k = 0; k < 32; ++k) registers[k] = lane(t, k).registers;
    if (t.waiting.collective == Collective::multiply_matrices) {
        multiply_matrices(operation, registers);
    } else {
        // A row is read by the lane that gives its address: CUDA orders the accesses of lanes one by one, and it is this lane
        // that has to be ordered after the write of the row.
        MatrixRows rows{};
        for (unsigned k = 0; k < 8 * operation.count; ++k) {
            Thread &giver = lane(t, k);
            try {
                read_matrix_row(giver, operation, rows[k]);
            } catch (const Mistake &mistake) {
                fault(giver, i, mistake.what());
            }
        }
        distribute_rows(operation, rows, registers);
    }
    for (unsigned k = 0; k < 32; ++k) {
        Thread &other = lane(t, k);
        other.state = State::running;
        set_ready(other.index, true);
    }
}

void Scheduler::finish_collective(Thread &t) {
    const uint32_t mask = t.waiting.mask;
    const Collective mode = t.waiting.collective;
    if (of_matrices(mode)) {
        finish_matrices(t);
        return;
    }
    uint32_t ballot = 0;
    for (unsigned k = 0; k < 32; ++k) {
        if ((mask >> k & 1) && lane(t, k).waiting.value != 0) ballot |= 1u << k;
    }
    if (mode == Collective::warp_barrier) {
        const uint32_t now = ++block_.time;
        std::array<uint32_t, 32> seen{};
        Knowledge known;
        for (unsigned k = 0; k < 32; ++k) {
            if ((mask >> k & 1) == 0) continue;
            const Accessor &accessor = lane(t, k).accessor;
            for (unsigned j = 0; j < 32; ++j) seen[j] = std::max(seen[j], accessor.seen[j]);
            known.join(accessor.known);
        }
        for (unsigned k = 0; k < 32; ++k) {
            if (mask >> k & 1) seen[k] = now;
        }
        for (unsigned k = 0; k < 32; ++k) {
            if ((mask >> k & 1) == 0) continue;
            Accessor &accessor = lane(t, k).accessor;
            accessor.seen = seen;
            accessor.time = now;
            if (!known.empty()) accessor.known = known;
        }
    }
    for (unsigned k = 0; k < 32; ++k) {
        if ((mask >> k & 1) == 0) continue;
        Thread &other = lane(t, k);
        const Instruction &i = *other.waiting.at;
        uint64_t result = 0;
        bool found = false;
        switch (mode) {
            case Collective::warp_barrier: break;
            case Collective::all: result = ballot == mask; break;
            case Collective::any: result = ballot != 0; break;
            case Collective::uniform: result = ballot == 0 || ballot == mask; break;
            case Collective::ballot: result = ballot; break;
            default: {
                const unsigned from = shuffle_from(mode, k, other.waiting.b, other.waiting.c, found);
                if ((mask >> from & 1) == 0) {
                    fault(other, i, "shuffles from lane " + std::to_string(from) + ", which the mask " +
                        hexadecimal(mask) + " does not name");
                }
                result = lane(t, from).waiting.value;
            }
        }
        other.registers[i.slot[0]] = result;
        other.registers[i.slot[1]] = found;
        other.state = State::running;
        set_ready(other.index, true);
    }
}

// ---- the whole block

void Scheduler::try_barrier() {
    if (at_barrier_ == 0 || at_barrier_ < live_) return;
    const Thread *first = nullptr;
    for (const Thread &t : block_.threads) {
        if (t.state == State::barrier) {
            first = &t;
            break;
        }
    }
    for (const Thread &t : block_.threads) {
        if (t.state == State::exited) {
            fault(*first, *first->waiting.at, "waits at a barrier that thread " + std::to_string(t.index) +
                " of the block will not reach: it has exited");
        }
        if (t.waiting.at != first->waiting.at) {
            fault(t, *t.waiting.at, "divergent barrier: waits at the one in line " +
                std::to_string(t.waiting.at->line) + " while thread " + std::to_string(first->index) +
                " waits at the one in line " + std::to_string(first->waiting.at->line));
        }
    }
    const Instruction &i = *first->waiting.at;
    uint64_t count = 0;
    Knowledge known;
    for (const Thread &t : block_.threads) {
        count += t.waiting.value;
        if (!t.accessor.known.empty()) known.join(t.accessor.known);
    }
    uint64_t result = 0;
    switch (static_cast<BarrierVote>(i.extra)) {
        case BarrierVote::none: break;
        case BarrierVote::count: result = count; break;
        case BarrierVote::all: result = count == block_.threads.size(); break;
        case BarrierVote::any: result = count != 0; break;
    }
    const uint32_t now = ++block_.time;
    for (Thread &t : block_.threads) {
        t.registers[i.slot[0]] = result;
        t.accessor.time = t.accessor.barrier = now;
        if (!known.empty()) t.accessor.known = known;
        t.state = State::running;
        set_ready(t.index, true);
    }
    at_barrier_ = 0;
}

std::string Scheduler::doing(const Thread &t) const {
    switch (t.state) {
        case State::barrier: return "waits at the barrier in line " + std::to_string(t.waiting.at->line);
        case State::collective:
            return "waits in line " + std::to_string(t.waiting.at->line) + " with the mask " +
                hexadecimal(t.waiting.mask);
        case State::exited: return "has exited";
        case State::running:
        case State::preempted: break;
    }
    return "runs";
}

// No thread can continue, and not all are at a barrier: some wait for lanes that will never arrive.
void Scheduler::stuck() {
    for (const Thread &t : block_.threads) {
        if (t.state != State::collective) continue;
        for (unsigned k = 0; k < lanes(t); ++k) {
            const Thread &other = lane(t, k);
            if ((t.waiting.mask >> k & 1) == 0 || together(t, other)) continue;
            fault(t, *t.waiting.at, "waits with the mask " + hexadecimal(t.waiting.mask) + " for lane " +
                std::to_string(k) + ", which " + doing(other));
        }
    }
    fault(block_.threads.front(), block_.threads.front().next[-1], "no thread of the block can go on");
}

}  // namespace fcm::ptx
