// Handles are kept in a list, so that a destroyed or invalid handle is refused instead of being dereferenced.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>

namespace vendor {

template <typename T>
class Handles {
  public:
    template <typename... Arguments>
    void *make(Arguments &&...arguments) {
        auto made = std::make_shared<T>(std::forward<Arguments>(arguments)...);
        std::lock_guard<std::mutex> lock(mutex_);
        void *address = made.get();
        live_.emplace(address, std::move(made));
        return address;
    }

    // Null if there is no such handle.
    std::shared_ptr<T> find(void *handle) {
        std::lock_guard<std::mutex> lock(mutex_);
        const auto found = live_.find(handle);
        return found == live_.end() ? nullptr : found->second;
    }

    bool destroy(void *handle) {
        std::lock_guard<std::mutex> lock(mutex_);
        return live_.erase(handle) == 1;
    }

  private:
    std::mutex mutex_;
    std::unordered_map<void *, std::shared_ptr<T>> live_;
};

}  // namespace vendor
