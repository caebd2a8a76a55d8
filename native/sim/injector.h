// Fault injection: the n-th next call of a kind on a device fails.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace cudasim {

class Injector {
   public:
    static bool known(const std::string &what);

    void add(const std::string &what, int device, long long after);
    void clear(int device);  // -1 for all devices
    // Counts a call; returns true if it is the one that fails.
    bool hit(const std::string &what, int device);

   private:
    std::mutex mutex_;
    std::map<std::pair<std::string, int>, long long> pending_;
};

}  // namespace cudasim
