// Device memory for tests, and a way to run one instruction on many values.
#pragma once

#include <cstdint>
#include <cstring>
#include <list>
#include <random>
#include <string>
#include <vector>

#include "check.h"
#include "program.h"

namespace ptxtest {

using namespace fcm::ptx;

// Allocations with exact bounds.
class Allocations : public Memory {
public:
    int device() const override { return 0; }

    bool find(uint64_t address, Extent &extent) const override {
        for (const Block &block : blocks_) {
            const uint64_t base = reinterpret_cast<uint64_t>(block.words.data());
            if (address >= base && address < base + block.bytes) {
                extent = {base, block.bytes};
                return true;
            }
        }
        return false;
    }

    std::string describe(uint64_t) const override { return "an address that is nobody's"; }

    template <class T>
    T *make(size_t count, T value = T()) {
        blocks_.emplace_back();
        Block &block = blocks_.back();
        block.bytes = count * sizeof(T);
        block.words.resize(block.bytes / 16 + 2);
        T *result = reinterpret_cast<T *>(block.words.data());
        for (size_t i = 0; i < count; ++i) result[i] = value;
        return result;
    }

private:
    struct alignas(16) Word {
        uint64_t v[2];
    };
    struct Block {
        std::vector<Word> words;
        size_t bytes = 0;
    };
    std::list<Block> blocks_;
};

inline std::string file_of(const std::string &body, const std::string &parameters = ".param .u64 p0") {
    return ".version 9.0\n.target sm_75\n.address_size 64\n.visible .entry k(" + parameters + ")\n{\n" + body + "\n}\n";
}

// A launch of a kernel with arguments that are plain values.
class Run {
public:
    explicit Run(Program &program, std::string kernel = "k") : program_(program) { launch.kernel = std::move(kernel); }

    template <class T>
    Run &with(const T &argument) {
        kept_.emplace_back(sizeof(T));
        std::memcpy(kept_.back().data(), &argument, sizeof(T));
        return *this;
    }

    uint64_t go() {
        launch.arguments.clear();
        for (const auto &bytes : kept_) launch.arguments.push_back({bytes.data(), bytes.size()});
        return program_.launch(launch, memory);
    }

    // The message of the fault that ends the launch; empty if it succeeds.
    std::string fault() {
        try {
            go();
        } catch (const Fault &e) {
            last_line = e.line;
            last_thread = e.thread;
            last_block = e.block;
            last_source = e.source;
            return e.words;
        } catch (const Mistake &e) {
            return e.what();
        }
        return {};
    }

