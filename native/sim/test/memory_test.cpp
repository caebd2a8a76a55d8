// Device memory: initial contents, bounds, guards, and the classification of addresses.
#include <cstring>

#include "support.h"

extern "C" __global__ void fills(float *out, int first, int last) {
    for (int i = first + static_cast<int>(threadIdx.x); i < last; i += static_cast<int>(blockDim.x)) out[i] = 1.0f;
}

// Through a table, so that the launch cannot check the pointer.
extern "C" __global__ void fills_by_table(float *const *table, int count) {
    for (int i = static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(blockDim.x)) table[0][i] = 1.0f;
}

extern "C" __global__ void sums(const float *in, int count, float *out) {
    float sum = 0.0f;
    for (int i = 0; i < count; ++i) sum += in[i];
    *out = sum;
}

TEST(fresh_memory_is_nan) {
    const Simulated machine;
    const Array<float> array(1000);
    for (const float value : array.values()) CHECK(isnan(value), "%g", double{value});
    const Array<double> doubles(1000);
    for (const double value : doubles.values()) CHECK(isnan(value), "%g", value);
    CHECK(reinterpret_cast<uintptr_t>(array.data()) % 256 == 0, "alignment");
}

TEST(what_was_freed_is_not_handed_out_again) {
    const Simulated machine;
    float *first = nullptr;
    SUCCEEDS(cudaMalloc(&first, 4000));
    SUCCEEDS(cudaFree(first));
    float *second = nullptr;
    SUCCEEDS(cudaMalloc(&second, 4000));
    CHECK(second != first, "%p", static_cast<void *>(second));
    SUCCEEDS(cudaFree(second));
}

TEST(an_overrun_names_the_kernel) {
    for (const int past : {1, 3, 64}) {
        const Simulated machine;
        const Array<float> array(100);
        LAUNCH(fills, 1, 32, 0, nullptr, array.data(), 0, 100);
        expect_no_fault("to the end");
        LAUNCH(fills, 1, 32, 0, nullptr, array.data(), 0, 100 + past);
        expect_fault("kernel fills", "past the end");
        CHECK(cudasim::last_fault().find("byte 400") != std::string::npos, "%s", cudasim::last_fault().c_str());
    }
    const Simulated machine;
    const Array<float> array(100);
    LAUNCH(fills, 1, 32, 0, nullptr, array.data(), -1, 100);
    expect_fault("byte -4", "before the start");
}

TEST(an_overrun_through_a_table_is_found_when_the_host_waits) {
    const Simulated machine;
    const Array<float> array(100);
    const Array<float *> table(std::vector<float *>{array.data()});
    LAUNCH(fills_by_table, 1, 32, 0, nullptr, table.data(), 101);
    expect_fault("byte 400", "past the end");
}

TEST(an_overrun_is_found_at_the_free) {
    const Simulated machine;
    float *array = nullptr;
    SUCCEEDS(cudaMalloc(&array, 4));
    // Nothing waits for this stream before the free does.
    const Array<float *> table(std::vector<float *>{array});
    LAUNCH(fills_by_table, 1, 32, 0, nullptr, table.data(), 2);
    REFUSED(cudaErrorLaunchFailure, cudaFree(array));
    CHECK(cudasim::last_fault().find("byte 4 ") != std::string::npos, "%s", cudasim::last_fault().c_str());
}

