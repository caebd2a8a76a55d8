// Several host threads use one device each, at the same time.
#include <thread>

#include "support.h"

extern "C" __global__ void doubles_and_sums(float *cells, double *sum) {
    SHARED(double, part, [256]);
    const unsigned t = threadIdx.x;
    cells[blockIdx.x * 256 + t] *= 2.0f;
    part[t] = double{cells[blockIdx.x * 256 + t]};
    __syncthreads();
    for (unsigned half = 128; half > 0; half /= 2) {
        if (t < half) part[t] += part[t + half];
        __syncthreads();
    }
    if (t == 0) sum[blockIdx.x] = part[0];
}

namespace {

constexpr int kBlocks = 8;
constexpr int kRounds = 20;

void drive(int device, std::vector<double> *sums, std::vector<int> *errors) {
    const auto note = [&](cudaError_t error) {
        if (error != cudaSuccess) errors->push_back(error);
    };
    note(cudaSetDevice(device));
    cudaStream_t stream = nullptr;
    note(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    std::vector<float> values(kBlocks * 256, static_cast<float>(device + 1));
    float *cells = nullptr;
    note(cudaMallocAsync(&cells, values.size() * sizeof(float), stream));
    note(cudaMemcpyAsync(cells, values.data(), values.size() * sizeof(float), cudaMemcpyHostToDevice, stream));
    for (int round = 0; round < kRounds; ++round) {
        double *sum = nullptr;
        std::vector<double> here(kBlocks);
        note(cudaMallocAsync(&sum, kBlocks * sizeof(double), stream));
        LAUNCH(doubles_and_sums, kBlocks, 256, 0, stream, cells, sum);
        note(cudaGetLastError());
        note(cudaMemcpyAsync(here.data(), sum, kBlocks * sizeof(double), cudaMemcpyDeviceToHost, stream));
        note(cudaFreeAsync(sum, stream));
        double total = 0.0;
        for (const double part : here) total += part;
        sums->push_back(total);
    }
    note(cudaFreeAsync(cells, stream));
    note(cudaStreamSynchronize(stream));
    note(cudaStreamDestroy(stream));
}

}  // namespace

TEST(devices_do_not_disturb_each_other) {
    for (const char *streams : {"lazy", "eager"}) {
        const Simulated machine({{"STREAMS", streams}});
        std::vector<double> sums[4];
        std::vector<int> errors[4];
        std::vector<std::thread> threads;
        for (int device = 0; device < 4; ++device) {
            threads.emplace_back(drive, device, &sums[device], &errors[device]);
        }
        for (std::thread &thread : threads) thread.join();
        for (int device = 0; device < 4; ++device) {
            CHECK(errors[device].empty(), "device %d: error %d", device, errors[device][0]);
            for (int round = 0; round < kRounds; ++round) {
                const double wanted = (device + 1) * 256.0 * kBlocks * static_cast<double>(2 << round);
                CHECK(sums[device][static_cast<size_t>(round)] == wanted, "device %d, round %d: %g instead of %g", device,
                      round, sums[device][static_cast<size_t>(round)], wanted);
            }
        }
        CHECK(cudasim_live_bytes(-1) == 0, "%lld bytes", cudasim_live_bytes(-1));
    }
}

TEST(threads_of_the_host_have_devices_and_errors_of_their_own) {
    const Simulated machine;
    SUCCEEDS(cudaSetDevice(2));
    LAUNCH(doubles_and_sums, 0, 1, 0, nullptr, nullptr, nullptr);
    std::thread([] {
        int device = -1;
        SUCCEEDS(cudaGetDevice(&device));
        CHECK(device == 0, "%d", device);
        SUCCEEDS(cudaGetLastError());
    }).join();
    REFUSED(cudaErrorInvalidConfiguration, cudaGetLastError());
}
