// Runs a program and captures its output.
#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace mutation {

struct Command {
    std::vector<std::string> words;
    std::vector<std::pair<std::string, std::string>> environment;  // in addition to that of this process
    // Far more than needed: a busy machine must not be mistaken for a bug.
    std::chrono::seconds limit{300};
};

struct Outcome {
    int exit_code = -1;  // if it exited by itself
    int signal = 0;      // if it was ended by a signal
    bool timed_out = false;
    std::string output;  // stdout and stderr

    bool succeeded() const { return exit_code == 0; }
};

// The output is written to the file `log`, which is overwritten.
Outcome run(const Command &command, const std::string &log);

}  // namespace mutation
