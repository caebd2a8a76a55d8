// A simulated GPU next to the CPU: the same operands and the same call, with bit-identical results wherever the arithmetic
// has the same order.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "check.h"
#include "fedcomuon.h"

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

inline bool interpreted() {
    const char *engine = std::getenv("FEDCOMUON_CUDASIM_ENGINE");
    return engine != nullptr && std::strcmp(engine, "ptx") == 0;
}

// Whether the kernels run so slowly that fewer shapes have to do. A sanitizer looks for other bugs than wrong tiles.
inline bool brief() {
#if defined(FCM_SANITIZED)
    return true;
#else
    return interpreted();
#endif
}

// The library under test may be another build of the same sources. If it is missing, there is nothing to test, which must
// not look like a failed test.
inline void load_backend() {
    const char *other = std::getenv("FCM_TEST_BACKEND");
    int32_t kind = -1;
    fcm_error error{};
    const fcm_status status = fcm_backend_load(other != nullptr ? other : FCM_CUDASIM_LIBRARY, &kind, &error);
    if (status == FCM_OK && kind == FCM_CUDASIM) return;
    std::printf("no library to test: %s\n", error.message);
    std::exit(3);
}

struct Destroy {
    void operator()(fcm_context *context) const { fcm_context_destroy(context); }
};
using Context = std::unique_ptr<fcm_context, Destroy>;

inline Context context_of(int32_t kind, int32_t ordinal = 0) {
    if (kind != FCM_CPU) load_backend();
    fcm_context *context = nullptr;
    fcm_error error{};
    const fcm_status status = fcm_context_create(kind, ordinal, 1, FCM_ISA_AUTO, &context, &error);
    CHECK(status == FCM_OK, "%s", error.message);
    if (status != FCM_OK) throw std::runtime_error("no device");
    return Context(context);
}

inline void ok(fcm_status status, const fcm_error &error) { CHECK(status == FCM_OK, "status %d: %s", status, error.message); }

class Random {
   public:
    explicit Random(uint64_t seed) : state_(seed) {}
    uint64_t bits() {
        state_ = state_ * 6364136223846793005u + 1442695040888963407u;
        uint64_t z = state_;
        z = (z ^ (z >> 29)) * 0xbf58476d1ce4e5b9u;
        return z ^ (z >> 32);
    }
    float value() { return static_cast<float>(static_cast<double>(static_cast<int64_t>(bits())) * 0x1p-62); }
    double positive() { return 0.1 + static_cast<double>(bits() >> 11) * 0x1p-53; }

   private:
    uint64_t state_;
};

// The layout of an operand: `shift` elements before the first piece, `gap` elements after each piece.
struct Placing {
    int64_t shift = 0;
    int64_t gap = 0;
};
constexpr Placing kPlacings[] = {{0, 0}, {0, 4}, {0, 1}, {1, 3}};

// One operand in host memory, of which each device gets a copy. Elements outside of the pieces are NaN with distinct bits
// and are compared as well, because nothing may be written there.
template <class T>
class Operand {
   public:
    Operand(int64_t clients, int64_t n, Placing placing = {})
        : clients_(clients), n_(n), stride_(n + placing.gap), first_(kBefore + placing.shift) {
        all_.resize(static_cast<size_t>(first_ + clients_ * stride_ + kAfter));
        for (size_t i = 0; i < all_.size(); ++i) all_[i] = guard(i);
    }

    T *operator[](int64_t client) { return all_.data() + first_ + client * stride_; }
    int64_t n() const { return n_; }
    int64_t clients() const { return clients_; }
    int64_t stride() const { return stride_; }
    int64_t first() const { return first_; }
    std::vector<T> &all() { return all_; }
    int64_t bytes() const { return static_cast<int64_t>(all_.size() * sizeof(T)); }

    Operand &fill(Random &random) {
        for (int64_t k = 0; k < clients_; ++k) {
            for (int64_t j = 0; j < n_; ++j) (*this)[k][j] = static_cast<T>(random.value());
        }
        return *this;
    }
    Operand &positive(Random &random) {
        for (int64_t k = 0; k < clients_; ++k) {
            for (int64_t j = 0; j < n_; ++j) (*this)[k][j] = static_cast<T>(random.positive());
        }
        return *this;
    }

   private:
    static constexpr int64_t kBefore = 16;  // keeps vectors aligned
    static constexpr int64_t kAfter = 8;

    static T guard(size_t i) {
        if constexpr (sizeof(T) == sizeof(uint8_t)) {
            return static_cast<T>(0x80u | (i & 0x7fu));
        } else if constexpr (sizeof(T) == sizeof(uint32_t)) {
            const uint32_t bits = 0x7fc00000u | (static_cast<uint32_t>(i) & 0xfffffu);
            T value;
            std::memcpy(&value, &bits, sizeof value);
            return value;
        } else {
            const uint64_t bits = 0x7ff8000000000000u | i;
            T value;
            std::memcpy(&value, &bits, sizeof value);
            return value;
        }
    }

