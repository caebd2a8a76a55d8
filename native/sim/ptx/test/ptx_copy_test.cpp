// Asynchronous copies (cp.async): what they bring, when it is there, and every way to use it too early.
#include <functional>

#include "fixtures.h"
#include "support.h"

using namespace ptxtest;

namespace {

// %rd2: the thread's 16 bytes of the source, %r6: its 16 bytes of shared memory, %r7: its neighbour's in the warp, %r8: those of
// a thread of another warp, %rd4: its 16 bytes of the result.
const char *const kHead = ".shared .align 16 .b8 tile[4096];\n.reg .pred %p<8>; .reg .b32 %r<24>; .reg .b64 %rd<16>;\n"
    "ld.param.u64 %rd1, [p0]; ld.param.u64 %rd3, [p1]; mov.u32 %r1, %tid.x; mad.wide.u32 %rd2, %r1, 16, %rd1; "
    "mad.wide.u32 %rd4, %r1, 16, %rd3; mov.u32 %r5, tile; mad.lo.u32 %r6, %r1, 16, %r5; xor.b32 %r7, %r1, 1; "
    "mad.lo.u32 %r7, %r7, 16, %r5; xor.b32 %r8, %r1, 32; mad.lo.u32 %r8, %r8, 16, %r5;\n";

const std::string kCopy = "cp.async.cg.shared.global [%r6], [%rd2], 16; ";
const std::string kCommit = "cp.async.commit_group; ";
const std::string kWait = "cp.async.wait_group 0; ";
const std::string kAll = "cp.async.wait_all; ";
const std::string kBarrier = "bar.sync 0; ";
const std::string kRead = "ld.shared.v4.u32 {%r10, %r11, %r12, %r13}, [%r6]; ";
const std::string kOut = "st.global.v4.u32 [%rd4], {%r10, %r11, %r12, %r13}; ";

struct Outcome {
    std::string fault;
    std::vector<uint32_t> out;
};

Outcome outcome(const std::string &code, const Order &order = Order(), uint32_t threads = 64, uint32_t blocks = 1) {
    Program program;
    program.load(file_of(kHead + code, ".param .u64 p0, .param .u64 p1"), "test.ptx");
    Run run(program);
    run.launch.block.x = threads;
    run.launch.grid.x = blocks;
    run.launch.order = order;
    uint32_t *in = run.memory.make<uint32_t>(256);
    uint32_t *out = run.memory.make<uint32_t>(256, 0);
    for (uint32_t i = 0; i < 256; ++i) in[i] = 0x01010101u * i + 7;
    Outcome result;
    result.fault = run.with(in).with(out).fault();
    result.out.assign(out, out + 256);
    return result;
}

uint32_t source(uint32_t i) { return 0x01010101u * i + 7; }

void faults(const std::string &code, const char *words, uint32_t threads = 64, uint32_t blocks = 1) {
    for (const Order &order : orders()) {
        const std::string fault = outcome(code, order, threads, blocks).fault;
        CHECK(has(fault, words), "%s, %s: '%s' instead of '%s'", code.c_str(), order_name(order).c_str(), fault.c_str(), words);
    }
}

void fine(const std::string &code, uint32_t threads = 64, uint32_t blocks = 1) {
    for (const Order &order : orders()) {
        const std::string fault = outcome(code, order, threads, blocks).fault;
        CHECK(fault.empty(), "%s, %s: '%s'", code.c_str(), order_name(order).c_str(), fault.c_str());
    }
}

// Each thread's result, if its first `bytes` are those of its source and the others zeros.
void brings(const std::string &code, unsigned bytes) {
    const Outcome o = outcome(code);
    CHECK(o.fault.empty(), "%s: %s", code.c_str(), o.fault.c_str());
    for (uint32_t i = 0; i < 256; ++i) {
        const unsigned before = i % 4 * 4;
        const unsigned of_word = bytes <= before ? 0 : bytes - before >= 4 ? 32 : (bytes - before) * 8;
        const uint32_t expected = source(i) & static_cast<uint32_t>(low_bits(of_word));
        CHECK(o.out[i] == expected, "%s, %u: %x instead of %x", code.c_str(), i, o.out[i], expected);
    }
}

const char *const kPending = "has not been waited for";

}  // namespace

