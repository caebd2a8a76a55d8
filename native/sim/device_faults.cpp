#include "device_faults.h"

#include <cstdio>

namespace cudasim {

void DeviceFaults::set(int device, const std::string &words) {
    std::lock_guard<std::mutex> lock(mutex_);
    std::string &own = words_[static_cast<size_t>(device)];
    if (!own.empty()) return;
    own = words;
    last_ = words;
    std::fprintf(stderr, "cudasim: device %d: %s\n", device, words.c_str());
}

void DeviceFaults::clear(int device) {
    std::lock_guard<std::mutex> lock(mutex_);
    words_[static_cast<size_t>(device)].clear();
}

bool DeviceFaults::failed(int device) const {
    std::lock_guard<std::mutex> lock(mutex_);
    return !words_[static_cast<size_t>(device)].empty();
}

std::string DeviceFaults::words(int device) const {
    std::lock_guard<std::mutex> lock(mutex_);
    return words_[static_cast<size_t>(device)];
}

std::string DeviceFaults::last() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return last_;
}

}  // namespace cudasim
