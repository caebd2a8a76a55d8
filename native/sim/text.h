// printf into a value: a std::string, or a fixed buffer that allocates no memory. The latter is for kernel threads, which
// may be abandoned and would then never free it.
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
