// Several devices: copies between them, and which device may access which memory.
#include "support.h"

extern "C" __global__ void adds_other(float *out, const float *in) { out[threadIdx.x] += in[threadIdx.x]; }
extern "C" __global__ void adds_by_table(float *out, const float *const *table) {
    out[threadIdx.x] += table[0][threadIdx.x];
}

namespace {

class On {
   public:
    explicit On(int device) {
        cudaGetDevice(&before_);
        SUCCEEDS(cudaSetDevice(device));
    }
    ~On() { cudaSetDevice(before_); }
    On(const On &) = delete;
    On &operator=(const On &) = delete;

   private:
    int before_ = 0;
};

// An array on a device, independent of the current device at its destruction.
struct OnDevice {
    OnDevice(int device, float value) : number(device) {
        const On on(device);
        SUCCEEDS(cudaMalloc(&data, 32 * sizeof(float)));
        const std::vector<float> values(32, value);
        SUCCEEDS(cudaMemcpy(data, values.data(), 128, cudaMemcpyHostToDevice));
    }
    ~OnDevice() { cudaFree(data); }
    OnDevice(const OnDevice &) = delete;
    OnDevice &operator=(const OnDevice &) = delete;
    float first() const {
        const On on(number);
        float value = 0.0f;
        SUCCEEDS(cudaMemcpy(&value, data, sizeof value, cudaMemcpyDeviceToHost));
        return value;
    }
    int number;
    float *data = nullptr;
};

}  // namespace

