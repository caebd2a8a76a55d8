// Floating point against the host's IEEE arithmetic, with NaN, infinities and subnormals.
#include <cfenv>
#include <cmath>
#include <functional>
#include <limits>

#include "bits.h"
#include "support.h"

using namespace ptxtest;

namespace {

template <class T>
std::vector<uint64_t> values(size_t random = 24) {
    return sizeof(T) == 4 ? float_values(random) : double_values(random);
}
template <class T>
unsigned width() {
    return sizeof(T) * 8;
}
template <class T>
std::string suffix() {
    return sizeof(T) == 4 ? "f32" : "f64";
}

// A float NaN has one canonical form on a GPU; a double NaN is the host's.
template <class T>
bool same(uint64_t bits, T right) {
    if (right != right) return sizeof(T) == 4 ? bits == 0x7fffffff : value<double>(bits) != value<double>(bits);
    return bits == raw(right);
}

template <class T>
void compare(const std::string &code, const std::vector<Case> &cases,
    const std::function<T(const std::vector<T> &)> &expected) {
    std::vector<unsigned> widths(cases[0].size() + 1, width<T>());
    const std::vector<uint64_t> results = evaluate(code, widths, cases);
    for (size_t i = 0; i < cases.size(); ++i) {
        std::vector<T> in;
        for (const uint64_t bits : cases[i]) in.push_back(value<T>(bits));
        const T right = expected(in);
        CHECK(same(results[i], right), "%s of %a %a %a: %a, not %a", code.c_str(), static_cast<double>(in[0]),
              static_cast<double>(in.size() > 1 ? in[1] : T(0)), static_cast<double>(in.size() > 2 ? in[2] : T(0)),
              static_cast<double>(value<T>(results[i])), static_cast<double>(right));
    }
}

class Mode {
public:
    explicit Mode(int mode) { std::fesetround(mode); }
    ~Mode() { std::fesetround(FE_TONEAREST); }
};

constexpr struct {
    const char *name;
    int mode;
} kModes[] = {{"rn", FE_TONEAREST}, {"rz", FE_TOWARDZERO}, {"rm", FE_DOWNWARD}, {"rp", FE_UPWARD}};

float flush(float v) { return std::fabs(v) < std::numeric_limits<float>::min() ? std::copysign(0.0f, v) : v; }

template <class T>
void all_roundings() {
    const std::string t = suffix<T>();
    const auto few = values<T>(8);
    for (const auto &m : kModes) {
        const std::string r = std::string(".") + m.name + ".";
        const int mode = m.mode;
        using In = const std::vector<T> &;
        compare<T>("add" + r + t + " D, A, B;", pairs(values<T>(), values<T>()),
            [=](In x) { const Mode s(mode); volatile T v = x[0] + x[1]; return v; });
        compare<T>("sub" + r + t + " D, A, B;", pairs(values<T>(), values<T>()),
            [=](In x) { const Mode s(mode); volatile T v = x[0] - x[1]; return v; });
        compare<T>("mul" + r + t + " D, A, B;", pairs(values<T>(), values<T>()),
            [=](In x) { const Mode s(mode); volatile T v = x[0] * x[1]; return v; });
        compare<T>("div" + r + t + " D, A, B;", pairs(values<T>(), values<T>()),
            [=](In x) { const Mode s(mode); volatile T v = x[0] / x[1]; return v; });
        compare<T>("sqrt" + r + t + " D, A;", singles(values<T>(200)),
            [=](In x) { const Mode s(mode); volatile T a = x[0]; volatile T v = std::sqrt(a); return v; });
        compare<T>("rcp" + r + t + " D, A;", singles(values<T>(200)),
            [=](In x) { const Mode s(mode); volatile T v = T(1) / x[0]; return v; });
        compare<T>("fma" + r + t + " D, A, B, C;", triples(few, few, few),
            [=](In x) { const Mode s(mode); volatile T a = x[0], b = x[1],
            c = x[2]; volatile T v = std::fma(a, b, c); return v; });
    }
    compare<T>("add." + t + " D, A, B;", pairs(few, few), [](const std::vector<T> &x) { return x[0] + x[1]; });
    compare<T>("mul." + t + " D, A, B;", pairs(few, few), [](const std::vector<T> &x) { return x[0] * x[1]; });
}

}  // namespace

