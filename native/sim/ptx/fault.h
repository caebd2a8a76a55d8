// Errors, with messages: those found in a file, and those of a running kernel.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace fcm::ptx {

// A file that this interpreter does not accept: not PTX, or PTX that is not supported. It never guesses.
class Unreadable : public std::runtime_error {
public:
    Unreadable(const std::string &file, unsigned line, const std::string &words)
        : std::runtime_error(file + ":" + std::to_string(line) + ": " + words) {}
};

// An error of a thread; the scheduler adds the location.
class Mistake : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

struct Dim {
    uint32_t x = 1, y = 1, z = 1;
    uint64_t count() const { return static_cast<uint64_t>(x) * y * z; }
};

// A kernel fault with its location.
class Fault : public std::runtime_error {
public:
    Fault(std::string kernel_, Dim block_, Dim thread_, std::string file_, unsigned line_, std::string source_,
          std::string words_)
        : std::runtime_error(kernel_ + ", block (" + text(block_) + "), thread (" + text(thread_) + "), " + file_ +
            ":" +
                             std::to_string(line_) + (source_.empty() ? "" : " from " + source_) + ": " + words_),
          kernel(std::move(kernel_)), block(block_), thread(thread_), file(std::move(file_)), line(line_),
          source(std::move(source_)), words(std::move(words_)) {}

    std::string kernel;
    Dim block, thread;
    std::string file;    // name of the PTX file
    unsigned line;       // in the PTX file
    std::string source;  // file:line in the original source, if the PTX has it
    std::string words;

private:
    static std::string text(const Dim &d) {
        return std::to_string(d.x) + "," + std::to_string(d.y) + "," + std::to_string(d.z);
    }
};

}  // namespace fcm::ptx