TEST(copies_of_every_size) {
    brings(kCopy + kCommit + kWait + kRead + kOut, 16);
    brings("cp.async.ca.shared.global [%r6], [%rd2], 16; " + kAll + kRead + kOut, 16);
    brings("cp.async.cg.shared::cta.global.L2::128B [%r6], [%rd2], 16; " + kAll + kRead + kOut, 16);
    brings("mov.u64 %rd9, 0; cp.async.cg.shared.global.L2::cache_hint [%r6], [%rd2], 16, %rd9; " + kAll + kRead + kOut, 16);
    brings("mov.u64 %rd9, 0; cp.async.cg.shared.global.L2::cache_hint.L2::256B [%r6], [%rd2], 16, 16, %rd9; " + kAll + kRead +
               kOut, 16);
    brings("cp.async.ca.shared.global [%r6], [%rd2], 8; cp.async.ca.shared.global.L2::64B [%r6+8], [%rd2+8], 8; " + kAll + kRead +
               kOut, 16);
    brings("cp.async.ca.shared.global [%r6], [%rd2], 4; cp.async.ca.shared.global [%r6+4], [%rd2+4], 4; "
           "cp.async.ca.shared.global [%r6+8], [%rd2+8], 4; cp.async.ca.shared.global [%r6+12], [%rd2+12], 4; " + kAll + kRead +
               kOut, 16);
}

TEST(what_is_not_read_is_zero) {
    for (unsigned bytes = 0; bytes <= 16; ++bytes) {
        brings("cp.async.cg.shared.global [%r6], [%rd2], 16, " + std::to_string(bytes) + "; " + kAll + kRead + kOut, bytes);
    }
    brings("mov.u32 %r9, 5; cp.async.ca.shared.global [%r6], [%rd2], 8, %r9; cp.async.ca.shared.global [%r6+8], [%rd2], 8, 0; " +
               kAll + kRead + kOut, 5);
    brings("setp.ge.u32 %p1, %r1, 0; cp.async.cg.shared.global [%r6], [%rd2], 16, %p1; " + kAll + kRead + kOut, 0);
    brings("setp.lt.u32 %p1, %r1, 0; cp.async.cg.shared.global [%r6], [%rd2], 16, %p1; " + kAll + kRead + kOut, 16);
    // What is not read is not there: no address is looked at.
    brings("mov.u64 %rd9, 4096; cp.async.cg.shared.global [%r6], [%rd9], 16, 0; " + kAll + kRead + kOut, 0);
    faults("mov.u32 %r9, 17; cp.async.cg.shared.global [%r6], [%rd2], 16, %r9; " + kAll, "wants to read 17");
}

TEST(nothing_is_there_before_the_wait) {
    faults(kCopy + kRead + kAll, kPending);
    faults(kCopy + kCommit + kRead + kAll, kPending);
    faults(kCopy + kBarrier + kRead + kAll, kPending);
    // Old content is no excuse, for whom it ever belongs to.
    const std::string zero = "st.shared.u32 [%r6], 0; st.shared.u32 [%r6+4], 0; " + kBarrier;
    faults(zero + kCopy + "ld.shared.u32 %r9, [%r6+4]; " + kAll, kPending);
    faults(zero + kCopy + kBarrier + "ld.shared.u32 %r9, [%r7+4]; " + kBarrier + kAll, kPending);
    faults(zero + kCopy + kBarrier + "ld.shared.u32 %r9, [%r8+4]; " + kBarrier + kAll, kPending);
    faults(kCopy + kBarrier + "ld.shared.u8 %r9, [%r6+15]; " + kAll, kPending);
    // What is beside it is free.
    fine("cp.async.ca.shared.global [%r6], [%rd2], 8; st.shared.u32 [%r6+8], 1; ld.shared.u32 %r9, [%r6+8]; " + kAll);
}

TEST(nobody_writes_what_is_copied) {
    faults(kCopy + "st.shared.u32 [%r6+8], 1; " + kAll, kPending);
    faults(kCopy + kBarrier + "st.shared.u32 [%r8+8], 1; " + kBarrier + kAll, kPending);
    faults(kCopy + "atom.shared.add.u32 %r9, [%r6], 1; " + kAll, kPending);
    faults(kCopy + kCopy + kAll, kPending);
    faults(kCopy + kBarrier + "cp.async.ca.shared.global [%r7+4], [%rd2], 4; " + kBarrier + kAll, kPending);
    fine(kCopy + kAll + "st.shared.u32 [%r6+8], 1; " + kCopy + kAll);
    // A write before the copy, which then belongs to somebody else.
    faults("st.shared.u32 [%r8], 1; " + kCopy + kAll, "race");
    fine("st.shared.u32 [%r8], 1; " + kBarrier + kCopy + kAll);
    // A read before it: the buffer is used again too early.
    const std::string first = kCopy + kAll + kBarrier + "ld.shared.u32 %r9, [%r8]; ";
    faults(first + kCopy + kAll, "race");
    fine(first + kBarrier + kCopy + kAll);
}

