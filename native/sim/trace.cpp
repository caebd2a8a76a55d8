#include "trace.h"

#include <cinttypes>

namespace cudasim {

bool Trace::open(const char *path) {
    std::lock_guard<std::mutex> lock(mutex_);
    file_.reset(path == nullptr ? nullptr : std::fopen(path, "w"));
    return path == nullptr || file_ != nullptr;
}

void Trace::add(const Stream &stream, uint64_t position, const Mark *after, const std::string &what) {
    write(stream.device(), &stream, position, after, what);
}

void Trace::add_wait(int device, const Mark *until, const std::string &function) {
    write(device, nullptr, 0, until, "wait " + function);
}

void Trace::write(int device, const Stream *stream, uint64_t position, const Mark *after, const std::string &what) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (file_ == nullptr) return;
    const auto name = [](const Stream *of) { return reinterpret_cast<uintptr_t>(of); };
    (void)std::fprintf(file_.get(), "%d %" PRIuPTR " %" PRIu64 " %" PRIuPTR " %" PRIu64 " %s\n", device, name(stream),
                       position, after == nullptr ? 0 : name(after->stream.get()),
                       after == nullptr ? 0 : after->position, what.c_str());
}

}  // namespace cudasim
