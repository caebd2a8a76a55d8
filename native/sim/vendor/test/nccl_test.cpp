// The simulated NCCL: sums and maxima over devices, the calls that it refuses, and what happens when a rank fails.
#include "vendor/nccl.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>

#include "devices.h"

namespace {

constexpr int kRanks = 3;
constexpr std::size_t kCount = 1000;
// Long enough for anything that happens at all; less than the two minutes after which a test program gives up waiting.
constexpr std::chrono::milliseconds kMoment{100};

// Any 64 bits: sums are modulo 2^64, and maxima are of bytes.
std::vector<std::int64_t> numbers(int rank) {
    std::mt19937_64 random(static_cast<unsigned>(rank));
    std::vector<std::int64_t> all(kCount);
    for (std::int64_t &one : all) one = static_cast<std::int64_t>(random());
    return all;
}

ncclConfig config(int blocking) { return {sizeof(ncclConfig), NCCL_CONFIG_MAGIC, NCCL_CONFIG_VERSION, blocking}; }

// A vector, a stream and a communicator on each device. Communicators are aborted in the end, so that no test waits for
// what another rank did not do.
class Ring {
  public:
    explicit Ring(int blocking = 0) {
        cudasim_inject("clear", -1, 1);
        ncclUniqueId id{};
        CHECK(ncclGetUniqueId(&id) == ncclSuccess, "id");
        communicators.resize(kRanks);
        std::vector<std::thread> threads;
        for (int rank = 0; rank < kRanks; ++rank) {
            MUST(cudasim::cudaSetDevice(rank));
            values.push_back(numbers(rank));
            vectors.push_back(std::make_unique<OnDevice<std::int64_t>>(values.back()));
            streams.push_back(std::make_unique<OnStream>());
            MUST(cudasim::cudaDeviceSynchronize());
            threads.emplace_back([this, rank, id, blocking] {
                cudasim::cudaSetDevice(rank);
                ncclConfig own = config(blocking);
                (void)ncclCommInitRankConfig(&communicators[static_cast<std::size_t>(rank)], kRanks, id, rank, &own);
            });
        }
        for (std::thread &thread : threads) thread.join();
        for (int rank = 0; rank < kRanks; ++rank) CHECK(state(rank) == ncclSuccess, "rank %d", rank);
        MUST(cudasim::cudaSetDevice(0));
    }
    ~Ring() {
        for (int rank = 0; rank < kRanks; ++rank) abort(rank);
    }
    Ring(const Ring &) = delete;
    Ring &operator=(const Ring &) = delete;

    int reduce(int rank, int operation = ncclSum, std::size_t count = kCount) const {
        const auto at = static_cast<std::size_t>(rank);
        cudasim::cudaSetDevice(rank);
        return ncclAllReduce(vectors[at]->at(), vectors[at]->at(), count, operation == ncclMax ? ncclUint8 : ncclInt64, operation,
                             communicators[at], streams[at]->get());
    }
    int state(int rank) const {
        int result = -1;
        CHECK(ncclCommGetAsyncError(communicators[static_cast<std::size_t>(rank)], &result) == ncclSuccess, "rank %d", rank);
        return result;
    }
    void abort(int rank) {
        void *&communicator = communicators[static_cast<std::size_t>(rank)];
        if (communicator == nullptr) return;
        CHECK(ncclCommAbort(communicator) == ncclSuccess, "rank %d", rank);
        communicator = nullptr;
    }
    bool is_done(int rank) const {
        // A query does one task of the stream, as a device does them one after the other.
        const auto until = std::chrono::steady_clock::now() + kMoment;
        cudasim::cudaSetDevice(rank);
        while (std::chrono::steady_clock::now() < until) {
            if (cudasim::cudaStreamQuery(streams[static_cast<std::size_t>(rank)]->get()) == cudasim::cudaSuccess) return true;
        }
        (void)cudasim::cudaGetLastError();
        return false;
    }
    std::vector<std::int64_t> result(int rank) const {
        MUST(cudasim::cudaSetDevice(rank));
        MUST(cudasim::cudaStreamSynchronize(streams[static_cast<std::size_t>(rank)]->get()));
        return vectors[static_cast<std::size_t>(rank)]->values();
    }

