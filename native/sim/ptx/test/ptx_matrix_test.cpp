// ldmatrix and mma: what every lane gets, compared with plain loops over the layouts of the PTX ISA, and what is found to be
// wrong.
#include <cmath>

#include "bits.h"
#include "support.h"

using namespace ptxtest;

namespace {

// Each lane has 16 words of input at %rd2 and 8 of output at %rd4. %r20..%r29 are the words of the input.
const char *const kHead = ".shared .align 16 .b8 tile[2048];\n.reg .pred %p<8>; .reg .b32 %r<40>; .reg .f32 %f<8>; "
    ".reg .b64 %rd<16>;\nld.param.u64 %rd1, [p0]; ld.param.u64 %rd3, [p1]; mov.u32 %r1, %tid.x; "
    "mad.wide.u32 %rd2, %r1, 64, %rd1; mad.wide.u32 %rd4, %r1, 32, %rd3; mov.u32 %r5, tile; "
    "mad.lo.u32 %r6, %r1, 16, %r5;\n";

struct Outcome {
    std::string fault;
    uint32_t thread = 0;
    std::vector<uint32_t> out;  // eight words for each lane
};

Outcome outcome(const std::string &code, const std::vector<uint32_t> &in, const Order &order = Order(), uint32_t threads = 32) {
    Program program;
    program.load(file_of(kHead + code, ".param .u64 p0, .param .u64 p1"), "test.ptx");
    Run run(program);
    run.launch.block.x = threads;
    run.launch.order = order;
    uint32_t *from = run.memory.make<uint32_t>(16 * threads);
    std::copy(in.begin(), in.end(), from);
    uint32_t *to = run.memory.make<uint32_t>(8 * threads, 0);
    Outcome result;
    result.fault = run.with(from).with(to).fault();
    result.thread = run.last_thread.x;
    result.out.assign(to, to + 8 * threads);
    return result;
}

void faults(const std::string &code, const char *words, uint32_t threads = 32) {
    for (const Order &order : orders()) {
        const Outcome o = outcome(code, {}, order, threads);
        CHECK(has(o.fault, words), "%s, %s: '%s' instead of '%s'", code.c_str(), order_name(order).c_str(), o.fault.c_str(), words);
    }
}

float number(uint32_t bits) { return value<float>(bits); }
uint32_t bits_of(float x) { return static_cast<uint32_t>(raw(x)); }

// A product of 16 x 8 x depth; a lane's element `e` of register `r` is at the places below, as in the PTX ISA.
struct Shape {
    const char *name;
    bool brain;
    int depth;
    int a_registers, b_registers;
};
constexpr Shape kShapes[] = {{"m16n8k16.row.col.f32.bf16.bf16.f32", true, 16, 4, 2},
                             {"m16n8k8.row.col.f32.bf16.bf16.f32", true, 8, 2, 1},
                             {"m16n8k8.row.col.f32.tf32.tf32.f32", false, 8, 4, 2},
                             {"m16n8k4.row.col.f32.tf32.tf32.f32", false, 4, 2, 1}};

// The ISA lists the place of element i of a fragment: rows and columns from groupID = lane >> 2, threadID_in_group = lane % 4.
void place_of_a(const Shape &s, int lane, int i, int &row, int &col) {
    const int group = lane >> 2, thread = lane % 4;
    if (s.brain) {
        row = (i % 4) < 2 ? group : group + 8;
        col = thread * 2 + (i & 1) + (i >= 4 ? 8 : 0);
    } else {
        row = (i == 0 || i == 2) ? group : group + 8;
        col = (i == 0 || i == 1) ? thread : thread + 4;
    }
}
void place_of_b(const Shape &s, int lane, int i, int &row, int &col) {
    const int group = lane >> 2, thread = lane % 4;
    col = group;
    if (s.brain) row = thread * 2 + (i & 1) + (i >= 2 ? 8 : 0);
    else row = i == 0 ? thread : thread + 4;
}
void place_of_c(int lane, int i, int &row, int &col) {
    row = i < 2 ? lane >> 2 : (lane >> 2) + 8;
    col = lane % 4 * 2 + (i & 1);
}

std::string code_of(const Shape &s) {
    std::string code = "ld.global.v4.u32 {%r20, %r21, %r22, %r23}, [%rd2]; ld.global.v2.u32 {%r24, %r25}, [%rd2+16]; "
        "ld.global.v4.f32 {%f0, %f1, %f2, %f3}, [%rd2+32]; mma.sync.aligned." + std::string(s.name) +
        " {%f4, %f5, %f6, %f7}, ";
    code += s.a_registers == 4 ? "{%r20, %r21, %r22, %r23}, " : "{%r20, %r21}, ";
    code += s.b_registers == 2 ? "{%r24, %r25}, " : "{%r24}, ";
    return code + "{%f0, %f1, %f2, %f3}; st.global.v4.f32 [%rd4], {%f4, %f5, %f6, %f7};";
}

}  // namespace

