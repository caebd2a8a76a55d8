// printf into a value: a std::string, or words that need no memory, for a thread of a kernel that may be abandoned
// and so would never free it.
#pragma once

#include <cstdarg>
#include <cstdio>
#include <string>

namespace cudasim {

__attribute__((format(printf, 1, 2))) inline std::string text(const char *format, ...) {
    char words[1024];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(words, sizeof words, format, arguments);
    va_end(arguments);
    return words;
}

struct Words {
    char chars[256];

    Words() { chars[0] = '\0'; }  // the rest is never read
    const char *c_str() const { return chars; }
    bool empty() const { return chars[0] == '\0'; }
};

__attribute__((format(printf, 1, 2))) inline Words words(const char *format, ...) {
    Words result;
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(result.chars, sizeof result.chars, format, arguments);
    va_end(arguments);
    return result;
}

}  // namespace cudasim
