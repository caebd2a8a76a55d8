// Every access is checked: bounds, alignment, state space, and reads of unwritten shared memory.
#include "support.h"

using namespace ptxtest;

namespace {

const char *const kHead = ".reg .pred %p<8>; .reg .b16 %h<4>; .reg .b32 %r<16>; .reg .b64 %rd<16>;\n"
    "ld.param.u64 %rd1, [p0]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd2, %rd1, %rd2;\n";

// %rd1 points to 64 numbers of 4 bytes; %rd2 points to the thread's own.
std::string fault_of(const std::string &code, uint32_t threads = 1, uint64_t shared = 0, uint32_t blocks = 1) {
    Program program;
    program.load(".version 9.0\n.target sm_75\n.address_size 64\n.extern .shared .align 16 .b8 dynamic[];\n"
        ".visible .entry k(.param .u64 p0)\n{\n.shared .align 16 .b8 tile[256];\n.shared .align 4 .b8 other[64];\n" +
                     std::string(kHead) + code + "\n}\n", "test.ptx");
    Run run(program);
    run.launch.block.x = threads;
    run.launch.grid.x = blocks;
    run.launch.shared_bytes = shared;
    uint32_t *out = run.memory.make<uint32_t>(64, 7);
    return run.with(out).fault();
}

void faults(const std::string &code, const char *words, uint32_t threads = 1, uint64_t shared = 0) {
    const std::string fault = fault_of(code, threads, shared);
    CHECK(has(fault, words), "%s: '%s' instead of '%s'", code.c_str(), fault.c_str(), words);
}

void fine(const std::string &code, uint32_t threads = 1, uint64_t shared = 0) {
    const std::string fault = fault_of(code, threads, shared);
    CHECK(fault.empty(), "%s: '%s'", code.c_str(), fault.c_str());
}

}  // namespace

TEST(one_past_the_end_of_an_allocation) {
    fine("st.global.u32 [%rd2], 1;", 64);
    faults("st.global.u32 [%rd2], 1;", "nobody's", 65);
    faults("ld.global.u32 %r2, [%rd1+256];", "nobody's");
    faults("ld.global.u32 %r2, [%rd1-4];", "nobody's");
    fine("ld.global.v4.u32 {%r2, %r3, %r4, %r5}, [%rd1+240];");
    faults("ld.global.v2.u64 {%rd3, %rd4}, [%rd1+256];", "nobody's");
    faults("atom.global.add.u32 %r2, [%rd1+256], 1;", "nobody's");
    faults("ld.u32 %r2, [%rd1+256];", "nobody's");
}

TEST(an_access_that_straddles_the_end) {
    Program program;
    program.load(file_of(kHead + std::string("ld.global.v4.u32 {%r2, %r3, %r4, %r5}, [%rd1+16];")), "test.ptx");
    Run run(program);
    const std::string fault = run.with(run.memory.make<uint32_t>(6)).fault();
    CHECK(has(fault, "allocation of 24"), "%s", fault.c_str());
}

TEST(an_offset_that_overflowed_is_out_of_range) {
    // 40000 * 60000 overflows to a negative number in signed 32 bits.
    const std::string index = "mov.u32 %r2, 40000; mov.u32 %r3, 60000; ";
    faults(index + "mul.lo.s32 %r4, %r2, %r3; mul.wide.s32 %rd3, %r4, 4; add.s64 %rd3, %rd1, %rd3; "
        "ld.global.u32 %r5, [%rd3];", "nobody's");
    // A small offset computed in 64 bits is in range.
    fine("mov.u32 %r2, 40; mov.u32 %r3, 1; mul.wide.u32 %rd3, %r2, %r3; shl.b64 %rd3, %rd3, 2; "
        "add.s64 %rd3, %rd1, %rd3; ld.global.u32 %r5, [%rd3];");
}

TEST(null_and_wild_pointers) {
    faults("mov.u64 %rd3, 0; ld.global.u32 %r2, [%rd3];", "nobody's");
    faults("mov.u64 %rd3, 0; st.u32 [%rd3+8], %r1;", "nobody's");
    faults("mov.u64 %rd3, 0xdeadbeef00000000; ld.u32 %r2, [%rd3];", "nobody's");
}

