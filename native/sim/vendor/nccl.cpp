// NCCL on simulated devices: the functions of vendor/nccl.h.
//
// Vectors are reduced around a ring: as in the real library, each piece of the vector starts at another rank. So the order is
// not that of the ranks, and it differs from element to element; sums and maxima of integers do not depend on it.
//
// What happens when a rank fails is that of the real library:
//   - A communicator that does not block answers ncclInProgress until every rank has made the call, and is refused further
//     calls until then. One that blocks keeps its caller for as long. Source: NCCL user guide, "ncclCommGetAsyncError" and
//     "Management Of Multiple GPUs From One Thread" (a call may wait for the other ranks before it is posted).
//   - When all have called, each stream gets a kernel that is done only if the kernels of all ranks take part. If one never
//     does, because its device has failed or its rank has been aborted, the others occupy their streams until their own
//     communicators are aborted, and a caller who waits for such a stream does not return. Source: NCCL user guide,
//     "Asynchronous errors and error handling" (operations with an asynchronous error usually never complete);
//     NVIDIA/nccl#585 for processes that wait in cudaStreamSynchronize after a peer was killed.
//   - An error that is found after the call is told by ncclCommGetAsyncError alone. Between GPUs of one machine a dead peer
//     is not found at all: that takes a time limit of the caller. Sources: NCCL user guide, as above; NVIDIA/nccl#279.
//   - ncclCommAbort ends the kernels of its own rank and leaves anything in their results, here ones in all bits. Every rank has to
//     abort its own communicator, while no other thread is in a call on it; such a call is refused here. Sources: NCCL user
//     guide, "Fault Tolerance", "ncclCommAbort" and "Thread Safety"; NVIDIA/nccl#863 for ranks of one node.
//   - ncclCommDestroy waits for the kernels of its rank, which may be forever.
//
// Faults to inject, each into a call on one device:
//   nccl         the call returns ncclSystemError
//   nccl-stuck   the call stays ncclInProgress, as if the library could not reach the others
//   nccl-dead    the call succeeds, but the kernel never takes part, and nobody is told
//   nccl-remote  the same, but the other ranks are told ncclRemoteError, asynchronously
#include "vendor/nccl.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "cudasim/control.h"
#include "cudasim/runtime.h"
#include "handles.h"
#include "site.h"

using namespace vendor;

namespace {

// For calls that block; the real library would wait forever for a missing rank.
constexpr std::chrono::seconds kPatience{120};

thread_local std::string last_error;

struct Request {
    const void *send = nullptr;
    void *receive = nullptr;
    std::size_t count = 0;
    int type = ncclUint8;
    int operation = ncclSum;
    cudasim::cudaStream_t stream = nullptr;
    bool dead = false;
    bool remote = false;

    bool same_as(const Request &other) const {
        return count == other.count && type == other.type && operation == other.operation;
    }
};

// Makes a device current and restores the previous one.
class Current {
  public:
    explicit Current(int device) : before_(current_device()) { cudasim::cudaSetDevice(device); }
    ~Current() { cudasim::cudaSetDevice(before_); }
    Current(const Current &) = delete;
    Current &operator=(const Current &) = delete;

  private:
    int before_;
};

// One call of all ranks. The kernels ask it without a lock.
class Collective {
  public:
    Collective(std::vector<Request> requests, std::vector<int> devices)
        : requests_(std::move(requests)), devices_(std::move(devices)), aborted_(requests_.size()) {
        for (const Request &request : requests_) dead_ = dead_ || request.dead || request.remote;
    }

    void abort(std::size_t rank) { aborted_[rank].store(true); }

    // Whether the kernel of a rank has anything left to wait for; `there` says whether all streams have come to theirs.
    bool is_over(std::size_t rank, bool there) const {
        if (aborted_[rank].load() || done_.load()) return true;
        if (!there || dead_) return false;
        for (std::size_t other = 0; other < devices_.size(); ++other) {
            if (aborted_[other].load() || cudasim::has_failed(devices_[other])) return false;
        }
        return true;
    }

