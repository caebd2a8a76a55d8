// Splits PTX text into tokens.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fcm::ptx {

struct Token {
    enum class Kind { word, number, text, mark, end };
    Kind kind = Kind::end;
    std::string_view text;
    unsigned line = 0;

    bool is(std::string_view what) const { return kind != Kind::text && text == what; }
};

// The tokens refer to `text`, which must outlive them; the last one is always `end`. A word includes its dots, so that
// "ld.global.f32", "%tid.x" and ".reg" are one token each.
std::vector<Token> lex(std::string_view text, const std::string &file);

}  // namespace fcm::ptx
