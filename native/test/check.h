// A test is a function with a name; the program runs the ones it is asked for, or all of them.
#pragma once

#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <exception>
#include <vector>

namespace check {

struct Test {
    const char *name;
    void (*body)();
};

inline std::vector<Test> &tests() {
    static std::vector<Test> all;
    return all;
}

inline bool add(const char *name, void (*body)()) {
    tests().push_back({name, body});
    return true;
}

inline long &failures() {
    static long count = 0;
    return count;
}

// One wrong stride fails a million elements; the first few say all there is to say.
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
        for (int i = 1; i < count; ++i) wanted = wanted || std::strcmp(names[i], test.name) == 0;
        if (!wanted) continue;
        const long before = failures();
        try {
            test.body();
        } catch (const std::exception &e) {
            fail(test.name, 0, "no exception", "%s", e.what());
        }
        std::printf("%s %s\n", failures() == before ? "passed" : "FAILED", test.name);
        ++ran;
    }
    if (failures() > kMostReports) std::printf("%ld checks failed in all\n", failures());
    // A name that nobody knows must not pass for a success.
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

// The words after the condition are a printf format and its values, read only when the check fails.
#define CHECK(condition, ...)                                                         \
    do {                                                                              \
        if (!(condition)) check::fail(__FILE__, __LINE__, #condition, __VA_ARGS__);   \
    } while (false)

int main(int count, char **names) { return check::run(count, names); }
