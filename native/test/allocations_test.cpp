// No operation allocates. malloc and its kin are defined here and so come before those of the C library, also for the
// calls that the shared library makes; they count while they are told to.
#include <dlfcn.h>
#include <sys/mman.h>

#include <atomic>
#include <functional>

#include "support.h"

namespace {

std::atomic<bool> counting{false};
std::atomic<long> calls{0};

void count() {
    if (counting.load()) calls.fetch_add(1);
}

// dlsym itself may ask for a little memory before malloc is known; it comes from here and is never given back.
alignas(64) char early[4096];
size_t early_used = 0;
bool resolving = false;

void *from_early(size_t bytes) {
    void *memory = early + early_used;
    early_used += (bytes + 63) / 64 * 64;
    if (early_used > sizeof early) std::abort();
    return memory;
}
bool is_early(const void *memory) { return memory >= early && memory < early + sizeof early; }

template <class Function>
Function *next(Function *&known, const char *name) {
    if (known == nullptr && !resolving) {
        resolving = true;
        known = reinterpret_cast<Function *>(dlsym(RTLD_NEXT, name));
        resolving = false;
    }
    return known;
}

void *(*next_malloc)(size_t);
void *(*next_calloc)(size_t, size_t);
void *(*next_realloc)(void *, size_t);
void *(*next_aligned_alloc)(size_t, size_t);
int (*next_posix_memalign)(void **, size_t, size_t);
void *(*next_mmap)(void *, size_t, int, int, int, off_t);
void (*next_free)(void *);

}  // namespace

#define FCM_INTERPOSED extern "C" __attribute__((visibility("default")))

FCM_INTERPOSED void *malloc(size_t bytes) noexcept {
    count();
    const auto real = next(next_malloc, "malloc");
    return real == nullptr ? from_early(bytes) : real(bytes);
}
FCM_INTERPOSED void *calloc(size_t number, size_t bytes) noexcept {
    count();
    const auto real = next(next_calloc, "calloc");
    return real == nullptr ? from_early(number * bytes) : real(number, bytes);
}
FCM_INTERPOSED void *realloc(void *memory, size_t bytes) noexcept {
    count();
    if (is_early(memory)) std::abort();
    return next(next_realloc, "realloc")(memory, bytes);
}
FCM_INTERPOSED void *aligned_alloc(size_t alignment, size_t bytes) noexcept {
    count();
    return next(next_aligned_alloc, "aligned_alloc")(alignment, bytes);
}
FCM_INTERPOSED int posix_memalign(void **memory, size_t alignment, size_t bytes) noexcept {
    count();
    return next(next_posix_memalign, "posix_memalign")(memory, alignment, bytes);
}
FCM_INTERPOSED void *mmap(void *address, size_t bytes, int protection, int flags, int file, off_t offset) noexcept {
    count();
    return next(next_mmap, "mmap")(address, bytes, protection, flags, file, offset);
}
FCM_INTERPOSED void free(void *memory) noexcept {
    if (!is_early(memory)) next(next_free, "free")(memory);
}

namespace {

long counted(const std::function<void()> &body) {
    calls = 0;
    counting = true;
    body();
    counting = false;
    return calls;
}

}  // namespace

// Without this the test below could pass because nothing is counted at all.
TEST(allocations_of_the_library_are_counted) {
    Device device(2);
    for (const int64_t bytes : {int64_t{100}, int64_t{3} << 20}) {
        void *address = nullptr;
        const long count_of_one = counted([&] { fcm_buffer_allocate(device, bytes, &address, nullptr); });
        CHECK(count_of_one >= 1, "%ld bytes came from nowhere", long(bytes));
        fcm_buffer_free(device, address, nullptr);
    }
}

