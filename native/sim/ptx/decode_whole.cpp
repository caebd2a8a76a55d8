// Integer arithmetic and bit operations.
#include "apply.h"
#include "arithmetic_integer.h"
#include "decoding.h"

namespace fcm::ptx {

namespace {

// One handler per width, for operations that do not depend on the sign.
template <template <unsigned> class Op, template <class> class Apply>
Handler by_width(const Decoding &d, Type type, bool sixteen = true) {
    switch (type.bits) {
        case 16: if (sixteen) return Apply<Op<16>>::handler; break;
        case 32: return Apply<Op<32>>::handler;
        case 64: return Apply<Op<64>>::handler;
        default: break;
    }
    d.fail("not with this type");
}

// One handler per type, for operations that do.
template <template <class> class Op, template <class> class Apply>
Handler by_type(const Decoding &d, Type type, bool sixteen = true) {
    const bool sign = type.kind == Kind::integer;
    switch (type.bits) {
        case 16: if (sixteen) return sign ? Apply<Op<int16_t>>::handler : Apply<Op<uint16_t>>::handler; break;
        case 32: return sign ? Apply<Op<int32_t>>::handler : Apply<Op<uint32_t>>::handler;
        case 64: return sign ? Apply<Op<int64_t>>::handler : Apply<Op<uint64_t>>::handler;
        default: break;
    }
    d.fail("not with this type");
}

template <class Op> struct One { static constexpr Handler handler = apply1<Op>; };
template <class Op> struct Two { static constexpr Handler handler = apply2<Op>; };
template <class Op> struct Three { static constexpr Handler handler = apply3<Op>; };
template <class Op> struct Four { static constexpr Handler handler = apply4<Op>; };

template <class T> using FindBitPlain = whole::FindBit<T, false>;
template <class T> using FindBitShift = whole::FindBit<T, true>;

void whole_only(const Decoding &d, Type type) {
    if (!type.whole() || type.bits < 16) d.fail("not with this type");
}

void unary(Decoding &d, Type type, Handler handler) {
    d.finish();
    d.expect_operands(2);
    d.emit(handler, {d.target(0, type), d.source(1, type)});
}

void binary(Decoding &d, Type type, Handler handler) {
    d.finish();
    d.expect_operands(3);
    d.emit(handler, {d.target(0, type), d.source(1, type), d.source(2, type)});
}

// add, sub; the floating-point versions are in decode_real.cpp
void add_or_subtract(Decoding &d, Type type) {
    const bool add = d.opcode() == "add";
    if (d.take("sat")) {
        if (!type.is(Kind::integer, 32)) d.fail(".sat with s32 only");
        return binary(d, type, add ? apply2<whole::AddClamped> : apply2<whole::SubClamped>);
    }
    binary(d, type, add ? by_width<whole::Add, Two>(d, type) : by_width<whole::Sub, Two>(d, type));
}

void multiply(Decoding &d, Type type, bool add) {
    const bool low = d.take("lo"), high = d.take("hi"), wide = d.take("wide");
    if (low + high + wide != 1) d.fail(".lo, .hi or .wide expected");
    d.finish();
    Handler handler = nullptr;
    Type result = type;
    if (low) {
        handler = add ? by_width<whole::MadLow, Three>(d, type) : by_width<whole::MulLow, Two>(d, type);
    } else if (high) {
        handler = add ? by_type<whole::MadHigh, Three>(d, type) : by_type<whole::MulHigh, Two>(d, type);
    } else {
        if (type.bits == 64) d.fail("no type is wider");
        result.bits = static_cast<uint8_t>(type.bits * 2);
        handler = add ? by_type<whole::MadWide, Three>(d, type) : by_type<whole::MulWide, Two>(d, type);
    }
    d.expect_operands(add ? 4 : 3);
    const uint32_t target = d.target(0, result), a = d.source(1, type), b = d.source(2, type);
    d.emit(handler, {target, a, b, add ? d.source(3, result) : 0});
}

void shift(Decoding &d, Type type) {
    d.finish();
    d.expect_operands(3);
    const Handler handler = d.opcode() == "shl" ? by_width<whole::ShiftLeft, Two>(d, type)
                                                : by_type<whole::ShiftRight, Two>(d, type);
    d.emit(handler, {d.target(0, type), d.source(1, type), d.source(2, kWord)});
}

void logic(Decoding &d, Type type) {
    const std::string &op = d.opcode();
    if (op == "not") {
        if (type == kPredicate) return unary(d, type, apply1<whole::LogicalNot<1>>);
        return unary(d, type, by_width<whole::Not, One>(d, type));
    }
    if (type != kPredicate) whole_only(d, type);
    binary(d, type, op == "and" ? apply2<whole::And> : op == "or" ? apply2<whole::Or> : apply2<whole::Xor>);
}

// Operands of any width, 32-bit results.
void count_bits(Decoding &d, Type type) {
    const std::string &op = d.opcode();
    if (type.bits < 32) d.fail("not with this type");
    Handler handler = nullptr;
    if (op == "popc") handler = by_width<whole::CountOnes, One>(d, type, false);
    else if (op == "clz") handler = by_width<whole::LeadingZeros, One>(d, type, false);
    else if (d.take("shiftamt")) handler = by_type<FindBitShift, One>(d, type, false);
    else handler = by_type<FindBitPlain, One>(d, type, false);
    d.finish();
    d.expect_operands(2);
    d.emit(handler, {d.target(0, kWord), d.source(1, type)});
}

void logic3(Thread &t, const Instruction &i) {
    t.registers[i.slot[0]] = whole::logic(t.registers[i.slot[1]], t.registers[i.slot[2]], t.registers[i.slot[3]],
                                          static_cast<unsigned>(i.number));
}

void permute(Thread &t, const Instruction &i) {
    t.registers[i.slot[0]] = whole::permute(t.registers[i.slot[1]], t.registers[i.slot[2]], t.registers[i.slot[3]],
                                            static_cast<whole::Permutation>(i.number));
}

void permutation(Decoding &d, Type type) {
    if (type.bits != 32) d.fail("with b32 only");
    whole::Permutation mode = whole::Permutation::plain;
    if (d.take("f4e")) mode = whole::Permutation::f4e;
    else if (d.take("b4e")) mode = whole::Permutation::b4e;
    else if (d.take("rc8")) mode = whole::Permutation::rc8;
    else if (d.take("ecl")) mode = whole::Permutation::ecl;
    else if (d.take("ecr")) mode = whole::Permutation::ecr;
    else if (d.take("rc16")) mode = whole::Permutation::rc16;
    d.finish();
    d.expect_operands(4);
    d.emit(permute, {d.target(0, type), d.source(1, type), d.source(2, type), d.source(3, kWord)},
           static_cast<int64_t>(mode));
}

void funnel(Decoding &d, Type type) {
    if (type.bits != 32) d.fail("with b32 only");
    const bool left = d.take("l"), right = d.take("r"), wrap = d.take("wrap"), clamp = d.take("clamp");
    if (left == right || wrap == clamp) d.fail(".l or .r, and .wrap or .clamp expected");
    d.finish();
    d.expect_operands(4);
    const Handler handler = left ? (wrap ? apply3<whole::Funnel<true, true>> : apply3<whole::Funnel<true, false>>)
                                 : (wrap ? apply3<whole::Funnel<false, true>> : apply3<whole::Funnel<false, false>>);
    d.emit(handler, {d.target(0, type), d.source(1, type), d.source(2, type), d.source(3, kWord)});
}

}  // namespace

bool decode_whole(Decoding &d) {
    const std::string &op = d.opcode();
    const auto among = [&op](std::initializer_list<const char *> names) {
        for (const char *name : names) {
            if (op == name) return true;
        }
        return false;
    };
    if (!among({"add", "sub", "mul", "mad", "sad", "div", "rem", "abs", "neg", "min", "max", "shl", "shr", "and", "or",
                "xor", "not", "cnot", "popc", "clz", "bfind", "brev", "bfe", "bfi", "lop3", "prmt", "shf"})) {
        return false;
    }
    const Type type = d.take_type();
    if (type.kind == Kind::predicate) {
        if (!among({"and", "or", "xor", "not"})) d.fail("not with predicates");
    } else {
        whole_only(d, type);
    }
    if (among({"add", "sub"})) add_or_subtract(d, type);
    else if (op == "mul") multiply(d, type, false);
    else if (op == "mad") multiply(d, type, true);
    else if (op == "div") binary(d, type, by_type<whole::Div, Two>(d, type));
    else if (op == "rem") binary(d, type, by_type<whole::Rem, Two>(d, type));
    else if (op == "min") binary(d, type, by_type<whole::Min, Two>(d, type));
    else if (op == "max") binary(d, type, by_type<whole::Max, Two>(d, type));
    else if (op == "abs") unary(d, type, by_type<whole::Abs, One>(d, type));
    else if (op == "neg") unary(d, type, by_width<whole::Neg, One>(d, type));
    else if (op == "cnot") unary(d, type, by_width<whole::LogicalNot, One>(d, type));
    else if (op == "brev") unary(d, type, by_width<whole::Reverse, One>(d, type, false));
    else if (among({"shl", "shr"})) shift(d, type);
    else if (among({"and", "or", "xor", "not"})) logic(d, type);
    else if (among({"popc", "clz", "bfind"})) count_bits(d, type);
    else if (op == "prmt") permutation(d, type);
    else if (op == "shf") funnel(d, type);
    else if (op == "sad") {
        d.finish();
        d.expect_operands(4);
        d.emit(by_type<whole::AbsoluteDifference, Three>(d, type),
               {d.target(0, type), d.source(1, type), d.source(2, type), d.source(3, type)});
    } else if (op == "bfe") {
        d.finish();
        d.expect_operands(4);
        d.emit(by_type<whole::Extract, Three>(d, type, false),
               {d.target(0, type), d.source(1, type), d.source(2, kWord), d.source(3, kWord)});
    } else if (op == "bfi") {
        d.finish();
        d.expect_operands(5);
        d.emit(by_width<whole::Insert, Four>(d, type, false),
               {d.target(0, type), d.source(1, type), d.source(2, type), d.source(3, kWord), d.source(4, kWord)});
    } else {  // lop3
        if (type.bits != 32) d.fail("with b32 only");
        d.finish();
        d.expect_operands(5);
        d.emit(logic3, {d.target(0, type), d.source(1, type), d.source(2, type), d.source(3, type)},
               static_cast<int64_t>(d.immediate(4) & 0xff));
    }
    return true;
}

}  // namespace fcm::ptx
