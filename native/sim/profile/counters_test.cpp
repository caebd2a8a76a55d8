// The counters of a profile against counts made by hand.
#include <algorithm>
#include <string>

#include "counters.h"
#include "figures.h"
#include "support.h"

using namespace ptxtest;
using fcm::profile::Class;
using fcm::profile::Counters;
using fcm::profile::Counts;
using fcm::profile::KernelCounts;
using fcm::profile::WarpAccess;

namespace {

// %r1 is the thread, %rd1 an aligned global address with 64 KiB, `shared` 16 KiB that have been written.
const char *const kStart = R"(
    .reg .pred P, Q;
    .reg .b32 %r<20>;
    .reg .f32 %f<20>;
    .reg .f64 %d<4>;
    .reg .b64 %rd<10>;
    .shared .align 128 .b8 room[16384];
    ld.param.u64 %rd1, [p0];
    mov.u32 %r1, %tid.x;
)";

std::string kernel_of(const std::string &code) { return file_of(std::string(kStart) + code + "\nret;"); }

KernelCounts profile(const std::string &code, uint32_t threads = 32, uint32_t blocks = 1, uint64_t sample = 0,
                     Observer::Plan others = Observer::Plan::leave_out) {
    Program program;
    program.load(kernel_of(code), "test.ptx");
    Run run(program);
    run.launch.block.x = threads;
    run.launch.grid.x = blocks;
    const auto raw = reinterpret_cast<uint64_t>(run.memory.make<uint8_t>(65536 + 128));
    Counters counters;
    counters.sample(sample, others);
    run.launch.observer = &counters;
    run.with((raw + 127) / 128 * 128).go();
    const auto all = counters.take();
    CHECK(all.size() == 1 && counters.take().empty(), "%zu kernels", all.size());
    return all.at(0);
}

uint64_t issued(const KernelCounts &counts, Class c) { return counts.all.of(c).issued; }

// A load of the warp with lanes `step` bytes apart, as wavefronts.
void shared_load(unsigned bytes, uint64_t step, uint64_t taken, uint64_t least) {
    WarpAccess access;
    access.active = ~0u;
    access.bytes = bytes;
    for (uint64_t lane = 0; lane < 32; ++lane) access.address[lane] = 1024 + lane * step;
    const auto found = fcm::profile::shared_wavefronts(access);
    CHECK(found.taken == taken && found.least == least, "%u bytes, step %lu: %lu and %lu, not %lu and %lu", bytes,
          static_cast<unsigned long>(step), static_cast<unsigned long>(found.taken), static_cast<unsigned long>(found.least),
          static_cast<unsigned long>(taken), static_cast<unsigned long>(least));
}

void global_load(unsigned bytes, uint64_t first, uint64_t step, uint64_t touched, uint64_t least) {
    WarpAccess access;
    access.active = ~0u;
    access.bytes = bytes;
    for (uint64_t lane = 0; lane < 32; ++lane) access.address[lane] = first + lane * step;
    const auto found = fcm::profile::global_sectors(access);
    CHECK(found.touched == touched && found.least == least, "%u bytes, step %lu: %lu and %lu", bytes,
          static_cast<unsigned long>(step), static_cast<unsigned long>(found.touched),
          static_cast<unsigned long>(found.least));
}

}  // namespace

TEST(bank_conflicts_of_strides) {
    shared_load(4, 4, 1, 1);      // neighbours
    shared_load(4, 8, 2, 1);      // every second bank
    shared_load(4, 128, 32, 1);   // one bank
    shared_load(4, 132, 1, 1);    // a row padded by a word
    shared_load(4, 0, 1, 1);      // a broadcast
    shared_load(1, 1, 1, 1);      // four lanes a word
    shared_load(2, 4, 1, 1);
    shared_load(8, 8, 2, 2);      // half-warps
    shared_load(8, 16, 4, 2);
    shared_load(16, 16, 4, 4);    // quarter-warps
    shared_load(16, 32, 8, 4);
    shared_load(16, 128, 32, 4);  // eight lanes of a quarter on the same four banks
    shared_load(16, 0, 4, 4);
}

