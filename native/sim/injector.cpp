#include "injector.h"

namespace cudasim {

bool Injector::known(const std::string &what) {
    for (const char *kind : {"malloc", "launch", "copy", "nccl", "nccl-stuck", "nccl-dead", "nccl-remote", "cublas", "cusolver",
                             "cusolver-unconverged"}) {
        if (what == kind) return true;
    }
    return false;
}

void Injector::add(const std::string &what, int device, long long after) {
    std::lock_guard<std::mutex> lock(mutex_);
    pending_[{what, device}] = after;
}

void Injector::clear(int device) {
    std::lock_guard<std::mutex> lock(mutex_);
    for (auto i = pending_.begin(); i != pending_.end();) {
        i = device < 0 || i->first.second == device ? pending_.erase(i) : std::next(i);
    }
}

bool Injector::hit(const std::string &what, int device) {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = pending_.find({what, device});
    if (found == pending_.end() || --found->second > 0) return false;
    pending_.erase(found);
    return true;
}

}  // namespace cudasim
