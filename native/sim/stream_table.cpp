#include "stream_table.h"

namespace cudasim {

StreamTable::StreamTable(int devices) {
    for (int i = 0; i < devices; ++i) null_.push_back(std::make_shared<Stream>(i, true));
}

Stream *StreamTable::create(int device, bool blocking) {
    auto stream = std::make_shared<Stream>(device, blocking);
    std::lock_guard<std::mutex> lock(mutex_);
    return streams_.emplace(stream.get(), stream).first->first;
}

std::shared_ptr<Stream> StreamTable::find(Stream *handle, int device) const {
    if (handle == nullptr) return null_stream(device);
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = streams_.find(handle);
    return found == streams_.end() ? nullptr : found->second;
}

void StreamTable::remove(Stream *handle) {
    std::lock_guard<std::mutex> lock(mutex_);
    streams_.erase(handle);
}

Event *StreamTable::create_event(int device, bool timed) {
    auto event = std::make_shared<Event>(device, timed);
    std::lock_guard<std::mutex> lock(mutex_);
    return events_.emplace(event.get(), event).first->first;
}

std::shared_ptr<Event> StreamTable::find_event(Event *handle) const {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = events_.find(handle);
    return found == events_.end() ? nullptr : found->second;
}

void StreamTable::remove_event(Event *handle) {
    std::lock_guard<std::mutex> lock(mutex_);
    events_.erase(handle);
}

std::vector<std::shared_ptr<Stream>> StreamTable::of_device(int device) const {
    std::lock_guard<std::mutex> lock(mutex_);
    std::vector<std::shared_ptr<Stream>> all{null_stream(device)};
    for (const auto &entry : streams_) {
        if (entry.second->device() == device) all.push_back(entry.second);
    }
    return all;
}

void StreamTable::forget(int device) {
    for (const auto &stream : of_device(device)) stream->drop_all();
    std::lock_guard<std::mutex> lock(mutex_);
    for (auto i = streams_.begin(); i != streams_.end();) {
        i = i->second->device() == device ? streams_.erase(i) : std::next(i);
    }
    for (auto i = events_.begin(); i != events_.end();) {
        i = i->second->device() == device ? events_.erase(i) : std::next(i);
    }
}

}  // namespace cudasim