TEST(alignment_is_that_of_the_whole_access) {
    faults("ld.global.u32 %r2, [%rd1+2];", "multiple of 4");
    faults("ld.global.u64 %rd3, [%rd1+4];", "multiple of 8");
    faults("ld.global.v4.u32 {%r2, %r3, %r4, %r5}, [%rd1+8];", "multiple of 16");
    faults("st.global.v2.u32 [%rd1+4], {%r1, %r1};", "multiple of 8");
    faults("ld.global.nc.v4.f32 {%r2, %r3, %r4, %r5}, [%rd1+4];", "multiple of 16");
    faults("st.global.u16 [%rd1+1], %h1;", "multiple of 2");
    faults("st.shared.v4.u32 [tile+4], {%r1, %r1, %r1, %r1};", "multiple of 16");
    faults("atom.global.add.u64 %rd3, [%rd1+4], 1;", "multiple of 8");
    fine("ld.global.u8 %r2, [%rd1+3]; ld.global.u16 %r2, [%rd1+6]; ld.global.v4.u32 {%r2, %r3, %r4, %r5}, [%rd1+16];");
}

TEST(shared_memory_ends_where_it_was_declared_to) {
    const std::string at = "mov.u32 %r2, tile; mul.lo.u32 %r3, %r1, 4; add.u32 %r2, %r2, %r3; ";
    fine(at + "st.shared.u32 [%r2], 1;", 64);
    faults(at + "st.shared.u32 [%r2], 1;", "offset 256 of tile", 65);
    faults(at + "st.shared.u32 [%r2+256], 1;", "of tile, which has 256");
    faults(at + "st.shared.u32 [%r2-4], 1;", "shared memory at offset");
    faults("mov.u32 %r2, other; st.shared.u32 [%r2+64], 1;", "other, which has 64");
    faults(at + "st.shared.u32 [other], 1; st.shared.u32 [%r2+256], 1;", "of tile, which has 256");
    const std::string dynamic = "mov.u32 %r2, dynamic; mul.lo.u32 %r3, %r1, 16; add.u32 %r2, %r2, %r3; "
        "st.shared.v4.u32 [%r2], {%r1, %r1, %r1, %r1};";
    fine(dynamic, 8, 128);
    faults(dynamic, "dynamic shared memory, which has 128", 9, 128);
    faults(dynamic, "shared memory", 1, 0);
    CHECK(!fault_of("mov.u32 %r2, tile; cvt.u64.u32 %rd3, %r2; cvta.shared.u64 %rd4, %rd3; "
        "st.u32 [%rd4+252], 1;").size(), "by a generic address");
    faults("mov.u32 %r2, tile; cvt.u64.u32 %rd3, %r2; cvta.shared.u64 %rd4, %rd3; st.u32 [%rd4+256], 1;", "of tile");
}

TEST(shared_memory_nobody_wrote_is_not_read) {
    faults("ld.shared.u32 %r2, [tile];", "nobody in the block has written");
    faults("st.shared.u16 [tile], 1; ld.shared.u32 %r2, [tile];", "nobody in the block has written");
    faults("atom.shared.add.u32 %r2, [tile], 1;", "nobody in the block has written");
    fine("st.shared.u32 [tile], 1; ld.shared.u32 %r2, [tile]; atom.shared.add.u32 %r2, [tile], 1;");
    fine("st.shared.v2.u16 [tile], {1, 2}; ld.shared.u32 %r2, [tile];");
    // A second block finds nothing from the first one.
    const std::string code = "mov.u32 %r2, %ctaid.x; setp.eq.u32 %p1, %r2, 0; @%p1 st.shared.u32 [tile], 1; "
        "ld.shared.u32 %r3, [tile];";
    CHECK(fault_of(code, 1, 0, 1).empty() && has(fault_of(code, 1, 0, 2), "nobody in the block"), "%s",
        fault_of(code, 1, 0, 2).c_str());
}