TEST(groups) {
    const std::string two = "cp.async.ca.shared.global [%r6], [%rd2], 8; " + kCommit +
                            "cp.async.ca.shared.global [%r6+8], [%rd2+8], 8; " + kCommit;
    const std::string first = "ld.shared.u32 %r9, [%r6]; ", second = "ld.shared.u32 %r9, [%r6+8]; ";
    fine(two + "cp.async.wait_group 1; " + first + kWait + second);
    faults(two + "cp.async.wait_group 2; " + first + kWait, kPending);
    faults(two + "cp.async.wait_group 1; " + second + kWait, kPending);
    fine(two + "cp.async.wait_group 0; " + first + second);
    fine(two + "cp.async.wait_group 7; cp.async.wait_group 1; " + first + kAll);
    // A copy that is in no group yet is only waited for by wait_all.
    faults(kCopy + kWait + kRead + kAll, kPending);
    faults("cp.async.ca.shared.global [%r6], [%rd2], 8; " + kCommit + "cp.async.ca.shared.global [%r6+8], [%rd2+8], 8; " + kWait +
               second + kAll, kPending);
    fine(kCopy + kAll + kRead);
    // An empty group counts.
    faults(two + kCommit + "cp.async.wait_group 2; " + second + kWait, kPending);
    fine(two + kCommit + "cp.async.wait_group 1; " + first + second);
    fine(two + kCommit + kCommit + "cp.async.wait_group 2; " + first + second);
    fine(kCommit + kWait);
    // A thread's wait is for its own copies.
    faults("setp.ne.u32 %p1, %r1, 0; @%p1 bra REST; " + kCopy + "bra MEET; REST: " + kAll + "MEET: " + kBarrier +
               "ld.shared.u32 %r9, [tile]; " + kAll, kPending);
}

TEST(after_the_wait_others_need_a_barrier) {
    const std::string zero = "st.shared.v4.u32 [%r6], {%r1, %r1, %r1, %r1}; " + kBarrier;
    const std::string other = "ld.shared.u32 %r9, [%r8]; ";
    fine(zero + kCopy + kAll + kBarrier + other);
    // Some orders find the other's copy unfinished, others its end without a barrier.
    for (const Order &order : orders()) {
        const std::string fault = outcome(zero + kCopy + kAll + other, order).fault;
        CHECK(has(fault, "race"), "%s: '%s'", order_name(order).c_str(), fault.c_str());
    }
    const std::string pair = zero + kCopy + kAll + "vote.sync.any.pred %p2, %p1, -1; ld.shared.u32 %r9, [%r7]; ";
    faults(pair, "with no barrier between the two", 32);
    fine(zero + kCopy + kAll + "bar.warp.sync -1; ld.shared.u32 %r9, [%r7]; ", 32);
    // The barrier before the wait shows nothing.
    faults(zero + kCopy + kBarrier + kAll + "vote.sync.any.pred %p2, %p1, -1; ld.shared.u32 %r9, [%r7]; ", "race", 32);
}

TEST(a_copy_must_be_waited_for) {
    faults(kCopy + "ret;", "ends while a copy");
    faults(kCopy + kCommit + "exit;", kPending);
    faults("setp.eq.u32 %p1, %r1, 40; @!%p1 ret; " + kCopy, kPending);
    fine(kCommit);
    fine(kCopy + kAll, 64, 3);  // nothing is left for the next block
}

TEST(the_source_of_a_copy) {
    // It is read: others must not write it, before or after.
    const std::string own = "st.global.u32 [%rd2], 5; ";
    const std::string neighbours = "xor.b32 %r9, %r1, 33; mad.wide.u32 %rd5, %r9, 16, %rd1; st.global.u32 [%rd5+4], 5; ";
    faults(neighbours + kCopy + kAll, "race");
    fine(neighbours + kBarrier + kCopy + kAll);
    faults(kCopy + kAll + neighbours, "race");
    fine(kCopy + kAll + kBarrier + neighbours);
    // A barrier does not finish the copy.
    faults(kCopy + kBarrier + neighbours + kBarrier + kAll, "whose source was written meanwhile");
    faults(kCopy + own + kAll, "whose source was written meanwhile");
    fine(own + kCopy + kAll + own);
    faults("setp.eq.u32 %p1, %r1, 0; @%p1 st.global.u32 [%rd1], %r1; " + kBarrier + kCopy + kAll, "race", 32, 2);
}