TEST(float_arithmetic_in_every_rounding) { all_roundings<float>(); }
TEST(double_arithmetic_in_every_rounding) { all_roundings<double>(); }

TEST(a_fused_product_is_rounded_once) {
    // 1 + 2^-12 squared is 1 + 2^-11 + 2^-24: rounded twice, its last bit is lost.
    const uint64_t a = raw(1.0f + 0x1p-12f), c = raw(-1.0f);
    CHECK(evaluate("fma.rn.f32 D, A, A, B;", {32, 32, 32}, {{a, c}})[0] == raw(0x1p-11f + 0x1p-24f), "fused");
    CHECK(evaluate("mul.rn.f32 D, A, A; add.rn.f32 D, D, B;", {32, 32, 32}, {{a, c}})[0] == raw(0x1p-11f), "apart");
}

TEST(subnormals_are_kept_unless_flushed) {
    const auto v = float_values();
    using In = const std::vector<float> &;
    compare<float>("add.ftz.f32 D, A, B;", pairs(v, v), [](In x) { return flush(flush(x[0]) + flush(x[1])); });
    compare<float>("mul.rn.ftz.f32 D, A, B;", pairs(v, v), [](In x) { return flush(flush(x[0]) * flush(x[1])); });
    compare<float>("div.rn.ftz.f32 D, A, B;", pairs(v, v), [](In x) { return flush(flush(x[0]) / flush(x[1])); });
    compare<float>("sqrt.rn.ftz.f32 D, A;", singles(v), [](In x) { return flush(std::sqrt(flush(x[0]))); });
    compare<float>("fma.rn.ftz.f32 D, A, B, C;", triples(float_values(4), float_values(4), float_values(4)),
                   [](In x) { return flush(std::fma(flush(x[0]), flush(x[1]), flush(x[2]))); });
    CHECK(evaluate("add.f32 D, A, B;", {32, 32, 32}, {{1, 1}})[0] == 2, "kept");
    CHECK(evaluate("add.ftz.f32 D, A, B;", {32, 32, 32}, {{1, 1}})[0] == 0, "flushed");
}

TEST(saturation) {
    const auto v = float_values();
    const auto saturate = [](float x) { return x > 0 ? std::min(x, 1.0f) : 0.0f; };
    compare<float>("add.sat.f32 D, A, B;", pairs(v, v), [=](const std::vector<float> &x) { return saturate(x[0] +
        x[1]); });
    compare<float>("mul.rz.sat.f32 D, A, B;", pairs(v, v),
        [=](const std::vector<float> &x) { const Mode m(FE_TOWARDZERO); volatile float p = x[0] * x[1]; return saturate(p); });
}

TEST(signs) {
    for (const uint64_t bits : float_values()) {
        const auto one = [&](const char *code) { return evaluate(code, {32, 32, 32}, {{bits, 0x80000000}})[0]; };
        CHECK(one("abs.f32 D, A;") == (bits & 0x7fffffff), "abs of %llx", static_cast<unsigned long long>(bits));
        CHECK(one("neg.f32 D, A;") == (bits ^ 0x80000000), "neg of %llx", static_cast<unsigned long long>(bits));
        CHECK(one("copysign.f32 D, B, A;") == (bits | 0x80000000), "the sign comes from the first operand");
    }
    CHECK(evaluate("abs.f64 D, A;", {64, 64}, {{0x8000000000000001}})[0] == 1, "abs.f64");
}

template <class T>
void extremes() {
    const std::string t = suffix<T>();
    const auto v = values<T>();
    const auto cases = pairs(v, v);
    for (const bool least : {true, false}) {
        const std::string op = least ? "min." : "max.";
        const auto results = evaluate(op + t + " D, A, B;", {width<T>(), width<T>(), width<T>()}, cases);
        for (size_t i = 0; i < cases.size(); ++i) {
            const T a = value<T>(cases[i][0]), b = value<T>(cases[i][1]), r = value<T>(results[i]);
            if (a != a && b != b) CHECK(r != r && (sizeof(T) == 8 || results[i] == 0x7fffffff), "both are not numbers");
            else if (a != a) CHECK(raw(r) == raw(b), "%s%s gives the number", op.c_str(), t.c_str());
            else if (b != b) CHECK(raw(r) == raw(a), "%s%s gives the number", op.c_str(), t.c_str());
            else if (a == 0 && b == 0) CHECK(std::signbit(r) == (least ? std::signbit(a) || std::signbit(b)
                : std::signbit(a) && std::signbit(b)), "-0 is less than +0");
            else CHECK(r == (least ? (a < b ? a : b) : (a < b ? b : a)), "%s%s of %a and %a: %a", op.c_str(),
                t.c_str(), static_cast<double>(a), static_cast<double>(b), static_cast<double>(r));
        }
    }
}
TEST(least_and_most) {
    extremes<float>();
    extremes<double>();
    CHECK(evaluate("min.NaN.f32 D, A, B;", {32, 32, 32}, {{0x3f800000, 0x7fc00000}})[0] == 0x7fffffff, ".NaN keeps it");
}

