// Shared memory is reinitialized for each block, has the limits of the architecture, and out-of-bounds writes are found.
#include "support.h"

extern "C" __global__ void writes_beyond(int past, int barrier_after, float *out) {
    SHARED(float, first, [32]);
    SHARED(float, second, [32]);
    second[threadIdx.x] = 2.0f;
    first[threadIdx.x] = 1.0f;
    if (threadIdx.x == 0) {
        volatile float *cell = first;
        cell[31 + past] = 3.0f;
    }
    if (barrier_after != 0) {
        __syncthreads();
        out[threadIdx.x] = first[threadIdx.x] + second[threadIdx.x];
    }
}

extern "C" __global__ void writes_before(float *out) {
    SHARED(float, cells, [32]);
    volatile float *before = cells;
    before -= 1;
    cells[threadIdx.x] = 1.0f;
    if (threadIdx.x == 0) *before = 3.0f;
    __syncthreads();
    out[threadIdx.x] = cells[threadIdx.x];
}

extern "C" __global__ void writes_dynamic(int floats) {
    SHARED_DYN(float, cells);
    for (int i = static_cast<int>(threadIdx.x); i < floats; i += static_cast<int>(blockDim.x)) cells[i] = 1.0f;
}

// Whether there is a value that this block has not written.
extern "C" __global__ void counts_leftovers(int *count, int floats) {
    SHARED(float, fixed, [64]);
    SHARED_DYN(float4, vectors);
    SHARED(int, flag, );
    const int t = static_cast<int>(threadIdx.x);
    int found = 0;
    for (int i = t; i < 64; i += 32) found += !isnan(fixed[i]);
    for (int i = t; i < floats / 4; i += 32) found += !isnan(vectors[i].x) + !isnan(vectors[i].w);
    found += flag != -1;
    __syncthreads();
    for (int i = t; i < 64; i += 32) fixed[i] = 0.0f;
    for (int i = t; i < floats / 4; i += 32) vectors[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    flag = 0;
    atomicAdd(count, found);
}

extern "C" __global__ void too_many_statics(float *out) {
    SHARED(float, a, [8000]);
    SHARED(float, b, [5000]);
    a[threadIdx.x] = 1.0f;
    b[threadIdx.x] = 2.0f;
    out[threadIdx.x] = a[0] + b[0];
}

TEST(an_overrun_is_found_at_the_barrier_and_at_the_end) {
    for (const int barrier_after : {0, 1}) {
        for (const int past : {1, 2, 30}) {
            const Simulated machine;
            const Array<float> output(32);
            LAUNCH(writes_beyond, 1, 32, 0, nullptr, past, barrier_after, output.data());
            expect_fault(barrier_after != 0 ? "found at __syncthreads" : "found at its end", "past the end");
            CHECK(cudasim::last_fault().find("first") != std::string::npos, "%s", cudasim::last_fault().c_str());
        }
        const Simulated machine;
        const Array<float> output(32);
        LAUNCH(writes_beyond, 1, 32, 0, nullptr, 0, barrier_after, output.data());
        expect_no_fault("the last one");
    }
}

TEST(writing_before_an_array_is_found) {
    const Simulated machine;
    const Array<float> output(32);
    LAUNCH(writes_before, 1, 32, 0, nullptr, output.data());
    expect_fault("something wrote to byte -4 of cells", "before the start");
}

TEST(dynamic_memory_ends_where_the_launch_says) {
    const Simulated machine;
    LAUNCH(writes_dynamic, 3, 32, 400, nullptr, 100);
    expect_no_fault("as much as there is");
    LAUNCH(writes_dynamic, 3, 32, 400, nullptr, 101);
    expect_fault("dynamic shared memory", "one more");
}

TEST(a_kernel_launched_without_dynamic_memory_has_none) {
    const Simulated machine;
    LAUNCH(writes_dynamic, 1, 32, 0, nullptr, 1);
    expect_fault("dynamic shared memory, which has 0 bytes", "none");
}

TEST(nothing_is_left_of_the_block_before) {
    const Simulated machine({{"THREADS", "1"}});
    const Array<int> count(std::vector<int>{0});
    LAUNCH(counts_leftovers, 20, 32, 4096, nullptr, count.data(), 1024);
    expect_no_fault("");
    CHECK(count.values()[0] == 0, "%d cells hold something", count.values()[0]);
}

TEST(static_arrays_beyond_the_limit_are_found) {
    const Simulated machine;
    const Array<float> output(32);
    LAUNCH(too_many_statics, 1, 32, 0, nullptr, output.data());
    expect_fault("shared array", "52000 bytes");
}

TEST(large_dynamic_memory_needs_permission) {
    struct Case {
        const char *arch;
        int most;
    };
    for (const Case &c : {Case{"75", 65536}, Case{"80", 166912}, Case{"89", 101376}, Case{"90", 232448}}) {
        const Simulated machine({{"ARCH", c.arch}});
        const auto most = static_cast<size_t>(c.most);
        LAUNCH(writes_dynamic, 1, 32, 48 * 1024, nullptr, 12 * 1024);
        SUCCEEDS(cudaGetLastError());
        LAUNCH(writes_dynamic, 1, 32, 48 * 1024 + 1, nullptr, 1);
        REFUSED(cudaErrorInvalidValue, cudaGetLastError());
        REFUSED(cudaErrorInvalidValue,
                cudaFuncSetAttribute(writes_dynamic, cudaFuncAttributeMaxDynamicSharedMemorySize, c.most + 1));
        SUCCEEDS(cudaFuncSetAttribute(writes_dynamic, cudaFuncAttributeMaxDynamicSharedMemorySize, c.most));
        LAUNCH(writes_dynamic, 1, 32, most, nullptr, c.most / 4);
        SUCCEEDS(cudaGetLastError());
        expect_no_fault(c.arch);
        // The limit is set per device.
        SUCCEEDS(cudaSetDevice(1));
        LAUNCH(writes_dynamic, 1, 32, most, nullptr, c.most / 4);
        REFUSED(cudaErrorInvalidValue, cudaGetLastError());
    }
}
