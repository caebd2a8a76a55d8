// Integer instructions against C++, on corner cases and random numbers.
#include <functional>

#include "support.h"

using namespace ptxtest;

namespace {

using I128 = __int128;
using U128 = unsigned __int128;

// The value of the low bits as a signed or unsigned number.
I128 number(uint64_t bits, unsigned width, bool sign) {
    bits &= low_bits(width);
    if (sign && (bits >> (width - 1) & 1)) return static_cast<I128>(bits) - (static_cast<I128>(1) << width);
    return static_cast<I128>(bits);
}

void compare(const std::string &code, const std::vector<unsigned> &widths, const std::vector<Case> &cases,
             const std::function<uint64_t(const Case &)> &expected) {
    const std::vector<uint64_t> results = evaluate(code, widths, cases);
    for (size_t i = 0; i < cases.size(); ++i) {
        const uint64_t right = expected(cases[i]) & low_bits(widths[0]);
        CHECK(results[i] == right, "%s of %llx %llx %llx: %llx, not %llx", code.c_str(),
            static_cast<unsigned long long>(cases[i][0]),
              static_cast<unsigned long long>(cases[i].size() > 1 ? cases[i][1] : 0),
              static_cast<unsigned long long>(cases[i].size() > 2 ? cases[i][2] : 0),
                  static_cast<unsigned long long>(results[i]),
              static_cast<unsigned long long>(right));
    }
}

std::string type(unsigned width, bool sign) { return (sign ? "s" : "u") + std::to_string(width); }

// Every width and signedness of a two-operand instruction.
void two(const std::string &op, const std::function<I128(I128, I128)> &f, bool zero_too = true) {
    for (const unsigned width : {16u, 32u, 64u}) {
        for (const bool sign : {false, true}) {
            std::vector<uint64_t> b = whole_values(width);
            if (!zero_too) {
                std::vector<uint64_t> nonzero;
                for (const uint64_t v : b) {
                    if (v != 0) nonzero.push_back(v);
                }
                b = nonzero;
            }
            compare(op + "." + type(width, sign) + " D, A, B;", {width, width, width}, pairs(whole_values(width), b),
                    [&](const Case &c) { return static_cast<uint64_t>(f(number(c[0], width, sign),
                        number(c[1], width, sign))); });
        }
    }
}

}  // namespace

TEST(sums_products_and_quotients) {
    two("add", [](I128 a, I128 b) { return a + b; });
    two("sub", [](I128 a, I128 b) { return a - b; });
    two("mul.lo", [](I128 a, I128 b) { return static_cast<I128>(static_cast<U128>(a) * static_cast<U128>(b)); });
    two("min", [](I128 a, I128 b) { return std::min(a, b); });
    two("max", [](I128 a, I128 b) { return std::max(a, b); });
    two("div", [](I128 a, I128 b) { return a / b; }, false);
    two("rem", [](I128 a, I128 b) { return a % b; }, false);
}

TEST(high_and_wide_products) {
    for (const unsigned width : {16u, 32u, 64u}) {
        for (const bool sign : {false, true}) {
            const auto values = whole_values(width);
            const auto product = [&](const Case &c) {
                return static_cast<U128>(number(c[0], width, sign)) * static_cast<U128>(number(c[1], width, sign));
            };
            compare("mul.hi." + type(width, sign) + " D, A, B;", {width, width, width}, pairs(values, values),
                    [&](const Case &c) { return static_cast<uint64_t>(product(c) >> width); });
            compare("mad.hi." + type(width, sign) + " D, A, B, C;", {width, width, width, width},
                triples(values, values, {5, low_bits(width)}),
                    [&](const Case &c) { return static_cast<uint64_t>(product(c) >> width) + c[2]; });
            compare("mad.lo." + type(width, sign) + " D, A, B, C;", {width, width, width, width},
                triples(values, values, {5, low_bits(width)}),
                    [&](const Case &c) { return static_cast<uint64_t>(product(c)) + c[2]; });
            if (width == 64) continue;
            compare("mul.wide." + type(width, sign) + " D, A, B;", {width * 2, width, width}, pairs(values, values),
                    [&](const Case &c) { return static_cast<uint64_t>(product(c)); });
            compare("mad.wide." + type(width, sign) + " D, A, B, C;", {width * 2, width, width, width * 2},
                    triples(values, values, {5, low_bits(width * 2)}),
                        [&](const Case &c) { return static_cast<uint64_t>(product(c)) + c[2]; });
        }
    }
}