TEST(products_of_every_shape) {
    for (const Shape &s : kShapes) {
        std::mt19937 generator(static_cast<unsigned>(s.depth));
        std::normal_distribution<float> normal;
        std::vector<float> a(static_cast<size_t>(16 * s.depth)), b(static_cast<size_t>(8 * s.depth)), c(128);
        // The factors have more bits than the type: bf16 are cut here, tf32 by the instruction.
        for (float &x : a) x = normal(generator);
        for (float &x : b) x = normal(generator);
        for (float &x : c) x = normal(generator);
        const unsigned lost = s.brain ? 16 : 13;
        const auto cut = [lost](float x) { return number(bits_of(x) >> lost << lost); };
        std::vector<uint32_t> in(32 * 16);
        for (int lane = 0; lane < 32; ++lane) {
            uint32_t *mine = &in[static_cast<size_t>(lane * 16)];
            int row = 0, col = 0;
            const int per = s.brain ? 2 : 1;
            for (int i = 0; i < s.a_registers * per; ++i) {
                place_of_a(s, lane, i, row, col);
                const uint32_t bits = bits_of(a[static_cast<size_t>(row * s.depth + col)]);
                mine[i / per] |= s.brain ? bits >> 16 << 16 * (i % 2) : bits;
            }
            for (int i = 0; i < s.b_registers * per; ++i) {
                place_of_b(s, lane, i, row, col);
                const uint32_t bits = bits_of(b[static_cast<size_t>(row * 8 + col)]);
                mine[4 + i / per] |= s.brain ? bits >> 16 << 16 * (i % 2) : bits;
            }
            for (int i = 0; i < 4; ++i) {
                place_of_c(lane, i, row, col);
                mine[8 + i] = bits_of(c[static_cast<size_t>(row * 8 + col)]);
            }
        }
        for (const Order &order : orders()) {
            const Outcome o = outcome(code_of(s), in, order);
            CHECK(o.fault.empty(), "%s: %s", s.name, o.fault.c_str());
            for (int lane = 0; lane < 32; ++lane) {
                for (int i = 0; i < 4; ++i) {
                    int row = 0, col = 0;
                    place_of_c(lane, i, row, col);
                    double sum = static_cast<double>(c[static_cast<size_t>(row * 8 + col)]);
                    for (int k = 0; k < s.depth; ++k) {
                        sum += static_cast<double>(cut(a[static_cast<size_t>(row * s.depth + k)])) *
                               static_cast<double>(cut(b[static_cast<size_t>(k * 8 + col)]));
                    }
                    const uint32_t found = o.out[static_cast<size_t>(lane * 8 + i)];
                    CHECK(found == bits_of(static_cast<float>(sum)), "%s, lane %d, %d: %g instead of %g", s.name, lane, i,
                          static_cast<double>(number(found)), sum);
                }
            }
        }
    }
}

TEST(a_sum_is_rounded_once) {
    // 1 + sixteen times 2^-24: with a rounding after each addition the sum would stay 1.
    std::vector<uint32_t> in(32 * 16);
    for (size_t lane = 0; lane < 32; ++lane) {
        for (size_t r = 0; r < 4; ++r) in[lane * 16 + r] = 0x39803980;  // 2^-12
        for (size_t r = 4; r < 6; ++r) in[lane * 16 + r] = 0x39803980;
        for (size_t r = 8; r < 12; ++r) in[lane * 16 + r] = bits_of(1.0f);
    }
    const Outcome o = outcome(code_of(kShapes[0]), in);
    for (size_t e = 0; e < 4; ++e) {
        CHECK(o.out[e] == bits_of(1.0f + std::ldexp(1.0f, -20)), "%zu: %.9g", e, static_cast<double>(number(o.out[e])));
    }
}

