// The PTX that can be read, and that anything else is reported with its line instead of being guessed.
#include "support.h"

using namespace ptxtest;

namespace {
std::string with(const std::string &line) { return refusal(file_of(".reg .pred %p<4>; .reg .b16 %h<4>; "
    ".reg .b32 %r<4>; .reg .b64 %rd<4>;\n" + line)); }
}  // namespace

TEST(an_unknown_opcode_is_named_with_its_line) {
    const std::string words = with("add.s32 %r1, %r2, %r3;\nfrobnicate.s32 %r1, %r2;");
    CHECK(has(words, "test.ptx:8") && has(words, "frobnicate.s32"), "%s", words.c_str());
}

TEST(an_unknown_modifier_is_named) {
    for (const char *line : {"add.weird.s32 %r1, %r2, %r3;", "ld.global.v3.f32 %r1, [%rd1];",
        "ld.global.L9::x.f32 %r1, [%rd1];",
                             "cvt.rn.odd.f32.s32 %r1, %r2;", "setp.lt.odd.s32 %p1, %r1, %r2;",
                                 "shfl.sync.side.b32 %r1, %r2, 1, 31, -1;",
                             "bar.sync.odd 0;", "atom.global.mul.u32 %r1, [%rd1], %r2;", "mov.s7 %r1, %r2;"}) {
        CHECK(!with(line).empty(), "%s was taken", line);
    }
}

TEST(approximations_and_atomics_on_reals_are_refused) {
    for (const char *line : {"div.approx.f32 %r1, %r2, %r3;", "div.full.f32 %r1, %r2, %r3;",
        "sqrt.approx.f32 %r1, %r2;",
                             "rcp.approx.f32 %r1, %r2;", "ex2.approx.f32 %r1, %r2;", "rsqrt.approx.f32 %r1, %r2;",
                             "atom.global.add.f32 %r1, [%rd1], %r2;", "red.global.add.f64 [%rd1], %rd2;"}) {
        CHECK(!with(line).empty(), "%s was taken", line);
    }
}

TEST(widths_must_fit) {
    for (const char *line : {"add.s32 %r1, %r2, %rd1;", "add.s64 %rd1, %rd2, %r1;", "mul.wide.s32 %r1, %r2, %r3;",
                             "mov.u32 %rd1, %r1;", "setp.lt.s32 %r1, %r2, %r3;", "ld.global.u64 %r1, [%rd1];",
                             "st.global.u64 [%rd1], %r1;", "add.f32 %r1, %r2, 1;", "mad.lo.s32 %r1, %r2, %r3;"}) {
        CHECK(!with(line).empty(), "%s was taken", line);
    }
}

TEST(names_must_exist) {
    CHECK(has(with("bra NOWHERE;"), "NOWHERE"), "a label");
    CHECK(has(with("add.s32 %r1, %r2, %r9;"), "%r9"), "a register");
    CHECK(has(with("mov.u32 %r1, %smid;"), "%smid"), "a special register whose value nobody promises");
    CHECK(has(with("ld.param.u64 %rd1, [p7];"), "p7"), "a parameter");
    CHECK(has(with("ld.param.u64 %rd1, [p0+8];"), "outside"), "a place outside a parameter");
    CHECK(has(with("brx.idx %r1, TABLE;"), "TABLE"), "a table");
    CHECK(has(with("L: L: ret;"), "twice"), "a label twice");
}

TEST(numbers_and_text_must_be_whole) {
    for (const char *line : {"mov.u32 %r1, 0x1g;", "mov.u32 %r1, 12abc;", "mov.u32 %r1, 0f12;", "mov.u32 %r1, ?;",
        "mov.u32 %r1 %r2;",
                             "add.s32 %r1, ;", "/* no end"}) {
        CHECK(!with(line).empty(), "%s was taken", line);
    }
    CHECK(!refusal(".version 9.0\n.target sm_75\n.address_size 32\n").empty(), "32-bit addresses were taken");
}

TEST(numbers_of_every_kind_are_read) {
    const auto is = [](const char *number, uint64_t bits) {
        const auto result = evaluate(std::string("mov.b64 D, ") + number + ";", {64}, {{}});
        CHECK(result[0] == bits, "%s became %llx", number, static_cast<unsigned long long>(result[0]));
    };
    is("42", 42), is("-1", ~0ull), is("0x1F", 31), is("017", 15), is("0b101", 5), is("7U", 7);
    is("0d3FF0000000000000", 0x3ff0000000000000), is("9223372036854775807", 0x7fffffffffffffff);
}

TEST(two_kernels_of_one_name_are_refused) {
    Program program;
    program.load(file_of("ret;"), "a.ptx");
    bool refused = false;
    try {
        program.load(file_of("ret;"), "b.ptx");
    } catch (const Unreadable &) {
        refused = true;
    }
    CHECK(refused, "the second one was taken");
}

TEST(comments_pragmas_sections_and_places_are_read) {
    const std::string text = ".version 9.0\n.target sm_75, debug\n.address_size 64\n// a line\n/* two\nlines */\n"
                             ".visible .entry k(.param .u64 p0)\n.maxntid 128, 1, 1\n.minnctapersm 2\n{\n.reg .b64 %rd<2>;\n"
                             ".loc 1 17 3\n.pragma \"nounroll\";\nld.param.u64 %rd1, [p0];\n"
                             ".loc 1 18 5, function_name $L__info0, inlined_at 1 40 2\nst.global.u32 [%rd1], 1;\nret;\n"
                                 "}\n"
                             ".file 1 \"/somewhere/else/source.cu\"\n.section .debug_str\n{\n$L__info0:\n.b8 1,2,3\n.b32 4\n}\n";
    Program program;
    program.load(text, "test.ptx");
    Run run(program);
    const std::string words = run.with<uint64_t>(64).fault();
    CHECK(has(words, "nobody"), "%s", words.c_str());
    CHECK(run.last_line == 16, "line %u", run.last_line);
    CHECK(run.last_source == "source.cu:18 (inlined at source.cu:40)", "%s", run.last_source.c_str());
    run.launch.block.x = 256;
    CHECK(has(run.fault(), "128"), "more threads than the kernel is bound to");
}

TEST(a_launch_must_fit_its_kernel) {
    Program program;
    program.load(file_of("ret;", ".param .u64 p0, .param .u32 p1"), "test.ptx");
    {
        Run run(program);
        CHECK(has(run.with(1.0).fault(), "2 arguments"), "too few");
    }
    {
        Run run(program);
        CHECK(has(run.with(1.0).with(2.0).fault(), "argument 1"), "a wrong size");
    }
    {
        Run run(program);
        run.launch.block.x = 2048;
        CHECK(has(run.with(1.0).with(2).fault(), "2048"), "too many threads");
    }
    Run run(program, "other");
    CHECK(has(run.fault(), "other"), "a kernel nobody has");
}
