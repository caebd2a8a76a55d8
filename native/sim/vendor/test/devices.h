// Memory and streams of simulated devices for the tests of the simulated vendor libraries.
#pragma once

#include <cstddef>
#include <random>
#include <vector>

#include "check.h"
#include "cudasim/control.h"
#include "cudasim/runtime.h"

inline void must(cudasim::cudaError_t status, const char *what) {
    CHECK(status == cudasim::cudaSuccess, "%s: %s", what, cudasim::cudaGetErrorString(status));
}
#define MUST(call) must(call, #call)

// An array of T in device memory, freed by the destructor.
template <typename T>
class OnDevice {
  public:
    explicit OnDevice(const std::vector<T> &values) : count_(values.size()) {
        MUST(cudasim::cudaGetDevice(&device_));
        MUST(cudasim::cudaMalloc(&address_, count_ * sizeof(T)));
        if (count_ > 0) MUST(cudasim::cudaMemcpy(address_, values.data(), count_ * sizeof(T), cudasim::cudaMemcpyHostToDevice));
    }
    explicit OnDevice(std::size_t count) : count_(count) {
        MUST(cudasim::cudaGetDevice(&device_));
        MUST(cudasim::cudaMalloc(&address_, count_ * sizeof(T)));
    }
    ~OnDevice() {
        cudasim::cudaSetDevice(device_);
        const cudasim::cudaError_t status = cudasim::cudaFree(address_);
        CHECK(status == cudasim::cudaSuccess || cudasim::has_failed(device_), "%s", cudasim::cudaGetErrorString(status));
    }
    OnDevice(const OnDevice &) = delete;
    OnDevice &operator=(const OnDevice &) = delete;

    T *at() const { return address_; }
    std::size_t count() const { return count_; }

    // Waits for the device.
    std::vector<T> values() const {
        std::vector<T> result(count_);
        MUST(cudasim::cudaSetDevice(device_));
        MUST(cudasim::cudaDeviceSynchronize());
        MUST(cudasim::cudaMemcpy(result.data(), address_, count_ * sizeof(T), cudasim::cudaMemcpyDeviceToHost));
        return result;
    }

  private:
    T *address_ = nullptr;
    std::size_t count_;
    int device_ = 0;
};

class OnStream {
  public:
    OnStream() { MUST(cudasim::cudaStreamCreateWithFlags(&stream_, cudasim::cudaStreamNonBlocking)); }
    ~OnStream() { cudasim::cudaStreamDestroy(stream_); }
    OnStream(const OnStream &) = delete;
    OnStream &operator=(const OnStream &) = delete;
    cudasim::cudaStream_t get() const { return stream_; }

  private:
    cudasim::cudaStream_t stream_ = nullptr;
};

template <typename T>
std::vector<T> normal(std::size_t count, unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<double> values;
    std::vector<T> result(count);
    for (T &value : result) value = static_cast<T>(values(random));
    return result;
}
