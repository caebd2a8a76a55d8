// Branches, calls, parameters, local memory, vectors, variables and special registers.
#include "bits.h"
#include "support.h"

using namespace ptxtest;

namespace {

const char *const kRegisters = ".reg .pred %p<8>;\n.reg .b16 %h<8>;\n.reg .b32 %r<24>;\n.reg .b64 %rd<24>;\n";
// %rd1: the address of the thread's 8 bytes of the result; %r1: its index in the launch.
const char *const kMine = "ld.param.u64 %rd1, [p0]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x;\n"
                          "mad.lo.u32 %r1, %r2, %r3, %r1; mad.wide.u32 %rd1, %r1, 8, %rd1;\n";

std::vector<uint64_t> results(const std::string &text, uint32_t threads = 64, uint32_t blocks = 1,
    const Order &order = Order()) {
    Program program;
    program.load(text, "test.ptx");
    Run run(program);
    run.launch.block.x = threads;
    run.launch.grid.x = blocks;
    run.launch.order = order;
    uint64_t *out = run.memory.make<uint64_t>(threads * blocks, 0);
    run.with(out).go();
    return {out, out + threads * blocks};
}

std::vector<uint64_t> body(const std::string &code, uint32_t threads = 64) {
    return results(file_of(std::string(kRegisters) + kMine + code), threads);
}

}  // namespace

TEST(a_loop_takes_each_thread_its_own_time) {
    const auto sums = body("mov.u64 %rd2, 0; mov.u32 %r4, 0;\nAGAIN: setp.gt.u32 %p1, %r4, %r1; @%p1 bra DONE; "
        "cvt.u64.u32 %rd3, %r4; "
                           "add.u64 %rd2, %rd2, %rd3; add.u32 %r4, %r4, 1; bra.uni AGAIN;\n"
                               "DONE: st.global.u64 [%rd1], %rd2; ret;");
    for (uint64_t i = 0; i < 64; ++i) {
        CHECK(sums[i] == i * (i + 1) / 2, "thread %llu", static_cast<unsigned long long>(i));
    }
}

TEST(a_predicate_guards_what_takes_several_steps) {
    // setp with a combining operation is decoded to two steps; a false guard must skip both.
    const auto r = body("setp.lt.u32 %p1, %r1, 10; setp.eq.u32 %p3, %r1, %r1; mov.pred %p2, %p3; "
        "@!%p1 setp.eq.and.u32 %p2|%p4, %r1, 20, %p3; "
                        "selp.u64 %rd2, 1, 0, %p2; @%p1 add.u64 %rd2, %rd2, 10; st.global.u64 [%rd1], %rd2;");
    for (uint64_t i = 0; i < 64; ++i) {
        CHECK(r[i] == (i < 10 ? 11u : i == 20 ? 1u : 0u), "thread %llu: %llu", static_cast<unsigned long long>(i),
            static_cast<unsigned long long>(r[i]));
    }
}

TEST(a_table_of_targets) {
    const std::string code = "and.b32 %r4, %r1, 3;\nT: .branchtargets L0, L1, L2, L3;\nbrx.idx %r4, T;\n"
        "L0: mov.u64 %rd2, 10; bra E;\nL1: mov.u64 %rd2, 11; bra E;\n"
                             "L2: mov.u64 %rd2, 12; bra E;\nL3: mov.u64 %rd2, 13;\nE: st.global.u64 [%rd1], %rd2;";
    const auto r = body(code);
    for (uint64_t i = 0; i < 64; ++i) CHECK(r[i] == 10 + i % 4, "thread %llu", static_cast<unsigned long long>(i));
    Program program;
    program.load(file_of(std::string(kRegisters) + kMine + "T: .branchtargets L0;\nbrx.idx %r1, T;\n"
        "L0: ret;"), "test.ptx");
    Run run(program);
    run.launch.block.x = 2;
    CHECK(has(run.with(run.memory.make<uint64_t>(2)).fault(), "table of 1"), "an index past the table");
}

