// The runtime interface: memory and copies.
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "cudasim/control.h"
#include "host_thread.h"
#include "text.h"

namespace cudasim {

struct detail::MemoryPool {
    int device;
};

namespace {

void check_pointer(const void *where) {
    if (where == nullptr) throw ApiError(cudaErrorInvalidValue, "a null pointer for the result");
}

void *allocate(Machine &machine, int device, size_t bytes, bool pool) {
    if (machine.injector().hit("malloc", device)) {
        throw ApiError(cudaErrorMemoryAllocation, text("%zu bytes on device %d: injected fault", bytes, device));
    }
    DeviceMemory &memory = machine.memories().device(device);
    void *address = memory.allocate(bytes, pool, !pool);
    if (address == nullptr) {
        // Pending frees in streams release their memory first, as the driver allows.
        machine.trace().add_wait(device, nullptr, pool ? "cudaMallocAsync" : "cudaMalloc");
        machine.finish_device(device);
        address = memory.allocate(bytes, pool, !pool);
    }
    if (address == nullptr) {
        throw ApiError(cudaErrorMemoryAllocation, text("%zu bytes on device %d, which has %zu of %zu left", bytes, device,
                                                       memory.capacity() - memory.used(), memory.capacity()));
    }
    return address;
}

void claim_for_free(Machine &machine, void *address, bool pool_only) {
    const int device = machine.memories().owner(address);
    if (device < 0 || !machine.memories().device(device).claim_for_free(address, pool_only)) {
        throw ApiError(cudaErrorInvalidValue, "free of what is no allocation: " + machine.memories().describe(address));
    }
}

// ---- Copies ----

struct Side {
    Place place;
    bool on_device() const { return place.kind == Place::Kind::device; }
    bool pinned() const { return place.kind == Place::Kind::pinned; }
    bool pageable() const { return place.kind == Place::Kind::host; }
};

Side side_of(Machine &machine, const char *which, const void *address, size_t bytes) {
    const Side side{machine.memories().find(address)};
    const bool gone = side.place.kind == Place::Kind::freed || side.place.kind == Place::Kind::unallocated;
    if (address == nullptr || gone || (!side.pageable() && bytes > side.place.room(address))) {
        throw ApiError(cudaErrorInvalidValue, text("%zu bytes as the %s of a copy: %s", bytes, which,
                                                   machine.memories().describe(address).c_str()));
    }
    return side;
}

void check_kind(cudaMemcpyKind kind, const Side &to, const Side &from) {
    if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault) {
        throw ApiError(cudaErrorInvalidMemcpyDirection, text("copy kind %d", static_cast<int>(kind)));
    }
    if (kind == cudaMemcpyDefault) return;
    const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    if (to.on_device() != to_device || from.on_device() != from_device) {
        throw ApiError(cudaErrorInvalidValue,
                       text("copy kind %d, from %s to %s memory", static_cast<int>(kind),
                            from.on_device() ? "device" : "host", to.on_device() ? "device" : "host"));
    }
}

// By then the memory may have been freed, or not yet be allocated: the copy is ordered with neither.
void check_still_there(const DeviceMemories &memories, const Side &side, const void *address, size_t bytes) {
    if (side.pageable()) return;
    const Place now = memories.find(address);
    if (now.kind == side.place.kind && now.ready && bytes <= now.room(address)) return;
    throw KernelFault(text("%zu bytes at a place that is not there: %s", bytes, memories.describe(address).c_str()));
}

// Submits a copy. If `synchronous`, it is that of cudaMemcpy, which waits unless it is from device to device.
void copy(Machine &machine, void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
          const std::shared_ptr<Stream> &stream, bool synchronous) {
    machine.check_healthy(stream->device());
    if (bytes == 0) return;
    const Side target = side_of(machine, "target", to, bytes);
    const Side source = side_of(machine, "source", from, bytes);
    check_kind(kind, target, source);
    const int device = stream->device();
    if (machine.injector().hit("copy", device)) {
        throw ApiError(cudaErrorUnknown, text("copy of %zu bytes on device %d: injected fault", bytes, device));
    }

    // Pageable memory is read now, into a staging buffer; pinned memory is read when the stream reaches the copy.
    std::shared_ptr<std::vector<unsigned char>> staging;
    if (source.pageable()) {
        const auto *first = static_cast<const unsigned char *>(from);
        staging = std::make_shared<std::vector<unsigned char>>(first, first + bytes);
    }
    Task task;
    // Without access to each other's memory, devices copy through the host.
    bool staged = false;
    for (const Side *side : {&target, &source}) {
        staged = staged || (target.on_device() && source.on_device() && target.place.device != source.place.device &&
                            side->place.device != device &&
                            !(side->place.pool ? machine.memories().pool_peer(device, side->place.device)
                                               : machine.memories().peer(device, side->place.device)));
    }
    task.what = text(staged ? "staged copy of %zu bytes" : "copy of %zu bytes", bytes);
    for (const Side *side : {&target, &source}) {
        if (side->on_device()) task.devices.push_back(side->place.device);
    }
    task.run = [&machine, to, from, bytes, target, source, staging] {
        check_still_there(machine.memories(), target, to, bytes);
        check_still_there(machine.memories(), source, from, bytes);
        std::memmove(to, staging != nullptr ? staging->data() : from, bytes);
    };
    const Mark mark = machine.submit(stream, std::move(task));
    const bool pageable = target.pageable() || source.pageable();
    const bool completes = synchronous && (!target.on_device() || !source.on_device());
    if (completes || pageable || staged) {
        const std::string function = synchronous ? "cudaMemcpy" : "cudaMemcpyAsync";
        machine.trace().add_wait(device, &mark,
                                 function + (staged     ? " between devices without peer access"
                                             : pageable ? " of pageable memory"
                                                        : ""));
    }
    // A copy to pageable memory is never asynchronous, and a staged one need not be. One from pageable memory may be either;
    // it is deferred here, so that a missing synchronization shows.
    if (completes || target.pageable() || staged) {
        machine.scheduler().finish(mark);
        machine.check_healthy(device);
    }
}

void set(Machine &machine, void *address, int value, size_t bytes, const std::shared_ptr<Stream> &stream) {
    machine.check_healthy(stream->device());
    if (bytes == 0) return;
    const Side target = side_of(machine, "target", address, bytes);
    if (!target.on_device()) throw ApiError(cudaErrorInvalidValue, "memset of memory of the host");
    Task task;
    task.what = text("memset of %zu bytes", bytes);
    task.devices.push_back(target.place.device);
    task.run = [&machine, address, value, bytes, target] {
        check_still_there(machine.memories(), target, address, bytes);
        std::memset(address, value, bytes);
    };
    machine.submit(stream, std::move(task));
}

}  // namespace