    Launch launch;
    Allocations memory;
    unsigned last_line = 0;
    Dim last_thread, last_block;
    std::string last_source;

private:
    Program &program_;
    std::list<std::vector<unsigned char>> kept_;
};

inline bool has(const std::string &text, const char *part) { return text.find(part) != std::string::npos; }

// The reason why a text cannot be read; empty if it can.
inline std::string refusal(const std::string &text) {
    try {
        Program program;
        program.load(text, "test.ptx");
    } catch (const Unreadable &e) {
        return e.what();
    }
    return {};
}

inline std::string order_name(const Order &order) {
    switch (order.kind) {
        case Order::Kind::forward: return "forward";
        case Order::Kind::reverse: return "reverse";
        case Order::Kind::random: break;
    }
    return "random " + std::to_string(order.seed);
}

inline std::vector<Order> orders() {
    std::vector<Order> all(2);
    all[1].kind = Order::Kind::reverse;
    for (uint64_t seed = 1; seed <= 4; ++seed) {
        all.emplace_back();
        all.back().kind = Order::Kind::random;
        all.back().seed = seed;
    }
    return all;
}

using Case = std::vector<uint64_t>;

// Runs `code`, which computes D from A, B, C and E, on every case. Widths are in bits, that of D first.
inline std::vector<uint64_t> evaluate(const std::string &code, const std::vector<unsigned> &widths,
                                      const std::vector<Case> &cases) {
    static const char *const kNames[] = {"D", "A", "B", "C", "E"};
    std::string body = ".reg .pred P, Q, R;\n.reg .b32 %r<8>;\n.reg .b64 %rd<8>;\n";
    for (size_t i = 0; i < widths.size(); ++i) body += ".reg .b" + std::to_string(widths[i]) + " " + kNames[i] + ";\n";
    body += "ld.param.u64 %rd1, [p0]; ld.param.u64 %rd2, [p1]; ld.param.u32 %r1, [p2];\n"
            "mov.u32 %r2, %tid.x; mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ntid.x;\n"
            "mad.lo.u32 %r5, %r3, %r4, %r2; setp.ge.u32 P, %r5, %r1; @P ret;\n"
            "mad.wide.u32 %rd3, %r5, 32, %rd1; mad.wide.u32 %rd4, %r5, 8, %rd2;\n";
    for (size_t i = 1; i < widths.size(); ++i) {
        body += "ld.global.u" + std::to_string(widths[i]) + " " + kNames[i] + ", [%rd3+" +
            std::to_string((i - 1) * 8) + "];\n";
    }
    body += code + "\n";
    body += "st.global.u64 [%rd4], 0; st.global.u" + std::to_string(widths[0]) + " [%rd4], D; ret;\n";
    Program program;
    program.load(file_of(body, ".param .u64 p0, .param .u64 p1, .param .u32 p2"), code);
    Run run(program);
    uint64_t *in = run.memory.make<uint64_t>(cases.size() * 4);
    uint64_t *out = run.memory.make<uint64_t>(cases.size(), 0x5555555555555555);
    for (size_t i = 0; i < cases.size(); ++i) {
        for (size_t k = 0; k < cases[i].size(); ++k) in[i * 4 + k] = cases[i][k];
    }
    run.launch.block.x = 128;
    run.launch.grid.x = static_cast<uint32_t>((cases.size() + 127) / 128);
    run.with(in).with(out).with(static_cast<uint32_t>(cases.size())).go();
    return {out, out + cases.size()};
}

inline std::vector<Case> pairs(const std::vector<uint64_t> &a, const std::vector<uint64_t> &b) {
    std::vector<Case> all;
    for (const uint64_t x : a) {
        for (const uint64_t y : b) all.push_back({x, y});
    }
    return all;
}

inline std::vector<Case> triples(const std::vector<uint64_t> &a, const std::vector<uint64_t> &b,
    const std::vector<uint64_t> &c) {
    std::vector<Case> all;
    for (const uint64_t x : a) {
        for (const uint64_t y : b) {
            for (const uint64_t z : c) all.push_back({x, y, z});
        }
    }
    return all;
}

inline std::vector<Case> singles(const std::vector<uint64_t> &a) {
    std::vector<Case> all;
    for (const uint64_t x : a) all.push_back({x});
    return all;
}

// Corner cases of a width, and random numbers.
inline std::vector<uint64_t> whole_values(unsigned bits, size_t random = 12) {
    const uint64_t mask = low_bits(bits);
    std::vector<uint64_t> all = {0, 1, 2, 3, 7, 31, 32, 33, 63, 64, 255, mask, mask - 1, mask >> 1, (mask >> 1) + 1,
        (mask >> 1) + 2, 0x80, 0x7f, 0x8000};
    std::mt19937_64 generator(bits);
    for (size_t i = 0; i < random; ++i) all.push_back(generator() >> (generator() % bits));
    for (uint64_t &v : all) v &= mask;
    return all;
}

inline std::vector<uint64_t> float_values(size_t random = 24) {
    std::vector<uint64_t> all = {0x00000000, 0x80000000, 0x3f800000, 0xbf800000, 0x3f000000, 0x3fc00000, 0x40200000,
        0xc0200000,
                                 0x00000001, 0x80000001, 0x007fffff, 0x807fffff, 0x00800000, 0x80800000, 0x00800001,
                                     0x7f7fffff,
                                 0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc00123, 0x7f800001, 0x4b000001,
                                     0x4f000000,
                                 0xcf000000, 0x4f7fffff, 0x5f000000, 0xdf000000, 0x5f800000, 0x3eaaaaab, 0x34000000,
                                     0x33800000};
    std::mt19937 generator(7);
    for (size_t i = 0; i < random; ++i) all.push_back(generator());
    return all;
}

inline std::vector<uint64_t> double_values(size_t random = 24) {
    std::vector<uint64_t> all = {0x0000000000000000, 0x8000000000000000, 0x3ff0000000000000, 0xbff0000000000000,
        0x3fe0000000000000,
                                 0x3ff8000000000000, 0x4004000000000000, 0xc004000000000000, 0x0000000000000001,
                                     0x800fffffffffffff,
                                 0x0010000000000000, 0x7fefffffffffffff, 0xffefffffffffffff, 0x7ff0000000000000,
                                     0xfff0000000000000,
                                 0x7ff8000000000000, 0x41dfffffffc00000, 0x41e0000000000000, 0xc1e0000000200000,
                                     0x43e0000000000000,
                                 0xc3e0000000000000, 0x43f0000000000000, 0x36a0000000000000, 0x380fffffffffffff,
                                     0x47efffffe0000000,
                                 0x47effffff0000000, 0x3ff0000010000000, 0x3ff0000030000000, 0x3ff0000010000001,
                                     0x3fd5555555555555};
    std::mt19937_64 generator(7);
    for (size_t i = 0; i < random; ++i) all.push_back(generator());
    return all;
}

}  // namespace ptxtest
