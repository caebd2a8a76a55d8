// The simulated NCCL: sums, means and broadcasts over devices, from one thread and from several, and the calls that it
// refuses.
#include "vendor/nccl.h"

#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <thread>

#include "devices.h"

namespace {

constexpr int kRanks = 3;
constexpr std::size_t kCount = 1000;

// A vector, a stream and a communicator on each device.
class Ring {
  public:
    Ring() {
        std::vector<int> devices;
        for (int rank = 0; rank < kRanks; ++rank) {
            MUST(cudasim::cudaSetDevice(rank));
            devices.push_back(rank);
            values.push_back(normal<float>(kCount, static_cast<unsigned>(rank)));
            vectors.push_back(std::make_unique<OnDevice<float>>(values.back()));
            streams.push_back(std::make_unique<OnStream>());
            MUST(cudasim::cudaDeviceSynchronize());
        }
        communicators.resize(kRanks);
        CHECK(ncclCommInitAll(communicators.data(), kRanks, devices.data()) == ncclSuccess, "init");
        MUST(cudasim::cudaSetDevice(0));
    }
    ~Ring() {
        for (void *communicator : communicators) ncclCommDestroy(communicator);
    }
    Ring(const Ring &) = delete;
    Ring &operator=(const Ring &) = delete;

    int reduce(int rank, int operation) const {
        const auto at = static_cast<std::size_t>(rank);
        return ncclAllReduce(vectors[at]->at(), vectors[at]->at(), kCount, ncclFloat32, operation, communicators[at],
                             streams[at]->get());
    }
    std::vector<float> result(int rank) const {
        MUST(cudasim::cudaSetDevice(rank));
        MUST(cudasim::cudaStreamSynchronize(streams[static_cast<std::size_t>(rank)]->get()));
        return vectors[static_cast<std::size_t>(rank)]->values();
    }

    std::vector<std::vector<float>> values;
    std::vector<std::unique_ptr<OnDevice<float>>> vectors;
    std::vector<std::unique_ptr<OnStream>> streams;
    std::vector<void *> communicators;
};

void check_sum(const Ring &ring, double divisor) {
    for (int rank = 0; rank < kRanks; ++rank) {
        const auto result = ring.result(rank);
        for (std::size_t i = 0; i < kCount; ++i) {
            double sum = 0;
            for (const auto &part : ring.values) sum += static_cast<double>(part[i]);
            CHECK(std::abs(static_cast<double>(result[i]) - sum / divisor) < 1e-5, "rank %d, element %zu", rank, i);
        }
        CHECK(result == ring.result(0), "the ranks differ");
    }
}

}  // namespace

TEST(one_thread_sums_over_devices) {
    const Ring ring;
    CHECK(ncclGroupStart() == ncclSuccess, "start");
    for (int rank = 0; rank < kRanks; ++rank) CHECK(ring.reduce(rank, ncclSum) == ncclSuccess, "rank %d", rank);
    CHECK(ncclGroupEnd() == ncclSuccess, "end");
    check_sum(ring, 1);
    // Not in the order of the ranks, which is why the product does not use it where results must be bit-identical.
    const auto result = ring.result(0);
    std::size_t different = 0;
    for (std::size_t i = 0; i < kCount; ++i) {
        different += result[i] != ring.values[0][i] + ring.values[1][i] + ring.values[2][i];
    }
    CHECK(different > kCount / 20, "only %zu of %zu elements show the order", different, kCount);
}

TEST(a_thread_a_device_makes_the_mean) {
    const Ring ring;
    std::vector<std::thread> threads;
    std::vector<int> results(kRanks, -1);
    for (int rank = 0; rank < kRanks; ++rank) {
        threads.emplace_back([&, rank] {
            cudasim::cudaSetDevice(rank);
            results[static_cast<std::size_t>(rank)] = ring.reduce(rank, ncclAvg);
            cudasim::cudaStreamSynchronize(ring.streams[static_cast<std::size_t>(rank)]->get());
        });
    }
    for (std::thread &thread : threads) thread.join();
    for (int result : results) CHECK(result == ncclSuccess, "%s", ncclGetErrorString(result));
    check_sum(ring, kRanks);
}

