// The race detector: each kind of missing synchronization is reported in every order of execution, and its correction is
// not.
#include "support.h"

using namespace ptxtest;

namespace {

const char *const kHead = ".shared .align 16 .b8 tile[4096];\n.reg .pred %p<8>; .reg .b16 %h<4>; .reg .b32 %r<16>; "
    ".reg .b64 %rd<16>;\nld.param.u64 %rd1, [p0]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; "
                          "mov.u32 %r3, %ntid.x; mad.lo.u32 %r4, %r2, %r3, %r1; mul.wide.u32 %rd2, %r4, 4; "
                              "add.u64 %rd2, %rd1, %rd2;\n"
                          "mov.u32 %r5, tile; mad.lo.u32 %r6, %r1, 4, %r5; xor.b32 %r7, %r1, 1; "
                              "mad.lo.u32 %r7, %r7, 4, %r5; xor.b32 %r8, %r1, 32; mad.lo.u32 %r8, %r8, 4, %r5;\n";
// %r6: the thread's own word of shared memory, %r7: its neighbour's in the warp, %r8: one of another warp.

std::string fault_of(const std::string &code, uint32_t threads, uint32_t blocks, const Order &order) {
    Program program;
    program.load(file_of(kHead + code), "test.ptx");
    Run run(program);
    run.launch.block.x = threads;
    run.launch.grid.x = blocks;
    run.launch.order = order;
    uint32_t *out = run.memory.make<uint32_t>(1024, 0);
    return run.with(out).fault();
}

void race(const std::string &code, uint32_t threads = 64, uint32_t blocks = 1, const char *words = "race") {
    for (const Order &order : orders()) {
        const std::string fault = fault_of(code, threads, blocks, order);
        CHECK(has(fault, words), "%s, %s: '%s'", code.c_str(), order_name(order).c_str(), fault.c_str());
    }
}

void fine(const std::string &code, uint32_t threads = 64, uint32_t blocks = 1) {
    for (const Order &order : orders()) {
        const std::string fault = fault_of(code, threads, blocks, order);
        CHECK(fault.empty(), "%s, %s: '%s'", code.c_str(), order_name(order).c_str(), fault.c_str());
    }
}

const std::string kWriteOwn = "st.shared.u32 [%r6], %r1; ";
const std::string kBarrier = "bar.sync 0; ";
const std::string kWarp = "bar.warp.sync -1; ";

}  // namespace

TEST(a_read_of_what_another_warp_wrote_needs_a_barrier) {
    const std::string zero = kWriteOwn + kBarrier;  // no thread reads an unwritten word
    race(zero + kWriteOwn + "ld.shared.u32 %r9, [%r8];");
    fine(kWriteOwn + kBarrier + "ld.shared.u32 %r9, [%r8];");
    // A warp barrier does not synchronize two warps.
    race(zero + kWriteOwn + kWarp + "ld.shared.u32 %r9, [%r8];");
}

TEST(a_read_of_what_another_lane_wrote_needs_a_warp_barrier) {
    const std::string zero = kWriteOwn + kBarrier;
    race(zero + kWriteOwn + "ld.shared.u32 %r9, [%r7];", 32);
    fine(kWriteOwn + kWarp + "ld.shared.u32 %r9, [%r7];");
    // Shuffles and votes synchronize lanes, but order no memory accesses.
    race(zero + kWriteOwn + "shfl.sync.bfly.b32 %r10, %r1, 1, 31, -1; ld.shared.u32 %r9, [%r7];", 32);
    race(zero + kWriteOwn + "vote.sync.ballot.b32 %r10, %p1, -1; ld.shared.u32 %r9, [%r7];", 32);
}

TEST(a_warp_barrier_covers_the_lanes_of_its_mask) {
    const std::string zero = kWriteOwn + kBarrier;
    // Lanes synchronize in halves; the neighbour is in the same half, lane ^ 16 is not.
    const std::string halves = "setp.lt.u32 %p1, %r1, 16; selp.u32 %r10, 0xffff, 0xffff0000, %p1; bar.warp.sync %r10; ";
    fine(zero + kWriteOwn + halves + "ld.shared.u32 %r9, [%r7];", 32);
    const std::string across = "xor.b32 %r11, %r1, 16; mad.lo.u32 %r11, %r11, 4, %r5; ld.shared.u32 %r9, [%r11];";
    race(zero + kWriteOwn + halves + across, 32);
    // Two steps reach all lanes: first in halves, then in pairs across the halves.
    const std::string in_pairs = "and.b32 %r12, %r1, 15; mov.u32 %r13, 0x10001; shl.b32 %r12, %r13, %r12; "
        "bar.warp.sync %r12; ";
    fine(zero + kWriteOwn + halves + in_pairs + across, 32);
}

TEST(a_write_after_anothers_read_needs_a_barrier) {
    race(kWriteOwn + kBarrier + "ld.shared.u32 %r9, [%r8]; " + kWriteOwn);
    fine(kWriteOwn + kBarrier + "ld.shared.u32 %r9, [%r8]; " + kBarrier + kWriteOwn);
    // All threads read word 0, and one of them writes it.
    const std::string broadcast = kWriteOwn + kBarrier + "ld.shared.u32 %r9, [tile]; ";
    const std::string one_writes = "setp.eq.u32 %p1, %r1, 40; @%p1 st.shared.u32 [tile], 5; ";
    race(broadcast + one_writes);
    fine(broadcast + kBarrier + one_writes);
}

