// Records the work submitted to streams, for tests of concurrency.
#pragma once

#include <cstdio>
#include <memory>
#include <mutex>
#include <string>

#include "stream.h"

namespace cudasim {

class Trace {
   public:
    // Starts a file, or closes the current one if `path` is null. Returns false if the file cannot be written.
    bool open(const char *path);
    // One line: device, stream, position, the stream and position that it waits for (0 0 for none), and a description.
    void add(const Stream &stream, uint64_t position, const Mark *after, const std::string &what);

   private:
    struct Close {
        void operator()(std::FILE *file) const { (void)std::fclose(file); }
    };
    std::mutex mutex_;
    std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace cudasim
