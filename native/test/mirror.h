// Operands for tests on a device whose memory the host cannot access. A test fills and reads host memory, as on the CPU, and
// every piece of it has a mirror on the device with the same alignment. The library is called with the mirrors: before a
// call they receive the host's contents, and after it the host receives theirs, including the guards around an operand. The
// test therefore sees everything that the device wrote, at any address.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <mutex>
#include <new>
#include <stdexcept>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "check.h"
#include "fedcomuon.h"

class Mirror {
   public:
    static Mirror &instance() {
        static Mirror one;
        return one;
    }

    void *allocate(size_t bytes) {
        const size_t room = bytes > 0 ? bytes : 1;
        auto *host = static_cast<char *>(::operator new(room, kAlignment));
        void *device = nullptr;
        need(fcm_buffer_allocate(context_, static_cast<int64_t>(room), &device, &error_));
        const std::lock_guard<std::mutex> lock(mutex_);
        twins_[host] = {static_cast<char *>(device), room};
        return host;
    }

    void release(void *memory) {
        auto *host = static_cast<char *>(memory);
        const std::lock_guard<std::mutex> lock(mutex_);
        const auto found = twins_.find(host);
        if (found == twins_.end()) throw std::logic_error("not a piece of this memory");
        need(fcm_buffer_free(context_, found->second.device, &error_));
        twins_.erase(found);
        ::operator delete(memory, kAlignment);
    }

    void send() {
        for (const auto &[host, twin] : twins_) {
            need(fcm_copy_in(context_, twin.device, host, static_cast<int64_t>(twin.bytes), &error_));
        }
    }
    void receive() {
        for (const auto &[host, twin] : twins_) {
            need(fcm_copy_out(context_, host, twin.device, static_cast<int64_t>(twin.bytes), &error_));
        }
    }

    // The device address that corresponds to a host address; other addresses are passed unchanged.
    template <class Value>
    Value twin(Value value) const {
        if constexpr (std::is_pointer_v<Value>) {
            using Target = std::remove_cv_t<std::remove_pointer_t<Value>>;
            if constexpr (std::is_arithmetic_v<Target> || std::is_void_v<Target>) {
                auto *address = static_cast<char *>(const_cast<void *>(static_cast<const void *>(value)));
                auto after = twins_.upper_bound(address);
                if (after == twins_.begin()) return value;
                const auto &[host, piece] = *std::prev(after);
                if (std::less<>()(host + piece.bytes - 1, address)) return value;
                return static_cast<Value>(static_cast<void *>(piece.device + (address - host)));
            }
        }
        return value;
    }

    fcm_error *error() { return &error_; }
    void need(fcm_status status) {
        if (status != FCM_OK) throw std::runtime_error(error_.message);
    }

   private:
    static constexpr std::align_val_t kAlignment{64};
    struct Twin {
        char *device = nullptr;
        size_t bytes = 0;
    };

    Mirror() { need(fcm_context_create(FCM_TEST_KIND, 0, 1, FCM_ISA_AUTO, &context_, &error_)); }
    ~Mirror() { fcm_context_destroy(context_); }

    fcm_context *context_ = nullptr;
    fcm_error error_{};
    std::mutex mutex_;
    std::map<char *, Twin, std::less<>> twins_;
};

// An argument that the library reads on the host.
template <class T>
struct OnHost {
    T *address;
};
inline OnHost<const double> on_host(const double *address) { return {address}; }

template <class Parameter, class Argument>
Parameter twin_of(const Mirror &mirror, Argument &&argument) {
    return mirror.twin(static_cast<Parameter>(argument));
}
template <class Parameter>
Parameter twin_of(const Mirror &, const OnHost<const double> &argument) {
    return argument.address;
}
template <class Parameter>
Parameter twin_of(const Mirror &, OnHost<const double> &&argument) {
    return argument.address;
}

// The status of a call and of what it gave to the device: a GPU reports what it finds to the next call that waits.
inline fcm_status settled(fcm_context *context, fcm_status status, fcm_error *error) {
    if (context == nullptr) return status;
    if (status == FCM_OK) return fcm_synchronize(context, error);
    Mirror::instance().need(fcm_synchronize(context, Mirror::instance().error()));
    return status;
}

