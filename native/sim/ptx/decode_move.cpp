// mov, with vectors packed and unpacked, and cvta.
#include "apply.h"
#include "decoding.h"
#include "types.h"

namespace fcm::ptx {

namespace {

void move(Thread &t, const Instruction &i) { t.registers[i.slot[0]] = t.registers[i.slot[1]]; }

// Packs {a, b[, c, d]} into one register of two or four times the width, which is in `number`.
template <unsigned Count>
void pack(Thread &t, const Instruction &i) {
    uint64_t v = 0;
    for (unsigned k = 0; k < Count; ++k) v |= t.registers[i.slot[1 + k]] << (static_cast<unsigned>(i.number) * k);
    t.registers[i.slot[0]] = v;
}

template <unsigned Count>
void unpack(Thread &t, const Instruction &i) {
    const uint64_t v = t.registers[i.slot[0]];
    const unsigned width = static_cast<unsigned>(i.number);
    for (unsigned k = 0; k < Count; ++k) t.registers[i.slot[1 + k]] = v >> (width * k) & low_bits(width);
}

Type part_of(Decoding &d, Type type, size_t count) {
    if ((count != 2 && count != 4) ||
        type.bits / count < 16) d.fail("two or four registers of 16 bits or more expected");
    return {Kind::untyped, static_cast<uint8_t>(type.bits / count)};
}

void vector_move(Decoding &d, Type type) {
    const bool packs = d.operand(1).kind == Operand::Kind::vector;
    const std::vector<Operand> &parts = d.operand(packs ? 1 : 0).parts;
    const Type part = part_of(d, type, parts.size());
    uint32_t slots[4] = {};
    for (size_t k = 0; k < parts.size(); ++k) slots[k] = packs ? d.source(parts[k], part) : d.target(parts[k], part);
    const uint32_t whole = packs ? d.target(0, type) : d.source(1, type);
    const Handler handler = parts.size() == 2 ? (packs ? pack<2> : unpack<2>) : (packs ? pack<4> : unpack<4>);
    d.emit(handler, {whole, slots[0], slots[1], slots[2], slots[3]}, part.bits);
}

void to_window(Thread &t, const Instruction &i) {
    t.registers[i.slot[0]] = t.registers[i.slot[1]] + static_cast<uint64_t>(i.number);
}

void from_window(Thread &t, const Instruction &i) {
    const uint64_t window = static_cast<uint64_t>(i.number), address = t.registers[i.slot[1]];
    if ((address & kWindowMask) != window) throw Mistake("takes a generic address for one of another space");
    t.registers[i.slot[0]] = address - window;
}

void address_conversion(Decoding &d) {
    const Type type = d.take_type();
    if (type.bits != 64) d.fail("with 64 bits only");
    const bool to = d.take("to");
    int64_t window = 0;
    if (d.take("shared") || d.take("shared::cta")) window = static_cast<int64_t>(kSharedWindow);
    else if (d.take("local")) window = static_cast<int64_t>(kLocalWindow);
    else if (d.take("param")) window = static_cast<int64_t>(kParamWindow);
    else if (!d.take("global") && !d.take("const")) d.fail("a space expected");
    d.finish();
    d.expect_operands(2);
    if (window == static_cast<int64_t>(kParamWindow) && !d.function().function().entry) {
        // The parameters of a function are in its frame.
        window = static_cast<int64_t>(kLocalWindow);
    }
    const uint32_t target = d.target(0, type), source = d.source(1, type);
    // A global address is its own generic address; its validity is checked when it is used.
    if (window == 0) d.emit(move, {target, source});
    else d.emit(to ? from_window : to_window, {target, source}, window);
}

}  // namespace

bool decode_move(Decoding &d) {
    if (d.opcode() == "cvta") {
        address_conversion(d);
        return true;
    }
    if (d.opcode() != "mov") return false;
    const Type type = d.take_type();
    d.finish();
    d.expect_operands(2);
    if (d.operand(0).kind == Operand::Kind::vector || d.operand(1).kind == Operand::Kind::vector) {
        vector_move(d, type);
    } else {
        d.emit(move, {d.target(0, type), d.source(1, type)});
    }
    return true;
}

}  // namespace fcm::ptx
