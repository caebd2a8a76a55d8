// Fault injection: a fault occurs once, at the selected call, and nothing leaks because of it.
#include <thread>

#include "support.h"

extern "C" __global__ void marks(int *out) { atomicAdd(out, 1); }

TEST(allocations_fail_when_told_to) {
    const Simulated machine;
    void *a = nullptr;
    void *b = nullptr;
    CHECK(cudasim_inject("malloc", 0, 2) == 0, "not understood");
    SUCCEEDS(cudaSetDevice(1));
    SUCCEEDS(cudaMalloc(&a, 10));
    SUCCEEDS(cudaFree(a));
    SUCCEEDS(cudaSetDevice(0));
    SUCCEEDS(cudaMalloc(&a, 10));
    const cudaError_t error = cudaMalloc(&b, 20);
    CHECK(error == cudaErrorMemoryAllocation, "%d", error);
    CHECK(std::string(cudaGetErrorString(error)).find("20 bytes on device 0") != std::string::npos, "%s",
          cudaGetErrorString(error));
    SUCCEEDS(cudaMalloc(&b, 20));
    SUCCEEDS(cudaFree(a));
    SUCCEEDS(cudaFree(b));
    CHECK(cudasim_inject("malloc", 0, 1) == 0, "not understood");
    REFUSED(cudaErrorMemoryAllocation, cudaMallocAsync(&a, 10, nullptr));
    CHECK(cudasim_live_bytes(-1) == 0, "%lld bytes", cudasim_live_bytes(-1));
}

TEST(launches_fail_when_told_to) {
    const Simulated machine;
    const Array<int> count(std::vector<int>{0});
    CHECK(cudasim_inject("launch", 0, 3) == 0, "not understood");
    int failed = 0;
    for (int i = 0; i < 5; ++i) {
        LAUNCH(marks, 1, 1, 0, nullptr, count.data());
        const cudaError_t error = cudaGetLastError();
        if (error == cudaSuccess) continue;
        CHECK(i == 2, "launch %d", i);
        CHECK(error == cudaErrorLaunchOutOfResources, "%s", cudaGetErrorName(error));
        CHECK(std::string(cudaGetErrorString(error)).find("kernel marks: injected") != std::string::npos, "%s",
              cudaGetErrorString(error));
        ++failed;
    }
    CHECK(failed == 1, "%d failed", failed);
    CHECK(count.values()[0] == 4, "%d ran", count.values()[0]);
}

TEST(copies_fail_when_told_to) {
    const Simulated machine;
    const Array<int> count(1);
    int value = 7;
    CHECK(cudasim_inject("copy", 0, 1) == 0, "not understood");
    REFUSED(cudaErrorUnknown, cudaMemcpy(count.data(), &value, sizeof value, cudaMemcpyHostToDevice));
    SUCCEEDS(cudaMemcpy(count.data(), &value, sizeof value, cudaMemcpyHostToDevice));
    CHECK(count.values()[0] == 7, "%d", count.values()[0]);
}

TEST(libraries_ask_whether_to_fail) {
    const Simulated machine;
    CHECK(cudasim_inject("nccl", 1, 2) == 0, "not understood");
    CHECK(!injected("nccl", 0) && !injected("cublas", 1), "another device, another library");
    CHECK(!injected("nccl", 1), "the first");
    CHECK(injected("nccl", 1), "the second");
    CHECK(!injected("nccl", 1), "the third");
}

// The last error belongs to the thread. It outlives calls that succeed, and is gone once it was read.
TEST(the_last_error_stays_until_it_is_read) {
    const Simulated machine;
    REFUSED(cudaErrorInvalidDevice, cudaSetDevice(99));
    SUCCEEDS(cudaGetLastError());
    CHECK(cudaSetDevice(99) == cudaErrorInvalidDevice, "there is a device 99");
    SUCCEEDS(cudaDeviceSynchronize());
    const Array<int> count(std::vector<int>{0});
    LAUNCH(marks, 1, 1, 0, nullptr, count.data());
    std::thread([] { SUCCEEDS(cudaPeekAtLastError()); }).join();
    CHECK(cudaPeekAtLastError() == cudaErrorInvalidDevice, "%d", cudaPeekAtLastError());
    CHECK(cudaGetLastError() == cudaErrorInvalidDevice, "already gone");
    SUCCEEDS(cudaGetLastError());
    CHECK(count.values()[0] == 1, "%d", count.values()[0]);
}

TEST(what_was_injected_can_be_taken_back) {
    const Simulated machine;
    CHECK(cudasim_inject("malloc", 0, 1) == 0 && cudasim_inject("malloc", 1, 1) == 0, "not understood");
    CHECK(cudasim_inject("clear", 0, 0) == 0, "not understood");
    void *a = nullptr;
    SUCCEEDS(cudaMalloc(&a, 10));
    SUCCEEDS(cudaFree(a));
    CHECK(cudasim_inject("clear", -1, 0) == 0, "not understood");
    SUCCEEDS(cudaSetDevice(1));
    SUCCEEDS(cudaMalloc(&a, 10));
    SUCCEEDS(cudaFree(a));
    CHECK(cudasim_inject("coffee", 0, 1) != 0, "understood");
    CHECK(cudasim_inject("malloc", 99, 1) != 0, "understood");
    CHECK(cudasim_inject("malloc", 0, 0) != 0, "understood");
    cudaGetLastError();
}

extern "C" __global__ void fails() {
    if (threadIdx.x == 0) __syncthreads();
}

TEST(a_device_that_failed_frees_but_does_nothing_else) {
    const Simulated machine;
    cudaStream_t stream = nullptr;
    void *plain = nullptr;
    void *pool = nullptr;
    SUCCEEDS(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    SUCCEEDS(cudaMalloc(&plain, 100));
    SUCCEEDS(cudaMallocAsync(&pool, 100, stream));
    int *count = nullptr;  // where the host can still read it
    SUCCEEDS(cudaMallocHost(&count, sizeof(int)));
    *count = 0;
    LAUNCH(marks, 1, 1, 0, stream, count);
    LAUNCH(fails, 1, 32, 0, stream);
    LAUNCH(marks, 1, 1, 0, stream, count);
    REFUSED(cudaErrorLaunchFailure, cudaStreamSynchronize(stream));
    LAUNCH(marks, 1, 1, 0, stream, count);
    REFUSED(cudaErrorLaunchFailure, cudaGetLastError());
    CHECK(*count == 1, "%d ran", *count);
    void *more = nullptr;
    REFUSED(cudaErrorLaunchFailure, cudaMalloc(&more, 10));
    REFUSED(cudaErrorLaunchFailure, cudaMallocAsync(&more, 10, stream));
    REFUSED(cudaErrorLaunchFailure, cudaFree(plain));
    REFUSED(cudaErrorLaunchFailure, cudaFreeAsync(pool, stream));
    REFUSED(cudaErrorLaunchFailure, cudaStreamDestroy(stream));
    SUCCEEDS(cudaFreeHost(count));
    CHECK(cudasim_live_bytes(-1) == 0, "%lld bytes", cudasim_live_bytes(-1));
    // Another device is not affected.
    SUCCEEDS(cudaSetDevice(1));
    SUCCEEDS(cudaDeviceSynchronize());
    SUCCEEDS(cudaGetLastError());
}
