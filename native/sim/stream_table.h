// The streams and events that exist, and the null stream of each device.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "stream.h"

namespace cudasim {

class StreamTable {
   public:
    explicit StreamTable(int devices);

    Stream *create(int device, bool blocking);
    // nullptr when there is no such stream. nullptr as the handle means the null stream of `device`.
    std::shared_ptr<Stream> find(Stream *handle, int device) const;
    void remove(Stream *handle);

    Event *create_event(int device, bool timed);
    std::shared_ptr<Event> find_event(Event *handle) const;
    void remove_event(Event *handle);

    const std::shared_ptr<Stream> &null_stream(int device) const { return null_[static_cast<size_t>(device)]; }
    // Its null stream among them.
    std::vector<std::shared_ptr<Stream>> of_device(int device) const;
    // Streams and events are gone, their work undone.
    void forget(int device);

   private:
    mutable std::mutex mutex_;
    std::vector<std::shared_ptr<Stream>> null_;
    std::map<Stream *, std::shared_ptr<Stream>> streams_;
    std::map<Event *, std::shared_ptr<Event>> events_;
};

}  // namespace cudasim
