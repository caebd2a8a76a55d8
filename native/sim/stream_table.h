// The existing streams and events, and the null stream of each device.
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
    // nullptr if there is no such stream. The handle nullptr means the null stream of `device`.
    std::shared_ptr<Stream> find(Stream *handle, int device) const;
    void remove(Stream *handle);

    Event *create_event(int device, bool timed);
    std::shared_ptr<Event> find_event(Event *handle) const;
    void remove_event(Event *handle);

    const std::shared_ptr<Stream> &null_stream(int device) const { return null_[static_cast<size_t>(device)]; }
    // Including its null stream.
    std::vector<std::shared_ptr<Stream>> of_device(int device) const;
    // Removes all streams and events; pending work is discarded.
    void forget(int device);

   private:
    mutable std::mutex mutex_;
    std::vector<std::shared_ptr<Stream>> null_;
    std::map<Stream *, std::shared_ptr<Stream>> streams_;
    std::map<Event *, std::shared_ptr<Event>> events_;
};

}  // namespace cudasim
