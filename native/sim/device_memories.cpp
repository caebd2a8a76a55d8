#include "device_memories.h"

#include <algorithm>

#include "engine.h"
#include "text.h"

namespace cudasim {

DeviceMemories::DeviceMemories(const Settings &settings)
    : peers_(static_cast<size_t>(settings.devices * settings.devices)),
      pool_peers_(static_cast<size_t>(settings.devices * settings.devices)) {
    for (int i = 0; i < settings.devices; ++i) {
        devices_.push_back(std::make_unique<DeviceMemory>(
            i, DeviceMemory::Options{settings.memory, settings.protect, settings.poison}));
    }
}

int DeviceMemories::owner(const void *address) const {
    for (int i = 0; i < count(); ++i) {
        if (device(i).contains(address)) return i;
    }
    return -1;
}

Place DeviceMemories::find(const void *address) const {
    const int number = owner(address);
    return number >= 0 ? device(number).find(address) : pinned_.find(address);
}

std::string DeviceMemories::describe(const void *address) const {
    const int number = owner(address);
    if (number >= 0) return device(number).describe(address);
    const Place place = pinned_.find(address);
    if (place.kind == Place::Kind::pinned) {
        return text("%p is byte %td of a pinned allocation of %zu bytes", address,
                    static_cast<const unsigned char *>(address) - place.base, place.bytes);
    }
    return text("%p is memory of the host", address);
}

bool DeviceMemories::allows(int device_number, const void *address, size_t bytes) const {
    const Place place = find(address);
    if (place.kind == Place::Kind::pinned) return bytes <= place.room(address);
    if (place.kind != Place::Kind::device || !place.ready || bytes > place.room(address)) return false;
    return place.device == device_number || (place.pool ? pool_peer(device_number, place.device) : peer(device_number, place.device));
}

void MemoryGate::open(int device, const std::vector<int> &others) {
    for (int i = 0; i < memories_.count(); ++i) {
        const bool all = i == device || std::find(others.begin(), others.end(), i) != others.end();
        memories_.device(i).set_reach({all || memories_.peer(device, i), all || memories_.pool_peer(device, i)});
    }
}

void MemoryGate::close() {
    for (int i = 0; i < memories_.count(); ++i) memories_.device(i).set_reach({false, false});
}

Place MemoryMap::find(const void *address) const { return memories_.find(address); }
bool MemoryMap::allows(const void *address, size_t bytes) const { return memories_.allows(device_, address, bytes); }
std::string MemoryMap::describe(const void *address) const { return memories_.describe(address); }

}  // namespace cudasim
