// Barriers, shuffles and votes: their results, and the errors in their use that are found.
#include "support.h"

using namespace ptxtest;

namespace {

const char *const kHead = ".reg .pred %p<8>; .reg .b32 %r<24>; .reg .b64 %rd<8>;\nld.param.u64 %rd1, [p0]; "
    "mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd2, %rd1, %rd2;\n";

struct Outcome {
    std::string fault;
    std::vector<uint32_t> out;
    unsigned line = 0;
    uint32_t thread = 0;
};

Outcome outcome(const std::string &code, uint32_t threads, const Order &order = Order()) {
    Program program;
    program.load(file_of(kHead + code), "test.ptx");
    Run run(program);
    run.launch.block.x = threads;
    run.launch.order = order;
    uint32_t *out = run.memory.make<uint32_t>(threads, 0);
    run.with(out);
    Outcome result;
    result.fault = run.fault();
    result.out.assign(out, out + threads);
    result.line = run.last_line;
    result.thread = run.last_thread.x;
    return result;
}

void faults(const std::string &code, uint32_t threads, const char *words) {
    for (const Order &order : orders()) {
        const Outcome o = outcome(code, threads, order);
        CHECK(has(o.fault, words), "%s: '%s' instead of '%s'", order_name(order).c_str(), o.fault.c_str(), words);
    }
}

}  // namespace

TEST(shuffles_of_every_mode_and_segment) {
    for (const Order &order : orders()) {
        for (const char *mode : {"up", "down", "bfly", "idx"}) {
            for (const unsigned segment : {32u, 16u, 8u, 4u, 1u}) {
                for (const unsigned b : {0u, 1u, 2u, 5u, 16u, 31u}) {
                    const std::string m = mode;
                    const unsigned clamp = m == "up" ? 0 : 31;
                    const unsigned c = (32 - segment) << 8 | clamp;
                    const Outcome o = outcome("mad.lo.u32 %r2, %r1, 10, 7; "
                        "shfl.sync." + m + ".b32 %r3|%p1, %r2, " + std::to_string(b) + ", " + std::to_string(c) +
                                                  ", -1; selp.u32 %r4, 10000, 0, %p1; add.u32 %r3, %r3, %r4; "
                                                      "st.global.u32 [%rd2], %r3;", 64, order);
                    CHECK(o.fault.empty(), "%s", o.fault.c_str());
                    for (unsigned t = 0; t < 64; ++t) {
                        // As the description of CUDA's __shfl_*_sync with a width defines it.
                        const unsigned lane = t % 32, first = lane / segment * segment;
                        long from = lane;
                        if (m == "up") from = static_cast<long>(lane) - b;
                        if (m == "down") from = lane + b;
                        if (m == "bfly") from = lane ^ b;
                        if (m == "idx") from = first + b % segment;
                        const bool inside = m == "up" ? from >= static_cast<long>(first)
                            : from < static_cast<long>(first + segment);
                        const unsigned source = t - lane + (inside ? static_cast<unsigned>(from) : lane);
                        const uint32_t right = source * 10 + 7 + (inside ? 10000 : 0);
                        CHECK(o.out[t] == right, "%s width %u by %u, thread %u: %u, not %u", mode, segment, b, t,
                            o.out[t], right);
                    }
                }
            }
        }
    }
}

TEST(votes) {
    for (const Order &order : orders()) {
        const Outcome o = outcome("setp.gt.u32 %p1, %r1, 40; vote.sync.ballot.b32 %r2, %p1, -1; "
            "vote.sync.any.pred %p2, %p1, -1; vote.sync.all.pred %p3, !%p1, -1; vote.sync.uni.pred %p4, %p1, -1; "
                                  "popc.b32 %r2, %r2; @%p2 add.u32 %r2, %r2, 100; @%p3 add.u32 %r2, %r2, 1000; "
                                      "@%p4 add.u32 %r2, %r2, 10000; st.global.u32 [%rd2], %r2;", 96, order);
        for (unsigned t = 0; t < 96; ++t) {
            const uint32_t right = t < 32 ? 11000 : t < 64 ? 23 + 100 : 32 + 100 + 10000;
            CHECK(o.out[t] == right, "%s %u: %u", order_name(order).c_str(), t, o.out[t]);
        }
    }
}

TEST(part_of_a_warp_can_vote_by_itself) {
    for (const Order &order : orders()) {
        const Outcome o = outcome("and.b32 %r2, %r1, 1; setp.eq.u32 %p1, %r2, 0; @%p1 bra EVEN; "
            "setp.gt.u32 %p2, %r1, 20; vote.sync.ballot.b32 %r3, %p2, 0xaaaaaaaa; bra END;\n"
                                  "EVEN: setp.lt.u32 %p2, %r1, 4; vote.sync.ballot.b32 %r3, %p2, 0x55555555;\n"
                                      "END: bar.warp.sync -1; st.global.u32 [%rd2], %r3;", 32, order);
        CHECK(o.fault.empty(), "%s", o.fault.c_str());
        for (unsigned t = 0; t < 32; ++t) CHECK(o.out[t] == (t % 2 ? 0xaaa00000 : 5), "%u: %x", t, o.out[t]);
    }
}

