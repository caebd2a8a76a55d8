#include "program.h"

#include <cstring>
#include <fstream>
#include <numeric>
#include <sstream>

#include "decode.h"
#include "parser.h"
#include "scheduler.h"
#include "shared_memory.h"

namespace fcm::ptx {

// The variables of a module on one device.
struct Program::Storage {
    std::vector<std::vector<uint8_t>> bytes;
    std::vector<uint64_t> addresses;
};

Program::Program() = default;
Program::~Program() = default;

void Program::load(std::string_view text, const std::string &file) {
    auto module = std::make_unique<Module>();
    decode(parse(text, file), *module);
    for (const Function &function : module->functions) {
        if (!function.entry) continue;
        if (!entries_.emplace(function.name, std::make_pair(module.get(), &function)).second) {
            throw Unreadable(file, function.line, "the kernel " + function.name + " is in another file already");
        }
    }
    modules_.push_back(std::move(module));
}

void Program::load_file(const std::string &path) {
    std::ifstream in(path, std::ios::binary);
    if (!in) throw Unreadable(path, 0, "cannot be opened");
    std::ostringstream text;
    text << in.rdbuf();
    const size_t slash = path.find_last_of('/');
    load(text.str(), slash == std::string::npos ? path : path.substr(slash + 1));
}

std::vector<std::string> Program::kernels() const {
    std::vector<std::string> names;
    for (const auto &entry : entries_) names.push_back(entry.first);
    return names;
}

Program::Storage &Program::storage(const Module &module, int device) {
    const std::lock_guard<std::mutex> lock(mutex_);
    auto &slot = storages_[{&module, device}];
    if (slot) return *slot;
    slot = std::make_unique<Storage>();
    for (const GlobalVariable &variable : module.globals) {
        // Extra bytes for moving the start to the requested alignment.
        slot->bytes.emplace_back(variable.bytes + variable.align);
        const uint64_t raw = reinterpret_cast<uint64_t>(slot->bytes.back().data());
        slot->addresses.push_back((raw + variable.align - 1) / variable.align * variable.align);
        std::memcpy(reinterpret_cast<void *>(slot->addresses.back()), variable.image.data(), variable.image.size());
    }
    for (size_t i = 0; i < module.globals.size(); ++i) {
        for (const auto &[offset, name] : module.globals[i].addresses) {
            for (size_t k = 0; k < module.globals.size(); ++k) {
                if (module.globals[k].name != name) continue;
                uint8_t *at = reinterpret_cast<uint8_t *>(slot->addresses[i] + offset);
                uint64_t address = 0;
                std::memcpy(&address, at, sizeof address);
                address += slot->addresses[k];
                std::memcpy(at, &address, sizeof address);
            }
        }
    }
    return *slot;
}

namespace {

Dim position_of(uint64_t index, const Dim &of) {
    return {static_cast<uint32_t>(index % of.x), static_cast<uint32_t>(index / of.x % of.y),
            static_cast<uint32_t>(index / of.x / of.y)};
}

std::vector<uint8_t> parameters_of(const Function &kernel, const Launch &launch) {
    if (launch.arguments.size() != kernel.parameters.size()) {
        throw Mistake(kernel.name + " takes " + std::to_string(kernel.parameters.size()) +
            " arguments and was given " + std::to_string(launch.arguments.size()));
    }
    std::vector<uint8_t> bytes(kernel.parameter_bytes);
    for (size_t i = 0; i < kernel.parameters.size(); ++i) {
        const Argument &argument = launch.arguments[i];
        if (argument.bytes != kernel.parameters[i].bytes) {
            throw Mistake("argument " + std::to_string(i) + " of " + kernel.name + " has " +
                std::to_string(kernel.parameters[i].bytes) + " bytes and was given " + std::to_string(argument.bytes));
        }
        if (argument.bytes != 0) std::memcpy(&bytes[kernel.parameters[i].offset], argument.data, argument.bytes);
    }
    return bytes;
}

void check_shape(const Function &kernel, const Launch &launch) {
    const uint64_t threads = launch.block.count();
    if (threads == 0 || launch.grid.count() == 0) throw Mistake(kernel.name + " was launched with nothing to run");
    if (threads > 1024) {
        throw Mistake(kernel.name + " was launched with " + std::to_string(threads) + " threads a block");
    }
    if (kernel.most_threads != 0 && threads > kernel.most_threads) {
        throw Mistake(kernel.name + " was launched with " + std::to_string(threads) +
            " threads a block and is bound to " + std::to_string(kernel.most_threads));
    }
    if (kernel.threads != 0 && threads != kernel.threads) {
        throw Mistake(kernel.name + " was launched with " + std::to_string(threads) + " threads a block and needs " +
            std::to_string(kernel.threads));
    }
    if (launch.grid.count() > kMostBlocks) {
        throw Mistake(kernel.name + " was launched with more blocks than can be told apart");
    }
}

void start_block(Block &block, const Launch &launch, uint64_t number, uint64_t static_shared) {
    block.number = static_cast<uint32_t>(number);
    block.position = position_of(number, launch.grid);
    block.time = 1;
    const uint32_t warps = static_cast<uint32_t>((block.threads.size() + 31) / 32);
    for (Thread &t : block.threads) {
        t.state = State::running;
        t.fuel = launch.most_jumps;
        t.frames.clear();
        t.local_begin = t.local_end = 0;
        t.accessor.who = static_cast<uint32_t>(number << 10 | t.index) + 1;
        t.accessor.time = t.accessor.barrier = block.time;
        t.accessor.seen.fill(0);
        t.accessor.known.clear();
        t.accessor.pending.clear();
        t.accessor.fence.reset();
        t.waiting = Waiting();
        t.copies.clear();
        t.copy_groups.clear();
        const auto set = [&t](Special special, uint64_t v) { t.specials[static_cast<size_t>(special)] = v; };
        const auto set3 = [&set](Special first, const Dim &d) {
            set(first, d.x);
            set(static_cast<Special>(static_cast<int>(first) + 1), d.y);
            set(static_cast<Special>(static_cast<int>(first) + 2), d.z);
        };
        set3(Special::tid_x, t.position);
        set3(Special::ntid_x, launch.block);
        set3(Special::ctaid_x, block.position);
        set3(Special::nctaid_x, launch.grid);
        set(Special::laneid, t.lane);
        set(Special::warpid, t.warp);
        set(Special::nwarpid, warps);
        set(Special::lanemask_eq, 1u << t.lane);
        set(Special::lanemask_lt, low_bits(t.lane));
        set(Special::lanemask_le, low_bits(t.lane + 1));
        set(Special::lanemask_ge, low_bits(32) & ~low_bits(t.lane));
        set(Special::lanemask_gt, low_bits(32) & ~low_bits(t.lane + 1));
        set(Special::dynamic_smem_size, launch.shared_bytes);
        set(Special::total_smem_size, launch.shared_bytes + static_shared);
        t.enter(*block.kernel, nullptr, nullptr);
    }
}

std::vector<uint32_t> block_order(uint64_t count, const Order &order) {
    std::vector<uint32_t> blocks(count);
    std::iota(blocks.begin(), blocks.end(), 0u);
    if (order.kind == Order::Kind::reverse) return {blocks.rbegin(), blocks.rend()};
    if (order.kind == Order::Kind::random) {
        Random random(order.seed);
        for (size_t i = count; i > 1; --i) std::swap(blocks[i - 1], blocks[random.below(i)]);
    }
    return blocks;
}

}  // namespace

uint64_t Program::launch(const Launch &launch, const Memory &memory) {
    const auto found = entries_.find(launch.kernel);
    if (found == entries_.end()) throw Mistake("no PTX file that was loaded has a kernel " + launch.kernel);
    const Module &module = *found->second.first;
    const Function &kernel = *found->second.second;
    check_shape(kernel, launch);
    const std::vector<uint8_t> parameters = parameters_of(kernel, launch);
    const Storage &variables = storage(module, memory.device());

    Regions regions(memory, module.accesses);
    for (size_t i = 0; i < module.globals.size(); ++i) {
        const GlobalVariable &variable = module.globals[i];
        regions.add(variables.addresses[i], variable.bytes, reinterpret_cast<uint8_t *>(variables.addresses[i]),
                    variable.constant, variable.name);
    }
    SharedMemory shared(module, kernel, launch.shared_bytes);

    Block block;
    block.module = &module;
    block.kernel = &kernel;
    block.regions = &regions;
    block.shared = &shared;
    block.parameters = &parameters;
    block.globals = &variables.addresses;
    block.threads.resize(launch.block.count());
    for (size_t i = 0; i < block.threads.size(); ++i) {
        Thread &t = block.threads[i];
        t.block = &block;
        t.index = static_cast<uint32_t>(i);
        t.lane = t.index % 32;
        t.warp = t.index / 32;
        t.position = position_of(i, launch.block);
    }
    uint64_t instructions = 0;
    for (const uint32_t number : block_order(launch.grid.count(), launch.order)) {
        shared.begin_block();
        start_block(block, launch, number, shared.static_bytes());
        instructions += Scheduler(block, launch.order).run();
    }
    return instructions;
}

}  // namespace fcm::ptx
