#include "verdict.h"

#include <cstring>
#include <regex>
#include <sstream>
#include <stdexcept>

namespace mutation {
namespace {

struct Detector {
    const char *name;
    const char *pattern;
};

// The first match counts: messages of the simulator come before those of the tests, which are consequences.
const Detector kDetectors[] = {
    {"race detector", "race"},
    {"divergent barrier", "divergent barrier|threads wait for ever"},
    {"unwritten memory", "has written"},
    {"warp check", "mask|waits for ever"},
    {"alignment check", "more than a multiple of"},
    {"canary", "wrote|damage|beyond its end|overrun"},
    {"bounds check", "out of bounds|outside of|never allocated|since freed|not made yet|is memory of|shared memory"},
    {"device fault", "cudaErrorLaunchFailure|cudaErrorIllegalAddress"},
    {"a test", "\\.cpp:[0-9]+: "},
};

// The message of a failed check begins with the path of its file.
std::string without_folders(const std::string &line) {
    const size_t file = line.find(".cpp:");
    const size_t slash = file == std::string::npos ? file : line.rfind('/', file);
    return slash == std::string::npos ? line : line.substr(slash + 1);
}

std::string line_with(const std::string &output, const std::regex &pattern) {
    std::istringstream lines(output);
    for (std::string line; std::getline(lines, line);) {
        if (std::regex_search(line, pattern)) return without_folders(line);
    }
    return {};
}

}  // namespace

Verdict judge(const Outcome &outcome) {
    if (outcome.succeeded()) return {};
    // A test that does not exist, or a library that cannot be loaded: nothing was tested.
    if (outcome.exit_code > 1) throw std::runtime_error("the tests did not run:\n" + outcome.output);
    Verdict verdict;
    verdict.caught = true;
    for (const Detector &detector : kDetectors) {
        verdict.words = line_with(outcome.output, std::regex(detector.pattern));
        if (verdict.words.empty()) continue;
        verdict.detector = detector.name;
        return verdict;
    }
    if (outcome.timed_out) {
        verdict.detector = "it never ends";
    } else if (outcome.signal != 0) {
        verdict.detector = "crash";
        verdict.words = strsignal(outcome.signal);
    } else {
        verdict.detector = "exit code " + std::to_string(outcome.exit_code);
        verdict.words = outcome.output.substr(0, 200);
    }
    return verdict;
}

}  // namespace mutation