TEST(operations_do_not_allocate) {
    constexpr int64_t kClients = 3;
    constexpr int64_t kN = 40000;
    Device device(2);
    Random random(1);
    Floats x(kClients, kN), y(kClients, kN), z(kClients, kN);
    const fcm_matrix_block blocks[] = {{100, 128, 0, 0, 0, 1.0}, {20, 10, 12800, 12800, 12800, 1.0},
                                       {128, 200, 13000, 13000, 13000, 1.0}};
    const double coefficients[] = {3.4445, -4.7750, 2.0315, 3.4445, -4.7750, 2.0315};
    int64_t sum_bytes = 0;
    int64_t schulz_bytes = 0;
    CHECK(fcm_sum_workspace(device, kClients, kN, &sum_bytes, nullptr) == FCM_OK, "query");
    CHECK(fcm_newton_schulz_small_workspace(device, kClients, blocks, 3, &schulz_bytes, nullptr) == FCM_OK, "query");
    std::vector<double> sums(static_cast<size_t>(sum_bytes / 8));
    std::vector<double> schulz(static_cast<size_t>(schulz_bytes / 8));
    const float v[2] = {0.5f, 0.25f};
    double norms[kClients] = {};
    int64_t client = 0;
    int64_t index = 0;
    fcm_error error{};
    const std::pair<const char *, std::function<fcm_status()>> operations[] = {
        {"ema", [&] { return fcm_ema(device, kClients, kN, 0.5, x.data(), kN, y.data(), kN, &error); }},
        {"compose_momentum",
         [&] {
             return fcm_compose_momentum(device, kClients, kN / 2, 2, 0.5, x.data(), kN, v, 0, y.data(), kN, &error);
         }},
        {"storm",
         [&] {
             return fcm_storm(device, kClients, kN, 0.5, x.data(), kN, y.data(), kN, z.data(), kN, norms, sums.data(),
                              sum_bytes, &error);
         }},
        {"project_compose_momentum",
         [&] {
             return fcm_project_compose_momentum(device, kClients, kN / 2, 2, 1.0, norms, 0.5, x.data(), kN, v, 0,
                                                 y.data(), kN, &error);
         }},
        {"project", [&] { return fcm_project(device, kClients, kN, 1.0, norms, x.data(), kN, &error); }},
        {"adaptive_step",
         [&] {
             return fcm_adaptive_step(device, kClients, kN / 2, FCM_YOGI, 0.9, 0.99, 1e-3, 0.5, x.data(), kN, y.data(),
                                      kN, z.data(), kN, z.data() + kN / 2, kN, &error);
         }},
        {"top_k", [&] { return fcm_top_k(device, kClients, kN, kN / 10, x.data(), kN, y.data(), kN, &error); }},
        {"top_k of one",
         [&] { return fcm_top_k(device, 1, kN, kN / 10, x.data(), kN, x.data(), kN, &error); }},
        {"norm", [&] { return fcm_norm(device, kClients, kN, x.data(), kN, norms, sums.data(), sum_bytes, &error); }},
        {"vector_step",
         [&] {
             return fcm_vector_step(device, kClients, kN, FCM_STEP_NORMALIZED, 0.5, x.data(), kN, y.data(), kN,
                                    sums.data(), sum_bytes, &error);
         }},
        {"average", [&] { return fcm_average(device, kClients, kN, nullptr, x.data(), kN, &error); }},
        {"all_finite", [&] { return fcm_all_finite(device, kClients, kN, x.data(), kN, &client, &index, &error); }},
        {"newton_schulz_small",
         [&] {
             return fcm_newton_schulz_small(device, kClients, blocks, 3, coefficients, 2, 1.0, 0.5, x.data(), kN,
                                            y.data(), kN, z.data(), kN, schulz.data(), schulz_bytes, &error);
         }},
        {"copy", [&] { return fcm_copy_in(device, x.data(), y.data(), kN * 4, &error); }},
        {"zero", [&] { return fcm_zero(device, y.data(), kN * 4, &error); }},
        {"triad", [&] { return fcm_triad(device, kN, 0.5f, x.data(), y.data(), z.data(), 1, &error); }},
    };
    for (const auto &[name, operation] : operations) {
        x.randomize(random);
        y.randomize(random);
        z.randomize(random);
        CHECK(operation() == FCM_OK, "%s: %s", name, error.message);
        fcm_status status = FCM_INTERNAL;
        const long allocations = counted([&, &run = operation] { status = run(); });
        CHECK(status == FCM_OK, "%s: %s", name, error.message);
        CHECK(allocations == 0, "%s allocates %ld times", name, allocations);
    }
}