TEST(one_operand) {
    for (const unsigned width : {16u, 32u, 64u}) {
        const auto values = singles(whole_values(width, 40));
        const std::vector<unsigned> same = {width, width};
        compare("neg.s" + std::to_string(width) + " D, A;", same, values, [](const Case &c) { return 0 - c[0]; });
        compare("abs.s" + std::to_string(width) + " D, A;", same, values, [&](const Case &c) {
            const I128 v = number(c[0], width, true);
            return static_cast<uint64_t>(v < 0 ? -v : v);
        });
        compare("not.b" + std::to_string(width) + " D, A;", same, values, [](const Case &c) { return ~c[0]; });
        compare("cnot.b" + std::to_string(width) + " D, A;", same, values,
            [](const Case &c) { return c[0] == 0 ? 1u : 0u; });
    }
    for (const unsigned width : {32u, 64u}) {
        const std::string w = std::to_string(width);
        const auto values = singles(whole_values(width, 40));
        const auto highest = [](uint64_t v) {
            int n = -1;
            for (; v != 0; v >>= 1) ++n;
            return n;
        };
        compare("popc.b" + w + " D, A;", {32, width}, values, [](const Case &c) {
            uint64_t n = 0;
            for (uint64_t v = c[0]; v != 0; v &= v - 1) ++n;
            return n;
        });
        compare("clz.b" + w + " D, A;", {32, width}, values,
            [&](const Case &c) { return static_cast<uint64_t>(static_cast<int>(width) - 1 - highest(c[0])); });
        compare("bfind.u" + w + " D, A;", {32, width}, values,
            [&](const Case &c) { return static_cast<uint64_t>(highest(c[0])); });
        compare("bfind.s" + w + " D, A;", {32, width}, values, [&](const Case &c) {
            return static_cast<uint64_t>(highest(number(c[0], width, true) < 0 ? ~c[0] & low_bits(width) : c[0]));
        });
        compare("bfind.shiftamt.u" + w + " D, A;", {32, width}, values, [&](const Case &c) {
            return c[0] == 0 ? ~0ull : static_cast<uint64_t>(static_cast<int>(width) - 1 - highest(c[0]));
        });
        compare("brev.b" + w + " D, A;", {width, width}, values, [&](const Case &c) {
            uint64_t v = 0;
            for (unsigned i = 0; i < width; ++i) v = v << 1 | (c[0] >> i & 1);
            return v;
        });
    }
}

TEST(bits_of_two) {
    for (const unsigned width : {16u, 32u, 64u}) {
        const std::string w = std::to_string(width);
        const auto cases = pairs(whole_values(width), whole_values(width));
        compare("and.b" + w + " D, A, B;", {width, width, width}, cases, [](const Case &c) { return c[0] & c[1]; });
        compare("or.b" + w + " D, A, B;", {width, width, width}, cases, [](const Case &c) { return c[0] | c[1]; });
        compare("xor.b" + w + " D, A, B;", {width, width, width}, cases, [](const Case &c) { return c[0] ^ c[1]; });
    }
}