template <class T>
void comparisons() {
    const struct {
        const char *name;
        std::function<bool(T, T)> f;
    } relations[] = {{"eq", [](T a, T b) { return a == b; }}, {"ne", [](T a, T b) { return a < b || a > b; }},
                     {"lt", [](T a, T b) { return a < b; }}, {"le", [](T a, T b) { return a <= b; }},
                     {"gt", [](T a, T b) { return a > b; }}, {"ge", [](T a, T b) { return a >= b; }},
                     {"equ", [](T a, T b) { return !(a < b || a > b); }}, {"neu", [](T a, T b) { return !(a == b); }},
                     {"ltu", [](T a, T b) { return !(a >= b); }}, {"leu", [](T a, T b) { return !(a > b); }},
                     {"gtu", [](T a, T b) { return !(a <= b); }}, {"geu", [](T a, T b) { return !(a < b); }},
                     {"num", [](T a, T b) { return !std::isnan(a) && !std::isnan(b); }},
                         {"nan", [](T a, T b) { return std::isnan(a) || std::isnan(b); }}};
    const auto cases = pairs(values<T>(8), values<T>(8));
    for (const auto &r : relations) {
        const auto results = evaluate(std::string("setp.") + r.name + "." + suffix<T>() + " P, A, B; "
            "selp.u32 D, 1, 0, P;", {32, width<T>(), width<T>()}, cases);
        for (size_t i = 0; i < cases.size(); ++i) {
            const T a = value<T>(cases[i][0]), b = value<T>(cases[i][1]);
            CHECK(results[i] == r.f(a, b), "%a %s %a", static_cast<double>(a), r.name, static_cast<double>(b));
        }
    }
}
TEST(comparisons_with_and_without_order) {
    comparisons<float>();
    comparisons<double>();
    CHECK(evaluate("setp.eq.ftz.f32 P, A, 0f00000000; "
        "selp.u32 D, 1, 0, P;", {32, 32}, {{1}})[0] == 1, "a flushed subnormal is zero");
}

TEST(properties) {
    for (const uint64_t bits : float_values()) {
        const float v = value<float>(bits);
        const auto is = [&](const std::string &what) { return evaluate("testp." + what + ".f32 P, A; "
            "selp.u32 D, 1, 0, P;", {32, 32}, {{bits}})[0] != 0; };
        CHECK(is("finite") == static_cast<bool>(std::isfinite(v)), "finite %a", static_cast<double>(v));
        CHECK(is("infinite") == static_cast<bool>(std::isinf(v)), "infinite %a", static_cast<double>(v));
        CHECK(is("number") == !std::isnan(v), "number %a", static_cast<double>(v));
        CHECK(is("notanumber") == static_cast<bool>(std::isnan(v)), "notanumber %a", static_cast<double>(v));
        CHECK(is("subnormal") == (std::fpclassify(v) == FP_SUBNORMAL), "subnormal %a", static_cast<double>(v));
        CHECK(is("normal") == (std::isnormal(v) || v == 0), "normal %a", static_cast<double>(v));
    }
    // The instruction that isfinite is compiled to.
    for (const uint64_t bits : double_values()) {
        const bool finite = evaluate("abs.f64 A, A; setp.lt.f64 P, A, 0d7FF0000000000000; "
            "selp.u32 D, 1, 0, P;", {32, 64}, {{bits}})[0] != 0;
        CHECK(finite == static_cast<bool>(std::isfinite(value<double>(bits))), "%llx",
            static_cast<unsigned long long>(bits));
    }
}