TEST(copies_between_devices) {
    const Simulated machine;
    const OnDevice a(0, 1.0f);
    const OnDevice b(1, 2.0f);
    const On on(1);
    cudaStream_t stream = nullptr;
    SUCCEEDS(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    SUCCEEDS(cudaMemcpyPeerAsync(b.data, 1, a.data, 0, 128, stream));
    SUCCEEDS(cudaStreamSynchronize(stream));
    CHECK(b.first() == 1.0f, "%g", double{b.first()});
    REFUSED(cudaErrorInvalidValue, cudaMemcpyPeerAsync(b.data, 0, a.data, 1, 128, stream));
    REFUSED(cudaErrorInvalidValue, cudaMemcpyPeerAsync(b.data, 1, a.data, 0, 129, stream));
    REFUSED(cudaErrorInvalidDevice, cudaMemcpyPeerAsync(b.data, 9, a.data, 0, 128, stream));
    SUCCEEDS(cudaStreamDestroy(stream));
}

TEST(an_event_of_one_device_holds_up_another) {
    const Simulated machine;
    const OnDevice a(0, 1.0f);
    const OnDevice b(1, 2.0f);
    cudaStream_t first = nullptr;
    cudaStream_t second = nullptr;
    cudaEvent_t event = nullptr;
    SUCCEEDS(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
    SUCCEEDS(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    LAUNCH(adds_other, 1, 32, 0, first, a.data, a.data);
    SUCCEEDS(cudaEventRecord(event, first));
    {
        const On on(1);
        SUCCEEDS(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
        SUCCEEDS(cudaStreamWaitEvent(second, event));
        SUCCEEDS(cudaMemcpyPeerAsync(b.data, 1, a.data, 0, 128, second));
        SUCCEEDS(cudaStreamSynchronize(second));
    }
    CHECK(b.first() == 2.0f, "%g", double{b.first()});
    SUCCEEDS(cudaStreamDestroy(first));
    SUCCEEDS(cudaStreamDestroy(second));
    SUCCEEDS(cudaEventDestroy(event));
}

TEST(a_kernel_may_not_be_given_memory_of_another_device) {
    const Simulated machine;
    const OnDevice a(0, 1.0f);
    const OnDevice b(1, 2.0f);
    const On on(1);
    LAUNCH(adds_other, 1, 32, 0, nullptr, b.data, a.data);
    expect_fault("argument 1 is nothing device 1 may touch", "an argument");
    // The other device has not failed.
    const On back(0);
    expect_no_fault("device 0");
}

// An argument is checked at the launch; an address that the kernel finds in a table, when it is used.
TEST(a_kernel_may_not_find_memory_of_another_device_in_a_table) {
    const Simulated machine;
    const OnDevice a(0, 1.0f);
    const OnDevice b(1, 2.0f);
    const On on(1);
    const Array<const float *> table(std::vector<const float *>{a.data});
    LAUNCH(adds_by_table, 1, 32, 0, nullptr, b.data, table.data());
    expect_fault("illegal address", "an address in a table");
}

TEST(peers_may) {
    const Simulated machine;
    const OnDevice a(0, 1.0f);
    const OnDevice b(1, 2.0f);
    const On on(1);
    int can = 0;
    SUCCEEDS(cudaDeviceCanAccessPeer(&can, 1, 0));
    CHECK(can == 1, "%d", can);
    SUCCEEDS(cudaDeviceCanAccessPeer(&can, 1, 1));
    CHECK(can == 0, "%d", can);
    SUCCEEDS(cudaDeviceEnablePeerAccess(0, 0));
    REFUSED(cudaErrorPeerAccessAlreadyEnabled, cudaDeviceEnablePeerAccess(0, 0));
    REFUSED(cudaErrorInvalidDevice, cudaDeviceEnablePeerAccess(1, 0));
    const Array<const float *> table(std::vector<const float *>{a.data});
    LAUNCH(adds_by_table, 1, 32, 0, nullptr, b.data, table.data());
    LAUNCH(adds_other, 1, 32, 0, nullptr, b.data, a.data);
    expect_no_fault("a peer");
    CHECK(b.first() == 4.0f, "%g", double{b.first()});
    // Memory of a pool is not accessible to peers, and access is not mutual.
    float *pool = nullptr;
    {
        const On owner(0);
        SUCCEEDS(cudaMallocAsync(&pool, 128, nullptr));
        SUCCEEDS(cudaMemsetAsync(pool, 0, 128, nullptr));
        SUCCEEDS(cudaStreamSynchronize(nullptr));
        LAUNCH(adds_other, 1, 32, 0, nullptr, a.data, b.data);
        expect_fault("on device 1", "the other direction");
    }
    LAUNCH(adds_other, 1, 32, 0, nullptr, b.data, pool);
    expect_fault("argument 1 is nothing device 1 may touch", "memory of a pool");
}

TEST(a_pool_gives_access_by_itself) {
    const Simulated machine;
    const OnDevice b(1, 2.0f);
    float *pool = nullptr;
    SUCCEEDS(cudaMallocAsync(&pool, 128, nullptr));
    SUCCEEDS(cudaMemsetAsync(pool, 0, 128, nullptr));
    SUCCEEDS(cudaStreamSynchronize(nullptr));
    cudaMemPool_t owner = nullptr;
    SUCCEEDS(cudaDeviceGetDefaultMemPool(&owner, 0));
    const cudaMemAccessDesc access{{cudaMemLocationTypeDevice, 1}, cudaMemAccessFlagsProtReadWrite};
    SUCCEEDS(cudaMemPoolSetAccess(owner, &access, 1));
    const On on(1);
    LAUNCH(adds_other, 1, 32, 0, nullptr, b.data, pool);
    expect_no_fault("memory of a pool");
    const OnDevice a(0, 1.0f);
    LAUNCH(adds_other, 1, 32, 0, nullptr, b.data, a.data);
    expect_fault("argument 1 is nothing device 1 may touch", "memory that is of no pool");
}

TEST(some_machines_have_no_peers) {
    const Simulated machine({{"PEERS", "off"}});
    int can = 1;
    SUCCEEDS(cudaDeviceCanAccessPeer(&can, 1, 0));
    CHECK(can == 0, "%d", can);
    REFUSED(cudaErrorInvalidDevice, cudaDeviceEnablePeerAccess(1, 0));
    cudaMemPool_t pool = nullptr;
    SUCCEEDS(cudaDeviceGetDefaultMemPool(&pool, 0));
    const cudaMemAccessDesc access{{cudaMemLocationTypeDevice, 1}, cudaMemAccessFlagsProtReadWrite};
    REFUSED(cudaErrorInvalidDevice, cudaMemPoolSetAccess(pool, &access, 1));
}