TEST(shifts_clamp_at_the_width) {
    std::vector<uint64_t> amounts = {0, 1, 5, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 256, 0x80000000,
        0xffffffff};
    for (const unsigned width : {16u, 32u, 64u}) {
        const std::string w = std::to_string(width);
        const auto cases = pairs(whole_values(width), amounts);
        compare("shl.b" + w + " D, A, B;", {width, width, 32}, cases,
            [&](const Case &c) { return c[1] >= width ? 0 : c[0] << c[1]; });
        compare("shr.u" + w + " D, A, B;", {width, width, 32}, cases,
            [&](const Case &c) { return c[1] >= width ? 0 : c[0] >> c[1]; });
        compare("shr.b" + w + " D, A, B;", {width, width, 32}, cases,
            [&](const Case &c) { return c[1] >= width ? 0 : c[0] >> c[1]; });
        compare("shr.s" + w + " D, A, B;", {width, width, 32}, cases, [&](const Case &c) {
            return static_cast<uint64_t>(number(c[0], width, true) >> std::min<uint64_t>(c[1], width));
        });
    }
    const auto cases = triples(whole_values(32, 4), whole_values(32, 4), amounts);
    const auto both = [](const Case &c) { return c[1] << 32 | c[0]; };
    const auto left = [&](const Case &c, uint64_t n) { return n == 0 ? c[1] : both(c) >> (32 - n); };
    compare("shf.l.wrap.b32 D, A, B, C;", {32, 32, 32, 32}, cases, [&](const Case &c) { return left(c, c[2] % 32); });
    compare("shf.r.wrap.b32 D, A, B, C;", {32, 32, 32, 32}, cases, [&](const Case &c) { return both(c) >> c[2] % 32; });
    compare("shf.l.clamp.b32 D, A, B, C;", {32, 32, 32, 32}, cases,
        [&](const Case &c) { return left(c, std::min<uint64_t>(c[2], 32)); });
    compare("shf.r.clamp.b32 D, A, B, C;", {32, 32, 32, 32}, cases,
        [&](const Case &c) { return both(c) >> std::min<uint64_t>(c[2], 32); });
}

TEST(fields_of_bits) {
    const std::vector<uint64_t> places = {0, 1, 7, 16, 31, 32, 33, 48, 63, 64, 100, 255, 256 + 3};
    for (const unsigned width : {32u, 64u}) {
        for (const bool sign : {false, true}) {
            compare("bfe." + type(width, sign) + " D, A, B, C;", {width, width, 32, 32},
                triples(whole_values(width), places, places), [&](const Case &c) {
                // Bit by bit, as in the description of the instruction.
                const uint64_t start = c[1] & 255, length = c[2] & 255;
                uint64_t v = 0;
                const uint64_t last = std::min<uint64_t>(start + length - 1, width - 1);
                const uint64_t fill = sign && length != 0 ? c[0] >> last & 1 : 0;
                for (unsigned i = 0; i < width; ++i) {
                    const bool inside = i < length && start + i < width;
                    v |= (inside ? c[0] >> (start + i) & 1 : fill) << i;
                }
                return v;
            });
        }
        std::vector<Case> cases;
        for (const uint64_t a : std::vector<uint64_t>{0x123456789abcdef, ~0ull, 0}) {
            for (const uint64_t b : std::vector<uint64_t>{0xfedcba987654321, ~0ull, 0}) {
                for (const uint64_t start : places) {
                    for (const uint64_t length : places) {
                        cases.push_back({a & low_bits(width), b & low_bits(width), start, length});
                    }
                }
            }
        }
        compare("bfi.b" + std::to_string(width) + " D, A, B, C, E;", {width, width, width, 32, 32}, cases,
            [&](const Case &c) {
            uint64_t v = c[1];
            for (uint64_t i = 0; i < (c[3] & 255) && (c[2] & 255) + i < width; ++i) {
                const uint64_t bit = 1ull << ((c[2] & 255) + i);
                v = (c[0] >> i & 1) ? v | bit : v & ~bit;
            }
            return v;
        });
    }
}

