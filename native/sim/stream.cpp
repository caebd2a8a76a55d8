#include "stream.h"

#include <utility>

namespace cudasim {

bool Mark::reached() const { return stream->done(position); }

namespace detail {

uint64_t Stream::push(Task task) {
    std::lock_guard<std::mutex> lock(mutex_);
    tasks_.push_back(std::move(task));
    return done_ + tasks_.size();
}

uint64_t Stream::tail() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return done_ + tasks_.size();
}

bool Stream::done(uint64_t position) const {
    std::lock_guard<std::mutex> lock(mutex_);
    return done_ >= position;
}

Task *Stream::front(uint64_t position) {
    std::lock_guard<std::mutex> lock(mutex_);
    return done_ >= position || tasks_.empty() ? nullptr : &tasks_.front();
}

void Stream::pop() {
    std::lock_guard<std::mutex> lock(mutex_);
    tasks_.pop_front();
    ++done_;
}

void Stream::drop_all() {
    std::lock_guard<std::mutex> lock(mutex_);
    done_ += tasks_.size();
    tasks_.clear();
}

std::shared_ptr<const Mark> Event::mark() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return mark_;
}

void Event::set_mark(std::shared_ptr<const Mark> mark) {
    std::lock_guard<std::mutex> lock(mutex_);
    mark_ = std::move(mark);
}

}  // namespace detail
}  // namespace cudasim