TEST(addresses_of_copies) {
    faults("cp.async.cg.shared.global [%r6+8], [%rd2], 16; " + kAll, "8 more than a multiple of 16");
    faults("cp.async.cg.shared.global [%r6], [%rd2+4], 16; " + kAll, "4 more than a multiple of 16");
    faults("cp.async.ca.shared.global [%r6+4], [%rd2], 8; " + kAll, "4 more than a multiple of 8");
    faults("cp.async.ca.shared.global [%r6], [%rd2+2], 4; " + kAll, "2 more than a multiple of 4");
    faults("cp.async.cg.shared.global [tile+4096], [%rd2], 16; " + kAll, "shared memory at offset 4096 of tile");
    faults("cp.async.cg.shared.global [%r6], [%rd2+1024], 16; " + kAll, "nobody's");
    faults("cp.async.cg.shared.global [%r6], [0], 16; " + kAll, "nobody's");
    // The last bytes of an allocation: as many as there are may be read.
    Program program;
    program.load(file_of(std::string(kHead) + "cp.async.cg.shared.global [%r6], [%rd1], 16, 12; " + kAll + kRead + kOut,
                         ".param .u64 p0, .param .u64 p1"), "test.ptx");
    Run run(program);
    run.with(run.memory.make<uint32_t>(3, 9)).with(run.memory.make<uint32_t>(4));
    CHECK(run.fault().empty(), "%s", run.fault().c_str());
    Run longer(program);
    longer.with(longer.memory.make<uint32_t>(2, 9)).with(longer.memory.make<uint32_t>(4));
    CHECK(has(longer.fault(), "12 bytes at offset 0 of an allocation of 8"), "%s", longer.fault().c_str());
}

TEST(forms_that_do_not_exist) {
    const auto refused = [](const std::string &code) {
        const std::string words = refusal(file_of(kHead + code, ".param .u64 p0, .param .u64 p1"));
        CHECK(!words.empty(), "%s", code.c_str());
    };
    refused("cp.async.cg.shared.global [%r6], [%rd2], 8;");
    refused("cp.async.ca.shared.global [%r6], [%rd2], 2;");
    refused("cp.async.ca.shared.global [%r6], [%rd2], %r1;");
    refused("cp.async.shared.global [%r6], [%rd2], 16;");
    refused("cp.async.ca.global.global [%r6], [%rd2], 16;");
    refused("cp.async.ca.shared.global [%r6], [%rd2];");
    refused("cp.async.ca.shared.global.L3 [%r6], [%rd2], 16;");
    refused("cp.async.wait_group %r1;");
    refused("cp.async.bulk.shared::cluster.global [%r6], [%rd2], 16;");
    refused("cp.async.mbarrier.arrive.shared.b64 [%r6];");
}

// ---- kernels compiled by nvcc

namespace {

void pair(const std::string &name, const char *words, const std::function<void(Run &)> &prepare) {
    for (const std::string &file : fixture_files("copies")) {
        Program program;
        program.load_file(file);
        for (const Order &order : orders()) {
            for (const bool bug : {false, true}) {
                Run run(program, name + (bug ? "_wrong" : "_right"));
                run.launch.order = order;
                run.launch.block.x = 64;
                prepare(run);
                const std::string fault = run.fault();
                const std::string where = file + " " + name + ", " + order_name(order);
                if (!bug) CHECK(fault.empty(), "%s is right: %s", where.c_str(), fault.c_str());
                else CHECK(has(fault, words), "%s: '%s' instead of '%s'", where.c_str(), fault.c_str(), words);
            }
        }
    }
}

void two_arrays(Run &run) { run.with(run.memory.make<float>(256, 1.0f)).with(run.memory.make<float>(64)); }
void slices(Run &run) { run.with(run.memory.make<float>(5 * 64, 1.0f)).with(run.memory.make<float>(64)).with(5); }

}  // namespace

TEST(bugs_in_compiled_kernels) {
    pair("copy_and_wait", kPending, two_arrays);
    pair("copy_and_barrier", "", two_arrays);
    pair("ring_wait", kPending, slices);
    pair("ring_reuse", "race", slices);
    pair("copy_and_leave", kPending, two_arrays);
    pair("copy_aligned", "4 more than a multiple of 16", two_arrays);
}

TEST(a_ring_of_copies_sums_what_it_should) {
    for (const std::string &file : fixture_files("copies")) {
        Program program;
        program.load_file(file);
        for (const Order &order : orders()) {
            Run run(program, "ring_wait_right");
            run.launch.order = order;
            run.launch.block.x = 64;
            float *x = run.memory.make<float>(5 * 64);
            float *y = run.memory.make<float>(64);
            for (int i = 0; i < 5 * 64; ++i) x[i] = static_cast<float>(i * i % 97);
            run.with(x).with(y).with(5).go();
            for (int t = 0; t < 64; ++t) {
                float sum = 0.0f;
                for (int s = 0; s < 5; ++s) sum += x[s * 64 + 63 - t];
                CHECK(y[t] == sum, "%d: %g instead of %g", t, static_cast<double>(y[t]), static_cast<double>(sum));
            }
        }
    }
}