    std::vector<std::vector<std::int64_t>> values;
    std::vector<std::unique_ptr<OnDevice<std::int64_t>>> vectors;
    std::vector<std::unique_ptr<OnStream>> streams;
    std::vector<void *> communicators;
};

void check_sum(const Ring &ring) {
    for (int rank = 0; rank < kRanks; ++rank) {
        const auto result = ring.result(rank);
        for (std::size_t i = 0; i < kCount; ++i) {
            std::uint64_t sum = 0;
            for (const auto &part : ring.values) sum += static_cast<std::uint64_t>(part[i]);
            CHECK(static_cast<std::uint64_t>(result[i]) == sum, "rank %d, element %zu", rank, i);
        }
    }
}

// Of the first kCount bytes.
void check_maximum(const Ring &ring) {
    for (int rank = 0; rank < kRanks; ++rank) {
        const auto result = ring.result(rank);
        const auto *bytes = reinterpret_cast<const std::uint8_t *>(result.data());
        for (std::size_t i = 0; i < kCount; ++i) {
            std::uint8_t maximum = 0;
            for (const auto &part : ring.values) {
                maximum = std::max(maximum, reinterpret_cast<const std::uint8_t *>(part.data())[i]);
            }
            CHECK(bytes[i] == maximum, "rank %d, byte %zu", rank, i);
        }
    }
}

// Somebody waits for the stream of a rank, and does not return until the rank is aborted.
void check_waits_until_aborted(Ring &ring, int rank) {
    std::atomic<bool> returned{false};
    std::thread waiting([&] {
        cudasim::cudaSetDevice(rank);
        cudasim::cudaStreamSynchronize(ring.streams[static_cast<std::size_t>(rank)]->get());
        returned = true;
    });
    std::this_thread::sleep_for(kMoment);
    CHECK(!returned, "rank %d has nobody to wait for", rank);
    ring.abort(rank);
    waiting.join();
    CHECK(ring.result(rank)[0] == -1, "rank %d has a result without the others", rank);
}

}  // namespace

TEST(ranks_that_do_not_wait_for_each_other_sum) {
    const Ring ring;
    CHECK(ring.reduce(0) == ncclInProgress, "rank 0 comes first");
    CHECK(ring.state(0) == ncclInProgress, "until all have called");
    CHECK(ring.reduce(0) == ncclInvalidArgument, "no other call before that");
    CHECK(ring.reduce(2) == ncclInProgress, "rank 2");
    CHECK(ring.reduce(1) == ncclSuccess, "rank 1 is the last");
    for (int rank = 0; rank < kRanks; ++rank) CHECK(ring.state(rank) == ncclSuccess, "rank %d", rank);
    check_sum(ring);
}

TEST(a_thread_a_device_makes_the_maximum) {
    const Ring ring(1);
    std::vector<std::thread> threads;
    std::vector<int> results(kRanks, -1);
    for (int rank = 0; rank < kRanks; ++rank) {
        threads.emplace_back([&, rank] {
            results[static_cast<std::size_t>(rank)] = ring.reduce(rank, ncclMax);
            cudasim::cudaStreamSynchronize(ring.streams[static_cast<std::size_t>(rank)]->get());
        });
    }
    for (std::thread &thread : threads) thread.join();
    for (int result : results) CHECK(result == ncclSuccess, "%s", ncclGetErrorString(result));
    check_maximum(ring);
}

TEST(a_communicator_that_has_worked_is_destroyed) {
    Ring ring;
    for (int rank = 0; rank < kRanks; ++rank) (void)ring.reduce(rank);
    for (void *&communicator : ring.communicators) {
        CHECK(ncclCommDestroy(communicator) == ncclSuccess, "destroy");
        CHECK(ncclCommDestroy(communicator) == ncclInvalidArgument, "twice");
        communicator = nullptr;
    }
    check_sum(ring);
}

