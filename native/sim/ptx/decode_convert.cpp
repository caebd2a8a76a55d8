// cvt.
#include "apply.h"
#include "arithmetic_convert.h"
#include "decoding.h"

namespace fcm::ptx {

namespace {

// The parameters of a conversion, stored in the instruction's number.
struct Style {
    Type to, from;
    conversion::ToWhole to_whole = conversion::ToWhole::zero;
    bool to_whole_named = false;
    Rounding rounding = Rounding::nearest;
    bool flush = false, saturate = false;
    unsigned width = 0;  // of the target register
};

int64_t pack_type(Type t) { return static_cast<int64_t>(t.kind) | static_cast<int64_t>(t.bits) << 8; }
Type unpack_type(int64_t n) { return {static_cast<Kind>(n & 0xff), static_cast<uint8_t>(n >> 8 & 0xff)}; }

int64_t pack(const Style &s) {
    return pack_type(s.to) | pack_type(s.from) << 16 | static_cast<int64_t>(s.to_whole) << 32 |
           static_cast<int64_t>(s.to_whole_named) << 36 | static_cast<int64_t>(s.rounding) << 40 |
           static_cast<int64_t>(s.flush) << 44 | static_cast<int64_t>(s.saturate) << 45 |
           static_cast<int64_t>(s.width) << 48;
}

Style unpack(int64_t n) {
    Style s;
    s.to = unpack_type(n);
    s.from = unpack_type(n >> 16);
    s.to_whole = static_cast<conversion::ToWhole>(n >> 32 & 15);
    s.to_whole_named = (n >> 36 & 1) != 0;
    s.rounding = static_cast<Rounding>(n >> 40 & 15);
    s.flush = (n >> 44 & 1) != 0;
    s.saturate = (n >> 45 & 1) != 0;
    s.width = static_cast<unsigned>(n >> 48 & 0xff);
    return s;
}

// A result narrower than its register is extended to it, with the sign if it is signed.
uint64_t fill(uint64_t v, const Style &s) { return conversion::extended(v, s.to) & low_bits(s.width); }

double read_real(uint64_t bits, Type type) {
    if (type.kind == Kind::brain) return value<float>((bits & 0xffff) << 16);
    if (type.bits == 16) return conversion::from_half(bits & 0xffff);
    return type.bits == 64 ? value<double>(bits) : static_cast<double>(value<float>(bits));
}

// All others go through double, which represents every narrower number exactly.
uint64_t write_real(double v, const Style &s) {
    if (s.saturate) v = real::saturated(v);
    if (s.to.kind == Kind::real && s.to.bits == 16) return conversion::to_half(v, s.rounding);
    if (s.to.bits == 64) return raw(v);
    const bool exact = static_cast<double>(static_cast<float>(v)) == v;
    float f = exact || s.rounding == Rounding::nearest ? static_cast<float>(v) : rounded::convert<float>(v, s.rounding);
    if (s.flush) f = real::flushed<true>(f);
    return f != f ? real::kFloatNan : raw(f);
}

void real_to_whole(Thread &t, const Instruction &i) {
    const Style s = unpack(i.number);
    double v = read_real(t.registers[i.slot[1]], s.from);
    if (s.flush && s.from.bits == 32) v = static_cast<double>(real::flushed<true>(static_cast<float>(v)));
    t.registers[i.slot[0]] = fill(conversion::real_to_whole(v, s.to_whole, s.from, s.to), s);
}

void real_to_real(Thread &t, const Instruction &i) {
    const Style s = unpack(i.number);
    const uint64_t bits = t.registers[i.slot[1]];
    double v = read_real(bits, s.from);
    if (s.flush && s.from.bits == 32) v = static_cast<double>(real::flushed<true>(static_cast<float>(v)));
    if (s.to_whole_named) v = conversion::rounded_to_whole(v, s.to_whole);
    if (s.to.kind == Kind::brain) {
        t.registers[i.slot[0]] = conversion::to_brain(static_cast<float>(v), s.rounding);
    } else if (s.to.kind == Kind::tensor) {
        t.registers[i.slot[0]] = conversion::to_tensor(static_cast<float>(v));
    } else {
        t.registers[i.slot[0]] = write_real(v, s);
    }
}

void whole_to_real(Thread &t, const Instruction &i) {
    const Style s = unpack(i.number);
    const uint64_t v = conversion::extended(t.registers[i.slot[1]], s.from);
    const bool sign = s.from.kind == Kind::integer;
    uint64_t bits = 0;
    if (s.to.bits == 64) {
        bits = raw(sign ? rounded::convert<double>(static_cast<int64_t>(v), s.rounding)
                        : rounded::convert<double>(v, s.rounding));
    } else {
        float f = sign ? rounded::convert<float>(static_cast<int64_t>(v), s.rounding)
                       : rounded::convert<float>(v, s.rounding);
        if (s.saturate) f = real::saturated(f);
        bits = raw(f);
    }
    t.registers[i.slot[0]] = bits;
}

void whole_to_whole(Thread &t, const Instruction &i) {
    const Style s = unpack(i.number);
    t.registers[i.slot[0]] = fill(conversion::whole_to_whole(t.registers[i.slot[1]], s.from, s.to, s.saturate), s);
}

// The common conversions have specialized handlers.
struct Cut32 {
    static uint64_t of(uint64_t a) { return a & low_bits(32); }
};
struct Same {
    static uint64_t of(uint64_t a) { return a; }
};
struct Extend32 {
    static uint64_t of(uint64_t a) { return static_cast<uint64_t>(static_cast<int64_t>(value<int32_t>(a))); }
};
struct Widen {
    static uint64_t of(uint64_t a) { return raw(static_cast<double>(value<float>(a))); }
};
struct Narrow {
    static uint64_t of(uint64_t a) { return real::result<float, false>(static_cast<float>(value<double>(a))); }
};
template <class To, class From>
struct Number {
    static uint64_t of(uint64_t a) { return raw(static_cast<To>(value<From>(a))); }
};

Handler quick(const Style &s) {
    const bool plain = !s.flush && !s.saturate && !s.to_whole_named && s.rounding == Rounding::nearest;
    if (!plain || s.width != s.to.bits) return nullptr;
    if (s.to.whole() && s.from.whole()) {
        if (s.to.bits == 32 && s.from.bits == 64) return apply1<Cut32>;
        if (s.to.bits == 64 && s.from.bits == 32) {
            return s.from.kind == Kind::integer ? apply1<Extend32> : apply1<Cut32>;
        }
        if (s.to.bits == s.from.bits) return apply1<Same>;
        return nullptr;
    }
    if (s.to.is(Kind::real, 64) && s.from.is(Kind::real, 32)) return apply1<Widen>;
    if (s.to.is(Kind::real, 32) && s.from.is(Kind::real, 64)) return apply1<Narrow>;
    if (s.to.is(Kind::real, 32) && s.from.is(Kind::integer, 32)) return apply1<Number<float, int32_t>>;
    if (s.to.is(Kind::real, 32) && s.from.is(Kind::natural, 32)) return apply1<Number<float, uint32_t>>;
    if (s.to.is(Kind::real, 64) && s.from.is(Kind::integer, 32)) return apply1<Number<double, int32_t>>;
    if (s.to.is(Kind::real, 64) && s.from.is(Kind::natural, 32)) return apply1<Number<double, uint32_t>>;
    return nullptr;
}

bool is_real(Type t) { return t.kind == Kind::real || t.kind == Kind::brain || t.kind == Kind::tensor; }

void take_roundings(Decoding &d, Style &s, bool &named) {
    const auto whole = [&](const char *name, conversion::ToWhole how) {
        if (!d.take(name)) return;
        if (s.to_whole_named) d.fail("two roundings");
        s.to_whole = how;
        s.to_whole_named = true;
    };
    whole("rni", conversion::ToWhole::nearest_even);
    whole("rzi", conversion::ToWhole::zero);
    whole("rmi", conversion::ToWhole::down);
    whole("rpi", conversion::ToWhole::up);
    const auto real = [&](const char *name, Rounding how) {
        if (!d.take(name)) return;
        if (named || s.to_whole_named) d.fail("two roundings");
        s.rounding = how;
        named = true;
    };
    real("rn", Rounding::nearest);
    real("rz", Rounding::zero);
    real("rm", Rounding::down);
    real("rp", Rounding::up);
}

}  // namespace

namespace {

// Two floats to one register, the first in the upper half.
template <Rounding R>
void to_brain_pair(Thread &t, const Instruction &i) {
    const uint64_t high = conversion::to_brain(value<float>(t.registers[i.slot[1]]), R);
    t.registers[i.slot[0]] = high << 16 | conversion::to_brain(value<float>(t.registers[i.slot[2]]), R);
}

// cvt.rn.bf16x2.f32 d, a, b
void brain_pair(Decoding &d) {
    const bool nearest = d.take("rn");
    if (!nearest && !d.take("rz")) d.fail("a rounding expected");
    const Type type = d.take_type();
    d.finish();
    d.expect_operands(3);
    if (!type.is(Kind::real, 32)) d.fail("only from f32");
    d.emit(nearest ? to_brain_pair<Rounding::nearest> : to_brain_pair<Rounding::zero>,
           {d.target(0, kWord), d.source(1, type), d.source(2, type)});
}

}  // namespace

bool decode_convert(Decoding &d) {
    if (d.opcode() != "cvt") return false;
    if (d.take("bf16x2")) {
        brain_pair(d);
        return true;
    }
    Style s;
    bool named = false;
    take_roundings(d, s, named);
    s.flush = d.take("ftz");
    s.saturate = d.take("sat");
    s.to = d.take_type();
    s.from = d.take_type();
    if (s.to.kind == Kind::untyped || s.from.kind == Kind::untyped) d.fail("bits are no number");
    const bool away = d.take("rna");
    if (away != (s.to.kind == Kind::tensor)) d.fail("tf32 is made with .rna");
    d.finish();
    d.expect_operands(2);

    const bool from_real = is_real(s.from), to_real = is_real(s.to);
    if (s.from.kind == Kind::tensor) d.fail("from tf32");
    if ((s.to.kind == Kind::brain || s.to.kind == Kind::tensor) && !s.from.is(Kind::real, 32)) d.fail("only from f32");
    if (from_real && !to_real && (!s.to_whole_named || named)) d.fail("a rounding to whole numbers expected");
    if (!from_real && to_real && (!named || s.to_whole_named)) d.fail("a rounding expected");
    if (!from_real && to_real && s.to.bits == 16) d.fail("a whole number to 16 bits of floating point");
    if (from_real && to_real && s.to.bits < s.from.bits && !named) d.fail("a rounding expected");
    if (!from_real && !to_real && (named || s.to_whole_named)) d.fail("nothing to round");

    const uint32_t source = d.source_or_wider(d.operand(1), s.from);
    const uint32_t target = d.target_or_wider(d.operand(0), s.to, s.width);
    Handler handler = quick(s);
    if (handler == nullptr) {
        handler = from_real ? (to_real ? real_to_real : real_to_whole) : (to_real ? whole_to_real : whole_to_whole);
    }
    d.emit(handler, {target, source}, pack(s));
    return true;
}

}  // namespace fcm::ptx