TEST(bank_conflicts_of_some_lanes) {
    WarpAccess access;
    access.bytes = 16;
    access.active = 0xff;  // one quarter
    for (uint64_t lane = 0; lane < 32; ++lane) access.address[lane] = 16 * lane;
    CHECK(fcm::profile::shared_wavefronts(access).taken == 1, "one quarter");
    access.active = 0x01010101;  // a lane of each
    CHECK(fcm::profile::shared_wavefronts(access).taken == 4, "four quarters");
    access.bytes = 4;
    access.active = 0x3;
    access.address[1] = 128;  // two words of one bank
    const auto two = fcm::profile::shared_wavefronts(access);
    CHECK(two.taken == 2 && two.least == 1, "two lanes in conflict");
    access.address[1] = 0;
    CHECK(fcm::profile::shared_wavefronts(access).taken == 1, "the same word");
}

TEST(sectors_of_strides) {
    global_load(4, 0, 4, 4, 4);      // 128 bytes
    global_load(4, 4, 4, 5, 4);      // off by an element
    global_load(4, 0, 8, 8, 4);      // every second element
    global_load(4, 0, 32, 32, 4);    // a sector each
    global_load(4, 64, 0, 1, 1);     // a broadcast
    global_load(1, 0, 1, 1, 1);
    global_load(8, 0, 8, 8, 8);
    global_load(16, 0, 16, 16, 16);
    global_load(16, 16, 32, 32, 16);
}

TEST(loads_of_a_kernel_are_counted) {
    // The float4 of lane i is at 16 i: 4 wavefronts; the other loads have known strides.
    const KernelCounts all = profile(R"(
        mov.u32 %r2, room; shl.b32 %r3, %r1, 4; add.u32 %r3, %r2, %r3;
        st.shared.v4.f32 [%r3], {0f3f800000, 0f3f800000, 0f3f800000, 0f3f800000};
        bar.warp.sync 0xffffffff;
        ld.shared.v4.f32 {%f1, %f2, %f3, %f4}, [%r3];
        ld.shared.f32 %f5, [%r3];
        ld.shared.f32 %f6, [room];
        mad.wide.u32 %rd2, %r1, 4, %rd1;
        mad.wide.u32 %rd3, %r1, 32, %rd1;
        ld.global.f32 %f7, [%rd2];
        ld.global.f32 %f8, [%rd3+4096];
        st.global.f32 [%rd2+8196], %f7;
    )");
    const Counts &c = all.all;
    CHECK(issued(all, Class::shared) == 4 && c.shared_requests == 4 && c.shared_loads == 3, "%lu shared",
          static_cast<unsigned long>(c.shared_requests));
    // 4 + 4 and their least; lanes 16 bytes apart: four lanes on each of eight banks; a broadcast.
    CHECK(c.shared_taken == 4 + 4 + 4 + 1 && c.shared_least == 4 + 4 + 1 + 1, "%lu of %lu",
          static_cast<unsigned long>(c.shared_taken), static_cast<unsigned long>(c.shared_least));
    CHECK(issued(all, Class::global) == 3 && c.global_requests == 3, "%lu global",
          static_cast<unsigned long>(c.global_requests));
    CHECK(c.sectors == 4 + 32 + 5 && c.least_sectors == 4 + 4 + 4, "%lu sectors", static_cast<unsigned long>(c.sectors));
    CHECK(all.distinct_sectors == 4 + 32 + 5, "%lu differ", static_cast<unsigned long>(all.distinct_sectors));
    CHECK(issued(all, Class::integer) == 4 && issued(all, Class::move) == 3, "%lu integer, %lu move",
          static_cast<unsigned long>(issued(all, Class::integer)), static_cast<unsigned long>(issued(all, Class::move)));
    CHECK(issued(all, Class::barrier) == 1 && issued(all, Class::control) == 1, "a barrier, and the return");
    CHECK(fcm::profile::active_lanes(c) == 1.0, "all lanes");
}

