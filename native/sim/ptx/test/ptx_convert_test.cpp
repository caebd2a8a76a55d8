// cvt between all widths, in every rounding mode.
#include <cfenv>
#include <cmath>

#include "arithmetic_convert.h"
#include "bits.h"
#include "support.h"

using namespace ptxtest;

namespace {

struct Whole {
    const char *name;
    unsigned bits;
    bool sign;
};
constexpr Whole kWholes[] = {{"u8", 8, false}, {"s8", 8, true}, {"u16", 16, false}, {"s16", 16, true},
                             {"u32", 32, false}, {"s32", 32, true}, {"u64", 64, false}, {"s64", 64, true}};
constexpr const char *kRoundings[] = {"rn", "rz", "rm", "rp"};
constexpr int kModes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};

// A register has at least 16 bits; a narrower value is extended to it.
unsigned reg(const Whole &w) { return w.bits < 16 ? 16 : w.bits; }

__int128 number(uint64_t bits, const Whole &w) {
    bits &= low_bits(w.bits);
    if (w.sign && (bits >> (w.bits - 1) & 1)) return static_cast<__int128>(bits) - (static_cast<__int128>(1) << w.bits);
    return bits;
}
__int128 least(const Whole &w) { return w.sign ? -(static_cast<__int128>(1) << (w.bits - 1)) : 0; }
__int128 most(const Whole &w) { return (static_cast<__int128>(1) << (w.bits - (w.sign ? 1 : 0))) - 1; }

}  // namespace

TEST(whole_to_whole) {
    for (const Whole &from : kWholes) {
        for (const Whole &to : kWholes) {
            for (const bool saturate : {false, true}) {
                const std::string code = std::string("cvt.") + (saturate ? "sat." : "") + to.name + "." + from.name +
                    " D, A;";
                const auto cases = singles(whole_values(from.bits, 30));
                const auto results = evaluate(code, {reg(to), reg(from)}, cases);
                for (size_t i = 0; i < cases.size(); ++i) {
                    __int128 v = number(cases[i][0], from);
                    if (saturate) v = std::min(std::max(v, least(to)), most(to));
                    v = number(static_cast<uint64_t>(v), to);
                    CHECK(results[i] == (static_cast<uint64_t>(v) & low_bits(reg(to))), "%s of %llx: %llx",
                        code.c_str(),
                          static_cast<unsigned long long>(cases[i][0]), static_cast<unsigned long long>(results[i]));
                }
            }
        }
    }
    CHECK(evaluate("cvt.s64.s8 D, A;", {64, 32}, {{0x1280}})[0] == 0xffffffffffffff80,
        "a narrow value in a wide register");
    CHECK(evaluate("cvt.s8.s32 D, A;", {32, 32}, {{0x1280}})[0] == 0xffffff80, "a narrow result in a wide register");
}

TEST(whole_to_real) {
    for (const Whole &from : kWholes) {
        for (int r = 0; r < 4; ++r) {
            const auto cases = singles(whole_values(from.bits, 60));
            const auto floats = evaluate(std::string("cvt.") + kRoundings[r] + ".f32." + from.name + " D, A;",
                {32, reg(from)}, cases);
            const auto doubles = evaluate(std::string("cvt.") + kRoundings[r] + ".f64." + from.name + " D, A;",
                {64, reg(from)}, cases);
            for (size_t i = 0; i < cases.size(); ++i) {
                const __int128 v = number(cases[i][0], from);
                std::fesetround(kModes[r]);
                // Both halves are exact, and so is their sum in 80 bits, so that a conversion rounds only once.
                volatile long double exact = static_cast<long double>(static_cast<int64_t>(v >> 32)) * 4294967296.0L +
                    static_cast<uint32_t>(v);
                volatile float f = static_cast<float>(exact);
                volatile double d = static_cast<double>(exact);
                std::fesetround(FE_TONEAREST);
                CHECK(floats[i] == raw<float>(f), "%s %s %llx", from.name, kRoundings[r],
                    static_cast<unsigned long long>(cases[i][0]));
                CHECK(doubles[i] == raw<double>(d), "%s %s %llx", from.name, kRoundings[r],
                    static_cast<unsigned long long>(cases[i][0]));
            }
        }
    }
}