cudaError_t cudaMalloc(void **address, size_t bytes) {
    return call_in_context([&](Machine &machine, HostThread &thread) {
        check_pointer(address);
        machine.check_healthy(thread.device);
        *address = bytes == 0 ? nullptr : allocate(machine, thread.device, bytes, false);
    });
}

cudaError_t cudaFree(void *address) {
    return call_in_context([&](Machine &machine, HostThread &thread) {
        machine.check_device(thread.device);
        if (address == nullptr) return;
        claim_for_free(machine, address, false);
        const int device = machine.memories().owner(address);
        if (!machine.memories().find(address).pool) {
            machine.trace().add_wait(device, nullptr, "cudaFree");
            machine.finish_device(device);
        }
        machine.scheduler().between_tasks([&] {
            const std::string damage = machine.memories().device(device).release(address);
            if (!damage.empty()) machine.faults().set(device, "found at cudaFree: " + damage);
        });
        machine.check_healthy(device);
    });
}

cudaError_t cudaMallocAsync(void **address, size_t bytes, cudaStream_t handle) {
    return call_in_context([&](Machine &machine, HostThread &thread) {
        check_pointer(address);
        const auto stream = machine.stream(handle, thread.device);
        const int device = stream->device();
        machine.check_healthy(device);
        if (bytes == 0) throw ApiError(cudaErrorInvalidValue, "an allocation of 0 bytes");
        void *made = allocate(machine, device, bytes, true);
        Task task;
        task.what = "cudaMallocAsync";
        task.even_after_fault = true;
        task.run = [&machine, made, device] { machine.memories().device(device).set_ready(made); };
        machine.submit(stream, std::move(task));
        *address = made;
    });
}

cudaError_t cudaFreeAsync(void *address, cudaStream_t handle) {
    return call_in_context([&](Machine &machine, HostThread &thread) {
        const auto stream = machine.stream(handle, thread.device);
        if (address == nullptr) return;
        const int owner = machine.memories().owner(address);
        if (owner >= 0 && owner != stream->device()) {
            throw ApiError(cudaErrorInvalidValue, text("memory of device %d freed on a stream of device %d", owner,
                                                       stream->device()));
        }
        claim_for_free(machine, address, true);
        Task task;
        task.what = "cudaFreeAsync";
        task.even_after_fault = true;
        task.run = [&machine, address, owner] {
            const std::string damage = machine.memories().device(owner).release(address);
            if (!damage.empty()) throw KernelFault(damage);
        };
        machine.submit(stream, std::move(task));
        machine.check_healthy(owner);
    });
}

cudaError_t cudaHostAlloc(void **address, size_t bytes, unsigned flags) {
    return call_in_context([&](Machine &machine, HostThread &thread) {
        check_pointer(address);
        machine.check_healthy(thread.device);
        if (flags > 7) throw ApiError(cudaErrorInvalidValue, text("flags %u", flags));
        if (machine.injector().hit("malloc", thread.device)) {
            throw ApiError(cudaErrorMemoryAllocation, text("%zu bytes of pinned memory: injected fault", bytes));
        }
        *address = bytes == 0 ? nullptr : machine.memories().pinned().allocate(bytes);
    });
}

cudaError_t cudaMallocHost(void **address, size_t bytes, unsigned flags) { return cudaHostAlloc(address, bytes, flags); }