TEST(calls_pass_and_return_values_and_nest) {
    // down(n) = n == 0 ? 0 : n + down(n - 1), with its argument kept in its own frame across the call.
    const std::string text = std::string(".version 9.0\n.target sm_75\n.address_size 64\n"
        ".func (.param .b64 r) down(.param .b64 n, .param .align 8 .b8 pair[16]);\n"
        ".func (.param .b64 r) down(.param .b64 n, .param .align 8 .b8 pair[16])\n{\n.reg .pred %p<2>; "
            ".reg .b64 %rd<12>;\n"
        "ld.param.u64 %rd1, [n]; ld.param.v2.u64 {%rd7, %rd8}, [pair]; setp.eq.u64 %p1, %rd1, 0; @%p1 bra ZERO;\n"
        "{ // one call\n.param .b64 a; .param .align 8 .b8 b[16]; .param .b64 result;\nsub.u64 %rd2, %rd1, 1; "
            "st.param.b64 [a], %rd2; add.u64 %rd9, %rd7, 1;\n"
        "st.param.v2.b64 [b], {%rd9, %rd8}; call.uni (result), down, (a, b);\nld.param.b64 %rd3, [result];\n}\n"
        "ld.param.u64 %rd4, [n]; add.u64 %rd5, %rd3, %rd4; st.param.b64 [r], %rd5; ret;\n"
        "ZERO: mad.lo.u64 %rd6, %rd7, 1000, %rd8; st.param.b64 [r+0], %rd6; ret;\n}\n"
        ".visible .entry k(.param .u64 p0)\n{\n") + kRegisters + kMine +
        "{ .param .b64 a; .param .align 8 .b8 b[16]; .param .b64 result; cvt.u64.u32 %rd2, %r1; "
            "st.param.b64 [a], %rd2; mov.u64 %rd3, 0; st.param.b64 [b], %rd3; "
        "mov.u64 %rd4, 7; st.param.b64 [b+8], %rd4; call (result), down, (a, b); ld.param.b64 %rd5, [result]; "
            "}\nst.global.u64 [%rd1], %rd5; ret; }\n";
    const auto r = results(text, 20);
    for (uint64_t i = 0; i < 20; ++i) {
        CHECK(r[i] == i * (i + 1) / 2 + i * 1000 + 7, "thread %llu: %llu", static_cast<unsigned long long>(i),
            static_cast<unsigned long long>(r[i]));
    }
}

TEST(calls_without_end_and_to_nobody_are_faults) {
    const std::string head = ".version 9.0\n.target sm_75\n.address_size 64\n";
    Program program;
    program.load(head + ".extern .func other();\n.func deep()\n{ .local .b8 room[64]; call deep; ret; "
        "}\n.visible .entry k() { call deep; ret; }\n.visible .entry m() { call other; ret; }\n", "test.ptx");
    CHECK(has(Run(program, "k").fault(), "deep"), "recursion");
    CHECK(has(Run(program, "m").fault(), "other"), "a function nobody defines");
}

TEST(local_memory_is_each_threads_own) {
    for (const Order &order : orders()) {
        const auto r = results(file_of(std::string(kRegisters) + ".local .align 16 .b8 depot[128]; " + kMine +
            "mov.u64 %rd2, depot; cvta.local.u64 %rd3, %rd2; mov.u32 %r4, 0;\nFILL: mul.wide.u32 %rd4, %r4, 4; "
                "add.u64 %rd5, %rd3, %rd4; mul.lo.u32 %r5, %r4, %r1; "
            "st.u32 [%rd5], %r5; add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, 32; @%p1 bra FILL;\nmov.u32 %r4, 0; "
                "mov.u32 %r6, 0;\n"
            "SUM: mul.wide.u32 %rd4, %r4, 16; add.u64 %rd5, %rd2, %rd4; ld.local.v4.u32 {%r7, %r8, %r9, %r10}, [%rd5]; "
                "add.u32 %r6, %r6, %r7; add.u32 %r6, %r6, %r8; "
            "add.u32 %r6, %r6, %r9; add.u32 %r6, %r6, %r10; add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, 8; "
                "@%p1 bra SUM;\ncvt.u64.u32 %rd6, %r6; st.global.u64 [%rd1], %rd6;"), 64, 2, order);
        for (uint64_t i = 0; i < 128; ++i) {
            CHECK(r[i] == i * 31 * 32 / 2, "%s, thread %llu", order_name(order).c_str(),
                static_cast<unsigned long long>(i));
        }
    }
}