TEST(real_to_whole) {
    constexpr const char *kNames[] = {"rni", "rzi", "rmi", "rpi"};
    for (const Whole &to : kWholes) {
        for (int r = 0; r < 4; ++r) {
            for (const bool wide : {false, true}) {
                auto cases = singles(wide ? double_values(60) : float_values(60));
                for (const double v : {0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.49999999, 127.5, 128.0, 255.5, 32767.5,
                    -32768.5, 65535.4, 2147483647.5, -2147483648.5}) {
                    cases.push_back({wide ? raw(v) : raw(static_cast<float>(v))});
                }
                const std::string code = std::string("cvt.") + kNames[r] + "." + to.name + (wide ? ".f64" : ".f32") +
                    " D, A;";
                const auto results = evaluate(code, {reg(to), wide ? 64u : 32u}, cases);
                for (size_t i = 0; i < cases.size(); ++i) {
                    const double v = wide ? value<double>(cases[i][0]) : static_cast<double>(value<float>(cases[i][0]));
                    std::fesetround(kModes[r]);
                    volatile double in = v;
                    volatile double whole = std::rint(in);
                    std::fesetround(FE_TONEAREST);
                    __int128 right = wide || to.bits == 64 ? static_cast<__int128>(1) << (to.bits - 1) : 0;
                    if (to.sign) right = -right;
                    if (!std::isnan(v)) {
                        if (whole >= 0x1p100) right = most(to);
                        else if (whole <= -0x1p100) right = least(to);
                        else right = std::min(std::max(static_cast<__int128>(whole), least(to)), most(to));
                    }
                    CHECK(results[i] == (static_cast<uint64_t>(right) & low_bits(reg(to))), "%s of %a: %llx",
                        code.c_str(), v,
                          static_cast<unsigned long long>(results[i]));
                }
            }
        }
    }
    CHECK(evaluate("cvt.rpi.ftz.s32.f32 D, A;", {32, 32}, {{1}})[0] == 0, "a flushed subnormal");
    CHECK(evaluate("cvt.rpi.s32.f32 D, A;", {32, 32}, {{1}})[0] == 1, "one that is kept");
}

TEST(real_to_real) {
    for (int r = 0; r < 4; ++r) {
        const auto cases = singles(double_values(200));
        const auto results = evaluate(std::string("cvt.") + kRoundings[r] + ".f32.f64 D, A;", {32, 64}, cases);
        for (size_t i = 0; i < cases.size(); ++i) {
            std::fesetround(kModes[r]);
            volatile double d = value<double>(cases[i][0]);
            volatile float f = static_cast<float>(d);
            std::fesetround(FE_TONEAREST);
            const float right = f;
            CHECK(results[i] == (right != right ? 0x7fffffff : raw(right)), "%s of %a: %a", kRoundings[r], d,
                static_cast<double>(value<float>(results[i])));
        }
    }
    for (const uint64_t bits : float_values(100)) {
        const float f = value<float>(bits);
        const uint64_t d = evaluate("cvt.f64.f32 D, A;", {64, 32}, {{bits}})[0];
        CHECK(f != f ? std::isnan(value<double>(d)) : d == raw(static_cast<double>(f)), "%llx",
            static_cast<unsigned long long>(bits));
        for (int r = 0; r < 4; ++r) {
            constexpr const char *kNames[] = {"rni", "rzi", "rmi", "rpi"};
            std::fesetround(kModes[r]);
            volatile float in = f;
            volatile float out = std::rint(in);
            std::fesetround(FE_TONEAREST);
            const float right = out;
            const uint64_t result = evaluate(std::string("cvt.") + kNames[r] + ".f32.f32 D, A;", {32, 32}, {{bits}})[0];
            CHECK(result == (right != right ? 0x7fffffff : raw(right)), "%s of %a", kNames[r], static_cast<double>(f));
        }
        const uint64_t saturated = evaluate("cvt.sat.f32.f32 D, A;", {32, 32}, {{bits}})[0];
        CHECK(saturated == raw(f > 0 ? std::min(f, 1.0f) : 0.0f), "sat of %a", static_cast<double>(f));
    }
    CHECK(evaluate("cvt.rn.ftz.f32.f64 D, A;", {32, 64}, {{raw(1e-40)}})[0] == 0, "ftz");
    CHECK(evaluate("cvt.ftz.f64.f32 D, A;", {64, 32}, {{1}})[0] == 0, "ftz of the source");
}

