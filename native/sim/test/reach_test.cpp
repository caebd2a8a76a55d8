// A kernel cannot access forbidden memory even if the launch could not check the pointer. A launch can only end with a
// processor fault where fibers are switched in assembly.
#include "support.h"

extern "C" __global__ void fills_by_table(float *const *table, int count) {
    for (int i = static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(blockDim.x)) table[0][i] = 1.0f;
}

TEST(use_after_free_through_a_table_is_found) {
    const Simulated machine;
    float *array = nullptr;
    SUCCEEDS(cudaMalloc(&array, 400));
    const Array<float *> table(std::vector<float *>{array});
    LAUNCH(fills_by_table, 1, 32, 0, nullptr, table.data(), 100);
    expect_no_fault("alive");
    SUCCEEDS(cudaFree(array));
    LAUNCH(fills_by_table, 1, 32, 0, nullptr, table.data(), 100);
    expect_fault("since freed", "a freed pointer in a table");
}

TEST(a_kernel_may_not_touch_memory_of_another_device) {
    const Simulated machine;
    const Array<float> theirs(std::vector<float>(32, 1.0f));
    SUCCEEDS(cudaSetDevice(1));
    const Array<float *> table(std::vector<float *>{theirs.data()});
    LAUNCH(fills_by_table, 1, 32, 0, nullptr, table.data(), 32);
    expect_fault("illegal address", "a pointer in a table");
    CHECK(last_fault().find("byte 0 of an allocation of 128 bytes on device 0") != std::string::npos, "%s",
          last_fault().c_str());
    SUCCEEDS(cudaSetDevice(0));
    CHECK(theirs.values()[0] == 1.0f, "%g", double{theirs.values()[0]});
}

TEST(a_peer_may_not_touch_memory_of_a_pool) {
    const Simulated machine;
    float *plain = nullptr;
    float *pool = nullptr;
    SUCCEEDS(cudaMalloc(&plain, 128));
    SUCCEEDS(cudaMallocAsync(&pool, 128, nullptr));
    SUCCEEDS(cudaStreamSynchronize(nullptr));
    SUCCEEDS(cudaSetDevice(1));
    SUCCEEDS(cudaDeviceEnablePeerAccess(0, 0));
    const Array<float *> to_plain(std::vector<float *>{plain});
    const Array<float *> to_pool(std::vector<float *>{pool});
    LAUNCH(fills_by_table, 1, 32, 0, nullptr, to_plain.data(), 32);
    expect_no_fault("what cudaMalloc gave");
    LAUNCH(fills_by_table, 1, 32, 0, nullptr, to_pool.data(), 32);
    expect_fault("illegal address", "memory of a pool");
}