    int64_t clients_;
    int64_t n_;
    int64_t stride_;
    int64_t first_;
    std::vector<T> all_;
};
using Floats = Operand<float>;
using Doubles = Operand<double>;
using Bytes = Operand<uint8_t>;

// Memory of a device.
class Buffer {
   public:
    Buffer(fcm_context *context, int64_t bytes) : context_(context) {
        fcm_error error{};
        ok(fcm_buffer_allocate(context, bytes, &address_, &error), error);
    }
    ~Buffer() {
        fcm_error error{};
        ok(fcm_buffer_free(context_, address_, &error), error);
    }
    Buffer(const Buffer &) = delete;
    Buffer &operator=(const Buffer &) = delete;

    void in(const void *from, int64_t bytes) {
        fcm_error error{};
        ok(fcm_copy_in(context_, address_, from, bytes, &error), error);
    }
    void out(void *to, int64_t bytes) {
        fcm_error error{};
        ok(fcm_copy_out(context_, to, address_, bytes, &error), error);
    }
    void *address() const { return address_; }

   private:
    fcm_context *context_;
    void *address_ = nullptr;
};

// A device with copies of the operands that are passed to a call on it.
class Side {
   public:
    explicit Side(int32_t kind) : context_(context_of(kind)) {}

    fcm_context *context() const { return context_.get(); }

    template <class T>
    T *put(Operand<T> &operand) {
        buffers_.push_back(std::make_unique<Buffer>(context(), operand.bytes()));
        buffers_.back()->in(operand.all().data(), operand.bytes());
        return static_cast<T *>(buffers_.back()->address()) + operand.first();
    }
    void *room(int64_t bytes) {
        buffers_.push_back(std::make_unique<Buffer>(context(), bytes));
        return buffers_.back()->address();
    }
    // The operand with index `i` after the call.
    template <class T>
    std::vector<T> get(size_t i, Operand<T> &operand) {
        std::vector<T> all(operand.all().size());
        buffers_.at(i)->out(all.data(), operand.bytes());
        return all;
    }
    size_t count() const { return buffers_.size(); }
    void clear() { buffers_.clear(); }

   private:
    Context context_;
    std::vector<std::unique_ptr<Buffer>> buffers_;
};

class Both {
   public:
    Side cpu{FCM_CPU};
    Side sim{FCM_CUDASIM};

    // call(side, error) puts the operands in the order given here and makes the call.
    template <class Call, class... Operands>
    void same(const std::string &what, Call call, Operands &...operands) {
        near(what, 0.0, call, operands...);
    }
    template <class Call, class... Operands>
    void near(const std::string &what, double tolerance, Call call, Operands &...operands) {
        run(what, call);
        size_t i = 0;
        (compare(what, i++, operands, tolerance), ...);
        clear();
    }
    template <class Call>
    void run(const std::string &what, Call call) {
        fcm_error on_cpu{}, on_sim{};
        const fcm_status wanted = call(cpu, &on_cpu);
        fcm_status got = call(sim, &on_sim);
        if (got == FCM_OK) got = fcm_synchronize(sim.context(), &on_sim);  // a GPU tells what it found when somebody waits
        CHECK(got == wanted, "%s: status %d, wanted %d: %s", what.c_str(), got, wanted, on_sim.message);
        if (wanted == FCM_NOT_FINITE) {
            CHECK(on_cpu.client == on_sim.client && on_cpu.block == on_sim.block && on_cpu.index == on_sim.index,
                  "%s: client %ld, block %ld, index %ld; wanted %ld, %ld, %ld", what.c_str(), long(on_sim.client),
                  long(on_sim.block), long(on_sim.index), long(on_cpu.client), long(on_cpu.block), long(on_cpu.index));
        }
    }
    // Compares operand `i` after the calls on both sides; with a tolerance of 0 it must be bit-identical.
    template <class T>
    void compare(const std::string &what, size_t i, Operand<T> &operand, double tolerance) {
        const std::vector<T> wanted = cpu.get(i, operand);
        const std::vector<T> got = sim.get(i, operand);
        for (size_t j = 0; j < wanted.size(); ++j) {
            const T a = wanted[j];
            const T b = got[j];
            if (std::memcmp(&a, &b, sizeof a) == 0) continue;
            if (tolerance > 0.0 && std::fabs(a - b) <= tolerance * std::max(1.0, double(std::fabs(a)))) continue;
            CHECK(false, "%s: operand %zu, element %ld: %.17g, wanted %.17g", what.c_str(), i, long(j) - long(operand.first()),
                  double(b), double(a));
            return;
        }
    }
    void clear() {
        cpu.clear();
        sim.clear();
    }
};
