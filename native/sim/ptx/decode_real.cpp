// Floating-point arithmetic. Approximate instructions (.approx, .full) are refused, because machines need not agree on the
// result.
#include "apply.h"
#include "arithmetic_real.h"
#include "decoding.h"

namespace fcm::ptx {

namespace {

real::Style unpack(const Instruction &i) {
    real::Style style;
    style.rounding = static_cast<Rounding>(i.number & 3);
    style.flush = (i.number & 4) != 0;
    style.saturate = (i.number & 8) != 0;
    return style;
}

int64_t pack(const real::Style &style) {
    return static_cast<int64_t>(style.rounding) | (style.flush ? 4 : 0) | (style.saturate ? 8 : 0);
}

enum class Slow { add, sub, mul, div, fma, sqrt, rcp };

// All rare combinations.
template <class T, Slow Op>
void slowly(Thread &t, const Instruction &i) {
    const real::Style style = unpack(i);
    const T a = real::read<T>(t.registers[i.slot[1]], style);
    const T b = real::read<T>(t.registers[i.slot[2]], style);
    const T c = real::read<T>(t.registers[i.slot[3]], style);
    T v{};
    switch (Op) {
        case Slow::add: v = rounded::add(a, b, style.rounding); break;
        case Slow::sub: v = rounded::add(a, -b, style.rounding); break;
        case Slow::mul: v = rounded::multiply(a, b, style.rounding); break;
        case Slow::div: v = rounded::divide(a, b, style.rounding); break;
        case Slow::fma: v = rounded::fused(a, b, c, style.rounding); break;
        case Slow::sqrt: v = rounded::root(a, style.rounding); break;
        case Slow::rcp: v = rounded::divide(T(1), a, style.rounding); break;
    }
    t.registers[i.slot[0]] = real::write(v, style);
}

template <template <class, bool> class Op, template <class> class Apply>
Handler quick(Type type, bool flush) {
    if (type.bits == 64) return Apply<Op<double, false>>::handler;
    return flush ? Apply<Op<float, true>>::handler : Apply<Op<float, false>>::handler;
}
template <class Op> struct One { static constexpr Handler handler = apply1<Op>; };
template <class Op> struct Two { static constexpr Handler handler = apply2<Op>; };
template <class Op> struct Three { static constexpr Handler handler = apply3<Op>; };

template <Slow Op>
Handler slow(Type type) {
    return type.bits == 64 ? slowly<double, Op> : slowly<float, Op>;
}

real::Style take_style(Decoding &d, Type type, bool rounding_needed) {
    real::Style style;
    int named = 0;
    if (d.take("rn")) ++named;
    if (d.take("rz")) ++named, style.rounding = Rounding::zero;
    if (d.take("rm")) ++named, style.rounding = Rounding::down;
    if (d.take("rp")) ++named, style.rounding = Rounding::up;
    if (named > 1 || (rounding_needed && named == 0)) d.fail("one rounding expected");
    style.flush = d.take("ftz");
    style.saturate = d.take("sat");
    if (type.bits == 64 && (style.flush || style.saturate)) d.fail(".ftz and .sat are for f32");
    d.finish();
    return style;
}

template <template <class, bool> class Quick, Slow Other>
void two(Decoding &d, Type type, bool rounding_needed) {
    const real::Style style = take_style(d, type, rounding_needed);
    d.expect_operands(3);
    const bool plain = style.rounding == Rounding::nearest && !style.saturate;
    const uint32_t a = d.source(1, type), b = d.source(2, type);
    d.emit(plain ? quick<Quick, Two>(type, style.flush) : slow<Other>(type), {d.target(0, type), a, b, a}, pack(style));
}

template <template <class, bool> class Quick, Slow Other>
void one(Decoding &d, Type type) {
    if (d.peek() == "approx") d.fail("only an approximation, whose bits nobody promises");
    const real::Style style = take_style(d, type, true);
    d.expect_operands(2);
    const bool plain = style.rounding == Rounding::nearest && !style.saturate;
    const uint32_t a = d.source(1, type);
    d.emit(plain ? quick<Quick, One>(type, style.flush) : slow<Other>(type), {d.target(0, type), a, a, a}, pack(style));
}

void fused(Decoding &d, Type type) {
    const real::Style style = take_style(d, type, true);
    d.expect_operands(4);
    const bool plain = style.rounding == Rounding::nearest && !style.saturate;
    d.emit(plain ? quick<real::Fma, Three>(type, style.flush) : slow<Slow::fma>(type),
           {d.target(0, type), d.source(1, type), d.source(2, type), d.source(3, type)}, pack(style));
}

template <class T, bool Flush>
Handler extreme(bool least, bool keep_nan) {
    if (least) {
        return keep_nan ? apply2<real::Extreme<T, Flush, true, true>> : apply2<real::Extreme<T, Flush, true, false>>;
    }
    return keep_nan ? apply2<real::Extreme<T, Flush, false, true>> : apply2<real::Extreme<T, Flush, false, false>>;
}

void least_or_most(Decoding &d, Type type) {
    const bool least = d.opcode() == "min", flush = d.take("ftz"), keep = d.take("NaN");
    if (type.bits == 64 && (flush || keep)) d.fail(".ftz and .NaN are for f32");
    d.finish();
    d.expect_operands(3);
    const Handler handler = type.bits == 64 ? extreme<double, false>(least, keep)
                            : flush         ? extreme<float, true>(least, keep)
                                            : extreme<float, false>(least, keep);
    d.emit(handler, {d.target(0, type), d.source(1, type), d.source(2, type)});
}

void sign(Decoding &d, Type type) {
    const bool flush = d.take("ftz");
    if (flush && type.bits == 64) d.fail(".ftz is for f32");
    d.finish();
    d.expect_operands(2);
    d.emit(d.opcode() == "abs" ? quick<real::Abs, One>(type, flush) : quick<real::Neg, One>(type, flush),
           {d.target(0, type), d.source(1, type)});
}

bool refused(const std::string &op) {
    for (const char *name : {"sin", "cos", "ex2", "lg2", "rsqrt", "tanh"}) {
        if (op == name) return true;
    }
    return false;
}

}  // namespace

bool decode_real(Decoding &d) {
    const std::string &op = d.opcode();
    if (refused(op)) d.fail("only an approximation, whose bits nobody promises");
    const auto last = d.last_type();
    if (!last || last->kind != Kind::real) return false;
    const bool known = op == "add" || op == "sub" || op == "mul" || op == "div" || op == "fma" || op == "mad" ||
                       op == "sqrt" || op == "rcp" || op == "min" || op == "max" || op == "abs" || op == "neg" ||
                       op == "copysign";
    if (!known) return false;
    const Type type = d.take_type();
    if (type.bits < 32) d.fail("arithmetic in 16 bits");
    if (op == "add") two<real::Add, Slow::add>(d, type, false);
    else if (op == "sub") two<real::Sub, Slow::sub>(d, type, false);
    else if (op == "mul") two<real::Mul, Slow::mul>(d, type, false);
    else if (op == "div") {
        if (d.peek() == "approx" || d.peek() == "full") d.fail("only an approximation, whose bits nobody promises");
        two<real::Div, Slow::div>(d, type, true);
    } else if (op == "fma" || op == "mad") fused(d, type);
    else if (op == "sqrt") one<real::Sqrt, Slow::sqrt>(d, type);
    else if (op == "rcp") one<real::Reciprocal, Slow::rcp>(d, type);
    else if (op == "min" || op == "max") least_or_most(d, type);
    else if (op == "abs" || op == "neg") sign(d, type);
    else {  // copysign
        d.finish();
        d.expect_operands(3);
        d.emit(type.bits == 64 ? apply2<real::CopySign<double>> : apply2<real::CopySign<float>>,
               {d.target(0, type), d.source(1, type), d.source(2, type)});
    }
    return true;
}

}  // namespace fcm::ptx