TEST(an_overrun_is_found_at_a_free_in_a_stream) {
    const Simulated machine;
    float *array = nullptr;
    cudaStream_t stream = nullptr;
    SUCCEEDS(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    SUCCEEDS(cudaMallocAsync(&array, 40, stream));
    const Array<float *> table(std::vector<float *>{array});
    LAUNCH(fills_by_table, 1, 32, 0, stream, table.data(), 11);
    SUCCEEDS(cudaFreeAsync(array, stream));
    REFUSED(cudaErrorLaunchFailure, cudaStreamSynchronize(stream));
    CHECK(cudasim::last_fault().find("cudaFreeAsync: something wrote to byte 40") != std::string::npos, "%s",
          cudasim::last_fault().c_str());
}

TEST(use_after_free_is_found) {
    const Simulated machine;
    const Array<float> output(1);
    float *array = nullptr;
    SUCCEEDS(cudaMalloc(&array, 400));
    SUCCEEDS(cudaFree(array));
    LAUNCH(sums, 1, 1, 0, nullptr, array, 100, output.data());
    expect_fault("since freed", "a freed argument");
}

TEST(a_pointer_of_the_host_is_no_argument) {
    const Simulated machine;
    std::vector<float> host(100, 0.0f);
    LAUNCH(fills, 1, 32, 0, nullptr, host.data(), 0, 100);
    expect_fault("memory of the host", "pageable");
    for (const float value : host) CHECK(value == 0.0f, "%g", double{value});
}

TEST(pinned_memory_and_null_are_arguments) {
    const Simulated machine;
    float *pinned = nullptr;
    SUCCEEDS(cudaMallocHost(&pinned, 400));
    LAUNCH(fills, 1, 32, 0, nullptr, pinned, 0, 100);
    LAUNCH(fills, 1, 32, 0, nullptr, nullptr, 0, 0);
    const Array<float> array(100);
    LAUNCH(fills, 1, 32, 0, nullptr, array.data() + 100, 0, 0);  // one past the end, and nothing is written
    expect_no_fault("");
    CHECK(pinned[0] == 1.0f && pinned[99] == 1.0f, "not written");
    SUCCEEDS(cudaFreeHost(pinned));
}

TEST(an_overrun_of_pinned_memory_is_found) {
    const Simulated machine;
    float *pinned = nullptr;
    SUCCEEDS(cudaHostAlloc(&pinned, 400, cudaHostAllocDefault));
    pinned[100] = 1.0f;
    REFUSED(cudaErrorInvalidValue, cudaFreeHost(pinned));
}

TEST(a_device_can_be_full) {
    const Simulated machine({{"MEMORY", "1048576"}});
    void *half = nullptr;
    void *other = nullptr;
    size_t free = 0;
    size_t total = 0;
    SUCCEEDS(cudaMalloc(&half, 600000));
    REFUSED(cudaErrorMemoryAllocation, cudaMalloc(&other, 600000));
    REFUSED(cudaErrorMemoryAllocation, cudaMalloc(&other, 2000000));
    REFUSED(cudaErrorMemoryAllocation, cudaMallocAsync(&other, 600000, nullptr));
    REFUSED(cudaErrorMemoryAllocation, cudaMalloc(&other, ~size_t{0}));
    SUCCEEDS(cudaMemGetInfo(&free, &total));
    CHECK(total == 1048576 && free < 448577 && free > 440000, "%zu of %zu", free, total);
    // Another device has its own memory.
    SUCCEEDS(cudaSetDevice(1));
    SUCCEEDS(cudaMalloc(&other, 600000));
    SUCCEEDS(cudaFree(other));
    SUCCEEDS(cudaSetDevice(0));
    SUCCEEDS(cudaFree(half));
    SUCCEEDS(cudaMalloc(&other, 1048576));
    SUCCEEDS(cudaFree(other));
    // The address range is used eight times over, and then wraps around.
    for (int i = 0; i < 300; ++i) {
        SUCCEEDS(cudaMalloc(&other, 1000000));
        SUCCEEDS(cudaFree(other));
    }
    CHECK(cudasim_live_bytes(-1) == 0, "%lld bytes", cudasim_live_bytes(-1));
}

TEST(memory_that_a_stream_will_free_counts_when_it_is_needed) {
    const Simulated machine({{"MEMORY", "1048576"}});
    cudaStream_t stream = nullptr;
    void *first = nullptr;
    void *second = nullptr;
    SUCCEEDS(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    SUCCEEDS(cudaMallocAsync(&first, 700000, stream));
    SUCCEEDS(cudaFreeAsync(first, stream));
    CHECK(cudasim_live_bytes(0) == 700000, "%lld bytes", cudasim_live_bytes(0));
    SUCCEEDS(cudaMallocAsync(&second, 700000, stream));
    SUCCEEDS(cudaFreeAsync(second, stream));
    SUCCEEDS(cudaStreamDestroy(stream));
    CHECK(cudasim_live_bytes(0) == 0, "%lld bytes", cudasim_live_bytes(0));
}

TEST(only_allocations_can_be_freed_and_only_once) {
    const Simulated machine;
    char *array = nullptr;
    char *pool = nullptr;
    char local = 0;
    SUCCEEDS(cudaFree(nullptr));
    SUCCEEDS(cudaMalloc(&array, 100));
    REFUSED(cudaErrorInvalidValue, cudaFree(array + 1));
    REFUSED(cudaErrorInvalidValue, cudaFree(&local));
    REFUSED(cudaErrorInvalidValue, cudaFreeHost(array));
    REFUSED(cudaErrorInvalidValue, cudaFreeAsync(array, nullptr));
    SUCCEEDS(cudaFree(array));
    REFUSED(cudaErrorInvalidValue, cudaFree(array));
    SUCCEEDS(cudaMallocAsync(&pool, 100, nullptr));
    SUCCEEDS(cudaFreeAsync(pool, nullptr));
    REFUSED(cudaErrorInvalidValue, cudaFreeAsync(pool, nullptr));
    SUCCEEDS(cudaDeviceSynchronize());
    CHECK(cudasim_live_bytes(-1) == 0, "%lld bytes", cudasim_live_bytes(-1));
}

TEST(copies_know_both_ends) {
    const Simulated machine;
    const Array<float> array(100);
    std::vector<float> host(200, 5.0f);
    REFUSED(cudaErrorInvalidValue, cudaMemcpy(array.data(), host.data(), 404, cudaMemcpyHostToDevice));
    REFUSED(cudaErrorInvalidValue, cudaMemcpy(array.data() + 1, host.data(), 400, cudaMemcpyHostToDevice));
    REFUSED(cudaErrorInvalidValue, cudaMemcpy(array.data(), host.data(), 400, cudaMemcpyDeviceToHost));
    REFUSED(cudaErrorInvalidValue, cudaMemcpy(array.data(), host.data(), 400, cudaMemcpyDeviceToDevice));
    REFUSED(cudaErrorInvalidValue, cudaMemcpy(host.data(), array.data(), 400, cudaMemcpyHostToDevice));
    REFUSED(cudaErrorInvalidValue, cudaMemcpy(nullptr, array.data(), 400, cudaMemcpyDeviceToHost));
    REFUSED(cudaErrorInvalidValue, cudaMemset(host.data(), 0, 400));
    REFUSED(cudaErrorInvalidValue, cudaMemset(array.data(), 0, 401));
    SUCCEEDS(cudaMemcpy(array.data(), host.data(), 400, cudaMemcpyDefault));
    SUCCEEDS(cudaMemset(array.data() + 50, 0, 200));
    const std::vector<float> now = array.values();
    CHECK(now[49] == 5.0f && now[50] == 0.0f && now[99] == 0.0f, "%g %g", double{now[49]}, double{now[50]});
}

TEST(an_address_can_be_told) {
    const Simulated machine;
    SUCCEEDS(cudaSetDevice(2));
    char *array = nullptr;
    char *pinned = nullptr;
    char local = 0;
    SUCCEEDS(cudaMalloc(&array, 100));
    SUCCEEDS(cudaMallocHost(&pinned, 100));
    const Place place = place_of(array + 30);
    CHECK(place.kind == Place::Kind::device && place.device == 2 && place.bytes == 100, "device");
    CHECK(place.base == reinterpret_cast<unsigned char *>(array) && place.room(array + 30) == 70, "base and room");
    CHECK(place_of(pinned + 99).kind == Place::Kind::pinned, "pinned");
    CHECK(place_of(&local).kind == Place::Kind::host, "host");
    CHECK(place_of(array + 101).kind == Place::Kind::unallocated, "behind the end");
    CHECK(place_of(array - 1).kind == Place::Kind::unallocated, "before the start");
    cudaPointerAttributes attributes{};
    SUCCEEDS(cudaPointerGetAttributes(&attributes, array));
    CHECK(attributes.type == cudaMemoryTypeDevice && attributes.device == 2, "attributes");
    SUCCEEDS(cudaFree(array));
    SUCCEEDS(cudaFreeHost(pinned));
    CHECK(place_of(array + 30).kind == Place::Kind::freed, "freed");
}

TEST(right_programs_leave_nothing) {
    const Simulated machine;
    {
        const Array<float> input(counting(5000));
        const Array<float> output(1);
        LAUNCH(sums, 1, 1, 0, nullptr, input.data(), 100, output.data());
        CHECK(output.values()[0] == 5050.0f, "%g", double{output.values()[0]});
        CHECK(cudasim_live_bytes(0) == 20004, "%lld", cudasim_live_bytes(0));
    }
    CHECK(cudasim_live_bytes(-1) == 0, "%lld bytes", cudasim_live_bytes(-1));
    CHECK(last_fault().empty(), "%s", last_fault().c_str());
}
