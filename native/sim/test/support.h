// Common code for the tests of the simulator: a machine with its own settings, and arrays on its devices.
#pragma once

#include <cstdlib>
#include <initializer_list>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "check.h"
#include "cudasim/control.h"
#include "portable.h"

// A new simulated machine with the given variables (names without their prefix), reset afterwards.
class Simulated {
   public:
    explicit Simulated(std::initializer_list<std::pair<const std::string, std::string>> variables = {})
        : variables_(variables) {
        // Canaries are damaged on purpose here; a sanitizer would end the program before they are checked.
        variables_.emplace("POISON", "off");
        for (const auto &[name, value] : variables_) setenv(full(name).c_str(), value.c_str(), 1);
        cudasim::reconfigure();
    }
    ~Simulated() {
        for (const auto &entry : variables_) unsetenv(full(entry.first).c_str());
        cudasim::reconfigure();
    }
    Simulated(const Simulated &) = delete;
    Simulated &operator=(const Simulated &) = delete;

   private:
    static std::string full(const std::string &name) { return "FEDCOMUON_CUDASIM_" + name; }

    std::map<std::string, std::string> variables_;
};

inline const std::vector<std::string> &orders() {
    static const std::vector<std::string> all{"forward", "reverse", "random:1", "random:2", "random:3", "random:4"};
    return all;
}

#define SUCCEEDS(expression)                                                                                      \
    do {                                                                                                          \
        const cudaError_t error_ = (expression);                                                                  \
        CHECK(error_ == cudaSuccess, "%s: %s", cudaGetErrorName(error_), cudaGetErrorString(error_));             \
    } while (false)

#define REFUSED(code, expression)                                                                                 \
    do {                                                                                                          \
        const cudaError_t error_ = (expression);                                                                  \
        CHECK(error_ == (code), "%s instead of %s: %s", cudaGetErrorName(error_), #code, cudaGetErrorString(error_)); \
        cudaGetLastError();                                                                                       \
    } while (false)

// An array on the current device.
template <class T>
class Array {
   public:
    explicit Array(size_t count) : count_(count) { SUCCEEDS(cudaMalloc(&data_, count * sizeof(T))); }
    explicit Array(const std::vector<T> &values) : Array(values.size()) {
        SUCCEEDS(cudaMemcpy(data_, values.data(), count_ * sizeof(T), cudaMemcpyHostToDevice));
    }
    // After a fault every call fails, which is what the test is about.
    ~Array() { cudaFree(data_); }
    Array(const Array &) = delete;
    Array &operator=(const Array &) = delete;

    T *data() const { return data_; }
    std::vector<T> values() const {
        std::vector<T> all(count_);
        SUCCEEDS(cudaMemcpy(all.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost));
        return all;
    }

   private:
    T *data_ = nullptr;
    size_t count_;
};

inline std::vector<float> counting(size_t count) {
    std::vector<float> values(count);
    for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i % 1000 + 1);
    return values;
}

// The current device must have failed with a message that contains these words.
inline void expect_fault(const std::string &words, const char *where) {
    const cudaError_t error = cudaDeviceSynchronize();
    CHECK(error == cudaErrorLaunchFailure, "%s: %s instead of a fault with \"%s\"", where, cudaGetErrorName(error),
          words.c_str());
    CHECK(cudasim::last_fault().find(words) != std::string::npos, "%s: \"%s\" instead of \"%s\"", where,
          cudasim::last_fault().c_str(), words.c_str());
    CHECK(std::string(cudaGetErrorString(error)).find(words) != std::string::npos, "%s: the error says \"%s\"", where,
          cudaGetErrorString(error));
    // The fault persists until the device is reset.
    CHECK(cudaGetLastError() == cudaErrorLaunchFailure, "%s", where);
    CHECK(cudaGetLastError() == cudaErrorLaunchFailure, "%s: forgotten", where);
}

inline void expect_no_fault(const char *where) {
    const cudaError_t error = cudaDeviceSynchronize();
    CHECK(error == cudaSuccess, "%s: %s", where, cudaGetErrorString(error));
}
