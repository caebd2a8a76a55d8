// Common test code: a context, operands with guards around them, and reproducible random numbers.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "check.h"
#include "fedcomuon.h"
#include "iteration.h"
#include "reference.h"

// The device under test, and memory for operands, which on the CPU is ordinary host memory.
#if defined(FCM_TEST_KIND)
#include "mirror.h"
constexpr int32_t kTestKind = FCM_TEST_KIND;
template <class T>
using Vector = std::vector<T, MirrorAllocator<T>>;
inline void *take_memory(size_t bytes) { return Mirror::instance().allocate(bytes); }
inline void give_memory(void *memory) { Mirror::instance().release(memory); }
#else
constexpr int32_t kTestKind = FCM_CPU;
template <class T>
using Vector = std::vector<T>;
constexpr std::align_val_t kMemoryAlignment{64};
inline void *take_memory(size_t bytes) { return ::operator new(bytes, kMemoryAlignment); }
inline void give_memory(void *memory) { ::operator delete(memory, kMemoryAlignment); }
#endif
constexpr bool kOnDevice = kTestKind != FCM_CPU;

// A device copies all of an operand's memory between calls, including guards, so there the guards are not poisoned; the
// simulated device checks its own bounds.
#if defined(__SANITIZE_ADDRESS__) && !defined(FCM_TEST_KIND)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, bytes) ((void)(address), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(address, bytes) ((void)(address), (void)(bytes))
#endif

// A sanitizer has its own allocator, so the few checks of the allocator itself are skipped.
#if defined(FCM_SANITIZED)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

class Device {
   public:
    explicit Device(int32_t threads = 2, int32_t isa = FCM_ISA_AUTO) {
        fcm_error error{};
        CHECK(fcm_context_create(kTestKind, 0, threads, isa, &context_, &error) == FCM_OK, "%s", error.message);
    }
    ~Device() { fcm_context_destroy(context_); }
    Device(const Device &) = delete;
    Device &operator=(const Device &) = delete;

    operator fcm_context *() const { return context_; }

   private:
    fcm_context *context_ = nullptr;
};

// Every instruction set of this machine, the baseline first; a GPU has one.
inline std::vector<int32_t> isas() {
    if (kOnDevice) return {FCM_ISA_AUTO};
    fcm_device_info info{};
    CHECK(fcm_device_describe(0, &info, nullptr) == FCM_OK, "the CPU cannot be described");
#if defined(__SANITIZE_THREAD__)
    return {info.isa};  // threads share the same data with every instruction set
#else
    std::vector<int32_t> all;
    for (int32_t isa = FCM_ISA_BASELINE; isa <= info.isa; ++isa) all.push_back(isa);
    return all;
#endif
}

// Numbers of mixed signs over eight powers of two, so that no term of a sum dominates all others.
class Random {
   public:
    explicit Random(uint64_t seed) : state_(seed * 2 + 1) {}

    uint64_t bits() {  // the generator SplitMix64
        uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
    }
    double uniform() { return static_cast<double>(static_cast<int64_t>(bits())) * 0x1p-63; }
    float value() {
        const uint64_t exponent = bits() >> 61;
        return static_cast<float>(uniform() * static_cast<double>(1u << exponent) / 16.0);
    }
    template <class Numbers>
    void fill(Numbers &numbers) {
        for (auto &number : numbers) number = value();
    }

   private:
    uint64_t state_;
};

// An operand of a batch. Before, between and after its pieces are guards: NaN, so that reading one spoils a result; with
// distinct bits, so that writing one is detected; and poisoned under AddressSanitizer, so that any access ends the test.
// `shift` moves the first piece off the alignment of a vector register by that many elements.
template <class T>
class Batch {
   public:
    Batch(int64_t clients, int64_t n, int64_t shift = 0, int64_t gap = 0)
        : clients_(clients),
          n_(n),
          stride_(n + gap),
          first_(kGuard + shift),
          total_(first_ + clients * (n + gap) + kGuard),
          storage_(static_cast<uint8_t *>(take_memory(static_cast<size_t>(total_) * sizeof(T)))) {
        for (int64_t i = 0; i < total_ * kBytes; ++i) storage_.get()[i] = guard(i);
        poison();
    }
    ~Batch() { unpoison(); }
    Batch(const Batch &) = delete;
    Batch &operator=(const Batch &) = delete;

    // A single piece that every client reads.
    static std::unique_ptr<Batch> shared(int64_t n, int64_t shift = 0) {
        auto batch = std::make_unique<Batch>(1, n, shift);
        batch->stride_ = 0;
        return batch;
    }

    T *data() { return elements() + first_; }
    const T *data() const { return elements() + first_; }
    T *operator[](int64_t client) { return data() + client * stride_; }
    const T *operator[](int64_t client) const { return data() + client * stride_; }
    int64_t stride() const { return stride_; }
    int64_t bytes() const { return clients_ * n_ * static_cast<int64_t>(sizeof(T)); }

    template <class Numbers>
    Batch &set(const Numbers &values) {
        for (int64_t k = 0; k < clients_ && n_ > 0; ++k) {
            std::memcpy((*this)[k], values.data() + k * n_, static_cast<size_t>(n_) * sizeof(T));
        }
        return *this;
    }
    Batch &randomize(Random &random) {
        std::vector<T> values(static_cast<size_t>(clients_ * n_));
        random.fill(values);
        return set(values);
    }
    Batch &fill(T value) { return set(std::vector<T>(static_cast<size_t>(clients_ * n_), value)); }