    bool is_done() const { return done_.load(); }

    // The kernel of a rank. The first does the work of all, because the streams of all have come to theirs.
    void run(std::size_t rank) {
        if (done_.load()) return;
        if (aborted_[rank].load()) {
            std::memset(requests_[rank].receive, 0xff, bytes_of(requests_[rank].type) * requests_[rank].count);
            return;
        }
        requests_.front().type == ncclInt64 ? reduce<std::uint64_t>() : reduce<std::uint8_t>();
        done_.store(true);
    }

    static std::size_t bytes_of(int type) { return type == ncclInt64 ? 8 : 1; }

  private:
    // Sums are modulo 2^64, in which signed and unsigned integers are the same.
    template <typename T>
    void reduce() const {
        const Request &first = requests_.front();
        const std::size_t ranks = requests_.size();
        std::vector<T> result(first.count);
        const std::size_t piece = (first.count + ranks - 1) / ranks;
        for (std::size_t i = 0; i < first.count; ++i) {
            const std::size_t start = i / piece + 1;  // piece p starts at the rank after p and ends at p
            T value = 0;
            for (std::size_t step = 0; step < ranks; ++step) {
                const T next = static_cast<const T *>(requests_[(start + step) % ranks].send)[i];
                value = first.operation == ncclMax ? std::max(value, next) : static_cast<T>(value + next);
            }
            result[i] = value;
        }
        for (const Request &request : requests_) std::memcpy(request.receive, result.data(), first.count * sizeof(T));
    }

    const std::vector<Request> requests_;
    const std::vector<int> devices_;
    std::vector<std::atomic<bool>> aborted_;
    std::atomic<bool> done_{false};
    bool dead_ = false;
};

// What a rank has of its group.
struct Rank {
    bool joined = false;
    int device = -1;
    std::atomic<int> state{ncclInProgress};  // what ncclCommGetAsyncError answers
    std::atomic<int> later{ncclSuccess};     // what it answers after it has answered ncclSuccess
    bool called = false;                     // it has made the next call
    Request request;
    std::vector<std::shared_ptr<Collective>> posted;  // that may not be done
    cudasim::cudaEvent_t finished = nullptr;  // after its last kernel
};

// The ranks that know each other by one id.
class Clique {
  public:
    explicit Clique(int ranks) : ranks_(static_cast<std::size_t>(ranks)) {}

    std::size_t count() const { return ranks_.size(); }
    int device(std::size_t rank) const { return ranks_[rank].device; }
    std::atomic<int> &state(std::size_t rank) { return ranks_[rank].state; }

    int async_error(std::size_t rank) {
        const int state = ranks_[rank].state;
        if (state == ncclSuccess) ranks_[rank].state = ranks_[rank].later.load();
        return state;
    }

    int join(std::size_t rank, int device, bool stuck) {
        std::lock_guard<std::mutex> lock(mutex_);
        Rank &own = ranks_[rank];
        if (own.joined) return ncclInvalidUsage;
        own.joined = !stuck;
        own.device = device;
        std::vector<int> devices;
        for (const Rank &other : ranks_) {
            if (!other.joined) return ncclSuccess;
            devices.push_back(other.device);
        }
        std::sort(devices.begin(), devices.end());
        const bool twice = std::adjacent_find(devices.begin(), devices.end()) != devices.end();
        if (twice) complain("ncclCommInitRankConfig", "a device is given twice");
        for (Rank &other : ranks_) other.state = twice ? ncclInvalidUsage : ncclSuccess;
        return ncclSuccess;
    }

