// Runs a program and keeps what it says.
#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace mutation {

struct Command {
    std::vector<std::string> words;
    std::vector<std::pair<std::string, std::string>> environment;  // added to that of this program
    // Far more than needed: a busy machine must not look like a bug.
    std::chrono::seconds limit{300};
};

struct Outcome {
    int exit_code = -1;  // where it ended by itself
    int signal = 0;      // where a signal ended it
    bool timed_out = false;
    std::string output;  // both streams

    bool succeeded() const { return exit_code == 0; }
};

// The output passes through `log`, which is overwritten.
Outcome run(const Command &command, const std::string &log);

}  // namespace mutation