TEST(a_broadcast_gives_all_the_roots_values) {
    const Ring ring;
    ncclGroupStart();
    for (int rank = 0; rank < kRanks; ++rank) {
        const auto at = static_cast<std::size_t>(rank);
        CHECK(ncclBroadcast(ring.vectors[at]->at(), ring.vectors[at]->at(), kCount, ncclFloat32, 2, ring.communicators[at],
                            ring.streams[at]->get()) == ncclSuccess,
              "rank %d", rank);
    }
    CHECK(ncclGroupEnd() == ncclSuccess, "end");
    for (int rank = 0; rank < kRanks; ++rank) CHECK(ring.result(rank) == ring.values[2], "rank %d", rank);
}

TEST(what_is_refused) {
    const Ring ring;
    const int twice[] = {1, 1}, beyond[] = {0, 99};
    void *made[2] = {};
    CHECK(ncclCommInitAll(made, 2, twice) == ncclInvalidUsage, "a device twice");
    CHECK(ncclCommInitAll(made, 2, beyond) == ncclInvalidArgument, "a device that is not there");
    CHECK(ncclAllReduce(ring.vectors[0]->at(), ring.vectors[0]->at(), kCount, ncclFloat32, ncclSum, made, nullptr) ==
              ncclInvalidArgument,
          "no communicator");
    ncclGroupStart();
    CHECK(ncclAllReduce(ring.vectors[1]->at(), ring.vectors[0]->at(), kCount, ncclFloat32, ncclSum, ring.communicators[0],
                        ring.streams[0]->get()) == ncclInvalidArgument,
          "another device's memory");
    CHECK(ncclAllReduce(ring.values[0].data(), ring.vectors[0]->at(), kCount, ncclFloat32, ncclSum, ring.communicators[0],
                        ring.streams[0]->get()) == ncclInvalidArgument,
          "host memory");
    CHECK(ncclAllReduce(ring.vectors[0]->at(), ring.vectors[0]->at(), kCount, ncclFloat32, ncclSum, ring.communicators[0],
                        ring.streams[1]->get()) == ncclInvalidArgument,
          "another device's stream");
    CHECK(ncclGroupEnd() == ncclSuccess, "nothing was started");
    CHECK(ncclGroupEnd() == ncclInvalidUsage, "no group");

    CHECK(cudasim_inject("nccl", 1, 1) == 0, "inject");
    ncclGroupStart();
    CHECK(ring.reduce(0, ncclSum) == ncclSuccess, "rank 0");
    CHECK(ring.reduce(1, ncclSum) == ncclSystemError, "injected");
    CHECK(std::strlen(ncclGetLastError(nullptr)) > 0, "words");
    CHECK(ncclGroupEnd() == ncclRemoteError, "the others are told");
}

TEST(who_waits_for_a_failed_rank_is_told_by_an_abort) {
    const Ring ring;
    CHECK(cudasim_inject("nccl", 1, 1) == 0, "inject");
    std::atomic<int> waiting{-1};
    std::thread other([&] {
        cudasim::cudaSetDevice(0);
        waiting = ring.reduce(0, ncclSum);
    });
    cudasim::cudaSetDevice(1);
    CHECK(ring.reduce(1, ncclSum) == ncclSystemError, "injected");
    CHECK(waiting == -1, "the other one has nobody to tell it");
    CHECK(ncclCommAbort(ring.communicators[2]) == ncclSuccess, "abort, of any rank");
    other.join();
    CHECK(waiting == ncclRemoteError, "it is told");
    CHECK(ncclCommDestroy(ring.communicators[2]) == ncclInvalidArgument, "aborted is gone");
}

TEST(ranks_that_do_not_agree) {
    const Ring ring;
    ncclGroupStart();
    for (int rank = 0; rank < kRanks; ++rank) {
        const auto at = static_cast<std::size_t>(rank);
        CHECK(ncclAllReduce(ring.vectors[at]->at(), ring.vectors[at]->at(), kCount - (rank == 1), ncclFloat32, ncclSum,
                            ring.communicators[at], ring.streams[at]->get()) == ncclSuccess,
              "rank %d", rank);
    }
    CHECK(ncclGroupEnd() == ncclInvalidUsage, "counts differ");
}