TEST(barriers_that_vote) {
    for (const Order &order : orders()) {
        const Outcome o = outcome("setp.lt.u32 %p1, %r1, 70; bar.red.popc.u32 %r2, 0, %p1; "
            "bar.red.and.pred %p2, 0, %p1; bar.red.or.pred %p3, 0, !%p1; barrier.sync.aligned 0; "
                                  "@%p2 add.u32 %r2, %r2, 1000; @%p3 add.u32 %r2, %r2, 2000; "
                                      "st.global.u32 [%rd2], %r2;", 100, order);
        CHECK(o.fault.empty(), "%s", o.fault.c_str());
        for (unsigned t = 0; t < 100; ++t) CHECK(o.out[t] == 2070, "%s %u: %u", order_name(order).c_str(), t, o.out[t]);
    }
}

TEST(only_the_asking_lane_is_surely_active) {
    const Outcome o = outcome("activemask.b32 %r2; st.global.u32 [%rd2], %r2;", 40);
    for (unsigned t = 0; t < 40; ++t) CHECK(o.out[t] == 1u << t % 32, "%u: %x", t, o.out[t]);
}

TEST(a_divergent_barrier_is_a_fault) {
    const std::string code = "setp.lt.u32 %p1, %r1, 16; @%p1 bra OTHER;\nbar.sync 0; ret;\nOTHER: bar.sync 0; ret;";
    faults(code, 64, "divergent barrier");
    CHECK(outcome("setp.lt.u32 %p1, %r1, 64; @%p1 bra OTHER;\nbar.sync 0; ret;\nOTHER: bar.sync 0; "
        "ret;", 64).fault.empty(), "all take one way");
}

TEST(an_exited_thread_at_a_barrier_is_a_fault) {
    faults("setp.eq.u32 %p1, %r1, 33; @%p1 ret; bar.sync 0; st.global.u32 [%rd2], 1;", 64, "has exited");
    CHECK(outcome("bar.sync 0; setp.eq.u32 %p1, %r1, 33; @%p1 ret; "
        "st.global.u32 [%rd2], 1;", 64).fault.empty(), "afterwards it may");
}

TEST(a_barrier_only_some_reach_is_a_fault) {
    // The others wait for lanes that are at the barrier.
    faults("setp.lt.u32 %p1, %r1, 16; @%p1 bar.sync 0; bar.warp.sync -1; "
        "@!%p1 bar.sync 0;", 32, "waits at the barrier");
}

TEST(a_lane_must_be_in_its_own_mask) {
    faults("shfl.sync.bfly.b32 %r2, %r1, 1, 31, 0x0000ffff;", 32, "not in its own mask");
    faults("setp.eq.u32 %p1, %r1, 0; vote.sync.any.pred %p2, %p1, 0xfffffffe;", 32, "not in its own mask");
    faults("bar.warp.sync 0x7fffffff;", 32, "not in its own mask");
}

TEST(a_mask_must_name_lanes_that_are_there) {
    faults("shfl.sync.down.b32 %r2, %r1, 1, 31, -1;", 48, "does not have");
    CHECK(outcome("shfl.sync.bfly.b32 %r2, %r1, 1, 31, 0xffff; "
        "st.global.u32 [%rd2], %r2;", 16).fault.empty(), "the right mask for half a warp");
    faults("setp.eq.u32 %p1, %r1, 5; @%p1 ret; shfl.sync.down.b32 %r2, %r1, 1, 31, -1;", 32, "has exited");
    faults("setp.eq.u32 %p1, %r1, 5; @%p1 exit; vote.sync.ballot.b32 %r2, %p1, -1;", 32, "has exited");
}

TEST(a_shuffle_must_read_from_its_mask) {
    faults("setp.lt.u32 %p1, %r1, 16; @!%p1 ret; shfl.sync.down.b32 %r2, %r1, 8, 31, 0xffff;", 32, "does not name");
    CHECK(outcome("setp.lt.u32 %p1, %r1, 16; @!%p1 ret; "
        "shfl.sync.down.b32 %r2, %r1, 8, 0x100f, 0xffff;", 32).fault.empty(), "a segment of 16 keeps inside");
}

TEST(lanes_that_disagree_are_a_fault) {
    faults("setp.lt.u32 %p1, %r1, 16; @%p1 bra OTHER; shfl.sync.down.b32 %r2, %r1, 1, 31, -1; ret;\n"
        "OTHER: shfl.sync.up.b32 %r2, %r1, 1, 0, -1; ret;", 32, "for lane");
    faults("selp.u32 %r3, 0, 0, %p1; setp.lt.u32 %p1, %r1, 16; selp.u32 %r3, 0xffff, -1, %p1; "
        "vote.sync.any.pred %p2, %p1, %r3;", 32, "names lane");
}
