// Devices that have failed. As in CUDA, a device that has failed once fails in everything until it is reset.
#pragma once

#include <mutex>
#include <string>
#include <vector>

namespace cudasim {

class DeviceFaults {
   public:
    explicit DeviceFaults(int devices) : words_(static_cast<size_t>(devices)) {}

    // The first fault of a device stands; it is also printed, since a test may never ask.
    void set(int device, const std::string &words);
    void clear(int device);
    bool failed(int device) const;
    std::string words(int device) const;
    std::string last() const;

   private:
    mutable std::mutex mutex_;
    std::vector<std::string> words_;  // empty: none
    std::string last_;
};

}  // namespace cudasim
