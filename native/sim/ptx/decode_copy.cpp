// cp.async: copies from global to shared memory that a thread does not wait for at once.
//
// A copy may be carried out at any time from the instruction until its thread waits for its group. So its bytes of shared memory
// are pending in between (shared_memory.h), it is ordered after what others did before the instruction, and its source must not
// change until the wait. After the wait it is a write of its thread, for which the others need a barrier as for any other.
#include "access.h"
#include "decoding.h"

namespace fcm::ptx {

namespace {

constexpr uint32_t kBytesMask = 0xff, kIgnores = 0x100;

// Reads any number of bytes up to 16 in accesses that the race detector knows: powers of two, aligned to their size.
void read_source(Thread &t, const Instruction &i, uint64_t address, Copy &copy) {
    Region &region = t.block->regions->find(i.extra, address, copy.read);
    copy.region = &region;
    copy.from = address - region.base;
    for (unsigned at = 0; at < copy.read;) {
        unsigned size = 16;
        while (at + size > copy.read) size /= 2;
        region.shadow.read(t.accessor, copy.from + at, size);
        at += size;
    }
    std::memcpy(copy.data, region.data + copy.from, copy.read);
    for (unsigned k = 0; k < copy.read; ++k) {
        const auto [by, line] = region.shadow.writer(copy.from + k);
        copy.written[k] = by;
        copy.written_line[k] = line;
    }
}

void begin_copy(Thread &t, const Instruction &i) {
    t.spend_turn();
    const uint64_t to = (t.registers[i.slot[0]] + t.registers[i.slot[1]]) & 0xffffffff;
    const uint64_t from = t.registers[i.slot[2]] + t.registers[i.slot[3]];
    const unsigned bytes = i.slot[5] & kBytesMask;
    const uint64_t operand = t.registers[i.slot[4]];
    const uint64_t read = (i.slot[5] & kIgnores) == 0 ? operand : operand != 0 ? 0 : bytes;
    if (read > bytes) {
        throw Mistake("copies " + std::to_string(bytes) + " bytes, but wants to read " + std::to_string(read));
    }
    aligned(to, bytes);
    aligned(from, bytes);
    Copy copy{};
    copy.line = i.line;
    copy.offset = static_cast<uint32_t>(to);
    copy.bytes = static_cast<uint8_t>(bytes);
    copy.read = static_cast<uint8_t>(read);
    if (read != 0) read_source(t, i, from, copy);
    t.block->shared->begin_copy(t.accessor, to, bytes, i.line);
    t.copies.push_back(copy);
}

void commit_group(Thread &t, const Instruction &) {
    size_t committed = 0;
    for (const uint32_t group : t.copy_groups) committed += group;
    t.copy_groups.push_back(static_cast<uint32_t>(t.copies.size() - committed));
}

void wait_group(Thread &t, const Instruction &i) {
    t.spend_turn();
    t.wait_for_copies(static_cast<size_t>(i.number), false);
}

void wait_all(Thread &t, const Instruction &) {
    t.spend_turn();
    t.wait_for_copies(0, true);
}

bool is_predicate(Decoding &d, const Operand &operand) {
    const Symbol *symbol = operand.kind == Operand::Kind::name ? d.function().find(operand.name) : nullptr;
    return symbol != nullptr && symbol->kind == Symbol::Kind::reg && symbol->type.kind == Kind::predicate;
}

// cp.async.ca.shared.global{.L2::...} [to], [from], bytes{, read | ignore}{, policy}
void copy(Decoding &d) {
    const bool by_line = d.take("cg");
    if (!by_line && !d.take("ca")) d.fail(".ca or .cg expected");
    if ((!d.take("shared") && !d.take("shared::cta")) || !d.take("global")) d.fail("only .shared.global");
    const bool policy = d.take("L2::cache_hint");
    for (const char *hint : {"L2::64B", "L2::128B", "L2::256B"}) d.take(hint);
    d.finish();
    const size_t most = policy ? 5 : 4, last = d.operands() - (policy ? 1 : 0);
    if (d.operands() > most || last < 3) d.fail("too many or too few operands");
    if (policy) d.source(last, kLong);  // where to cache, which has no effect here
    const uint64_t bytes = d.immediate(2);
    if (bytes != 16 && (by_line || (bytes != 4 && bytes != 8))) d.fail(by_line ? "16 bytes only" : "4, 8 or 16 bytes only");
    const Address to = d.address(0), from = d.address(1);
    uint32_t style = static_cast<uint32_t>(bytes);
    uint32_t read = d.function().constant(bytes);
    if (last == 4) {
        const bool ignores = is_predicate(d, d.operand(3));
        if (ignores) style |= kIgnores;
        read = ignores ? d.predicate(d.operand(3)) : d.source(3, kWord);
    }
    const uint32_t to_offset = d.function().constant(static_cast<uint64_t>(to.offset));
    const uint32_t from_offset = d.function().constant(static_cast<uint64_t>(from.offset));
    d.emit(begin_copy, {to.base, to_offset, from.base, from_offset, read, style}, 0, d.function().module().accesses++);
}

void without_operands(Decoding &d, Handler handler) {
    d.finish();
    d.expect_operands(0);
    d.emit(handler, {});
}

}  // namespace

bool decode_copy(Decoding &d) {
    if (d.opcode() != "cp") return false;
    if (!d.take("async")) d.fail("only .async");
    if (d.take("commit_group")) {
        without_operands(d, commit_group);
    } else if (d.take("wait_all")) {
        without_operands(d, wait_all);
    } else if (d.take("wait_group")) {
        d.finish();
        d.expect_operands(1);
        d.emit(wait_group, {}, static_cast<int64_t>(d.immediate(0)));
    } else {
        copy(d);
    }
    return true;
}

}  // namespace fcm::ptx
