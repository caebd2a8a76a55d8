#include "types.h"

namespace fcm::ptx {

std::optional<Type> parse_type(std::string_view name) {
    if (name == "pred") return kPredicate;
    if (name == "bf16") return Type{Kind::brain, 16};
    if (name == "tf32") return Type{Kind::tensor, 32};
    if (name.size() < 2) return std::nullopt;
    const std::string_view width = name.substr(1);
    uint8_t bits = 0;
    if (width == "8") bits = 8;
    else if (width == "16") bits = 16;
    else if (width == "32") bits = 32;
    else if (width == "64") bits = 64;
    else return std::nullopt;
    switch (name[0]) {
        case 'b': return Type{Kind::untyped, bits};
        case 'u': return Type{Kind::natural, bits};
        case 's': return Type{Kind::integer, bits};
        case 'f': return bits == 8 ? std::nullopt : std::optional<Type>(Type{Kind::real, bits});
        default: return std::nullopt;
    }
}

}  // namespace fcm::ptx
