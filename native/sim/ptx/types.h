// The fundamental types of PTX.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace fcm::ptx {

enum class Kind : uint8_t { untyped, natural, integer, real, brain, tensor, predicate };

struct Type {
    Kind kind = Kind::untyped;
    uint8_t bits = 0;

    constexpr unsigned bytes() const { return bits / 8u; }
    constexpr bool whole() const { return kind == Kind::untyped || kind == Kind::natural || kind == Kind::integer; }
    constexpr bool is(Kind k, unsigned width) const { return kind == k && bits == width; }
    constexpr bool operator==(const Type &other) const { return kind == other.kind && bits == other.bits; }
    constexpr bool operator!=(const Type &other) const { return !(*this == other); }
};

constexpr Type kPredicate{Kind::predicate, 1};
constexpr Type kWord{Kind::untyped, 32};
constexpr Type kLong{Kind::untyped, 64};

// The type named by a modifier such as "u32", if it is one.
std::optional<Type> parse_type(std::string_view name);

// The lowest bits of a register.
constexpr uint64_t low_bits(unsigned width) { return width >= 64 ? ~0ull : (1ull << width) - 1; }

}  // namespace fcm::ptx