cudaError_t cudaFreeHost(void *address) {
    return call_in_context([&](Machine &machine, HostThread &thread) {
        if (address == nullptr) return;
        if (machine.memories().find(address).kind != Place::Kind::pinned) {
            throw ApiError(cudaErrorInvalidValue, "free of what is not pinned: " + machine.memories().describe(address));
        }
        // Pending copies may still read it.
        machine.trace().add_wait(thread.device, nullptr, "cudaFreeHost");
        for (int i = 0; i < machine.devices(); ++i) machine.finish_device(i);
        std::string damage;
        if (!machine.memories().pinned().release(address, &damage)) {
            throw ApiError(cudaErrorInvalidValue, "free of what is no allocation: " + machine.memories().describe(address));
        }
        if (!damage.empty()) throw ApiError(cudaErrorInvalidValue, damage);
    });
}

cudaError_t cudaMemGetInfo(size_t *free, size_t *total) {
    return call_in_context([&](Machine &machine, HostThread &thread) {
        check_pointer(free);
        check_pointer(total);
        machine.check_healthy(thread.device);
        const DeviceMemory &memory = machine.memories().device(thread.device);
        *total = memory.capacity();
        *free = memory.capacity() - memory.used();
    });
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device) {
    return call([&](Machine &machine, HostThread &) {
        check_pointer(pool);
        machine.check_device(device);
        static detail::MemoryPool pools[64];
        pools[device].device = device;
        *pool = &pools[device];
    });
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr, void *value) {
    return call([&](Machine &, HostThread &) {
        check_pointer(pool);
        check_pointer(value);
    });
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc *access, size_t count) {
    return call([&](Machine &machine, HostThread &) {
        check_pointer(pool);
        check_pointer(access);
        for (const cudaMemAccessDesc *one = access; one != access + count; ++one) {
            if (one->location.type != cudaMemLocationTypeDevice) throw ApiError(cudaErrorInvalidValue, "no device");
            const int device = one->location.id;
            machine.check_device(device);
            const bool any = one->flags != cudaMemAccessFlagsProtNone;
            if (device == pool->device ? !any : any && !machine.settings().peers) {
                throw ApiError(cudaErrorInvalidDevice, text("access of device %d to the pool of device %d", device, pool->device));
            }
            if (device != pool->device) machine.memories().set_pool_peer(device, pool->device, any);
        }
    });
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t) {
    return call([&](Machine &, HostThread &) { check_pointer(pool); });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *attributes, const void *address) {
    return call([&](Machine &machine, HostThread &thread) {
        check_pointer(attributes);
        const Place place = machine.memories().find(address);
        auto *pointer = const_cast<void *>(address);
        switch (place.kind) {
            case Place::Kind::device: *attributes = {cudaMemoryTypeDevice, place.device, pointer, nullptr}; break;
            case Place::Kind::pinned: *attributes = {cudaMemoryTypeHost, thread.device, pointer, pointer}; break;
            default: *attributes = {cudaMemoryTypeUnregistered, -1, nullptr, pointer}; break;
        }
    });
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind) {
    return call_in_context([&](Machine &machine, HostThread &thread) {
        const auto stream = machine.stream(nullptr, thread.device);
        copy(machine, to, from, bytes, kind, stream, true);
    });
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t handle) {
    return call_in_context([&](Machine &machine, HostThread &thread) {
        copy(machine, to, from, bytes, kind, machine.stream(handle, thread.device), false);
    });
}

cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes,
                                cudaStream_t handle) {
    return call_in_context([&](Machine &machine, HostThread &thread) {
        machine.check_device(to_device);
        machine.check_device(from_device);
        const auto stream = machine.stream(handle, thread.device);
        if (bytes > 0 && (machine.memories().owner(to) != to_device || machine.memories().owner(from) != from_device)) {
            throw ApiError(cudaErrorInvalidValue, text("a copy from device %d to device %d, but: %s; %s", from_device,
                                                       to_device, machine.memories().describe(from).c_str(),
                                                       machine.memories().describe(to).c_str()));
        }
        copy(machine, to, from, bytes, cudaMemcpyDeviceToDevice, stream, false);
    });
}

cudaError_t cudaMemset(void *address, int value, size_t bytes) {
    return call_in_context([&](Machine &machine, HostThread &thread) {
        const auto stream = machine.stream(nullptr, thread.device);
        set(machine, address, value, bytes, stream);
    });
}

cudaError_t cudaMemsetAsync(void *address, int value, size_t bytes, cudaStream_t handle) {
    return call_in_context([&](Machine &machine, HostThread &thread) {
        set(machine, address, value, bytes, machine.stream(handle, thread.device));
    });
}

// ---- cudasim/control.h ----

Place place_of(const void *address) {
    Place place;
    call([&](Machine &machine, HostThread &) { place = machine.memories().find(address); });
    return place;
}

std::string describe(const void *address) {
    std::string words;
    call([&](Machine &machine, HostThread &) { words = machine.memories().describe(address); });
    return words;
}

}  // namespace cudasim