TEST(values_fill_the_register_they_are_loaded_into) {
    const std::string fill = "mov.u64 %rd2, 0xfedcba9876543281; st.global.u64 [%rd1], %rd2; ";
    const struct {
        const char *code;
        uint64_t right;
    } rows[] = {{"ld.global.u8 %r4, [%rd1]; cvt.u64.u32 %rd3, %r4;", 0x81}, {"ld.global.s8 %r4, [%rd1]; "
        "cvt.u64.u32 %rd3, %r4;", 0xffffff81},
                {"ld.global.s8 %rd3, [%rd1];", 0xffffffffffffff81}, {"ld.global.s8 %h1, [%rd1]; "
                    "cvt.u64.u16 %rd3, %h1;", 0xff81},
                {"ld.global.u16 %r4, [%rd1]; "
                    "cvt.u64.u32 %rd3, %r4;", 0x3281}, {"ld.global.s16 %rd3, [%rd1+6];", 0xfffffffffffffedc},
                {"ld.global.s32 %rd3, [%rd1+4];", 0xfffffffffedcba98}, {"ld.global.u32 %rd3, [%rd1+4];", 0xfedcba98},
                {"ld.global.v4.u16 {%h1, %h2, _, %h4}, [%rd1]; "
                    "mov.b64 %rd3, {%h4, %h2, %h1, %h1};", 0x328132817654fedc},
                {"ld.global.v2.u32 {%r4, %r5}, [%rd1]; mov.b64 %rd3, {%r5, %r4};", 0x76543281fedcba98},
                {"mov.b64 {_, %r4}, %rd2; cvt.u64.u32 %rd3, %r4;", 0xfedcba98}, {"mov.b64 {%h1, %h2, %h3, %h4}, %rd2; "
                    "cvt.u64.u16 %rd3, %h3;", 0xba98},
                {"mov.b32 %r4, {%h1, %h1}; "
                    "mov.u64 %rd3, 5;", 5}, {"ld.volatile.global.u64 %rd3, [%rd1];", 0xfedcba9876543281},
                {"ld.relaxed.gpu.global.u64 %rd3, [%rd1];", 0xfedcba9876543281},
                    {"ld.global.cg.L1::no_allocate.u64 %rd3, [%rd1];", 0xfedcba9876543281},
                {"mov.u32 %r4, 0x1234abcd; st.global.u8 [%rd1+1], %r4; "
                    "ld.global.u64 %rd3, [%rd1];", 0xfedcba987654cd81},
                {"st.global.v2.u16 [%rd1+4], {7, 9}; ld.global.u64 %rd3, [%rd1];", 0x0009000776543281}};
    for (const auto &row : rows) {
        const auto r = body(fill + row.code + " st.global.u64 [%rd1], %rd3;", 1);
        CHECK(r[0] == row.right, "%s: %llx, not %llx", row.code, static_cast<unsigned long long>(r[0]),
            static_cast<unsigned long long>(row.right));
    }
}

