// NCCL on simulated devices: the functions of vendor/nccl.h.
//
// Sums are computed around a ring: as in the real library, each piece of the vector starts at another rank. The order of a
// sum is therefore not the order of the ranks, and it differs from element to element. This is why the product sums in
// client order where results must not depend on the number of devices.
#include "vendor/nccl.h"

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cudasim/control.h"
#include "cudasim/runtime.h"
#include "handles.h"
#include "site.h"

using namespace vendor;

namespace {

// The real library would wait forever for a missing rank.
constexpr std::chrono::seconds kPatience{120};

thread_local std::string last_error;

enum class Kind { reduce, broadcast };

struct Request {
    Kind kind = Kind::reduce;
    const void *send = nullptr;
    void *receive = nullptr;
    std::size_t count = 0;
    int type = ncclFloat32;
    int operation = ncclSum;
    int root = 0;
    cudasim::cudaStream_t stream = nullptr;
    cudasim::cudaEvent_t reached = nullptr;  // the stream has reached this call

    bool same_as(const Request &other) const {
        return kind == other.kind && count == other.count && type == other.type && operation == other.operation &&
               root == other.root;
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

// The ranks that were created together. A collective call is complete when each rank has made it.
class Clique {
  public:
    explicit Clique(std::vector<int> devices) : devices_(std::move(devices)), posted_(devices_.size()) {}

    const std::vector<int> &devices() const { return devices_; }

    // Adds a rank's part of the next collective call; the last rank starts it.
    int post(int rank, Request request) {
        {
            const Current current(devices_[static_cast<std::size_t>(rank)]);
            if (cudasim::cudaEventCreateWithFlags(&request.reached, cudasim::cudaEventDisableTiming) != cudasim::cudaSuccess ||
                cudasim::cudaEventRecord(request.reached, request.stream) != cudasim::cudaSuccess) {
                return ncclUnhandledCudaError;
            }
        }
        std::unique_lock<std::mutex> lock(mutex_);
        posted_[static_cast<std::size_t>(rank)].push_back(request);
        for (const auto &queue : posted_) {
            if (queue.empty()) return ncclSuccess;
        }
        std::vector<Request> requests;
        for (auto &queue : posted_) {
            requests.push_back(queue.front());
            queue.erase(queue.begin());
        }
        result_ = start(requests);
        ++started_;
        all_came_.notify_all();
        return result_;
    }

    // Waits until every rank has made the collective call `number` of this clique.
    int await(long number) {
        std::unique_lock<std::mutex> lock(mutex_);
        if (!all_came_.wait_for(lock, kPatience, [&] { return started_ >= number || broken_; }) || started_ < number) {
            complain("nccl", "some of %zu ranks did not make the call that the others wait in", devices_.size());
            last_error = "a rank did not come";
            return ncclRemoteError;
        }
        return result_;
    }

    // A rank has failed: the others are released, and the clique can no longer be used.
    void fail() {
        std::lock_guard<std::mutex> lock(mutex_);
        broken_ = true;
        all_came_.notify_all();
    }

    long next(int rank) {
        std::lock_guard<std::mutex> lock(mutex_);
        return started_ + static_cast<long>(posted_[static_cast<std::size_t>(rank)].size()) + 1;
    }

  private:
    int start(const std::vector<Request> &requests) {
        for (const Request &request : requests) {
            if (!request.same_as(requests.front())) {
                complain("nccl", "the ranks call with different counts, types or operations");
                last_error = "the ranks do not agree";
                return ncclInvalidUsage;
            }
        }
        // The first rank's stream waits for all others and does the work, and all others wait for it.
        const Current current(devices_.front());
        const cudasim::cudaStream_t leader = requests.front().stream;
        for (const Request &request : requests) {
            cudasim::cudaStreamWaitEvent(leader, request.reached);
        }
        const bool queued = enqueue("nccl", leader, [requests] { work(requests); }, devices_);
        cudasim::cudaEvent_t done = nullptr;
        cudasim::cudaEventCreateWithFlags(&done, cudasim::cudaEventDisableTiming);
        cudasim::cudaEventRecord(done, leader);
        for (std::size_t rank = 1; rank < requests.size(); ++rank) {
            const Current other(devices_[rank]);
            cudasim::cudaStreamWaitEvent(requests[rank].stream, done);
        }
        for (const Request &request : requests) cudasim::cudaEventDestroy(request.reached);
        cudasim::cudaEventDestroy(done);
        return queued ? ncclSuccess : ncclUnhandledCudaError;
    }

    static void work(const std::vector<Request> &requests) {
        if (requests.front().type == ncclFloat64) {
            typed<double>(requests);
        } else {
            typed<float>(requests);
        }
    }

    template <typename T>
    static void typed(const std::vector<Request> &requests) {
        const Request &first = requests.front();
        const std::size_t ranks = requests.size();
        std::vector<T> result(first.count);
        if (first.kind == Kind::broadcast) {
            std::memcpy(result.data(), requests[static_cast<std::size_t>(first.root)].send, first.count * sizeof(T));
        } else {
            const std::size_t piece = (first.count + ranks - 1) / ranks;
            for (std::size_t i = 0; i < first.count; ++i) {
                const std::size_t start = i / piece + 1;  // piece p starts at the rank after p and ends at p
                T sum = 0;
                for (std::size_t step = 0; step < ranks; ++step) {
                    sum += static_cast<const T *>(requests[(start + step) % ranks].send)[i];
                }
                result[i] = first.operation == ncclAvg ? sum / static_cast<T>(ranks) : sum;
            }
        }
        for (const Request &request : requests) {
            std::memcpy(request.receive, result.data(), first.count * sizeof(T));
        }
    }

    const std::vector<int> devices_;
    std::mutex mutex_;
    std::condition_variable all_came_;
    std::vector<std::vector<Request>> posted_;
    long started_ = 0;
    int result_ = ncclSuccess;
    bool broken_ = false;
};

struct Communicator {
    std::shared_ptr<Clique> clique;
    int rank;
    int device() const { return clique->devices()[static_cast<std::size_t>(rank)]; }
};

Handles<Communicator> &communicators() {
    static Handles<Communicator> all;
    return all;
}

// The calls of a thread between ncclGroupStart and ncclGroupEnd.
struct Group {
    int depth = 0;
    std::vector<std::pair<std::shared_ptr<Communicator>, Request>> calls;
};
thread_local Group group;

int submit(const std::vector<std::pair<std::shared_ptr<Communicator>, Request>> &calls) {
    std::vector<std::pair<std::shared_ptr<Clique>, long>> awaited;
    for (const auto &[communicator, request] : calls) {
        awaited.emplace_back(communicator->clique, communicator->clique->next(communicator->rank));
        const int result = communicator->clique->post(communicator->rank, request);
        if (result != ncclSuccess) return result;
    }
    for (const auto &[clique, number] : awaited) {
        const int result = clique->await(number);
        if (result != ncclSuccess) return result;
    }
    return ncclSuccess;
}

int call(const char *function, void *address, Request request) {
    const auto communicator = communicators().find(address);
    if (!communicator) {
        last_error = "no such communicator";
        complain(function, "%p is no communicator", address);
        return ncclInvalidArgument;
    }
    const int device = communicator->device();
    if (cudasim::injected("nccl", device)) {
        last_error = "fails as injected";
        complain(function, "fails as injected");
        // Within a group, this thread itself would wait for the rank, so the clique fails. Otherwise the ranks that have
        // arrived keep waiting until the communicator is aborted, as with the real library.
        if (group.depth > 0) communicator->clique->fail();
        return ncclSystemError;
    }
    if (request.type != ncclFloat32 && request.type != ncclFloat64) return ncclInvalidArgument;
    if (request.operation != ncclSum && request.operation != ncclAvg) return ncclInvalidArgument;
    if (request.root < 0 || request.root >= static_cast<int>(communicator->clique->devices().size())) {
        return ncclInvalidArgument;
    }
    const std::int64_t bytes = static_cast<std::int64_t>(request.count) * (request.type == ncclFloat64 ? 8 : 4);
    const bool sends = request.kind == Kind::reduce || request.root == communicator->rank;
    // As in the real library, any device may be current within a group; otherwise it must be the communicator's own.
    if ((group.depth == 0 && !is_current(function, device)) || !belongs(function, request.stream, device) ||
        (sends && !on_device(function, "send", request.send, bytes, device)) ||
        !on_device(function, "receive", request.receive, bytes, device)) {
        last_error = "an operand is not where it must be";
        if (group.depth == 0) communicator->clique->fail();  // the real library would leave the others waiting
        return ncclInvalidArgument;
    }
    if (group.depth > 0) {
        group.calls.emplace_back(communicator, request);
        return ncclSuccess;
    }
    return submit({{communicator, request}});
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
        default:
            return "unknown result code";
    }
}

VENDOR_API const char *ncclGetLastError(void *) { return last_error.c_str(); }

VENDOR_API int ncclCommInitAll(void **made, int count, const int *devices) {
    if (made == nullptr || count < 1) return ncclInvalidArgument;
    int present = 0;
    cudasim::cudaGetDeviceCount(&present);
    std::vector<int> chosen;
    for (int i = 0; i < count; ++i) {
        const int device = devices == nullptr ? i : devices[i];
        if (device < 0 || device >= present) {
            last_error = "no such device";
            complain(__func__, "there is no device %d", device);
            return ncclInvalidArgument;
        }
        for (int other : chosen) {
            if (other == device) {
                last_error = "duplicate GPU";
                complain(__func__, "device %d is given twice", device);
                return ncclInvalidUsage;
            }
        }
        if (cudasim::injected("nccl", device)) {
            last_error = "fails as injected";
            return ncclSystemError;
        }
        chosen.push_back(device);
    }
    const auto clique = std::make_shared<Clique>(chosen);
    for (int i = 0; i < count; ++i) made[i] = communicators().make(Communicator{clique, i});
    return ncclSuccess;
}

VENDOR_API int ncclCommDestroy(void *communicator) {
    return communicators().destroy(communicator) ? ncclSuccess : ncclInvalidArgument;
}

VENDOR_API int ncclCommAbort(void *communicator) {
    const auto known = communicators().find(communicator);
    if (!known) return ncclInvalidArgument;
    known->clique->fail();
    return ncclCommDestroy(communicator);
}

VENDOR_API int ncclGroupStart(void) {
    ++group.depth;
    return ncclSuccess;
}

VENDOR_API int ncclGroupEnd(void) {
    if (group.depth == 0) return ncclInvalidUsage;
    if (--group.depth > 0) return ncclSuccess;
    const auto calls = std::move(group.calls);
    group.calls.clear();
    return submit(calls);
}

VENDOR_API int ncclAllReduce(const void *send, void *receive, unsigned long count, int type, int operation,
                             void *communicator, void *stream) {
    Request request;
    request.send = send;
    request.receive = receive;
    request.count = count;
    request.type = type;
    request.operation = operation;
    request.stream = static_cast<cudasim::cudaStream_t>(stream);
    return call(__func__, communicator, request);
}

VENDOR_API int ncclBroadcast(const void *send, void *receive, unsigned long count, int type, int root, void *communicator,
                             void *stream) {
    Request request;
    request.kind = Kind::broadcast;
    request.send = send;
    request.receive = receive;
    request.count = count;
    request.type = type;
    request.root = root;
    request.stream = static_cast<cudasim::cudaStream_t>(stream);
    return call(__func__, communicator, request);
}