    // Adds a rank's part of the next call; the last rank posts the kernels of all.
    void post(std::size_t rank, const Request &request) {
        std::lock_guard<std::mutex> lock(mutex_);
        ranks_[rank].state = ncclInProgress;
        ranks_[rank].request = request;
        ranks_[rank].called = true;
        for (const Rank &other : ranks_) {
            if (!other.called) return;
        }
        const bool agreed = agree();
        if (agreed) start();
        for (Rank &other : ranks_) {
            other.called = false;
            if (!agreed) other.state = ncclInvalidUsage;
        }
    }

    void abort(std::size_t rank) {
        std::lock_guard<std::mutex> lock(mutex_);
        ranks_[rank].called = false;
        for (const auto &collective : ranks_[rank].posted) collective->abort(rank);
        release(ranks_[rank]);
    }

    void destroy(std::size_t rank) {
        cudasim::cudaEvent_t finished = nullptr;
        {
            std::lock_guard<std::mutex> lock(mutex_);
            finished = ranks_[rank].finished;
        }
        if (finished != nullptr) {
            const Current current(device(rank));
            cudasim::cudaEventSynchronize(finished);
        }
        std::lock_guard<std::mutex> lock(mutex_);
        release(ranks_[rank]);
    }

  private:
    static void release(Rank &rank) {
        if (rank.finished == nullptr) return;
        const Current current(rank.device);
        cudasim::cudaEventDestroy(rank.finished);
        rank.finished = nullptr;
        rank.posted.clear();
    }

    bool agree() const {
        for (const Rank &rank : ranks_) {
            if (rank.request.same_as(ranks_.front().request)) continue;
            complain("ncclAllReduce", "the ranks call with different counts, types or operations");
            return false;
        }
        return true;
    }

    // Posts the kernels of all ranks. A rank whose device has failed is told; the kernels of the others wait for it. The others
    // read their state without a lock, and take a success for a kernel that is on their stream: it is written last.
    void start() {
        std::vector<Request> requests;
        std::vector<int> devices;
        for (const Rank &rank : ranks_) {
            requests.push_back(rank.request);
            devices.push_back(rank.device);
        }
        const auto collective = std::make_shared<Collective>(requests, devices);
        std::vector<cudasim::cudaEvent_t> reached;
        std::vector<int> states;
        for (Rank &rank : ranks_) {
            const Current current(rank.device);
            cudasim::cudaEvent_t event = nullptr;
            const bool recorded =
                cudasim::cudaEventCreateWithFlags(&event, cudasim::cudaEventDisableTiming) == cudasim::cudaSuccess &&
                cudasim::cudaEventRecord(event, rank.request.stream) == cudasim::cudaSuccess;
            states.push_back(recorded ? ncclSuccess : ncclUnhandledCudaError);
            if (event != nullptr) reached.push_back(event);
        }
        for (std::size_t i = 0; i < count(); ++i) {
            Rank &rank = ranks_[i];
            if (states[i] != ncclSuccess) continue;
            const Current current(rank.device);
            const auto over = [collective, i](bool there) { return collective->is_over(i, there); };
            const auto work = [collective, i] { collective->run(i); };
            if (cudasim::enqueue_waiting(rank.request.stream, "ncclAllReduce", over, reached, work, devices) !=
                cudasim::cudaSuccess) {
                states[i] = ncclUnhandledCudaError;
                continue;
            }
            keep(rank, collective);
            for (Rank &other : ranks_) {
                if (rank.request.remote && &other != &rank) other.later = ncclRemoteError;
            }
        }
        for (const cudasim::cudaEvent_t event : reached) cudasim::cudaEventDestroy(event);
        for (std::size_t i = 0; i < count(); ++i) ranks_[i].state = states[i];
    }

    static void keep(Rank &rank, const std::shared_ptr<Collective> &collective) {
        const auto done = [](const std::shared_ptr<Collective> &one) { return one->is_done(); };
        rank.posted.erase(std::remove_if(rank.posted.begin(), rank.posted.end(), done), rank.posted.end());
        rank.posted.push_back(collective);
        if (rank.finished == nullptr) {
            cudasim::cudaEventCreateWithFlags(&rank.finished, cudasim::cudaEventDisableTiming);
        }
        cudasim::cudaEventRecord(rank.finished, rank.request.stream);
    }

