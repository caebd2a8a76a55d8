// setp, set, selp, slct, testp.
#include "apply.h"
#include "arithmetic_real.h"
#include "decoding.h"

namespace fcm::ptx {

namespace {

enum class Relation { eq, ne, lt, le, gt, ge, equ, neu, ltu, leu, gtu, geu, num, nan };

template <class T, Relation R, bool Flush>
struct Compare {
    static uint64_t of(uint64_t a_bits, uint64_t b_bits) {
        T a = value<T>(a_bits), b = value<T>(b_bits);
        bool open = false;  // unordered: one of them is NaN
        if constexpr (std::is_floating_point_v<T>) {
            a = real::flushed<Flush>(a);
            b = real::flushed<Flush>(b);
            open = a != a || b != b;
        }
        switch (R) {
            case Relation::eq: return a == b;
            case Relation::ne: return !open && a != b;
            case Relation::lt: return a < b;
            case Relation::le: return a <= b;
            case Relation::gt: return a > b;
            case Relation::ge: return a >= b;
            case Relation::equ: return open || a == b;
            case Relation::neu: return a != b;
            case Relation::ltu: return open || a < b;
            case Relation::leu: return open || a <= b;
            case Relation::gtu: return open || a > b;
            case Relation::geu: return open || a >= b;
            case Relation::num: return !open;
            case Relation::nan: return open;
        }
        return 0;
    }
};

template <class T, bool Flush>
Handler handler_of(Relation relation) {
    switch (relation) {
        case Relation::eq: return apply2<Compare<T, Relation::eq, Flush>>;
        case Relation::ne: return apply2<Compare<T, Relation::ne, Flush>>;
        case Relation::lt: return apply2<Compare<T, Relation::lt, Flush>>;
        case Relation::le: return apply2<Compare<T, Relation::le, Flush>>;
        case Relation::gt: return apply2<Compare<T, Relation::gt, Flush>>;
        case Relation::ge: return apply2<Compare<T, Relation::ge, Flush>>;
        case Relation::equ: return apply2<Compare<T, Relation::equ, Flush>>;
        case Relation::neu: return apply2<Compare<T, Relation::neu, Flush>>;
        case Relation::ltu: return apply2<Compare<T, Relation::ltu, Flush>>;
        case Relation::leu: return apply2<Compare<T, Relation::leu, Flush>>;
        case Relation::gtu: return apply2<Compare<T, Relation::gtu, Flush>>;
        case Relation::geu: return apply2<Compare<T, Relation::geu, Flush>>;
        case Relation::num: return apply2<Compare<T, Relation::num, Flush>>;
        case Relation::nan: return apply2<Compare<T, Relation::nan, Flush>>;
    }
    return nullptr;
}

Relation take_relation(Decoding &d, Type type) {
    struct Name {
        const char *name;
        Relation relation;
        bool real_only, whole_only;
    };
    static constexpr Name kNames[] = {
        {"eq", Relation::eq, false, false}, {"ne", Relation::ne, false, false}, {"lt", Relation::lt, false, false},
        {"le", Relation::le, false, false}, {"gt", Relation::gt, false, false}, {"ge", Relation::ge, false, false},
        {"lo", Relation::lt, false, true}, {"ls", Relation::le, false, true}, {"hi", Relation::gt, false, true},
        {"hs", Relation::ge, false, true}, {"equ", Relation::equ, true, false}, {"neu", Relation::neu, true, false},
        {"ltu", Relation::ltu, true, false}, {"leu", Relation::leu, true, false}, {"gtu", Relation::gtu, true, false},
        {"geu", Relation::geu, true, false}, {"num", Relation::num, true, false}, {"nan", Relation::nan, true, false}};
    for (const Name &n : kNames) {
        if (!d.take(n.name)) continue;
        if (n.real_only && type.kind != Kind::real) d.fail("this comparison is for floating point");
        if (n.whole_only && type.kind != Kind::natural) d.fail("this comparison is for unsigned numbers");
        if (type.kind == Kind::untyped && n.relation != Relation::eq && n.relation != Relation::ne) {
            d.fail("bits have no order");
        }
        return n.relation;
    }
    d.fail("no comparison that this interpreter knows");
}

Handler comparison(Decoding &d, Type type, Relation relation, bool flush) {
    if (flush && !type.is(Kind::real, 32)) d.fail(".ftz is for f32");
    if (type.kind == Kind::real) {
        if (type.bits == 64) return handler_of<double, false>(relation);
        if (type.bits == 32) return flush ? handler_of<float, true>(relation) : handler_of<float, false>(relation);
        d.fail("a comparison in 16 bits");
    }
    const bool sign = type.kind == Kind::integer;
    switch (type.bits) {
        case 16: return sign ? handler_of<int16_t, false>(relation) : handler_of<uint16_t, false>(relation);
        case 32: return sign ? handler_of<int32_t, false>(relation) : handler_of<uint32_t, false>(relation);
        case 64: return sign ? handler_of<int64_t, false>(relation) : handler_of<uint64_t, false>(relation);
        default: d.fail("not with this type");
    }
}

enum class Join { none, both, either, one };

// p = c op (a ? b), q = c op !(a ? b)
template <Join J>
void join(Thread &t, const Instruction &i) {
    const uint64_t found = t.registers[i.slot[2]], with = t.registers[i.slot[3]];
    const auto op = [with](uint64_t v) {
        switch (J) {
            case Join::both: return v & with;
            case Join::either: return v | with;
            case Join::one: return v ^ with;
            case Join::none: break;
        }
        return v;
    };
    const uint64_t p = op(found), q = op(found == 0);
    t.registers[i.slot[0]] = p;
    t.registers[i.slot[1]] = q;
}

Join take_join(Decoding &d) {
    if (d.take("and")) return Join::both;
    if (d.take("or")) return Join::either;
    if (d.take("xor")) return Join::one;
    return Join::none;
}

Handler handler_of_join(Join j) {
    switch (j) {
        case Join::both: return join<Join::both>;
        case Join::either: return join<Join::either>;
        case Join::one: return join<Join::one>;
        case Join::none: break;
    }
    return join<Join::none>;
}

void set_predicate(Decoding &d) {
    const Type type = d.take_type();
    const Relation relation = take_relation(d, type);
    const Join j = take_join(d);
    const bool flush = d.take("ftz");
    d.finish();
    d.expect_operands(j == Join::none ? 3 : 4);
    const Handler compare = comparison(d, type, relation, flush);
    const uint32_t a = d.source(1, type), b = d.source(2, type);
    const Operand &first = d.operand(0);
    const bool pair = first.kind == Operand::Kind::pair;
    if (j == Join::none && !pair) {
        d.emit(compare, {d.target(first, kPredicate), a, b});
        return;
    }
    const uint32_t with = j == Join::none ? d.function().constant(0) : d.predicate(d.operand(3));
    const uint32_t found = d.function().scratch();
    d.emit(compare, {found, a, b});
    const uint32_t p = d.target(pair ? first.parts[0] : first, kPredicate);
    const uint32_t q = pair ? d.target(first.parts[1], kPredicate) : d.function().scratch();
    d.emit(handler_of_join(j), {p, q, found, with});
}

void choose(Thread &t, const Instruction &i) {
    t.registers[i.slot[0]] = t.registers[i.slot[3]] != 0 ? t.registers[i.slot[1]] : t.registers[i.slot[2]];
}

// set.lt.u32.f32: all ones or zero, or 1.0 or 0.0
void set_register(Decoding &d) {
    const Type result = d.take_type();
    const Type type = d.take_type();
    const Relation relation = take_relation(d, type);
    const Join j = take_join(d);
    const bool flush = d.take("ftz");
    d.finish();
    d.expect_operands(j == Join::none ? 3 : 4);
    if (result.bits != 32 || result.kind == Kind::untyped) d.fail("a result of u32, s32 or f32 expected");
    const Handler compare = comparison(d, type, relation, flush);
    uint32_t found = d.function().scratch();
    d.emit(compare, {found, d.source(1, type), d.source(2, type)});
    if (j != Join::none) {
        const uint32_t joined = d.function().scratch(), other = d.function().scratch();
        const uint32_t with = d.predicate(d.operand(3));
        d.emit(handler_of_join(j), {joined, other, found, with});
        found = joined;
    }
    const uint32_t yes = d.function().constant(result.kind == Kind::real ? raw(1.0f) : low_bits(32));
    d.emit(choose, {d.target(0, result), yes, d.function().constant(0), found});
}

template <bool Real>
void choose_by_sign(Thread &t, const Instruction &i) {
    const uint64_t c = t.registers[i.slot[3]];
    const bool first = Real ? value<float>(c) >= 0 : value<int32_t>(c) >= 0;
    t.registers[i.slot[0]] = first ? t.registers[i.slot[1]] : t.registers[i.slot[2]];
}

enum class Property { finite, infinite, number, nan, normal, subnormal };

template <class T, Property P>
struct Test {
    static uint64_t of(uint64_t bits) {
        const T v = value<T>(bits);
        switch (P) {
            case Property::finite: return std::isfinite(v);
            case Property::infinite: return std::isinf(v);
            case Property::number: return v == v;
            case Property::nan: return v != v;
            // PTX counts zero as a normal number.
            case Property::normal: return std::isnormal(v) || v == 0;
            case Property::subnormal: return std::fpclassify(v) == FP_SUBNORMAL;
        }
        return 0;
    }
};

void test_property(Decoding &d) {
    const Type type = d.take_type();
    if (type.kind != Kind::real || type.bits < 32) d.fail("with f32 and f64 only");
    const auto emit = [&](auto property) {
        d.finish();
        d.expect_operands(2);
        d.emit(type.bits == 64 ? apply1<Test<double, decltype(property)::value>>
                               : apply1<Test<float, decltype(property)::value>>,
               {d.target(0, kPredicate), d.source(1, type)});
    };
    if (d.take("finite")) emit(std::integral_constant<Property, Property::finite>());
    else if (d.take("infinite")) emit(std::integral_constant<Property, Property::infinite>());
    else if (d.take("number")) emit(std::integral_constant<Property, Property::number>());
    else if (d.take("notanumber")) emit(std::integral_constant<Property, Property::nan>());
    else if (d.take("normal")) emit(std::integral_constant<Property, Property::normal>());
    else if (d.take("subnormal")) emit(std::integral_constant<Property, Property::subnormal>());
    else d.fail("no property that this interpreter knows");
}

}  // namespace

bool decode_compare(Decoding &d) {
    const std::string &op = d.opcode();
    if (op == "setp") {
        set_predicate(d);
    } else if (op == "set") {
        set_register(d);
    } else if (op == "testp") {
        test_property(d);
    } else if (op == "selp") {
        const Type type = d.take_type();
        d.finish();
        d.expect_operands(4);
        d.emit(choose, {d.target(0, type), d.source(1, type), d.source(2, type), d.source(3, kPredicate)});
    } else if (op == "slct") {
        const Type type = d.take_type(), by = d.take_type();
        d.finish();
        d.expect_operands(4);
        if (!by.is(Kind::integer, 32) && !by.is(Kind::real, 32)) d.fail("a choice by s32 or f32 expected");
        d.emit(by.kind == Kind::real ? choose_by_sign<true> : choose_by_sign<false>,
               {d.target(0, type), d.source(1, type), d.source(2, type), d.source(3, by)});
    } else {
        return false;
    }
    return true;
}

}  // namespace fcm::ptx