// One call with the mirrors, until the device is done.
template <class... Parameters, class... Arguments>
fcm_status mirrored(fcm_status (*function)(fcm_context *, Parameters...), fcm_context *context, Arguments &&...arguments) {
    Mirror &mirror = Mirror::instance();
    mirror.send();
    fcm_error *error = std::get<sizeof...(arguments) - 1>(std::forward_as_tuple(arguments...));
    const fcm_status status =
        settled(context, function(context, twin_of<Parameters>(mirror, std::forward<Arguments>(arguments))...), error);
    mirror.receive();
    return status;
}

// The same for operations whose workspace has to be prepared. What preparation refuses, the operation refuses as well.
inline fcm_status mirrored_schulz(fcm_context *context, int64_t clients, const fcm_matrix_block *blocks, int64_t count,
                                  const fcm_schulz *schulz, double eta, const float *m,
                                  int64_t m_stride, float *o, int64_t o_stride, float *w, int64_t w_stride, void *workspace,
                                  int64_t bytes, fcm_error *error) {
    Mirror &mirror = Mirror::instance();
    mirror.send();
    (void)fcm_newton_schulz_prepare(context, clients, blocks, count, schulz, mirror.twin(workspace), bytes, nullptr);
    const fcm_status status =
        settled(context,
                fcm_newton_schulz(context, clients, blocks, count, schulz, eta, mirror.twin(m), m_stride, mirror.twin(o),
                                  o_stride, mirror.twin(w), w_stride, mirror.twin(workspace), bytes, error),
                error);
    mirror.receive();
    return status;
}
inline fcm_status mirrored_steps(fcm_context *context, int64_t clients, const fcm_vector_block *blocks, int64_t count,
                                 int32_t rule, double eta, const float *m, int64_t m_stride, float *w, int64_t w_stride,
                                 void *workspace, int64_t bytes, fcm_error *error) {
    Mirror &mirror = Mirror::instance();
    mirror.send();
    (void)fcm_vector_steps_prepare(context, clients, blocks, count, mirror.twin(workspace), bytes, nullptr);
    const fcm_status status =
        settled(context,
                fcm_vector_steps(context, clients, blocks, count, rule, eta, mirror.twin(m), m_stride, mirror.twin(w),
                                 w_stride, mirror.twin(workspace), bytes, error),
                error);
    mirror.receive();
    return status;
}

// The same for tables of addresses.
template <class T>
std::vector<T *> twins_of(const Mirror &mirror, T *const *table, int64_t count) {
    std::vector<T *> twins;
    for (int64_t i = 0; table != nullptr && i < count; ++i) twins.push_back(mirror.twin(table[i]));
    return twins;
}
inline fcm_status mirrored_combine(fcm_context *context, int64_t parts, int64_t n, const uint8_t *const *exponents, uint8_t *to,
                                   fcm_error *error) {
    Mirror &mirror = Mirror::instance();
    mirror.send();
    const auto from = twins_of(mirror, exponents, parts);
    const fcm_status status = settled(
        context,
        fcm_mean_combine(context, parts, n, exponents == nullptr ? nullptr : from.data(), mirror.twin(to), error), error);
    mirror.receive();
    return status;
}
inline fcm_status mirrored_finish(fcm_context *context, int64_t parts, int64_t n, int64_t terms, double total,
                                  const int64_t *const *sums, const uint8_t *exponents, int64_t target_count,
                                  float *const *targets, fcm_error *error) {
    Mirror &mirror = Mirror::instance();
    mirror.send();
    const auto from = twins_of(mirror, sums, parts);
    const auto to = twins_of(mirror, targets, target_count);
    const fcm_status status = settled(
        context,
        fcm_mean_finish(context, parts, n, terms, total, sums == nullptr ? nullptr : from.data(), mirror.twin(exponents),
                        target_count, targets == nullptr ? nullptr : to.data(), error),
        error);
    mirror.receive();
    return status;
}
inline fcm_status mirrored_rows(fcm_context *context, int64_t clients, int64_t n, const double *weights, int64_t terms,
                                const float *const *rows, int64_t target_count, float *const *targets, fcm_error *error) {
    Mirror &mirror = Mirror::instance();
    mirror.send();
    const auto from = twins_of(mirror, rows, clients);
    const auto to = twins_of(mirror, targets, target_count);
    const fcm_status status = settled(
        context,
        fcm_average_rows(context, clients, n, weights, terms, rows == nullptr ? nullptr : from.data(), target_count,
                         targets == nullptr ? nullptr : to.data(), error),
        error);
    mirror.receive();
    return status;
}

