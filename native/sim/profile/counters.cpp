#include "counters.h"

#include <algorithm>

#include "memory.h"
#include "program.h"

namespace fcm::profile {

namespace {

uint64_t ones(uint32_t mask) { return static_cast<uint64_t>(__builtin_popcount(mask)); }

struct Span {
    size_t first, last;
};

// The loops that contain no other one.
std::vector<Span> innermost_loops(const ptx::Function &function) {
    std::map<size_t, size_t> ends;  // by their first instruction, so that two jumps back to it are one loop
    for (size_t i = 0; i < function.code.size(); ++i) {
        const int64_t distance = function.code[i].number;
        if (function.opcodes[i].rfind("bra", 0) != 0 || distance > 0) continue;
        size_t &end = ends[static_cast<size_t>(static_cast<int64_t>(i) + distance)];
        end = std::max(end, i);
    }
    std::vector<Span> result;
    for (const auto &[first, last] : ends) {
        const auto inside = [&](const auto &other) {
            return (other.first != first || other.second != last) && other.first >= first && other.second <= last;
        };
        if (std::none_of(ends.begin(), ends.end(), inside)) result.push_back({first, last});
    }
    return result;
}

}  // namespace

uint64_t Counts::issued() const {
    uint64_t sum = 0;
    for (const Of &of : by_class) sum += of.issued;
    return sum;
}

uint64_t Counts::lanes() const {
    uint64_t sum = 0;
    for (const Of &of : by_class) sum += of.lanes;
    return sum;
}

void Counts::add(const Counts &other) {
    for (unsigned i = 0; i < kClasses; ++i) {
        by_class[i].issued += other.by_class[i].issued;
        by_class[i].lanes += other.by_class[i].lanes;
    }
    off += other.off;
    weight += other.weight;
    fp64_lanes += other.fp64_lanes;
    mma_products += other.mma_products;
    mma_cost += other.mma_cost;
    shared_loads += other.shared_loads;
    shared_requests += other.shared_requests;
    shared_taken += other.shared_taken;
    shared_least += other.shared_least;
    global_requests += other.global_requests;
    sectors += other.sectors;
    least_sectors += other.least_sectors;
}

void Counters::sample(uint64_t blocks, Plan others) {
    most_ = blocks;
    others_ = others;
}

void Counters::begin(const ptx::Launch &launch, const ptx::Function &kernel) {
    current_ = 0;
    while (current_ < kernels_.size() && kernels_[current_].counts.kernel != kernel.name) ++current_;
    if (current_ == kernels_.size()) {
        kernels_.emplace_back();
        kernels_.back().counts.kernel = kernel.name;
    }
    KernelCounts &counts = kernels_[current_].counts;
    ++counts.launches;
    grid_ = launch.grid.count();
    counts.blocks += grid_;
    counts.threads = launch.block.count();
    warp_products_.assign((launch.block.count() + 31) / 32, 0);
    last_function_ = nullptr;
    read_.clear();
    written_.clear();
}

ptx::Observer::Plan Counters::begin_block(uint32_t number) {
    // The number-th of the grid is chosen where the rounded share of `most_` changes.
    if (most_ != 0 && grid_ > most_ && number * most_ / grid_ == (number + 1) * most_ / grid_) return others_;
    ++kernels_[current_].counts.observed;
    std::fill(warp_products_.begin(), warp_products_.end(), 0);
    scheduler_.fill(0);
    return Plan::observe;
}

Counters::Code &Counters::code_of(const ptx::Function &function) {
    if (last_function_ == &function) return *last_code_;
    Code &code = kernels_[current_].code[&function];
    if (code.lines.empty()) {
        code.lines.resize(function.code.size());
        for (size_t i = 0; i < function.code.size(); ++i) {
            const std::string &opcode = function.opcodes[i];
            Line &line = code.lines[i];
            if (opcode.empty()) continue;
            if (opcode[0] == '@') {
                line.guard = opcode == "@";
                line.kind.of = Class::control;
            } else {
                line.kind = kind_of(opcode);
                line.counted = true;
            }
        }
    }
    last_function_ = &function;
    last_code_ = &code;
    return code;
}

void Counters::issue(const ptx::Issue &issue) {
    Line &line = code_of(*issue.function).lines[issue.index()];
    Counts &counts = line.counts;
    if (line.guard >= 0) {
        // A guarded instruction is counted with the lanes that execute it. If there is none, it is issued all the same.
        for (uint32_t left = issue.active; left != 0; left &= left - 1) {
            const ptx::Thread &t = issue.threads[__builtin_ctz(left)];
            if ((t.registers[issue.at->slot[0]] != 0) == (line.guard == 1)) return;
        }
        ++counts.off;
    } else if (!line.counted) {
        return;
    }
    const Kind &kind = line.kind;
    Counts::Of &of = counts.by_class[static_cast<unsigned>(kind.of)];
    ++of.issued;
    of.lanes += ones(issue.active);
    if (kind.of != Class::move) {
        counts.weight += kind.weight;
        scheduler_[issue.warp % scheduler_.size()] += kind.weight;
    }
    if (kind.of == Class::fma || kind.of == Class::mma) ++warp_products_[issue.warp];
    if (kind.of == Class::fp64) counts.fp64_lanes += kind.weight * ones(issue.active);
    counts.mma_products += kind.products;
    counts.mma_cost += kind.products * (kind.tf32 ? 2 : 1);
    if (kind.traffic != Traffic::none) traffic(issue, kind, counts);
}

void Counters::traffic(const ptx::Issue &issue, const Kind &kind, Counts &counts) {
    const ptx::Instruction &i = *issue.at;
    const auto access = [&](uint32_t active, unsigned bytes, auto address_of) {
        WarpAccess result;
        result.active = active;
        result.bytes = bytes;
        for (uint32_t left = active; left != 0; left &= left - 1) {
            const auto lane = static_cast<size_t>(__builtin_ctz(left));
            result.address[lane] = address_of(issue.threads[lane].registers);
        }
        return result;
    };
    const auto plain = [&](uint32_t active) {
        return access(active, kind.bytes,
                      [&](const uint64_t *r) { return r[i.slot[4]] + static_cast<uint64_t>(i.number); });
    };
    switch (kind.traffic) {
        case Traffic::none: break;
        case Traffic::global: global(plain(issue.active), kind.writes, counts); break;
        case Traffic::shared: shared(plain(issue.active), kind.reads, counts); break;
        case Traffic::generic: {
            // Each lane's address tells its space.
            const WarpAccess all = plain(issue.active);
            WarpAccess in_shared = all, in_global = all;
            in_shared.active = in_global.active = 0;
            for (uint32_t left = issue.active; left != 0; left &= left - 1) {
                const int lane = __builtin_ctz(left);
                const uint64_t window = all.address[static_cast<size_t>(lane)] & ptx::kWindowMask;
                if (window == ptx::kSharedWindow) in_shared.active |= 1u << lane;
                else if (window != ptx::kLocalWindow && window != ptx::kParamWindow) in_global.active |= 1u << lane;
            }
            if (in_shared.active != 0) shared(in_shared, kind.reads, counts);
            if (in_global.active != 0) global(in_global, kind.writes, counts);
            break;
        }
        case Traffic::async_copy: {
            const ptx::CopyOperands operands(i);
            uint32_t reading = 0;  // the other lanes write zeros
            for (uint32_t left = issue.active; left != 0; left &= left - 1) {
                const int lane = __builtin_ctz(left);
                if (operands.read(issue.threads[lane].registers) != 0) reading |= 1u << lane;
            }
            if (reading != 0) {
                global(access(reading, operands.bytes(), [&](const uint64_t *r) { return operands.from(r); }), false, counts);
            }
            shared(access(issue.active, operands.bytes(), [&](const uint64_t *r) { return operands.to(r); }), false, counts);
            break;
        }
        case Traffic::matrix: {
            // Eight lanes give the rows of a matrix, 16 bytes each, which are a wavefront if they are on different banks.
            const ptx::MatrixOperation &matrix = issue.function->matrices[i.extra];
            const auto givers = static_cast<uint32_t>((uint64_t{1} << 8 * matrix.count) - 1);
            shared(access(issue.active & givers, 16,
                          [&](const uint64_t *r) { return r[matrix.address] + static_cast<uint64_t>(matrix.offset); }),
                   kind.reads, counts);
            break;
        }
    }
}

void Counters::shared(const WarpAccess &access, bool loads, Counts &counts) {
    const Wavefronts wavefronts = shared_wavefronts(access);
    counts.shared_loads += loads;
    ++counts.shared_requests;
    counts.shared_taken += wavefronts.taken;
    counts.shared_least += wavefronts.least;
}

void Counters::global(const WarpAccess &access, bool writes, Counts &counts) {
    const Sectors sectors = global_sectors(access);
    ++counts.global_requests;
    counts.sectors += sectors.touched;
    counts.least_sectors += sectors.least;
    auto &seen = writes ? written_ : read_;
    seen.insert(sectors.number.begin(), sectors.number.begin() + sectors.touched);
}

void Counters::end_block() {
    KernelCounts &counts = kernels_[current_].counts;
    uint64_t sum = 0, most = 0;
    for (const uint64_t products : warp_products_) {
        sum += products;
        most = std::max(most, products);
    }
    counts.average_warp += sum;
    counts.busiest_warp += most * warp_products_.size();
    counts.busiest_scheduler += *std::max_element(scheduler_.begin(), scheduler_.end());
}

void Counters::end() { kernels_[current_].counts.distinct_sectors += read_.size() + written_.size(); }

std::vector<KernelCounts> Counters::take() {
    std::vector<KernelCounts> result;
    for (Kernel &kernel : kernels_) {
        KernelCounts counts = std::move(kernel.counts);
        for (const auto &[function, code] : kernel.code) {
            for (size_t i = 0; i < code.lines.size(); ++i) {
                const Counts &one = code.lines[i].counts;
                counts.all.add(one);
                if (one.shared_taken > one.shared_least || one.sectors > one.least_sectors) {
                    counts.waste.push_back({function->lines[i].ptx, function->opcodes[i], one});
                }
            }
            for (const Span &span : innermost_loops(*function)) {
                Loop loop;
                loop.first_line = function->lines[span.first].ptx;
                loop.last_line = function->lines[span.last].ptx;
                for (size_t i = span.first; i <= span.last; ++i) loop.counts.add(code.lines[i].counts);
                counts.inner.add(loop.counts);
                if (loop.counts.issued() > counts.loop.counts.issued()) counts.loop = loop;
            }
        }
        result.push_back(std::move(counts));
    }
    kernels_.clear();
    return result;
}

}  // namespace fcm::profile