TEST(two_writes_need_a_barrier_even_of_one_value) {
    race("st.shared.u32 [tile], 1;", 2);
    race("mov.u32 %r9, 3; st.global.u32 [%rd1], %r9;", 64);
    fine("setp.eq.u32 %p1, %r1, 0; @%p1 st.shared.u32 [tile], 1; bar.sync 0; setp.eq.u32 %p1, %r1, 33; "
        "@%p1 st.shared.u32 [tile], 1;", 64);
}

TEST(vectors_and_halves_of_words) {
    // Neighbours write the two halves of a word: no race, in shared and in global memory.
    const std::string halves = "mad.lo.u32 %r9, %r1, 2, %r5; cvt.u16.u32 %h1, %r1; st.shared.u16 [%r9], %h1; "
        "mul.wide.u32 %rd3, %r1, 2; add.u64 %rd3, %rd1, %rd3; st.global.u16 [%rd3], %h1; ";
    fine(halves);
    // The same where whole words were written before.
    fine(kWriteOwn + "st.global.u32 [%rd2], %r1; " + kBarrier + halves);
    race(kWriteOwn + kBarrier + halves + "setp.ge.u32 %p1, %r1, 32; @%p1 bra E; ld.shared.u32 %r11, [%r6]; E: ret;");
    fine(halves + "bar.sync 0; setp.ge.u32 %p1, %r1, 32; @%p1 bra E; ld.shared.u32 %r11, [%r6]; E: ret;");
    // An access of 16 bytes that overlaps another thread's 4.
    race("mad.lo.u32 %r9, %r1, 16, %r5; st.shared.v4.u32 [%r9], {%r1, %r1, %r1, %r1}; setp.eq.u32 %p1, %r1, 5; "
        "@%p1 st.shared.u32 [tile+28], %r1;");
    fine("mad.lo.u32 %r9, %r1, 16, %r5; st.shared.v4.u32 [%r9], {%r1, %r1, %r1, %r1}; setp.eq.u32 %p1, %r1, 5; "
        "@%p1 st.shared.u32 [tile+92], %r1;");
}

TEST(global_memory_within_a_block) {
    race("st.global.u32 [%rd2], %r1; xor.b32 %r9, %r1, 33; mul.wide.u32 %rd3, %r9, 4; add.u64 %rd3, %rd1, %rd3; "
        "ld.global.u32 %r10, [%rd3];");
    fine("st.global.u32 [%rd2], %r1; bar.sync 0; xor.b32 %r9, %r1, 33; mul.wide.u32 %rd3, %r9, 4; "
        "add.u64 %rd3, %rd1, %rd3; ld.global.u32 %r10, [%rd3];");
}

TEST(blocks_must_not_touch_what_others_write) {
    fine("st.global.u32 [%rd2], %r1; ld.global.u32 %r9, [%rd2];", 32, 4);
    race("setp.eq.u32 %p1, %r1, 0; @%p1 st.global.u32 [%rd1], %r2;", 32, 2, "nothing orders blocks");
    race("setp.eq.u32 %p1, %r4, 0; @%p1 st.global.u32 [%rd1], 5; bar.sync 0; ld.global.u32 %r9, [%rd1];", 32, 2);
    race("ld.global.u32 %r9, [%rd1]; bar.sync 0; setp.eq.u32 %p1, %r4, 33; @%p1 st.global.u32 [%rd1], 5;", 32, 2);
    fine("ld.global.u32 %r9, [%rd1];", 32, 8);
}

TEST(a_sum_of_all_needs_atomics) {
    race("ld.global.u32 %r9, [%rd1]; add.u32 %r9, %r9, 1; st.global.u32 [%rd1], %r9;", 64);
    fine("atom.global.add.u32 %r9, [%rd1], 1;", 64, 4);
    fine("red.global.add.u32 [%rd1], 1;", 64, 4);
    // A thread that reads the sum without an atomic while others may still add to it.
    race("atom.global.add.u32 %r9, [%rd1], 1; setp.eq.u32 %p1, %r1, 7; @%p1 ld.global.u32 %r10, [%rd1];", 64);
    fine("atom.global.add.u32 %r9, [%rd1], 1; bar.sync 0; ld.global.u32 %r10, [%rd1];", 64);
    race("atom.global.add.u32 %r9, [%rd1], 1; bar.sync 0; ld.global.u32 %r10, [%rd1];", 64, 2);
    race("setp.eq.u32 %p1, %r1, 0; @%p1 st.global.u32 [%rd1], 0; atom.global.add.u32 %r9, [%rd1], 1;", 64);
    // A vote synchronizes the lanes, so that the plain access comes last in every order; it is still a race.
    const std::string atomics = "atom.global.add.u32 %r9, [%rd1], 1; vote.sync.any.pred %p2, %p1, -1; "
        "setp.eq.u32 %p1, %r1, 7; ";
    race(atomics + "@%p1 ld.global.u32 %r10, [%rd1];", 32);
    race(atomics + "@%p1 st.global.u32 [%rd1], 5;", 32);
    fine(atomics + kWarp + "@%p1 ld.global.u32 %r10, [%rd1];", 32);
    fine("setp.eq.u32 %p1, %r1, 0; @%p1 st.global.u32 [%rd1], 0; bar.sync 0; atom.global.add.u32 %r9, [%rd1], 1;", 64);
}