    std::vector<T> values() const {
        std::vector<T> all(static_cast<size_t>(clients_ * n_));
        for (int64_t k = 0; k < clients_ && n_ > 0; ++k) {
            std::memcpy(all.data() + k * n_, (*this)[k], static_cast<size_t>(n_) * sizeof(T));
        }
        return all;
    }
    // Compares bits: NaN equals itself, 0 and -0 differ.
    bool is(const std::vector<T> &expected) const {
        const std::vector<T> now = values();
        return now.size() == expected.size() && (now.empty() || std::memcmp(now.data(), expected.data(), now.size() * sizeof(T)) == 0);
    }

    bool guards_intact() {
        unpoison();
        bool intact = true;
        int64_t at = 0;
        for (int64_t k = 0; k <= clients_; ++k) {
            const int64_t end = k < clients_ ? first_ + k * stride_ : total_;
            for (; at < end * kBytes; ++at) intact = intact && storage_.get()[at] == guard(at);
            at = (end + n_) * kBytes;
        }
        poison();
        return intact;
    }

   private:
    static constexpr int64_t kGuard = 32;
    static constexpr int64_t kBytes = sizeof(T);

    struct Free {
        void operator()(uint8_t *memory) const { give_memory(memory); }
    };

    // Words that are NaN as a float and, in either half, as a double.
    static uint8_t guard(int64_t byte) {
        const uint32_t word = 0x7ff00001u | ((static_cast<uint32_t>(byte / 4) * 2654435761u) & 0xfffffu);
        return static_cast<uint8_t>(word >> (8 * (byte % 4)));
    }
    T *elements() const { return reinterpret_cast<T *>(storage_.get()); }

    void poison() {
        ASAN_POISON_MEMORY_REGION(elements(), static_cast<size_t>(total_) * sizeof(T));
        for (int64_t k = 0; k < clients_; ++k) {
            ASAN_UNPOISON_MEMORY_REGION((*this)[k], static_cast<size_t>(n_) * sizeof(T));
        }
    }
    void unpoison() { ASAN_UNPOISON_MEMORY_REGION(elements(), static_cast<size_t>(total_) * sizeof(T)); }

    int64_t clients_;
    int64_t n_;
    int64_t stride_;
    int64_t first_;
    int64_t total_;
    std::unique_ptr<uint8_t, Free> storage_;
};

using Floats = Batch<float>;
using Doubles = Batch<double>;
using ByteBatch = Batch<uint8_t>;
using Longs = Batch<int64_t>;

// A workspace for the sums, with exactly the size that the library requires.
inline std::unique_ptr<Doubles> sum_workspace(const fcm_context *context, int64_t clients, int64_t n) {
    int64_t bytes = -1;
    CHECK(fcm_sum_workspace(context, clients, n, &bytes, nullptr) == FCM_OK, "clients %ld, n %ld", long(clients), long(n));
    CHECK(bytes >= 0 && bytes % 8 == 0, "%ld bytes", long(bytes));
    return std::make_unique<Doubles>(1, bytes / 8, 1);
}

// Calls with and without an fcm_error; both must be refused in the same way, and the message must name the function.
template <class Call>
void refused(fcm_status status, const char *function, const char *what, Call &&call) {
    fcm_error error{};
    error.status = -1;
    const fcm_status with = call(&error);
    CHECK(with == status, "%s, %s: status %d, wanted %d (%s)", function, what, with, status, error.message);
    if (with != status) return;
    CHECK(error.status == with, "%s, %s: the error says %d, the function %d", function, what, error.status, with);
    CHECK(std::strncmp(error.message, function, std::strlen(function)) == 0, "%s, %s: %s", function, what,
          error.message);
    if (status == FCM_INVALID_ARGUMENT) {
        CHECK(error.client == -1 && error.block == -1 && error.index == -1, "%s, %s: a place is given", function, what);
    }
    CHECK(call(nullptr) == status, "%s, %s: another status without an fcm_error", function, what);
}

// Compares with a reference and records the largest error relative to the bound, in units of u = 2^-24.
class Accuracy {
   public:
    explicit Accuracy(const char *what) : what_(what) {}
    ~Accuracy() { std::printf("%s: worst error %.3g u, %.0f%% of its bound\n", what_, worst_, 100.0 * share_); }
    Accuracy(const Accuracy &) = delete;
    Accuracy &operator=(const Accuracy &) = delete;

    // |got - wanted| <= units u size. The error of a result below the normal range may be the spacing of that range instead.
    template <class Words>
    void expect(float got, const reference::Number &wanted, double units, const Words &where) {
        const double error = std::fabs(double{got} - wanted.value);
        const double scale = reference::kRound * wanted.size;
        CHECK(error <= units * scale + reference::kTiny, "%s, %s: got %.9g, wanted %.17g, terms of %.3g", what_,
              where().c_str(), double{got}, wanted.value, wanted.size);
        if (scale > 0x1p-120 && !(error / scale <= worst_)) worst_ = error / scale;
        if (scale > 0x1p-120 && !(error / scale / units <= share_)) share_ = error / scale / units;
    }

   private:
    const char *what_;
    double worst_ = 0.0;
    double share_ = 0.0;
};
