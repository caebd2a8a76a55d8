// Checks that no operation allocates memory. malloc and related functions are defined here and take precedence over those of
// the C library, also for calls from the shared library; they count calls while counting is enabled.
#include <dlfcn.h>
#include <sys/mman.h>

#include <atomic>
#include <functional>

#include "placed.h"

namespace {

std::atomic<bool> counting{false};
std::atomic<long> calls{0};

void count() {
    if (counting.load()) calls.fetch_add(1);
}

// dlsym may request some memory before the real malloc is known; that memory comes from here and is never freed.
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

// Without this test, the test below could pass because nothing is counted at all.
TEST(allocations_of_the_library_are_counted) {
    Device device(2);
    for (const int64_t bytes : {int64_t{100}, int64_t{3} << 20}) {
        void *address = nullptr;
        const long count_of_one = counted([&] { fcm_buffer_allocate(device, bytes, &address, nullptr); });
        CHECK(count_of_one >= 1, "%ld bytes came from nowhere", long(bytes));
        fcm_buffer_free(device, address, nullptr);
    }
}

// With the clients distributed over the threads, and with a single client that is cut into pieces.
TEST(operations_do_not_allocate) {
    Device device(2);
    for (const table::Size &size : {table::Size{3, 40000}, table::Size{1, 40000}}) {
        for (const table::Operation &operation : table::operations()) {
            for (const table::Parameters &settings : operation.settings(size)) {
                const auto data = data_of(operation, device, size, settings, 1);
                Placed placed(data);
                const table::Placement p = placed.placement();
                fcm_error error{};
                CHECK(operation.call(device, size, settings, p, &error) == FCM_OK, "%s: %s", operation.name, error.message);
                placed.load(data);
                fcm_status status = FCM_INTERNAL;
                const long allocations = counted([&] { status = operation.call(device, size, settings, p, &error); });
                CHECK(status == FCM_OK, "%s: %s", operation.name, error.message);
                CHECK(allocations == 0, "%s allocates %ld times", operation.name, allocations);
            }
        }
    }
    Floats x(1, 40000), y(1, 40000);
    float *rows[] = {x.data(), y.data()};
    CHECK(counted([&] { fcm_average_rows(device, 2, 40000, nullptr, 2, rows, 2, rows, nullptr); }) == 0,
          "a mean of rows allocates");
    ByteBatch exponents(1, 40000);
    Longs sums(1, 40000);
    exponents.fill(0);
    sums.fill(0);
    const uint8_t *parts[] = {exponents.data()};
    const int64_t *adders[] = {sums.data()};
    CHECK(counted([&] { fcm_mean_combine(device, 1, 40000, parts, exponents.data(), nullptr); }) == 0, "exponents allocate");
    CHECK(counted([&] {
              fcm_mean_finish(device, 1, 40000, 1, 1.0, adders, exponents.data(), 2, rows, nullptr);
          }) == 0,
          "the end of a mean allocates");
    Batch<int32_t> info(1, 1);
    Doubles values(1, 200), vectors(1, 40000);
    info.fill(0);
    values.fill(1.0);
    vectors.fill(1.0);
    CHECK(counted([&] {
              fcm_keep_directions(device, 1, 200, 1e-7, info.data(), values.data(), vectors.data(), sums.data(), nullptr);
              fcm_inverse_roots(device, 1, 200, vectors.data(), nullptr);
          }) == 0,
          "eigenvectors allocate");
    CHECK(counted([&] { fcm_copy_in(device, x.data(), y.data(), 160000, nullptr); }) == 0, "a copy allocates");
    CHECK(counted([&] { fcm_zero(device, y.data(), 160000, nullptr); }) == 0, "a fill allocates");
}
