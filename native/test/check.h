// A minimal test framework: a test is a named function, and the program runs the tests given as arguments, or all of them.
#pragma once

#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <exception>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace check {

struct Test {
    std::string name;
    std::function<void()> body;
};

inline std::vector<Test> &tests() {
    static std::vector<Test> all;
    return all;
}

inline bool add(std::string name, std::function<void()> body) {
    tests().push_back({std::move(name), std::move(body)});
    return true;
}

inline long &failures() {
    static long count = 0;
    return count;
}

// A single wrong stride fails a million elements, so only the first few failures are printed.
constexpr long kMostReports = 12;

__attribute__((format(printf, 4, 5))) inline void fail(const char *file, int line, const char *condition,
                                                       const char *format, ...) {
    if (++failures() > kMostReports) return;
    std::printf("%s:%d: %s: ", file, line, condition);
    va_list arguments;
    va_start(arguments, format);
    std::vprintf(format, arguments);
    va_end(arguments);
    std::printf("\n");
}

inline int run(int count, char **names) {
    int ran = 0;
    for (const Test &test : tests()) {
        bool wanted = count <= 1;
        for (int i = 1; i < count; ++i) wanted = wanted || names[i] == test.name;
        if (!wanted) continue;
        const long before = failures();
        try {
            test.body();
        } catch (const std::exception &e) {
            fail(test.name.c_str(), 0, "no exception", "%s", e.what());
        }
        std::printf("%s %s\n", failures() == before ? "passed" : "FAILED", test.name.c_str());
        ++ran;
    }
    if (failures() > kMostReports) std::printf("%ld checks failed in all\n", failures());
    // An unknown name must not count as a success.
    if (ran == 0 || (count > 1 && ran != count - 1)) {
        std::printf("%d of the tests asked for exist\n", ran);
        return 2;
    }
    return failures() == 0 ? 0 : 1;
}

}  // namespace check

#define TEST(name)                                                \
    static void name();                                           \
    static const bool name##_added = check::add(#name, name);     \
    static void name()

// The arguments after the condition are a printf format and its values, evaluated only if the check fails.
#define CHECK(condition, ...)                                                         \
    do {                                                                              \
        if (!(condition)) check::fail(__FILE__, __LINE__, #condition, __VA_ARGS__);   \
    } while (false)

// For a program that uses what tests use, but is none.
#if !defined(CHECK_WITHOUT_MAIN)
int main(int count, char **names) { return check::run(count, names); }
#endif