TEST(the_last_block_reads_what_fences_and_an_atomic_order) {
    // Each block stores a number, and the last one to arrive sums them all.
    const std::string leave = "mul.wide.u32 %rd3, %r2, 4; add.u64 %rd3, %rd1, %rd3; st.global.u32 [%rd3+64], %r2; ";
    const std::string fence = "membar.gl; ";
    const std::string ticket = "atom.global.add.u32 %r9, [%rd1], 1; mov.u32 %r10, %nctaid.x; sub.u32 %r10, %r10, 1; "
        "setp.ne.u32 %p1, %r9, %r10; @%p1 ret; ";
    const std::string sum = "mov.u32 %r11, 0; mov.u32 %r12, 0;\nNEXT: mul.wide.u32 %rd4, %r12, 4; "
        "add.u64 %rd4, %rd1, %rd4; ld.global.u32 %r13, [%rd4+64]; add.u32 %r11, %r11, %r13; add.u32 %r12, %r12, 1; "
        "setp.lt.u32 %p2, %r12, 8; @%p2 bra NEXT; st.global.u32 [%rd1+4], %r11;";
    fine(leave + fence + ticket + fence + sum, 1, 8);
    race(leave + ticket + fence + sum, 1, 8);
    race(leave + fence + ticket + sum, 1, 8);
    // All threads of the block store numbers; barriers let thread 0 release them and acquire those of others for the whole
    // block.
    const std::string all = "st.global.u32 [%rd2+1024], %r1; ";
    const std::string by_one = "setp.ne.u32 %p3, %r1, 0; @%p3 bra WAIT; membar.gl; atom.global.add.u32 %r9, [%rd1], 1; "
        "membar.gl; st.shared.u32 [tile], %r9;\nWAIT: bar.sync 0; ld.shared.u32 %r9, [tile]; "
                               "mov.u32 %r10, %nctaid.x; sub.u32 %r10, %r10, 1; setp.ne.u32 %p1, %r9, %r10; @%p1 ret; ";
    const std::string read = "mul.wide.u32 %rd5, %r1, 4; add.u64 %rd5, %rd1, %rd5; ld.global.u32 %r13, [%rd5+1024]; "
        "ld.global.u32 %r13, [%rd5+1152]; ld.global.u32 %r13, [%rd5+1280];";
    fine(all + kBarrier + by_one + read, 32, 3);
    race(all + by_one + read, 32, 3);
}

TEST(read_only_means_for_the_whole_launch) {
    fine("ld.global.nc.u32 %r9, [%rd2]; st.global.u32 [%rd2+1024], %r9;", 64, 2);
    race("ld.global.nc.u32 %r9, [%rd2]; st.global.u32 [%rd2], %r9;", 1, 1, "read-only");
    race("st.global.u32 [%rd2], %r1; ld.global.nc.u32 %r9, [%rd2];", 1, 1, "read-only");
    race("ld.global.nc.u32 %r9, [%rd2]; atom.global.add.u32 %r9, [%rd2], 1;", 1, 1, "read-only");
}

TEST(a_report_names_both_sides) {
    Program program;
    program.load(file_of(kHead + std::string("\nst.shared.u32 [%r6], %r1;\nbar.sync 0;\nst.shared.u32 [%r6], %r1;\n"
        "ld.shared.u32 %r9, [%r8];")), "test.ptx");
    Run run(program);
    run.launch.block.x = 64;
    const std::string words = run.with(run.memory.make<uint32_t>(64)).fault();
    // In forward order, thread 32 writes a word that thread 0 has already read.
    CHECK(has(words, "that thread 0 of this block reads") && run.last_thread.x == 32 && run.last_line == 13,
        "line %u: %s", run.last_line, words.c_str());
    run.launch.order.kind = Order::Kind::random;
    bool found = false;
    for (uint64_t seed = 0; seed < 50 && !found; ++seed) {
        run.launch.order.seed = seed;
        const std::string other = run.fault();
        found = has(other, "reads 4 bytes");
        if (found) CHECK(has(other, "in line 13") && run.last_line == 14, "line %u: %s", run.last_line, other.c_str());
    }
    CHECK(found, "no order shows the other side");
}

TEST(the_same_order_gives_the_same_report) {
    for (const Order &order : orders()) {
        const std::string code = kWriteOwn + kBarrier + kWriteOwn + "ld.shared.u32 %r9, [%r8];";
        CHECK(fault_of(code, 64, 2, order) == fault_of(code, 64, 2, order), "%s", order_name(order).c_str());
    }
}