TEST(generic_addresses_are_told_apart) {
    const KernelCounts all = profile(R"(
        mov.u32 %r2, room; shl.b32 %r3, %r1, 3; add.u32 %r3, %r2, %r3;
        cvt.u64.u32 %rd2, %r3; cvta.shared.u64 %rd3, %rd2;
        st.f32 [%rd3], 0f3f800000;
        mad.wide.u32 %rd4, %r1, 4, %rd1;
        ld.f32 %f1, [%rd4];
    )");
    CHECK(all.all.shared_taken == 2 && all.all.shared_requests == 1, "every second bank");
    CHECK(all.all.sectors == 4 && all.all.global_requests == 1, "a whole line");
}

TEST(lanes_of_a_short_warp) {
    const KernelCounts all = profile("add.f32 %f1, 0f3f800000, 0f3f800000;", 48);
    // ld.param, mov, add and ret, of 32 lanes and of 16.
    CHECK(all.all.issued() == 8 && all.all.lanes() == 4 * 48, "%lu of %lu", static_cast<unsigned long>(all.all.lanes()),
          static_cast<unsigned long>(all.all.issued()));
    CHECK(fcm::profile::active_lanes(all.all) == 0.75, "%g", fcm::profile::active_lanes(all.all));
}

TEST(branches_diverge_and_meet_again) {
    const KernelCounts all = profile(R"(
        setp.lt.u32 P, %r1, 8;
        @P bra LOW;
        fma.rn.f32 %f1, 0f3f800000, 0f3f800000, 0f3f800000;
        fma.rn.f32 %f2, 0f3f800000, 0f3f800000, 0f3f800000;
        bra END;
    LOW:
        fma.rn.f32 %f3, 0f3f800000, 0f3f800000, 0f3f800000;
    END:
        mul.f64 %d1, 0d3ff0000000000000, 0d3ff0000000000000;
    )");
    const Counts::Of fma = all.all.of(Class::fma), fp64 = all.all.of(Class::fp64);
    CHECK(fma.issued == 3 && fma.lanes == 24 + 24 + 8, "%lu of %lu", static_cast<unsigned long>(fma.lanes),
          static_cast<unsigned long>(fma.issued));
    CHECK(fp64.issued == 1 && fp64.lanes == 32, "the lanes have not met: %lu", static_cast<unsigned long>(fp64.issued));
    CHECK(fcm::profile::active_lanes_fma(all.all) == 56.0 / 96.0, "%g", fcm::profile::active_lanes_fma(all.all));
}

TEST(guarded_instructions) {
    const KernelCounts all = profile(R"(
        setp.lt.u32 P, %r1, 8;
        setp.lt.u32 Q, %r1, 0;
        @P add.f32 %f1, 0f3f800000, 0f3f800000;
        @!P add.f32 %f2, 0f3f800000, 0f3f800000;
        @Q fma.rn.f32 %f3, 0f3f800000, 0f3f800000, 0f3f800000;
    )");
    const Counts::Of real = all.all.of(Class::real);
    CHECK(real.issued == 2 && real.lanes == 8 + 24, "%lu of %lu", static_cast<unsigned long>(real.lanes),
          static_cast<unsigned long>(real.issued));
    CHECK(issued(all, Class::fma) == 0 && all.all.off == 1 && issued(all, Class::control) == 2, "%lu off",
          static_cast<unsigned long>(all.all.off));
}