TEST(what_is_refused) {
    Ring ring;
    ncclUniqueId id{};
    void *made = nullptr;
    CHECK(ncclGetUniqueId(&id) == ncclSuccess && ncclGetUniqueId(nullptr) == ncclInvalidArgument, "id");
    for (const ncclConfig &wrong : {ncclConfig{8, NCCL_CONFIG_MAGIC, NCCL_CONFIG_VERSION, 0},
                                    ncclConfig{sizeof(ncclConfig), 1, NCCL_CONFIG_VERSION, 0},
                                    ncclConfig{sizeof(ncclConfig), NCCL_CONFIG_MAGIC, 21300, 0}, config(2)}) {
        ncclConfig copy = wrong;
        CHECK(ncclCommInitRankConfig(&made, 1, id, 0, &copy) == ncclInvalidArgument, "a configuration");
    }
    ncclConfig right = config(0);
    CHECK(ncclCommInitRankConfig(&made, 2, id, 2, &right) == ncclInvalidArgument, "no such rank");
    void *twice[2] = {};
    cudasim::cudaSetDevice(1);
    CHECK(ncclCommInitRankConfig(&twice[0], 2, id, 0, &right) == ncclInProgress, "rank 0");
    CHECK(ncclCommInitRankConfig(&twice[1], 2, id, 1, &right) == ncclInvalidUsage, "the same device again");
    for (void *communicator : twice) CHECK(ncclCommAbort(communicator) == ncclSuccess, "abort");

    const auto reduce = [&](const void *send, void *receive, void *communicator, int stream) {
        cudasim::cudaSetDevice(0);
        return ncclAllReduce(send, receive, kCount, ncclInt64, ncclSum, communicator,
                             ring.streams[static_cast<std::size_t>(stream)]->get());
    };
    std::int64_t *own = ring.vectors[0]->at();
    void *communicator = ring.communicators[0];
    CHECK(reduce(own, own, &made, 0) == ncclInvalidArgument, "no communicator");
    CHECK(reduce(ring.vectors[1]->at(), own, communicator, 0) == ncclInvalidArgument, "another device's memory");
    CHECK(reduce(ring.values[0].data(), own, communicator, 0) == ncclInvalidArgument, "host memory");
    CHECK(reduce(own, own, communicator, 1) == ncclInvalidArgument, "another device's stream");
    CHECK(std::strlen(ncclGetLastError(nullptr)) > 0, "words");
    CHECK(ncclAllReduce(own, own, kCount, ncclInt64, ncclMax, communicator, ring.streams[0]->get()) == ncclInvalidArgument,
          "what the product does not use");
    CHECK(ring.reduce(0, ncclSum, kCount) == ncclInProgress && ring.reduce(1, ncclSum, kCount - 1) == ncclInProgress, "two");
    CHECK(ring.reduce(2, ncclSum, kCount) == ncclInvalidUsage, "counts differ");
    CHECK(ring.state(0) == ncclInvalidUsage, "all are told");
}

TEST(a_rank_that_never_calls_leaves_the_others_in_progress) {
    const Ring ring;
    CHECK(ring.reduce(0) == ncclInProgress && ring.reduce(1) == ncclInProgress, "two of three");
    std::this_thread::sleep_for(kMoment);
    CHECK(ring.state(0) == ncclInProgress && ring.state(1) == ncclInProgress, "nobody tells them");
    CHECK(ring.is_done(0), "nothing has been posted");
}

TEST(a_call_that_fails_is_told_to_its_own_rank_alone) {
    const Ring ring;
    CHECK(cudasim_inject("nccl", 1, 1) == 0, "inject");
    CHECK(ring.reduce(0) == ncclInProgress && ring.reduce(2) == ncclInProgress, "two");
    CHECK(ring.reduce(1) == ncclSystemError, "injected");
    CHECK(ring.state(1) == ncclSystemError && ring.reduce(1) == ncclSystemError, "it stays so");
    CHECK(ring.state(0) == ncclInProgress, "the others wait");
}

TEST(a_call_that_is_never_posted) {
    const Ring ring;
    CHECK(cudasim_inject("nccl-stuck", 1, 1) == 0, "inject");
    for (int rank = 0; rank < kRanks; ++rank) CHECK(ring.reduce(rank) == ncclInProgress, "rank %d", rank);
    for (int rank = 0; rank < kRanks; ++rank) CHECK(ring.state(rank) == ncclInProgress, "rank %d", rank);
}

