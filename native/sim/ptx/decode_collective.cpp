// Barriers, shuffles and votes: a thread stores its operands and waits; the scheduler does the rest.
#include "decoding.h"
#include "thread.h"
#include "scheduler.h"

namespace fcm::ptx {

namespace {

void wait_for_block(Thread &t, const Instruction &i) {
    t.waiting.at = &i;
    t.waiting.value = t.registers[i.slot[1]] != 0;
    t.state = State::barrier;
}

void wait_for_lanes(Thread &t, const Instruction &i) {
    Waiting &w = t.waiting;
    w.at = &i;
    w.collective = static_cast<Collective>(i.extra);
    w.value = static_cast<uint32_t>(t.registers[i.slot[2]]);
    w.b = static_cast<uint32_t>(t.registers[i.slot[3]]);
    w.c = static_cast<uint32_t>(t.registers[i.slot[4]]);
    w.mask = static_cast<uint32_t>(t.registers[i.slot[5]]);
    t.state = State::collective;
}

// Which lanes are active together is up to the hardware, so only the calling lane can be relied on.
void active_mask(Thread &t, const Instruction &i) { t.registers[i.slot[0]] = 1ull << t.lane; }

// bar.sync, barrier.sync[.aligned], and with a vote bar.red
void block_barrier(Decoding &d) {
    d.take("cta");
    d.take("aligned");
    const bool votes = d.take("red");
    if (!votes && !d.take("sync")) d.fail("only .sync and .red");
    BarrierVote vote = BarrierVote::none;
    Type result = kPredicate;
    if (votes) {
        if (d.take("popc")) vote = BarrierVote::count;
        else if (d.take("and")) vote = BarrierVote::all;
        else if (d.take("or")) vote = BarrierVote::any;
        else d.fail(".popc, .and or .or expected");
        result = d.take_type();
    }
    d.finish();
    d.expect_operands(votes ? 3 : 1);
    const uint64_t number = d.immediate(votes ? 1 : 0);
    if (number != 0) d.fail("a barrier other than 0");
    if (!votes) {
        const uint32_t none = d.function().scratch();
        d.emit(wait_for_block, {none, none}, 0, static_cast<uint32_t>(vote));
        return;
    }
    const uint32_t brings = d.predicate(d.operand(2));
    d.emit(wait_for_block, {d.target(0, result), brings}, 0, static_cast<uint32_t>(vote));
}

void warp_barrier(Decoding &d) {
    d.take("warp");
    d.take("sync");
    d.finish();
    d.expect_operands(1);
    const uint32_t none = d.function().scratch();
    d.emit(wait_for_lanes, {none, none, none, none, none, d.source(0, kWord)}, 0,
           static_cast<uint32_t>(Collective::warp_barrier));
}

// shfl.sync.mode.b32 d[|p], a, b, c, mask
void shuffle(Decoding &d) {
    if (!d.take("sync")) d.fail("only .sync");
    Collective mode = Collective::shuffle_index;
    if (d.take("up")) mode = Collective::shuffle_up;
    else if (d.take("down")) mode = Collective::shuffle_down;
    else if (d.take("bfly")) mode = Collective::shuffle_xor;
    else if (!d.take("idx")) d.fail(".up, .down, .bfly or .idx expected");
    const Type type = d.take_type();
    d.finish();
    d.expect_operands(5);
    if (type.bits != 32) d.fail("with b32 only");
    const Operand &first = d.operand(0);
    const bool pair = first.kind == Operand::Kind::pair;
    const uint32_t target = d.target(pair ? first.parts[0] : first, type);
    const uint32_t found = pair ? d.target(first.parts[1], kPredicate) : d.function().scratch();
    const uint32_t value = d.source(1, type), b = d.source(2, kWord), c = d.source(3, kWord), mask = d.source(4, kWord);
    d.emit(wait_for_lanes, {target, found, value, b, c, mask}, 0, static_cast<uint32_t>(mode));
}

// vote.sync.mode.pred p, a, mask and vote.sync.ballot.b32 d, a, mask
void vote(Decoding &d) {
    if (!d.take("sync")) d.fail("only .sync");
    Collective mode = Collective::ballot;
    if (d.take("all")) mode = Collective::all;
    else if (d.take("any")) mode = Collective::any;
    else if (d.take("uni")) mode = Collective::uniform;
    else if (!d.take("ballot")) d.fail(".all, .any, .uni or .ballot expected");
    const Type type = d.take_type();
    d.finish();
    d.expect_operands(3);
    if ((mode == Collective::ballot) != (type.bits == 32)) d.fail("a ballot gives b32, the others a predicate");
    const uint32_t none = d.function().scratch();
    const uint32_t brings = d.predicate(d.operand(1));
    d.emit(wait_for_lanes, {d.target(0, type), none, brings, none, none, d.source(2, kWord)}, 0,
           static_cast<uint32_t>(mode));
}

}  // namespace

bool decode_collective(Decoding &d) {
    const std::string &op = d.opcode();
    if (op == "bar" && d.peek() == "warp") {
        warp_barrier(d);
    } else if (op == "bar" || op == "barrier") {
        block_barrier(d);
    } else if (op == "shfl") {
        shuffle(d);
    } else if (op == "vote") {
        vote(d);
    } else if (op == "activemask") {
        const Type type = d.take_type();
        d.finish();
        d.expect_operands(1);
        d.emit(active_mask, {d.target(0, type)});
    } else {
        return false;
    }
    return true;
}

}  // namespace fcm::ptx