template <class T>
struct MirrorAllocator {
    using value_type = T;

    MirrorAllocator() = default;
    template <class U>
    MirrorAllocator(const MirrorAllocator<U> &) {}

    T *allocate(size_t count) { return static_cast<T *>(Mirror::instance().allocate(count * sizeof(T))); }
    void deallocate(T *memory, size_t) { Mirror::instance().release(memory); }

    friend bool operator==(const MirrorAllocator &, const MirrorAllocator &) { return true; }
    friend bool operator!=(const MirrorAllocator &, const MirrorAllocator &) { return false; }
};

// The calls of the tests, each with its mirrors. Weights and coefficients are read on the host.
#define fcm_ema(...) mirrored(::fcm_ema, __VA_ARGS__)
#define fcm_compose_momentum(...) mirrored(::fcm_compose_momentum, __VA_ARGS__)
#define fcm_storm(...) mirrored(::fcm_storm, __VA_ARGS__)
#define fcm_project_compose_momentum(...) mirrored(::fcm_project_compose_momentum, __VA_ARGS__)
#define fcm_project(...) mirrored(::fcm_project, __VA_ARGS__)
#define fcm_norm(...) mirrored(::fcm_norm, __VA_ARGS__)
#define fcm_vector_step(...) mirrored(::fcm_vector_step, __VA_ARGS__)
#define fcm_adaptive_step(...) mirrored(::fcm_adaptive_step, __VA_ARGS__)
#define fcm_top_k(...) mirrored(::fcm_top_k, __VA_ARGS__)
#define fcm_average(context, clients, n, weights, ...) \
    mirrored(::fcm_average, context, clients, n, on_host(weights), __VA_ARGS__)
#define fcm_average_rows(...) mirrored_rows(__VA_ARGS__)
#define fcm_mean_exponents(context, clients, n, weights, ...) \
    mirrored(::fcm_mean_exponents, context, clients, n, on_host(weights), __VA_ARGS__)
#define fcm_mean_sums(context, clients, n, weights, ...) \
    mirrored(::fcm_mean_sums, context, clients, n, on_host(weights), __VA_ARGS__)
#define fcm_mean_combine(...) mirrored_combine(__VA_ARGS__)
#define fcm_mean_finish(...) mirrored_finish(__VA_ARGS__)
#define fcm_all_finite(...) mirrored(::fcm_all_finite, __VA_ARGS__)
#define fcm_newton_schulz(...) mirrored_schulz(__VA_ARGS__)
#define fcm_vector_steps(...) mirrored_steps(__VA_ARGS__)
#define fcm_require_finite(...) mirrored(::fcm_require_finite, __VA_ARGS__)
#define fcm_normalize(...) mirrored(::fcm_normalize, __VA_ARGS__)
#define fcm_rearrange(...) mirrored(::fcm_rearrange, __VA_ARGS__)
#define fcm_widen(...) mirrored(::fcm_widen, __VA_ARGS__)
#define fcm_narrow(...) mirrored(::fcm_narrow, __VA_ARGS__)
#define fcm_keep_directions(...) mirrored(::fcm_keep_directions, __VA_ARGS__)
#define fcm_inverse_roots(...) mirrored(::fcm_inverse_roots, __VA_ARGS__)
#define fcm_multiply(...) mirrored(::fcm_multiply, __VA_ARGS__)
#define fcm_triad(...) mirrored(::fcm_triad, __VA_ARGS__)
#define fcm_zero(...) mirrored(::fcm_zero, __VA_ARGS__)