TEST(logic_of_three_and_permutations) {
    const auto some = whole_values(32, 4);
    for (const unsigned table : {0u, 0x80u, 0xfeu, 0x96u, 0xe8u, 0xcau, 0xffu, 0x1bu}) {
        compare("lop3.b32 D, A, B, C, " + std::to_string(table) + ";", {32, 32, 32, 32},
            triples(some, some, {0, 0x0f0f3355, 0xffffffff}), [&](const Case &c) {
            uint64_t v = 0;
            for (unsigned i = 0; i < 32; ++i) {
                const unsigned k = static_cast<unsigned>((c[0] >> i & 1) * 4 + (c[1] >> i & 1) * 2 + (c[2] >> i & 1));
                v |= static_cast<uint64_t>(table >> k & 1) << i;
            }
            return v;
        });
    }
    const std::vector<uint64_t> a = {0x03020100, 0x83828180}, b = {0x07060504, 0x87868584};
    compare("prmt.b32 D, A, B, C;", {32, 32, 32, 32}, triples(a, b,
        {0x3210, 0x7654, 0x0123, 0xfedc, 0x8907, 0x5140, 0xffff4321}), [](const Case &c) {
        uint64_t v = 0;
        for (unsigned i = 0; i < 4; ++i) {
            const unsigned pick = static_cast<unsigned>(c[2] >> (4 * i) & 15);
            uint64_t byte = ((pick & 4) ? c[1] : c[0]) >> (8 * (pick & 3)) & 255;
            if (pick & 8) byte = byte >= 128 ? 255 : 0;
            v |= byte << (8 * i);
        }
        return v;
    });
    // The tables from the description of the instruction, for the bytes 7 6 5 4 3 2 1 0.
    const struct {
        const char *mode;
        uint32_t results[4];
    } rows[] = {{"f4e", {0x03020100, 0x04030201, 0x05040302, 0x06050403}},
                {"b4e", {0x05060700, 0x06070001, 0x07000102, 0x00010203}},
                {"rc8", {0x00000000, 0x01010101, 0x02020202, 0x03030303}},
                {"ecl", {0x03020100, 0x03020101, 0x03020202, 0x03030303}},
                {"ecr", {0x00000000, 0x01010100, 0x02020100, 0x03020100}},
                {"rc16", {0x01000100, 0x03020302, 0x01000100, 0x03020302}}};
    for (const auto &row : rows) {
        compare(std::string("prmt.b32.") + row.mode + " D, A, B, C;", {32, 32, 32, 32},
            triples({0x03020100}, {0x07060504}, {0, 1, 2, 3}),
                [&](const Case &c) { return row.results[c[2]]; });
    }
}

TEST(clamped_sums_and_differences) {
    const auto cases = pairs(whole_values(32), whole_values(32));
    const auto clamp = [](I128 v) { return static_cast<uint64_t>(std::min<I128>(std::max<I128>(v, INT32_MIN),
        INT32_MAX)); };
    compare("add.sat.s32 D, A, B;", {32, 32, 32}, cases, [&](const Case &c) { return clamp(number(c[0], 32, true) +
        number(c[1], 32, true)); });
    compare("sub.sat.s32 D, A, B;", {32, 32, 32}, cases, [&](const Case &c) { return clamp(number(c[0], 32,
        true) - number(c[1], 32, true)); });
    for (const bool sign : {false, true}) {
        compare("sad." + type(32, sign) + " D, A, B, C;", {32, 32, 32, 32},
            triples(whole_values(32, 4), whole_values(32, 4), {0, 9}), [&](const Case &c) {
            const I128 d = number(c[0], 32, sign) - number(c[1], 32, sign);
            return static_cast<uint64_t>(d < 0 ? -d : d) + c[2];
        });
    }
}