TEST(a_result_may_be_an_operand) {
    std::vector<uint32_t> in(32 * 16);
    for (size_t lane = 0; lane < 32; ++lane) {
        for (size_t r = 0; r < 6; ++r) in[lane * 16 + r] = bits_of(1.0f);
    }
    const Outcome o = outcome(
        "ld.global.v4.u32 {%r20, %r21, %r22, %r23}, [%rd2]; ld.global.v2.u32 {%r24, %r25}, [%rd2+16]; mov.f32 %f0, 0f40000000; "
        "mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0; "
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f0, %f1, %f2, %f3}, {%r20, %r21, %r22, %r23}, {%r24, %r25}, "
        "{%f0, %f1, %f2, %f3}; "
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f0, %f1, %f2, %f3}, {%r20, %r21, %r22, %r23}, {%r24, %r25}, "
        "{%f0, %f1, %f2, %f3}; st.global.v4.f32 [%rd4], {%f0, %f1, %f2, %f3};", in);
    CHECK(o.fault.empty(), "%s", o.fault.c_str());
    for (size_t lane = 0; lane < 32; ++lane) {
        for (size_t e = 0; e < 4; ++e) CHECK(o.out[lane * 8 + e] == bits_of(18.0f), "%zu, %zu", lane, e);
    }
}

TEST(matrices_from_shared_memory) {
    // The 16-bit element k of row i is 256 * i + k; the rows are in reverse order, so that addresses matter.
    const std::string fill = "sub.u32 %r10, 31, %r1; mad.lo.u32 %r10, %r10, 16, %r5; mul.lo.u32 %r11, %r1, 0x01000100; "
        "add.u32 %r12, %r11, 0x00010000; add.u32 %r13, %r11, 0x00030002; add.u32 %r14, %r11, 0x00050004; "
        "add.u32 %r15, %r11, 0x00070006; st.shared.v4.u32 [%r10], {%r12, %r13, %r14, %r15}; bar.sync 0; ";
    for (const unsigned count : {1u, 2u, 4u}) {
        for (const bool transposed : {false, true}) {
            for (const std::string space : {".shared", ".shared::cta", ""}) {
                const std::string registers = count == 1 ? "{%r20}" : count == 2 ? "{%r20, %r21}" : "{%r20, %r21, %r22, %r23}";
                // Lanes beyond the last matrix give an address that nobody has.
                std::string code = fill + "setp.ge.u32 %p1, %r1, " + std::to_string(8 * count) + "; @%p1 mov.u32 %r10, 3; ";
                if (space.empty()) code += "cvt.u64.u32 %rd5, %r10; cvta.shared.u64 %rd5, %rd5; ";
                code += "ldmatrix.sync.aligned.m8n8.x" + std::to_string(count) + (transposed ? ".trans" : "") + space + ".b16 " +
                        registers + ", [" + (space.empty() ? "%rd5" : "%r10") + "]; ";
                for (unsigned m = 0; m < count; ++m) {
                    code += "st.global.u32 [%rd4+" + std::to_string(4 * m) + "], %r2" + std::to_string(m) + "; ";
                }
                for (const Order &order : orders()) {
                    const Outcome o = outcome(code, {}, order);
                    CHECK(o.fault.empty(), "%s: %s", code.c_str(), o.fault.c_str());
                    for (unsigned lane = 0; lane < 32; ++lane) {
                        for (unsigned m = 0; m < count; ++m) {
                            const auto element = [m](unsigned i, unsigned k) { return 256 * (8 * m + i) + k; };
                            const unsigned g = lane / 4, t = lane % 4;
                            const uint32_t expected = transposed ? element(2 * t, g) | element(2 * t + 1, g) << 16
                                                                 : element(g, 2 * t) | element(g, 2 * t + 1) << 16;
                            CHECK(o.out[lane * 8 + m] == expected, "x%u%s%s, lane %u, %u: %x instead of %x", count,
                                  transposed ? ".trans" : "", space.c_str(), lane, m, o.out[lane * 8 + m], expected);
                        }
                    }
                }
            }
        }
    }
}