    std::mutex mutex_;
    std::vector<Rank> ranks_;
};

// Groups whose ranks have not all joined, by id.
std::shared_ptr<Clique> clique_of(const ncclUniqueId &id, int ranks) {
    static std::mutex mutex;
    static std::map<std::string, std::weak_ptr<Clique>> all;
    const std::string key(id.internal, sizeof id.internal);
    std::lock_guard<std::mutex> lock(mutex);
    std::shared_ptr<Clique> known = all[key].lock();
    if (!known) {
        known = std::make_shared<Clique>(ranks);
        all[key] = known;
    }
    return known;
}

struct Communicator {
    std::shared_ptr<Clique> clique;
    std::size_t rank;
    bool blocking;
    std::atomic<bool> in_call{false};

    Communicator(std::shared_ptr<Clique> of, std::size_t number, bool blocks)
        : clique(std::move(of)), rank(number), blocking(blocks) {}

    std::atomic<int> &state() { return clique->state(rank); }

    // What a call returns: at once, or when it is no longer in progress.
    int answer() {
        const auto limit = std::chrono::steady_clock::now() + kPatience;
        while (blocking && state() == ncclInProgress && std::chrono::steady_clock::now() < limit) {
            std::this_thread::sleep_for(std::chrono::microseconds(200));
        }
        return state();
    }
};

Handles<Communicator> &communicators() {
    static Handles<Communicator> all;
    return all;
}

// A communicator for the duration of a call. No two threads may be in calls on one.
class Entered {
  public:
    Entered(const char *function, void *address) : communicator_(communicators().find(address)) {
        if (!communicator_) {
            last_error = "no such communicator";
            complain(function, "%p is no communicator", address);
            result_ = ncclInvalidArgument;
        } else if (communicator_->in_call.exchange(true)) {
            last_error = "another thread is in a call on this communicator";
            complain(function, "%s", last_error.c_str());
            communicator_.reset();
            result_ = ncclInvalidUsage;
        }
    }
    ~Entered() {
        if (communicator_) communicator_->in_call = false;
    }
    Entered(const Entered &) = delete;
    Entered &operator=(const Entered &) = delete;

    explicit operator bool() const { return communicator_ != nullptr; }
    Communicator *operator->() const { return communicator_.get(); }
    int result() const { return result_; }

  private:
    std::shared_ptr<Communicator> communicator_;
    int result_ = ncclSuccess;
};

bool injected(const char *function, const char *what, int device) {
    if (!cudasim::injected(what, device)) return false;
    last_error = "fails as injected";
    complain(function, "%s as injected", what);
    return true;
}

}  // namespace

// Distinguishes a simulated library from a real one, which would dereference simulated pointers.
VENDOR_API int cudasim_stand_in(void) { return 1; }

VENDOR_API int ncclGetVersion(int *version) {
    if (version == nullptr) return ncclInvalidArgument;
    *version = 22800;
    return ncclSuccess;
}

VENDOR_API const char *ncclGetErrorString(int result) {
    switch (result) {
        case ncclSuccess:
            return "no error";
        case ncclUnhandledCudaError:
            return "unhandled cuda error";
        case ncclSystemError:
            return "unhandled system error";
        case ncclInternalError:
            return "internal error";
        case ncclInvalidArgument:
            return "invalid argument";
        case ncclInvalidUsage:
            return "invalid usage";
        case ncclRemoteError:
            return "remote process exited or there was a network error";
        case ncclInProgress:
            return "NCCL operation in progress";
        default:
            return "unknown result code";
    }
}

VENDOR_API const char *ncclGetLastError(void *) { return last_error.c_str(); }