TEST(the_hottest_loop) {
    // Ten turns of an inner loop with a conflict of two in each of three outer turns; the store before has a conflict of 32.
    const KernelCounts all = profile(R"(
        mov.u32 %r2, room; shl.b32 %r3, %r1, 7; add.u32 %r3, %r2, %r3; shl.b32 %r4, %r1, 3; add.u32 %r4, %r2, %r4;
        st.shared.f32 [%r3], 0f3f800000;
        bar.warp.sync 0xffffffff;
        st.shared.v2.f32 [%r4], {0f3f800000, 0f3f800000};
        mov.f32 %f1, 0f00000000;
        mov.u32 %r5, 0;
    OUTER:
        mov.u32 %r6, 0;
    INNER:
        ld.shared.f32 %f2, [%r4];
        fma.rn.f32 %f1, %f2, %f2, %f1;
        fma.rn.f32 %f1, %f2, %f2, %f1;
        add.u32 %r6, %r6, 1;
        setp.lt.u32 P, %r6, 10;
        @P bra INNER;
        add.u32 %r5, %r5, 1;
        setp.lt.u32 Q, %r5, 3;
        @Q bra OUTER;
    )");
    const Counts &loop = all.loop.counts;
    CHECK(loop.issued() == 30 * 6, "%lu in the loop", static_cast<unsigned long>(loop.issued()));
    CHECK(loop.shared_requests == 30 && loop.shared_taken == 60 && loop.shared_least == 30, "%lu wavefronts",
          static_cast<unsigned long>(loop.shared_taken));
    CHECK(fcm::profile::bank_conflicts(loop) == 1.0, "%g", fcm::profile::bank_conflicts(loop));
    CHECK(all.all.shared_taken == 60 + 32 + 2 && all.all.shared_least == 30 + 1 + 2, "%lu in all",
          static_cast<unsigned long>(all.all.shared_taken));
    CHECK(fcm::profile::products_per_shared_load(loop) == 2.0, "%g", fcm::profile::products_per_shared_load(loop));
}

TEST(warps_that_are_not_balanced) {
    // Warp 0 of four has three, the others one.
    const KernelCounts all = profile(R"(
        fma.rn.f32 %f1, 0f3f800000, 0f3f800000, 0f3f800000;
        setp.gt.u32 P, %r1, 31;
        @P bra END;
        fma.rn.f32 %f2, 0f3f800000, 0f3f800000, 0f3f800000;
        fma.rn.f32 %f3, 0f3f800000, 0f3f800000, 0f3f800000;
    END:
    )", 128, 2);
    CHECK(issued(all, Class::fma) == 2 * (3 + 3), "%lu", static_cast<unsigned long>(issued(all, Class::fma)));
    CHECK(fcm::profile::balance(all) == 6.0 / 12.0, "%g", fcm::profile::balance(all));
    // Those of warp 0: three fma, setp, bra, ret; moves are no instructions of a GPU.
    CHECK(all.busiest_scheduler == 2 * 6, "%lu", static_cast<unsigned long>(all.busiest_scheduler));
}

TEST(a_sample_of_the_blocks) {
    const std::string code =
        "mov.u32 %r2, %ctaid.x; mad.lo.u32 %r3, %r2, 32, %r1; mad.wide.u32 %rd2, %r3, 4, %rd1; st.global.u32 [%rd2], 7;";
    for (const auto others : {Observer::Plan::run, Observer::Plan::leave_out}) {
        const KernelCounts all = profile(code, 32, 10, 3, others);
        CHECK(all.blocks == 10 && all.observed == 3 && issued(all, Class::global) == 3, "%lu of %lu",
              static_cast<unsigned long>(all.observed), static_cast<unsigned long>(all.blocks));
    }
    CHECK(profile(code, 32, 3, 3).observed == 3, "all");
    CHECK(profile(code, 32, 3, 0).observed == 3, "all");
}