TEST(parameters_by_name_and_by_address) {
    struct Table {
        uint64_t out;
        int32_t numbers[4];
        double factor;
    };
    Program program;
    program.load(file_of(std::string(kRegisters) + "mov.b64 %rd2, p1; ld.param.u64 %rd1, [%rd2]; mov.u32 %r1, %tid.x; "
        "mul.wide.u32 %rd3, %r1, 4; add.u64 %rd4, %rd2, %rd3; "
        "ld.param.s32 %rd5, [%rd4+8]; mad.wide.u32 %rd1, %r1, 8, %rd1; ld.param.f64 %rd6, [p1+24]; "
            "cvta.param.u64 %rd7, %rd4; ld.u32 %r5, [%rd7+8]; "
        "cvt.s64.s32 %rd8, %r5; add.s64 %rd5, %rd5, %rd8; ld.param.s8 %rd9, [p0]; add.s64 %rd5, %rd5, %rd9; "
            "st.global.u64 [%rd1], %rd5;", ".param .s8 p0, .param .align 8 .b8 p1[32]"), "test.ptx");
    Run run(program);
    Table table{0, {5, -6, 7, -8}, 2.5};
    int64_t *out = run.memory.make<int64_t>(8);
    table.out = reinterpret_cast<uint64_t>(out);
    run.launch.block.x = 4;
    run.with(static_cast<int8_t>(-3)).with(table).go();
    for (int i = 0; i < 4; ++i) {
        CHECK(out[i] == 2 * table.numbers[i] - 3, "%d: %lld", i, static_cast<long long>(out[i]));
    }
    run.launch.block.x = 8;
    CHECK(has(run.fault(), "parameters"), "past the end of the parameters");
}

TEST(special_registers_tell_the_place) {
    Program program;
    program.load(file_of(std::string(kRegisters) +
        "mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %tid.z; mov.u32 %r4, %ntid.x; mov.u32 %r5, %ntid.y; "
            "mov.u32 %r6, %ntid.z; mov.u32 %r7, %ctaid.x; mov.u32 %r8, %ctaid.y; "
        "mov.u32 %r9, %ctaid.z; mov.u32 %r10, %nctaid.x; mov.u32 %r11, %nctaid.y; mov.u32 %r12, %nctaid.z; "
            "mov.u32 %r13, %laneid; mov.u32 %r14, %warpid; "
        "mad.lo.u32 %r15, %r3, %r5, %r2; mad.lo.u32 %r15, %r15, %r4, %r1; mad.lo.u32 %r16, %r9, %r11, %r8; "
            "mad.lo.u32 %r16, %r16, %r10, %r7; mul.lo.u32 %r17, %r4, %r5; mul.lo.u32 %r17, %r17, %r6; "
        "mad.lo.u32 %r18, %r16, %r17, %r15; mad.lo.u32 %r19, %r14, WARP_SZ, %r13; mul.lo.u32 %r20, %r10, %r11; "
            "mul.lo.u32 %r20, %r20, %r12; "
        "mov.u32 %r21, %lanemask_lt; popc.b32 %r21, %r21; mov.u32 %r22, %lanemask_ge; popc.b32 %r22, %r22; "
            "add.u32 %r21, %r21, %r22; mov.u32 %r22, %lanemask_eq; mov.u32 %r23, %lanemask_le; "
            "and.b32 %r22, %r22, %r23; "
        "ld.param.u64 %rd1, [p0]; mad.wide.u32 %rd1, %r18, 16, %rd1; "
            "st.global.v4.u32 [%rd1], {%r19, %r20, %r21, %r22};"), "test.ptx");
    Run run(program);
    run.launch.block = {5, 3, 4};
    run.launch.grid = {2, 3, 2};
    uint32_t *out = run.memory.make<uint32_t>(60 * 12 * 4);
    run.with(out).go();
    for (uint32_t i = 0; i < 60 * 12; ++i) {
        const uint32_t thread = i % 60;
        const uint32_t *four = out + i * 4;
        CHECK(four[0] == thread && four[1] == 12 && four[2] == 32 && four[3] == 1u << thread % 32, "%u: %u %u %u %x", i,
            four[0], four[1], four[2], four[3]);
    }
}