VENDOR_API int ncclGetUniqueId(ncclUniqueId *id) {
    if (id == nullptr) return ncclInvalidArgument;
    static std::atomic<unsigned> next{1};
    *id = ncclUniqueId{};
    std::snprintf(id->internal, sizeof id->internal, "simulated group %u", next.fetch_add(1));
    return ncclSuccess;
}

VENDOR_API int ncclCommInitRankConfig(void **made, int ranks, ncclUniqueId id, int rank, ncclConfig *config) {
    if (made == nullptr || ranks < 1 || rank < 0 || rank >= ranks || config == nullptr) return ncclInvalidArgument;
    if (config->size < sizeof(ncclConfig) || config->magic != NCCL_CONFIG_MAGIC || config->version < NCCL_CONFIG_VERSION ||
        (config->blocking != 0 && config->blocking != 1)) {
        last_error = "not a configuration";
        return ncclInvalidArgument;
    }
    const int device = current_device();
    if (injected(__func__, "nccl", device)) return ncclSystemError;
    const auto clique = clique_of(id, ranks);
    if (clique->count() != static_cast<std::size_t>(ranks)) return ncclInvalidArgument;
    const int result = clique->join(static_cast<std::size_t>(rank), device, injected(__func__, "nccl-stuck", device));
    if (result != ncclSuccess) return result;
    *made = communicators().make(clique, static_cast<std::size_t>(rank), config->blocking == 1);
    return communicators().find(*made)->answer();
}

VENDOR_API int ncclCommGetAsyncError(void *communicator, int *result) {
    const Entered own(__func__, communicator);
    if (!own) return own.result();
    if (result == nullptr) return ncclInvalidArgument;
    *result = own->clique->async_error(own->rank);
    return ncclSuccess;
}

VENDOR_API int ncclCommDestroy(void *communicator) {
    const Entered own(__func__, communicator);
    if (!own) return own.result();
    own->clique->destroy(own->rank);
    return communicators().destroy(communicator) ? ncclSuccess : ncclInvalidArgument;
}

VENDOR_API int ncclCommAbort(void *communicator) {
    const Entered own(__func__, communicator);
    if (!own) return own.result();
    own->clique->abort(own->rank);
    return communicators().destroy(communicator) ? ncclSuccess : ncclInvalidArgument;
}

VENDOR_API int ncclAllReduce(const void *send, void *receive, unsigned long count, int type, int operation,
                             void *communicator, void *stream) {
    const Entered own(__func__, communicator);
    if (!own) return own.result();
    if (own->state() != ncclSuccess) {
        last_error = "the previous call on this communicator has failed or is in progress";
        return own->state() == ncclInProgress ? static_cast<int>(ncclInvalidArgument) : own->state().load();
    }
    const int device = own->clique->device(own->rank);
    if (injected(__func__, "nccl", device)) {
        own->state() = ncclSystemError;
        return ncclSystemError;
    }
    const bool known = (type == ncclInt64 && operation == ncclSum) || (type == ncclUint8 && operation == ncclMax);
    if (!known) {
        last_error = "the simulated library reduces bytes by maximum and 64-bit integers by sum";
        return ncclInvalidArgument;
    }
    const auto bytes = static_cast<std::int64_t>(count * Collective::bytes_of(type));
    if (!is_current(__func__, device) || !belongs(__func__, stream, device) ||
        !on_device(__func__, "send", send, bytes, device) || !on_device(__func__, "receive", receive, bytes, device)) {
        last_error = "an operand is not where it must be";
        return ncclInvalidArgument;
    }
    Request request;
    request.send = send;
    request.receive = receive;
    request.count = count;
    request.type = type;
    request.operation = operation;
    request.stream = static_cast<cudasim::cudaStream_t>(stream);
    request.dead = injected(__func__, "nccl-dead", device);
    request.remote = injected(__func__, "nccl-remote", device);
    if (injected(__func__, "nccl-stuck", device)) {
        own->state() = ncclInProgress;
    } else {
        own->clique->post(own->rank, request);
    }
    return own->answer();
}