TEST(an_address_belongs_to_its_space) {
    faults("cvta.to.shared.u64 %rd3, %rd1;", "another space");
    faults("mov.u32 %r2, tile; cvt.u64.u32 %rd3, %r2; cvta.shared.u64 %rd3, %rd3; "
        "cvta.to.local.u64 %rd4, %rd3;", "another space");
    faults("mov.u32 %r2, tile; cvt.u64.u32 %rd3, %r2; cvta.shared.u64 %rd3, %rd3; "
        "ld.global.u32 %r3, [%rd3];", "nobody's");
}

TEST(local_memory_ends_with_the_frame) {
    const std::string local = ".local .align 8 .b8 depot[32]; mov.u64 %rd3, depot; cvta.local.u64 %rd4, %rd3; ";
    fine(local + "st.local.u64 [%rd3+24], %rd1; ld.u64 %rd5, [%rd4+24];");
    faults(local + "st.local.u64 [%rd3+32], %rd1;", "local memory");
    faults(".local .align 8 .b8 odd[36]; mov.u64 %rd3, odd; st.local.u64 [%rd3+32], %rd1;", "local memory");
    faults(local + "ld.u32 %r2, [%rd4+32];", "local memory");
    faults(local + "ld.local.u32 %r2, [%rd3-4];", "local memory");
    faults(local + "ld.local.u64 %rd5, [%rd3+4];", "multiple of 8");
}

TEST(atomics) {
    const struct {
        const char *code;
        uint64_t before, after, returned;
    } rows[] = {{"add.u32 %r2, [%rd1], 5", 7, 12, 7}, {"add.s32 %r2, [%rd1], -8", 7, 0xffffffff, 7},
        {"min.s32 %r2, [%rd1], -1", 7, 0xffffffff, 7}, {"min.u32 %r2, [%rd1], -1", 7, 7, 7},
                {"max.s32 %r2, [%rd1], -1", 7, 7, 7}, {"max.u32 %r2, [%rd1], -1", 7, 0xffffffff, 7},
                    {"and.b32 %r2, [%rd1], 5", 7, 5, 7}, {"or.b32 %r2, [%rd1], 8", 7, 15, 7},
                {"xor.b32 %r2, [%rd1], 1", 7, 6, 7}, {"exch.b32 %r2, [%rd1], 3", 7, 3, 7},
                    {"cas.b32 %r2, [%rd1], 7, 9", 7, 9, 7}, {"cas.b32 %r2, [%rd1], 8, 9", 7, 7, 7},
                {"inc.u32 %r2, [%rd1], 7", 7, 0, 7}, {"inc.u32 %r2, [%rd1], 9", 7, 8, 7},
                    {"dec.u32 %r2, [%rd1], 9", 0, 9, 0}, {"dec.u32 %r2, [%rd1], 9", 7, 6, 7},
                    {"dec.u32 %r2, [%rd1], 5", 7, 5, 7}};
    for (const auto &row : rows) {
        for (const char *space : {"atom.global.", "atom.", "atom.relaxed.gpu.global."}) {
            Program program;
            program.load(file_of(kHead + std::string(space) + row.code + "; st.global.u32 [%rd1+4], %r2;"), "test.ptx");
            Run run(program);
            uint32_t *out = run.memory.make<uint32_t>(2, static_cast<uint32_t>(row.before));
            run.with(out).go();
            CHECK(out[0] == row.after && out[1] == row.returned, "%s%s: %x and %x", space, row.code, out[0], out[1]);
        }
    }
    Program program;
    program.load(file_of(kHead + std::string("atom.global.add.u64 %rd3, [%rd1], 0x100000000; "
        "red.global.max.s64 [%rd1+8], -5; atom.global.cas.b64 %rd4, [%rd1+16], 3, 0x500000000;")), "test.ptx");
    Run run(program);
    int64_t *out = run.memory.make<int64_t>(3);
    out[0] = 1, out[1] = -9, out[2] = 3;
    run.with(out).go();
    CHECK(out[0] == 0x100000001 && out[1] == -5 && out[2] == 0x500000000, "%llx %lld %llx",
        static_cast<unsigned long long>(out[0]), static_cast<long long>(out[1]),
        static_cast<unsigned long long>(out[2]));
}
