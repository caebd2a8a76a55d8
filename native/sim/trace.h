// Writes down what is put on streams, for tests of what may run beside what.
#pragma once

#include <cstdio>
#include <memory>
#include <mutex>
#include <string>

#include "stream.h"

namespace cudasim {

class Trace {
   public:
    // Starts a file, or ends the one that is open when `path` is null. False if it cannot be written.
    bool open(const char *path);
    // One line: device, stream, position, then the stream and position that it waits for (0 0 for none), and the words.
    void add(const Stream &stream, uint64_t position, const Mark *after, const std::string &what);

   private:
    struct Close {
        void operator()(std::FILE *file) const { (void)std::fclose(file); }
    };
    std::mutex mutex_;
    std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace cudasim