TEST(a_peer_that_dies_silently_leaves_kernels_that_wait_until_each_rank_aborts) {
    Ring ring;
    CHECK(cudasim_inject("nccl-dead", 1, 1) == 0, "inject");
    for (int rank = 0; rank < kRanks; ++rank) (void)ring.reduce(rank);
    for (int rank = 0; rank < kRanks; ++rank) {
        CHECK(ring.state(rank) == ncclSuccess && ring.state(rank) == ncclSuccess, "rank %d is told nothing", rank);
        CHECK(!ring.is_done(rank), "rank %d", rank);
    }
    ring.abort(1);
    CHECK(ring.is_done(1) && !ring.is_done(0), "an abort is of one rank");
    check_waits_until_aborted(ring, 0);
    check_waits_until_aborted(ring, 2);
}

TEST(work_behind_a_kernel_that_waits_does_not_run) {
    Ring ring;
    CHECK(cudasim_inject("nccl-dead", 1, 1) == 0, "inject");
    for (int rank = 0; rank < kRanks; ++rank) (void)ring.reduce(rank);
    MUST(cudasim::cudaSetDevice(0));
    OnStream other;
    cudasim::cudaEvent_t event = nullptr;
    MUST(cudasim::cudaEventCreateWithFlags(&event, cudasim::cudaEventDisableTiming));
    MUST(cudasim::cudaEventRecord(event, ring.streams[0]->get()));
    MUST(cudasim::cudaStreamWaitEvent(other.get(), event, 0));
    CHECK(cudasim::cudaStreamQuery(other.get()) == cudasim::cudaErrorNotReady, "a stream that waits for it");
    CHECK(cudasim::cudaEventQuery(event) == cudasim::cudaErrorNotReady, "an event behind it");
    ring.abort(0);
    MUST(cudasim::cudaStreamSynchronize(other.get()));
    MUST(cudasim::cudaEventDestroy(event));
}

TEST(a_device_that_fails_before_its_kernel_leaves_the_others_waiting) {
    {
        Ring ring;
        MUST(cudasim::cudaSetDevice(1));
        MUST(cudasim::enqueue(ring.streams[1]->get(), "a kernel", [] { throw std::runtime_error("fails"); }));
        for (int rank = 0; rank < kRanks; ++rank) (void)ring.reduce(rank);
        CHECK(!ring.is_done(0), "rank 0");
        check_waits_until_aborted(ring, 2);
        MUST(cudasim::cudaSetDevice(1));
        CHECK(cudasim::cudaStreamSynchronize(ring.streams[1]->get()) == cudasim::cudaErrorLaunchFailure, "it has failed");
    }
    MUST(cudasim::cudaSetDevice(1));
    MUST(cudasim::cudaDeviceReset());
}

TEST(an_asynchronous_error_is_told_by_the_query_alone) {
    Ring ring;
    CHECK(cudasim_inject("nccl-remote", 1, 1) == 0, "inject");
    CHECK(ring.reduce(0) == ncclInProgress && ring.reduce(1) == ncclInProgress, "two");
    CHECK(ring.reduce(2) == ncclSuccess, "the call succeeds");
    for (int rank : {0, 2}) {
        CHECK(ring.state(rank) == ncclSuccess, "it has been posted");
        CHECK(ring.state(rank) == ncclRemoteError, "and fails later");
    }
    CHECK(ring.state(1) == ncclSuccess, "rank 1 itself knows nothing");
    for (int rank = 0; rank < kRanks; ++rank) check_waits_until_aborted(ring, rank);
}

TEST(nobody_aborts_what_another_thread_is_using) {
    Ring ring(1);
    std::atomic<bool> returned{false};
    std::thread other([&] {
        while (ring.reduce(0) == ncclInvalidUsage) {  // if this thread comes while the first one asks
        }
        returned = true;
    });
    int result = ncclSuccess;
    while (result == ncclSuccess) {
        int state = 0;
        result = ncclCommGetAsyncError(ring.communicators[0], &state);
    }
    CHECK(result == ncclInvalidUsage, "%d", result);
    CHECK(ncclCommAbort(ring.communicators[0]) == ncclInvalidUsage, "the other thread is in a call");
    CHECK(!returned, "and stays there");
    std::thread second([&] { (void)ring.reduce(1); });
    (void)ring.reduce(2);
    second.join();
    other.join();
    check_sum(ring);
}