TEST(sixteen_bits) {
    // Every half, converted in both directions.
    for (uint32_t bits = 0; bits < 0x10000; ++bits) {
        const double v = conversion::from_half(bits);
        if (v == v) CHECK(conversion::to_half(v, Rounding::nearest) == bits, "%x", bits);
    }
    const struct {
        double v;
        Rounding rounding;
        uint64_t bits;
    } halves[] = {{65504, Rounding::nearest, 0x7bff}, {65519.9, Rounding::nearest, 0x7bff},
        {65520, Rounding::nearest, 0x7c00}, {65520, Rounding::zero, 0x7bff},
                  {1 + 0x1p-11, Rounding::nearest, 0x3c00}, {1 + 0x3p-11, Rounding::nearest, 0x3c02},
                      {1 + 0x1p-20, Rounding::up, 0x3c01},
                  {-1 - 0x1p-20, Rounding::up, 0xbc00}, {-1 - 0x1p-20, Rounding::down, 0xbc01},
                      {0x1p-25, Rounding::nearest, 0}, {0x1.8p-25, Rounding::nearest, 1},
                  {0x1.ffcp-15, Rounding::nearest, 0x0400}, {-0.0, Rounding::nearest, 0x8000},
                      {1e300, Rounding::nearest, 0x7c00}};
    for (const auto &h : halves) {
        CHECK(conversion::to_half(h.v, h.rounding) == h.bits, "%a: %llx", h.v,
            static_cast<unsigned long long>(conversion::to_half(h.v, h.rounding)));
    }
    CHECK(evaluate("cvt.rn.f16.f32 D, A;", {16, 32}, {{raw(1.5f)}})[0] == 0x3e00, "to half");
    CHECK(evaluate("cvt.f32.f16 D, A;", {32, 16}, {{0x3e00}})[0] == raw(1.5f), "from half");
    const struct {
        uint32_t bits, right;
    } brains[] = {{0x3f800000, 0x3f80}, {0x3f808000, 0x3f80}, {0x3f818000, 0x3f82}, {0x3f808001, 0x3f81},
        {0x7f7fffff, 0x7f80}, {0xff800000, 0xff80}, {0x7fc00000, 0x7fff}, {0x00000001, 0}};
    for (const auto &b : brains) {
        const uint64_t result = evaluate("cvt.rn.bf16.f32 D, A;", {16, 32}, {{b.bits}})[0];
        CHECK(result == b.right, "%x: %llx", b.bits, static_cast<unsigned long long>(result));
    }
    CHECK(evaluate("cvt.f32.bf16 D, A;", {32, 16}, {{0xbf81}})[0] == 0xbf810000, "from bf16");
    CHECK(evaluate("cvt.rna.tf32.f32 D, A;", {32, 32}, {{0x3f801000}})[0] == 0x3f802000, "a tie goes away from zero");
    CHECK(evaluate("cvt.rna.tf32.f32 D, A;", {32, 32}, {{0xbf800fff}})[0] == 0xbf800000, "less than half goes down");
}

TEST(two_floats_to_bf16_in_one_register) {
    // The first operand is the upper half.
    const auto both = [](const char *code, uint64_t a, uint64_t b) { return evaluate(code, {32, 32, 32}, {{a, b}})[0]; };
    CHECK(both("cvt.rn.bf16x2.f32 D, A, B;", 0x3f800000, 0x40000000) == 0x3f804000, "the order");
    CHECK(both("cvt.rn.bf16x2.f32 D, A, B;", 0x3f808000, 0x3f818000) == 0x3f803f82, "ties go to the even one");
    CHECK(both("cvt.rn.bf16x2.f32 D, A, B;", 0x7f7fffff, 0x7fc00001) == 0x7f807fff, "infinity and NaN");
    CHECK(both("cvt.rz.bf16x2.f32 D, A, B;", 0x3f80ffff, 0xbf80ffff) == 0x3f80bf80, "towards zero");
    CHECK(has(refusal(file_of(".reg .b32 %r<4>; cvt.rn.relu.bf16x2.f32 %r1, %r2, %r3;")), "relu"), "no other forms");
}