TEST(variables_of_the_file) {
    const std::string text = std::string(".version 9.0\n.target sm_75\n.address_size 64\n.global .align 4 .f32 coefficients[3] = {0f40600000, 0fC0A00000, 0f40000000};\n"
        ".const .align 4 .b8 bytes[8] = {1, 2, 3, 4, 255};\n"
            ".global .align 8 .u64 pointers[2] = {coefficients, generic(coefficients)+8};\n.global .u32 counter;\n"
        ".visible .entry k(.param .u64 p0)\n{\n") + kRegisters + kMine +
        "mul.wide.u32 %rd2, %r1, 4; mov.u64 %rd3, coefficients; add.u64 %rd3, %rd3, %rd2; ld.global.u32 %r4, [%rd3]; "
            "ld.const.u8 %r5, [bytes+4]; ld.global.u64 %rd4, [pointers+8]; ld.global.u32 %r6, [%rd4]; "
        "atom.global.add.u32 %r7, [counter], 1; sub.u32 %r4, %r4, %r6; add.u32 %r4, %r4, %r5; cvt.u64.u32 %rd5, %r4; "
            "st.global.u64 [%rd1], %rd5; ret;\n}\n"
        ".visible .entry w(.param .u64 p0)\n{\n.reg .b64 %rd<2>;\nmov.u64 %rd1, bytes; st.global.u8 [%rd1], 1; ret;\n"
            "}\n.visible .entry c(.param .u64 p0)\n{\n.reg .b64 %rd<2>; .reg .b32 %r<2>;\nld.param.u64 %rd1, [p0]; "
            "ld.global.u32 %r1, [counter]; st.global.u32 [%rd1], %r1; ret;\n}\n";
    Program program;
    program.load(text, "test.ptx");
    Run run(program);
    uint64_t *out = run.memory.make<uint64_t>(4);
    run.launch.block.x = 3;
    run.with(out).go();
    const float coefficients[] = {3.5f, -5.0f, 2.0f};
    for (int i = 0; i < 3; ++i) {
        CHECK(out[i] == static_cast<uint32_t>(raw(coefficients[i]) - raw(2.0f) + 255), "%d: %llx", i,
            static_cast<unsigned long long>(out[i]));
    }
    run.launch.block.x = 4;
    CHECK(has(run.fault(), "nobody's"), "past the end of a variable");
    run.launch.kernel = "w";
    run.launch.block.x = 1;
    CHECK(has(run.fault(), "constant"), "a store to a constant");
    run.launch.kernel = "c";
    run.go();
    CHECK(static_cast<uint32_t>(out[0]) == 3 + 3, "what a kernel leaves in a variable the next one finds: %u",
        static_cast<uint32_t>(out[0]));
}

TEST(a_loop_without_end_is_a_fault) {
    Program program;
    program.load(file_of(std::string(kRegisters) + kMine + "SPIN: ld.volatile.global.u64 %rd2, [%rd1]; "
        "setp.eq.u64 %p1, %rd2, 0; @%p1 bra SPIN;"), "test.ptx");
    Run run(program);
    run.launch.most_jumps = 1000;
    CHECK(has(run.with(run.memory.make<uint64_t>(1)).fault(), "without end"), "it spins");
}

TEST(a_thread_that_waits_for_another_one_lets_it_go_on) {
    // Thread 0 waits for something that thread 32 does later, in every order.
    for (const Order &order : orders()) {
        Program program;
        program.load(file_of(std::string(kRegisters) + "ld.param.u64 %rd1, [p0]; mov.u32 %r1, %tid.x; "
            "setp.eq.u32 %p1, %r1, 0; @%p1 bra SPIN; setp.eq.u32 %p1, %r1, 32; "
            "@%p1 st.release.gpu.global.u32 [%rd1], 5; ret;\n"
            "SPIN: ld.acquire.gpu.global.u32 %r2, [%rd1]; setp.eq.u32 %p2, %r2, 0; @%p2 bra SPIN; "
                "st.global.u32 [%rd1+4], %r2; ret;"), "test.ptx");
        Run run(program);
        run.launch.block.x = 64;
        run.launch.order = order;
        uint32_t *out = run.memory.make<uint32_t>(2);
        run.with(out).go();
        CHECK(out[1] == 5, "%s", order_name(order).c_str());
    }
}

TEST(trap_and_exit) {
    Program program;
    program.load(file_of(std::string(kRegisters) + "mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 3; @%p1 exit; "
        "trap;"), "test.ptx");
    Run run(program);
    run.with<uint64_t>(0);
    run.launch.block.x = 3;
    CHECK(run.fault().empty(), "all exit");
    run.launch.block.x = 4;
    CHECK(has(run.fault(), "traps") && run.last_thread.x == 3, "the fourth traps");
}
