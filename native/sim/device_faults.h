// Devices that have failed. As in CUDA, every call on a device that has failed returns an error until the device is reset.
#pragma once

#include <mutex>
#include <string>
#include <vector>

namespace cudasim {

class DeviceFaults {
   public:
    explicit DeviceFaults(int devices) : words_(static_cast<size_t>(devices)) {}

    // The first fault of a device is kept. It is also printed, because a test may never query it.
    void set(int device, const std::string &words);
    void clear(int device);
    bool failed(int device) const;
    std::string words(int device) const;
    std::string last() const;

   private:
    mutable std::mutex mutex_;
    std::vector<std::string> words_;  // empty if there was no fault
    std::string last_;
};

}  // namespace cudasim