TEST(comparisons) {
    const struct {
        const char *name;
        std::function<bool(I128, I128)> f;
        bool natural_only;
    } relations[] = {{"eq", [](I128 a, I128 b) { return a == b; }, false},
        {"ne", [](I128 a, I128 b) { return a != b; }, false},
                     {"lt", [](I128 a, I128 b) { return a < b; }, false},
                         {"le", [](I128 a, I128 b) { return a <= b; }, false},
                     {"gt", [](I128 a, I128 b) { return a > b; }, false},
                         {"ge", [](I128 a, I128 b) { return a >= b; }, false},
                     {"lo", [](I128 a, I128 b) { return a < b; }, true},
                         {"ls", [](I128 a, I128 b) { return a <= b; }, true},
                     {"hi", [](I128 a, I128 b) { return a > b; }, true},
                         {"hs", [](I128 a, I128 b) { return a >= b; }, true}};
    for (const unsigned width : {16u, 32u, 64u}) {
        for (const bool sign : {false, true}) {
            for (const auto &r : relations) {
                if (r.natural_only && sign) continue;
                const std::string t = type(width, sign);
                const auto f = [&](const Case &c) { return r.f(number(c[0], width, sign), number(c[1], width, sign)); };
                const auto cases = pairs(whole_values(width, 4), whole_values(width, 4));
                compare(std::string("setp.") + r.name + "." + t + " P, A, B; "
                    "selp.u32 D, 1, 0, P;", {32, width, width}, cases, f);
                compare(std::string("setp.") + r.name + "." + t + " P|Q, A, B; "
                    "selp.u32 D, 1, 0, Q;", {32, width, width}, cases,
                        [&](const Case &c) { return !f(c); });
                compare(std::string("setp.gt.") + t + " R, B, 2; setp." + r.name + ".and." + t + " P|Q, A, B, R; "
                    "selp.u32 D, 1, 0, P; @Q or.b32 D, D, 2;",
                        {32, width, width}, cases, [&](const Case &c) {
                            const bool also = number(c[1], width, sign) > 2;
                            return (f(c) && also ? 1 : 0) + (!f(c) && also ? 2 : 0);
                        });
                compare(std::string("setp.gt.") + t + " R, B, 2; setp." + r.name + ".or." + t + " P, A, B, !R; "
                    "selp.u32 D, 1, 0, P;",
                        {32, width, width}, cases, [&](const Case &c) { return f(c) ||
                            !(number(c[1], width, sign) > 2); });
                compare(std::string("set.") + r.name + ".u32." + t + " D, A, B;", {32, width, width}, cases,
                        [&](const Case &c) { return f(c) ? ~0u : 0u; });
            }
        }
    }
    compare("slct.b32.s32 D, A, B, C;", {32, 32, 32, 32}, triples({1}, {2}, {0, 5, 0xffffffff, 0x80000000}),
            [](const Case &c) { return static_cast<int32_t>(c[2]) >= 0 ? c[0] : c[1]; });
}

TEST(predicates) {
    compare("setp.ne.u32 P, A, 0; setp.ne.u32 Q, B, 0; and.pred R, P, Q; selp.u32 D, 1, 0, R; or.pred R, P, Q; "
        "@R add.u32 D, D, 2; "
            "xor.pred R, P, Q; @R add.u32 D, D, 4; not.pred R, P; @R add.u32 D, D, 8; mov.pred R, Q; "
                "@!R add.u32 D, D, 16;",
            {32, 32, 32}, pairs({0, 1}, {0, 1}), [](const Case &c) {
                const bool p = c[0] != 0, q = c[1] != 0;
                return (p && q ? 1 : 0) + (p || q ? 2 : 0) + (p != q ? 4 : 0) + (!p ? 8 : 0) + (!q ? 16 : 0);
            });
}

TEST(a_quotient_by_zero_is_a_fault) {
    for (const char *op : {"div.s32", "div.u64", "rem.s64", "rem.u32"}) {
        const bool wide = std::string(op).find("64") != std::string::npos;
        bool faulted = false;
        try {
            evaluate(std::string(op) + " D, A, B;", wide ? std::vector<unsigned>{64, 64, 64}
                : std::vector<unsigned>{32, 32, 32}, {{7, 0}});
        } catch (const Fault &) {
            faulted = true;
        }
        CHECK(faulted, "%s", op);
    }
}
