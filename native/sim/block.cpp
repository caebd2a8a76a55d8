#include "block.h"

#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "engine.h"

namespace cudasim {

#define CUDASIM_INDEX __attribute__((tls_model("initial-exec"))) __thread
CUDASIM_INDEX uint3 threadIdx;
CUDASIM_INDEX uint3 blockIdx;
CUDASIM_INDEX uint3 blockDim;
CUDASIM_INDEX uint3 gridDim;

namespace {

// Read by a signal handler, so it must not be initialized on first use.
CUDASIM_INDEX Block *running_block;

const char *name_of(BarrierKind kind) {
    switch (kind) {
        case BarrierKind::sync: return "__syncthreads";
        case BarrierKind::count: return "__syncthreads_count";
        case BarrierKind::both: return "__syncthreads_and";
        case BarrierKind::either: return "__syncthreads_or";
    }
    return "?";
}

uint3 as_index(dim3 d) { return {d.x, d.y, d.z}; }

uint64_t hash(const char *word) {
    uint64_t value = 0;
    for (; *word != '\0'; ++word) value = mix(value ^ static_cast<unsigned char>(*word));
    return value;
}

}  // namespace

uint3 Grid::block_index(uint64_t linear) const {
    return {static_cast<unsigned>(linear % grid.x), static_cast<unsigned>(linear / grid.x % grid.y),
            static_cast<unsigned>(linear / grid.x / grid.y)};
}

Block::Block(const Settings &settings)
    : order_(settings.order, settings.seed), most_shared_(settings.most_shared()), shared_(settings.most_shared()) {}

Block::~Block() {
    for (const auto &fiber : fibers_) stacks_.give(fiber->stack());
}

Block *Block::running() { return running_block; }

void Block::start(const Grid &grid) {
    grid_ = &grid;
    kernel_hash_ = hash(grid.kernel);
    threads_ = grid.threads();
    const auto count = static_cast<size_t>(threads_);
    indices_.resize(count);
    for (unsigned i = 0; i < count; ++i) {
        indices_[i] = {i % grid.block.x, i / grid.block.x % grid.block.y, i / grid.block.x / grid.block.y};
    }
    waiting_on_.assign(count, nullptr);
    at_barrier_.resize(count);
    warps_.resize((count + warpSize - 1) / warpSize);
    for (Warp &warp : warps_) warp.reset();
    // pick() must not allocate while a kernel thread is running.
    idle_.reserve(count + 1);
    fibers_.reserve(count + 1);
}

void Block::run(uint64_t linear) {
    block_index_ = grid_->block_index(linear);
    blockIdx = block_index_;
    blockDim = as_index(grid_->block);
    gridDim = as_index(grid_->grid);
    order_.start_block(linear ^ kernel_hash_);
    shared_.start_block(grid_->shared_bytes, grid_->poison);
    ready_.fill(threads_);
    exited_.clear();
    live_ = threads_;
    barrier_count_ = 0;
    first_at_barrier_ = -1;
    fault_[0] = '\0';

    main_.emplace();
    running_block = this;
    int first = 0;
    pick(&first);
    Fiber &fiber = fiber_for(first);
    current_ = &fiber;
    thread_ = first;
    Fiber::switch_to(*main_, fiber);
    running_block = nullptr;
    collect_finished();

    if (fault_[0] == '\0' && !shared_.intact()) {
        std::snprintf(fault_, sizeof fault_, "block (%u,%u,%u), found at its end: %s", block_index_.x, block_index_.y,
                      block_index_.z, shared_.damage().c_str());
    }
    if (fault_[0] != '\0') {
        drop_fibers();
        throw KernelFault(fault_);
    }
}

// ---- Fibers ----

void Block::fiber_body(Fiber &) { running_block->work(); }

// A fiber runs one thread after the other as long as none of them waits. It ends when the next thread has its own fiber.
void Block::work() {
    collect_finished();
    for (;;) {
        begin_thread(thread_);
        grid_->entry(grid_->function, grid_->arguments);
        end_thread();
        int next = 0;
        if (!pick(&next)) {
            if (live_ > 0) stalled();
            break;
        }
        if (waiting_on_[static_cast<size_t>(next)] != nullptr) {
            Fiber &self = *current_;
            Fiber &other = fiber_for(next);
            finished_ = &self;
            current_ = &other;
            thread_ = next;
            Fiber::leave_to(self, other);
        }
        thread_ = next;
    }
    finished_ = current_;
    Fiber::leave_to(*current_, *main_);
}

void Block::begin_thread(int thread) { threadIdx = indices_[static_cast<size_t>(thread)]; }

void Block::end_thread() {
    exited_.add(thread_);
    --live_;
    if (barrier_count_ > 0) {
        const Waiting &other = at_barrier_[static_cast<size_t>(first_at_barrier_)];
        fault("divergent barrier: this thread ended while %s waits at %s, line %d", place(first_at_barrier_).c_str(),
              name_of(other.kind), other.line);
    }
    const Warp &warp = warps_[static_cast<size_t>(thread_ / warpSize)];
    if (warp.waiting() != 0) {
        const Words wrong = warp.exit(thread_ % warpSize);
        if (!wrong.empty()) fault("%s", wrong.c_str());
    }
}

bool Block::pick(int *thread) {
    if (ready_.empty()) return false;
    *thread = order_.pick(ready_, threads_);
    ready_.remove(*thread);
    return true;
}

// The fiber on which a thread continues or starts.
Fiber &Block::fiber_for(int thread) {
    Fiber *&own = waiting_on_[static_cast<size_t>(thread)];
    Fiber *fiber = own;
    own = nullptr;
    if (fiber == nullptr) {
        fiber = take_fiber();
        fiber->prepare(&Block::fiber_body);
    }
    return *fiber;
}

Fiber *Block::take_fiber() {
    if (idle_.empty()) {
        fibers_.push_back(std::make_unique<Fiber>(stacks_.take()));
        return fibers_.back().get();
    }
    Fiber *fiber = idle_.back();
    idle_.pop_back();
    return fiber;
}

void Block::collect_finished() {
    if (finished_ == nullptr) return;
    idle_.push_back(finished_);
    finished_ = nullptr;
}

void Block::wait() {
    const int self = thread_;
    int next = 0;
    if (!pick(&next)) stalled();
    if (next == self) return;
    Fiber &mine = *current_;
    waiting_on_[static_cast<size_t>(self)] = &mine;
    Fiber &other = fiber_for(next);
    current_ = &other;
    thread_ = next;
    Fiber::switch_to(mine, other);
    // The fiber that switched back has set current_ and thread_ to this one.
    collect_finished();
    begin_thread(self);
}

// After a fault no thread continues: all stacks can be reused, whatever their contents.
void Block::drop_fibers() {
    idle_.clear();
    for (const auto &fiber : fibers_) idle_.push_back(fiber.get());
    finished_ = nullptr;
    waiting_on_.assign(waiting_on_.size(), nullptr);
    for (Warp &warp : warps_) warp.reset();
}

// ---- Barriers and warps ----

int Block::barrier(BarrierKind kind, int predicate, const char *file, int line) {
    if (barrier_count_ == 0) {
        first_at_barrier_ = thread_;
        barrier_votes_ = 0;
    } else {
        const Waiting &other = at_barrier_[static_cast<size_t>(first_at_barrier_)];
        if (other.line != line || other.kind != kind || (other.file != file && std::strcmp(other.file, file) != 0)) {
            fault("divergent barrier: this thread is at %s, line %d; %s waits at %s, line %d", name_of(kind), line,
                  place(first_at_barrier_).c_str(), name_of(other.kind), other.line);
        }
    }
    if (live_ < threads_) {
        fault("divergent barrier: %s, line %d, but thread %d of the block has ended", name_of(kind), line,
              exited_.lowest());
    }
    at_barrier_[static_cast<size_t>(thread_)] = {file, line, kind, predicate};
    if (predicate != 0) ++barrier_votes_;
    if (++barrier_count_ == threads_) {
        check_shared();
        barrier_count_ = 0;
        barrier_result_ = barrier_votes_;
        if (kind == BarrierKind::both) barrier_result_ = barrier_votes_ == threads_;
        if (kind == BarrierKind::either) barrier_result_ = barrier_votes_ > 0;
        ready_.fill(threads_);
    }
    wait();
    return barrier_result_;
}

void Block::check_shared() {
    if (shared_.intact()) return;
    const Waiting &here = at_barrier_[static_cast<size_t>(thread_)];
    fault("found at %s, line %d: %s", name_of(here.kind), here.line, shared_.damage().c_str());
}

unsigned Block::existing_lanes(int warp) const {
    const int lanes = threads_ - warp * warpSize;
    return lanes >= warpSize ? ~0u : (1u << lanes) - 1;
}

uint64_t Block::warp_meet(const Warp::Call &call) {
    const int number = thread_ / warpSize;
    const int lane = thread_ % warpSize;
    Warp &warp = warps_[static_cast<size_t>(number)];
    Words wrong;
    const bool met = warp.arrive(lane, call, existing_lanes(number), exited_.warp(number), &wrong);
    if (!wrong.empty()) fault("%s", wrong.c_str());
    if (met) {
        for (unsigned lanes = call.mask; lanes != 0; lanes &= lanes - 1) {
            ready_.add(number * warpSize + __builtin_ctz(lanes));
        }
    }
    wait();
    return warp.result(lane);
}

void Block::not_aligned(const char *instruction, int over, int bytes, int line) {
    fault("%s at line %d: the address of a row is %d more than a multiple of %d", instruction, line, over, bytes);
}

// No thread can continue, and not all are at the same barrier.
void Block::stalled() {
    for (size_t number = 0; number < warps_.size(); ++number) {
        const Warp &warp = warps_[number];
        if (warp.waiting() == 0) continue;
        const int lane = __builtin_ctz(warp.waiting());
        const int missing = __builtin_ctz(warp.missing(lane));
        const int absent = static_cast<int>(number) * warpSize + missing;
        const Waiting &other = at_barrier_[static_cast<size_t>(absent)];
        thread_ = static_cast<int>(number) * warpSize + lane;
        fault("waits for ever at %s, line %d, mask %08x: lane %d is at %s, line %d", name_of(warp.call(lane).kind),
              warp.call(lane).line, warp.call(lane).mask, missing, name_of(other.kind), other.line);
    }
    fault("all threads wait for ever");
}

// ---- Shared memory ----

void *Block::shared_static(const void *site, const char *name, size_t bytes, size_t alignment) {
    void *data = shared_.array(site, name, bytes, alignment);
    if (data == nullptr) {
        fault("shared array %s of %zu bytes: the block has %zu bytes of shared memory, static arrays %zu at most, "
              "and asked for %zu dynamic ones",
              name, bytes, most_shared_, kPlainShared, grid_->shared_bytes);
    }
    return data;
}

// ---- Faults ----

Words Block::place(int thread) const {
    const uint3 &t = indices_[static_cast<size_t>(thread)];
    return words("thread (%u,%u,%u)", t.x, t.y, t.z);
}

void Block::fault(const char *format, ...) {
    char description[400];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(description, sizeof description, format, arguments);
    va_end(arguments);
    note_trap(description);
    abandon();
}

void Block::note_trap(const char *what) {
    const uint3 &t = indices_[static_cast<size_t>(thread_)];
    std::snprintf(fault_, sizeof fault_, "block (%u,%u,%u) thread (%u,%u,%u): %s", block_index_.x, block_index_.y,
                  block_index_.z, t.x, t.y, t.z, what);
}

void Block::abandon() { Fiber::leave_to(*current_, *main_); }

// ---- The device functions of a kernel ----

namespace {

// A __device__ function called on the host would otherwise dereference a null pointer.
Block &block_of(const char *what) {
    if (running_block == nullptr) {
        std::fprintf(stderr, "cudasim: %s outside of a kernel\n", what);
        std::abort();
    }
    return *running_block;
}

}  // namespace

namespace detail {

void *shared_static(const void *site, const char *name, size_t bytes, size_t alignment) {
    return block_of("SHARED").shared_static(site, name, bytes, alignment);
}

void *shared_dynamic() { return block_of("SHARED_DYN").shared_dynamic(); }

int barrier(BarrierKind kind, int predicate, const char *file, int line) {
    return block_of("__syncthreads").barrier(kind, predicate, file, line);
}

uint64_t warp_meet(WarpKind kind, unsigned mask, uint64_t value, int operand, int width, const char *file, int line) {
    return block_of(name_of(kind)).warp_meet({kind, mask, width, file, line, value, operand});
}

void not_aligned(const char *instruction, const void *address, int bytes, int line) {
    const auto over = static_cast<int>(reinterpret_cast<uintptr_t>(address) % static_cast<uintptr_t>(bytes));
    block_of(instruction).not_aligned(instruction, over, bytes, line);
}

}  // namespace detail
}  // namespace cudasim