TEST(barriers_and_shuffles_in_lockstep) {
    // Every warp waits for the others; the result of the shuffle is the neighbour's number.
    Program program;
    program.load(kernel_of(R"(
        mov.u32 %r2, room; shl.b32 %r3, %r1, 2; add.u32 %r4, %r2, %r3;
        st.shared.u32 [%r4], %r1;
        bar.sync 0;
        xor.b32 %r5, %r3, 128; add.u32 %r5, %r2, %r5;
        ld.shared.u32 %r6, [%r5];
        shfl.sync.bfly.b32 %r7, %r6, 1, 31, -1;
        mad.wide.u32 %rd2, %r1, 4, %rd1;
        st.global.u32 [%rd2], %r7;
    )"), "test.ptx");
    Run run(program);
    run.launch.block.x = 64;
    uint32_t *out = run.memory.make<uint32_t>(64);
    Counters counters;
    run.launch.observer = &counters;
    run.with(out).go();
    for (uint32_t i = 0; i < 64; ++i) CHECK(out[i] == ((i ^ 32) ^ 1), "%u: %u", i, out[i]);
    const KernelCounts all = counters.take().at(0);
    CHECK(issued(all, Class::barrier) == 2 && issued(all, Class::shuffle) == 2, "one of each for both warps");
}

TEST(faults_are_told_in_lockstep) {
    Program program;
    program.load(kernel_of("ld.global.f32 %f1, [%rd1+65536];"), "test.ptx");
    Run run(program);
    Counters counters;
    run.launch.observer = &counters;
    const std::string words = run.with(run.memory.make<uint8_t>(64)).fault();
    CHECK(has(words, "touches 4 bytes"), "%s", words.c_str());
}

TEST(classes_of_opcodes) {
    using fcm::profile::kind_of;
    const std::pair<const char *, Class> all[] = {
        {"fma.rn.f32", Class::fma}, {"fma.rn.ftz.f32", Class::fma}, {"mad.lo.s32", Class::integer}, {"fma.rn.f64", Class::fp64},
        {"setp.lt.f32", Class::real}, {"setp.eq.s64", Class::integer}, {"cvt.f64.f32", Class::fp64}, {"cvt.u64.u32", Class::convert},
        {"cvt.u32.u64", Class::move}, {"cvt.rn.f32.s64", Class::convert},
        {"ld.param.u64", Class::move}, {"ld.global.nc.v4.f32", Class::global}, {"st.shared.f32", Class::shared},
        {"atom.global.add.u32", Class::atomic}, {"bar.sync", Class::barrier}, {"bra.uni", Class::control},
        {"shfl.sync.bfly.b32", Class::shuffle}, {"st.local.f32", Class::local},
        {"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", Class::mma}, {"cp.async.cg.shared.global", Class::global},
        {"cp.async.wait_group", Class::barrier}, {"ldmatrix.sync.aligned.m8n8.x4.shared.b16", Class::shared}};
    for (const auto &[opcode, c] : all) CHECK(kind_of(opcode).of == c, "%s: %s", opcode, name(kind_of(opcode).of));
    CHECK(kind_of("ld.shared.v4.f32").bytes == 16 && kind_of("st.global.v2.u16").bytes == 4, "bytes of vectors");
    CHECK(kind_of("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32").products == 1024, "products of mma");
    bool refused = false;
    try {
        kind_of("wgmma.mma_async.sync");
    } catch (const std::runtime_error &) {
        refused = true;
    }
    CHECK(refused, "an unknown instruction is counted as something");
}

TEST(the_bound_is_the_largest) {
    KernelCounts counts;
    counts.blocks = counts.observed = 1;
    counts.all.by_class[static_cast<unsigned>(Class::fma)] = {400, 400 * 32};  // 100 cycles of 128 lanes
    counts.busiest_scheduler = 125;
    counts.all.shared_taken = 200;
    const auto &machine = fcm::profile::machines().at(0);
    auto cycles = fcm::profile::cycles_of(counts, machine, 0);
    CHECK(cycles.fma == 100 && cycles.bound() == 200 && cycles.share() == 0.5, "%g", cycles.share());
    CHECK(std::string(cycles.bound_by()) == "shared", "%s", cycles.bound_by());
    counts.all.shared_taken = 0;
    cycles = fcm::profile::cycles_of(counts, machine, 0);
    CHECK(cycles.share() == 0.8 && std::string(cycles.bound_by()) == "issue", "%g", cycles.share());
    counts.distinct_sectors = 100;  // 3200 bytes, 3.125 a cycle
    cycles = fcm::profile::cycles_of(counts, machine, 0);
    CHECK(cycles.share() == 1.0 && cycles.dram == 1024 && std::string(cycles.bound_by()) == "memory", "%g", cycles.dram);
    counts.blocks = 4;  // of which one was observed
    CHECK(fcm::profile::cycles_of(counts, machine, 3200).dram == 256, "a quarter of the bytes");
}


TEST(asynchronous_copies_are_both) {
    // 16 bytes a lane: contiguous from global memory, to rows of 64 bytes in shared memory, where lanes of a quarter-warp
    // that are two apart meet on four banks.
    const KernelCounts all = profile(R"(
        mov.u32 %r2, room; shl.b32 %r3, %r1, 6; add.u32 %r3, %r2, %r3;
        mad.wide.u32 %rd2, %r1, 16, %rd1;
        cp.async.cg.shared.global [%r3], [%rd2], 16;
        setp.lt.u32 P, %r1, 16;
        selp.u32 %r4, 4, 0, P;
        mad.wide.u32 %rd3, %r1, 4, %rd1;
        cp.async.ca.shared.global [%r3+16], [%rd3], 4, %r4;
        cp.async.commit_group;
        cp.async.wait_group 0;
    )");
    CHECK(issued(all, Class::global) == 2 && issued(all, Class::barrier) == 2, "%lu",
          static_cast<unsigned long>(issued(all, Class::global)));
    CHECK(all.all.global_requests == 2 && all.all.sectors == 16 + 2 && all.all.least_sectors == 16 + 2, "%lu sectors",
          static_cast<unsigned long>(all.all.sectors));
    // A quarter-warp: 4 wavefronts for 1. The second: lanes 16 words apart, so 16 on one bank.
    CHECK(all.all.shared_requests == 2 && all.all.shared_loads == 0 && all.all.shared_taken == 16 + 16 &&
              all.all.shared_least == 4 + 1,
          "%lu wavefronts", static_cast<unsigned long>(all.all.shared_taken));
}

TEST(matrices_are_shared_loads) {
    // Rows of 16 bytes without gaps, and rows 128 bytes apart, all on the same banks.
    for (const unsigned shift : {4u, 7u}) {
        const KernelCounts all = profile(R"(
            mov.u32 %r2, room; shl.b32 %r3, %r1, )" + std::to_string(shift) + R"(; add.u32 %r3, %r2, %r3;
            st.shared.v4.u32 [%r3], {0, 0, 0, 0};
            bar.warp.sync 0xffffffff;
            ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r4, %r5, %r6, %r7}, [%r3];
            mov.f32 %f1, 0f00000000;
            mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f2, %f3, %f4, %f5}, {%r4, %r5, %r6, %r7}, {%r4, %r5},
                {%f1, %f1, %f1, %f1};
        )");
        const uint64_t each = shift == 4 ? 4 : 32;
        CHECK(all.all.shared_loads == 1 && all.all.shared_taken == 2 * each && all.all.shared_least == 8, "%lu wavefronts",
              static_cast<unsigned long>(all.all.shared_taken));
        CHECK(issued(all, Class::mma) == 1 && all.all.mma_products == 2048 && all.all.mma_cost == 2048, "%lu products",
              static_cast<unsigned long>(all.all.mma_products));
        CHECK(fcm::profile::active_lanes_fma(all.all) == 1.0 && fcm::profile::products_per_shared_load(all.all) == 1.0, "%g",
              fcm::profile::active_lanes_fma(all.all));
    }
}