TEST(rows_are_checked) {
    const std::string fill = "st.shared.v4.u32 [%r6], {%r1, %r1, %r1, %r1}; ";
    const std::string load = "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r20, %r21, %r22, %r23}, ";
    const std::string barrier = "bar.sync 0; ";
    faults(fill + barrier + load + "[%r6+8];", "8 more than a multiple of 16");
    faults(fill + barrier + load + "[%r6+2048];", "shared memory at offset");
    faults(fill + barrier + load + "[%r6+512];", "nobody in the block has written");
    // A row that another lane wrote needs a barrier; the lane that gives the address is the reader.
    const std::string other = "xor.b32 %r9, %r1, 1; mad.lo.u32 %r9, %r9, 16, %r5; ";
    faults(fill + barrier + fill + other + load + "[%r9];", "race");
    for (const Order &order : orders()) {
        const std::string fault = outcome(fill + barrier + fill + other + "bar.warp.sync -1; " + load + "[%r9];", {}, order).fault;
        CHECK(fault.empty(), "%s", fault.c_str());
    }
    // Without a barrier only one's own rows may be given, although every lane gets parts of them.
    for (const Order &order : orders()) {
        const std::string fault = outcome(fill + load + "[%r6];", {}, order).fault;
        CHECK(fault.empty(), "%s", fault.c_str());
    }
    // A write after it that a barrier should precede.
    faults(fill + barrier + other + load + "[%r9]; " + fill, "race");
    // A copy that is not finished.
    faults("cp.async.cg.shared.global [%r6], [%rd2], 16; " + load + "[%r6]; cp.async.wait_all;", "has not been waited for");
    // The report names the lane that gave the address.
    const Outcome o = outcome(fill + barrier + "setp.eq.u32 %p1, %r1, 13; @%p1 add.u32 %r6, %r6, 4; " + load + "[%r6];", {});
    CHECK(has(o.fault, "4 more than a multiple of 16") && o.thread == 13, "%u: %s", o.thread, o.fault.c_str());
    faults("mov.u64 %rd5, %rd1; ldmatrix.sync.aligned.m8n8.x1.b16 {%r20}, [%rd5];", "memory that is not shared");
}

TEST(every_lane_takes_part) {
    const std::string multiply = "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%f4, %f5, %f6, %f7}, {%r20, %r21}, {%r22}, "
        "{%f0, %f1, %f2, %f3}; ";
    const std::string fill = "st.shared.v4.u32 [%r6], {%r1, %r1, %r1, %r1}; bar.sync 0; ";
    const std::string load = "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r20}, [%r6]; ";
    const std::string leave = "setp.eq.u32 %p1, %r1, 20; @%p1 ret; ";
    faults(leave + multiply, "names lane 20, which has exited");
    faults(fill + leave + load, "names lane 20, which has exited");
    faults(multiply, "does not have", 48);
    faults("setp.eq.u32 %p1, %r1, 20; @%p1 bra REST; " + multiply + "REST: bar.warp.sync -1;", "for lane");
    // The same instruction at two places does not do: lanes must execute it together.
    faults("setp.lt.u32 %p1, %r1, 16; @%p1 bra OTHER; " + multiply + "ret;\nOTHER: " + multiply + "ret;", "for lane");
    faults(fill + "setp.lt.u32 %p1, %r1, 16; @%p1 bra OTHER; " + load + "ret;\nOTHER: " + load + "ret;", "for lane");
    // It orders no accesses to memory.
    faults("st.shared.u32 [%r6], 1; bar.sync 0; st.shared.u32 [%r6], 1; " + multiply +
               "xor.b32 %r9, %r1, 1; mad.lo.u32 %r9, %r9, 16, %r5; ld.shared.u32 %r10, [%r9];", "race");
}

TEST(shapes_that_do_not_exist) {
    const auto refused = [](const std::string &code) {
        CHECK(!refusal(file_of(kHead + code, ".param .u64 p0, .param .u64 p1")).empty(), "%s", code.c_str());
    };
    const std::string four = " {%f4, %f5, %f6, %f7}, {%r20, %r21, %r22, %r23}, {%r24, %r25}, {%f0, %f1, %f2, %f3};";
    CHECK(refusal(file_of(kHead + ("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32" + four),
                          ".param .u64 p0, .param .u64 p1")).empty(), "the one that exists");
    refused("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32" + four);
    refused("mma.sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32" + four);
    refused("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32" + four);
    refused("mma.sync.aligned.m16n8k4.row.col.f32.bf16.bf16.f32" + four);
    refused("mma.sync.aligned.m16n8k16.col.col.f32.bf16.bf16.f32" + four);
    refused("mma.sync.aligned.m8n8k4.row.col.f32.bf16.bf16.f32" + four);
    refused("mma.sync.aligned.m16n8k16.row.col.satfinite.f32.bf16.bf16.f32" + four);
    refused("mma.sp.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32" + four);
    refused("wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32" + four);
    refused("ldmatrix.sync.aligned.m8n8.x3.shared.b16 {%r20, %r21, %r22}, [%r6];");
    refused("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r20}, [%r6];");
    refused("ldmatrix.sync.aligned.m8n16.x2.shared.b8 {%r20, %r21}, [%r6];");
    refused("ldmatrix.sync.m8n8.x1.shared.b16 {%r20}, [%r6];");
}
