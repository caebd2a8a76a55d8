// Buffers: allocating, freeing, and copying between them.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <thread>

#include "support.h"
#if defined(FCM_TEST_KIND)
#include "cudasim/control.h"
#endif

namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

// The bytes allocated on the simulated device, by any context.
long long simulated_bytes() {
#if defined(FCM_TEST_KIND)
    return cudasim_live_bytes(0);
#else
    return 0;
#endif
}

// Sizes around the two ways to allocate: the heap below 2 MiB, a separate mapping from there on.
const int64_t kSizes[] = {0, 1, 63, 64, 65, 4096, 2 * kMiB - 1, 2 * kMiB, 2 * kMiB + 1, 3 * kMiB, 4 * kMiB};

void *allocate(fcm_context *context, int64_t bytes) {
    void *address = nullptr;
    fcm_error error{};
    CHECK(fcm_buffer_allocate(context, bytes, &address, &error) == FCM_OK, "%ld bytes: %s", long(bytes), error.message);
    CHECK(address != nullptr, "%ld bytes", long(bytes));
    return address;
}

int64_t live(fcm_context *context) {
    int64_t bytes = -1;
    CHECK(fcm_live_bytes(context, &bytes, nullptr) == FCM_OK, "fcm_live_bytes");
    return bytes;
}

void release(fcm_context *context, void *address) {
    fcm_error error{};
    CHECK(fcm_buffer_free(context, address, &error) == FCM_OK, "%s", error.message);
}

void refuse_free(fcm_context *context, void *address, const char *what) {
    refused(FCM_INVALID_ARGUMENT, "fcm_buffer_free", what,
            [&](fcm_error *e) { return fcm_buffer_free(context, address, e); });
}

// Reads and writes a buffer: on the CPU directly by the host, not by the functions under test.
std::vector<unsigned char> peek(fcm_context *context, const void *address, int64_t bytes) {
    std::vector<unsigned char> all(static_cast<size_t>(bytes));
    if (kOnDevice) {
        CHECK(fcm_copy_out(context, all.data(), address, bytes, nullptr) == FCM_OK, "%ld bytes out", long(bytes));
    } else if (bytes > 0) {
        std::memcpy(all.data(), address, static_cast<size_t>(bytes));
    }
    return all;
}
void poke(fcm_context *context, void *address, const std::vector<unsigned char> &bytes) {
    if (kOnDevice) {
        CHECK(fcm_copy_in(context, address, bytes.data(), static_cast<int64_t>(bytes.size()), nullptr) == FCM_OK,
              "%zu bytes in", bytes.size());
    } else if (!bytes.empty()) {
        std::memcpy(address, bytes.data(), bytes.size());
    }
}
unsigned char byte_at(fcm_context *context, const char *address) { return peek(context, address, 1)[0]; }
int64_t count_set(const std::vector<unsigned char> &bytes) {
    return static_cast<int64_t>(bytes.size()) - std::count(bytes.begin(), bytes.end(), static_cast<unsigned char>(0));
}

std::vector<unsigned char> bytes_of(int64_t count, unsigned seed) {
    std::vector<unsigned char> bytes(static_cast<size_t>(count));
    Random random(seed);
    for (auto &byte : bytes) byte = static_cast<unsigned char>(random.bits());
    return bytes;
}

}  // namespace

// The second iteration gets memory that the first one has written, so the test only passes if it is really zeroed.
TEST(buffers_are_zeroed_and_aligned) {
    Device device;
    for (int round = 0; round < 2; ++round) {
        for (const int64_t bytes : kSizes) {
            auto *address = static_cast<unsigned char *>(allocate(device, bytes));
            CHECK(reinterpret_cast<uintptr_t>(address) % 64 == 0, "%ld bytes at %p", long(bytes),
                  static_cast<void *>(address));
            const int64_t set = count_set(peek(device, address, bytes));
            CHECK(set == 0, "%ld of %ld bytes are not zero in round %d", long(set), long(bytes), round);
            poke(device, address, std::vector<unsigned char>(static_cast<size_t>(bytes), 0xa5));
            release(device, address);
        }
    }
}

TEST(live_bytes_are_what_was_asked_for) {
    Device device;
    CHECK(live(device) == 0, "a new context has %ld live bytes", long(live(device)));
    int64_t expected = 0;
    std::vector<void *> all;
    for (const int64_t bytes : kSizes) {
        all.push_back(allocate(device, bytes));
        expected += bytes;
        CHECK(live(device) == expected, "%ld live, %ld asked for", long(live(device)), long(expected));
    }
    for (size_t i = 0; i < all.size(); ++i) {
        release(device, all[i]);
        expected -= kSizes[i];
        CHECK(live(device) == expected, "%ld live, %ld left", long(live(device)), long(expected));
    }
    refused(FCM_INVALID_ARGUMENT, "fcm_live_bytes", "null answer",
            [&](fcm_error *e) { return fcm_live_bytes(device, nullptr, e); });
    int64_t bytes = 0;
    refused(FCM_INVALID_ARGUMENT, "fcm_live_bytes", "null context",
            [&](fcm_error *e) { return fcm_live_bytes(nullptr, &bytes, e); });
}

TEST(empty_buffers_have_distinct_addresses) {
    Device device;
    void *one = allocate(device, 0);
    void *two = allocate(device, 0);
    CHECK(one != two, "both are at %p", one);
    release(device, one);
    release(device, two);
}

TEST(only_own_buffers_are_freed_and_once) {
    Device device;
    Device other;
    for (const int64_t bytes : {int64_t{64}, 3 * kMiB}) {
        auto *address = static_cast<char *>(allocate(device, bytes));
        refuse_free(other, address, "a buffer of another context");
        refuse_free(device, address + 1, "the middle of a buffer");
        release(device, address);
        refuse_free(device, address, "a second time");
    }
    int local = 0;
    refuse_free(device, &local, "an address on the stack");
    refuse_free(device, nullptr, "null");
    refuse_free(nullptr, &local, "a null context");
    CHECK(live(device) == 0, "%ld bytes are live", long(live(device)));
}

TEST(impossible_sizes_are_refused) {
    Device device;
    fcm_device_info info{};
    CHECK(fcm_device_describe(0, &info, nullptr) == FCM_OK, "the CPU");
    int nowhere = 0;
    void *const untouched = &nowhere;
    void *address = untouched;
    const auto refuse = [&](fcm_status status, const char *what, int64_t bytes) {
        refused(status, "fcm_buffer_allocate", what,
                [&](fcm_error *e) { return fcm_buffer_allocate(device, bytes, &address, e); });
        CHECK(address == untouched, "%s: the address was written", what);
    };
    refuse(FCM_INVALID_ARGUMENT, "-1 byte", -1);
    refuse(FCM_INVALID_ARGUMENT, "INT64_MIN bytes", INT64_MIN);
    refuse(FCM_OUT_OF_MEMORY, "INT64_MAX bytes", INT64_MAX);
    // around this value, rounding a size up to a huge page overflows
    refuse(FCM_OUT_OF_MEMORY, "INT64_MAX - 2 MiB bytes", INT64_MAX - 2 * kMiB);
    refuse(FCM_OUT_OF_MEMORY, "more than the machine has", info.memory_bytes + 1);
    // Half of the machine's memory twice: each half can be allocated as long as nothing touches it. AddressSanitizer would
    // touch it, and a device zeroes it immediately.
    void *half = nullptr;
    if (!kSanitized && !kOnDevice && fcm_buffer_allocate(device, info.memory_bytes / 2, &half, nullptr) == FCM_OK) {
        refuse(FCM_OUT_OF_MEMORY, "more than is left", info.memory_bytes - info.memory_bytes / 2 + 1);
        CHECK(live(device) == info.memory_bytes / 2, "%ld bytes are live", long(live(device)));
        release(device, half);
    }
    refused(FCM_INVALID_ARGUMENT, "fcm_buffer_allocate", "null answer",
            [&](fcm_error *e) { return fcm_buffer_allocate(device, 1, nullptr, e); });
    refused(FCM_INVALID_ARGUMENT, "fcm_buffer_allocate", "null context",
            [&](fcm_error *e) { return fcm_buffer_allocate(nullptr, 1, &address, e); });
}

// LeakSanitizer checks the small allocations; for a mapping, the kernel confirms that it is gone. Only one thread is used,
// because the memory of a second one might be mapped at the same address.
TEST(destroying_a_context_frees_what_is_left) {
    void *mapped = nullptr;
    const long long before = simulated_bytes();
    {
        Device device(1);
        for (const int64_t bytes : kSizes) allocate(device, bytes);
        mapped = allocate(device, 3 * kMiB);
    }
    CHECK(simulated_bytes() == before, "%lld bytes are left", simulated_bytes() - before);
    if (!kSanitized && !kOnDevice) {
        unsigned char resident = 0;
        const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
        CHECK(mincore(mapped, page, &resident) == -1 && errno == ENOMEM, "%p is still mapped", mapped);
    }
}

TEST(buffers_are_freed_on_another_thread) {
    Device device;
    void *small = allocate(device, 100);
    void *large = allocate(device, 3 * kMiB);
    std::thread([&] {
        release(device, small);
        release(device, large);
    }).join();
    CHECK(live(device) == 0, "%ld bytes are live", long(live(device)));
}

// Allocation is allowed on any thread, also concurrently; ThreadSanitizer checks it.
TEST(buffers_come_and_go_on_four_threads) {
    Device device;
    std::vector<std::thread> threads;
    std::vector<int> wrong(4, 0);
    for (size_t t = 0; t < wrong.size(); ++t) {
        threads.emplace_back([&device, &bad = wrong[t], t] {
            for (int64_t i = 0; i < 200; ++i) {
                void *address = nullptr;
                const int64_t bytes = i % 50 == 0 ? 3 * kMiB : i + 1;
                if (fcm_buffer_allocate(device, bytes, &address, nullptr) != FCM_OK) ++bad;
                if (!kOnDevice) std::memset(address, static_cast<int>(t), 1);
                if (fcm_buffer_free(device, address, nullptr) != FCM_OK) ++bad;
            }
        });
    }
    for (auto &thread : threads) thread.join();
    for (const int bad : wrong) CHECK(bad == 0, "%d calls failed", bad);
    CHECK(live(device) == 0, "%ld bytes are live", long(live(device)));
}

// Sizes around the pieces that copies are cut into, and odd addresses, because bytes and not floats are copied.
TEST(copies_carry_every_byte) {
    Device one(2);
    Device two(3);
    for (const int64_t bytes : {int64_t{0}, int64_t{1}, int64_t{1000}, kMiB, kMiB + 1, 3 * kMiB + 7}) {
        const auto sent = bytes_of(bytes + 1, 1);
        auto received = bytes_of(bytes + 2, 2);
        const auto before = received;
        auto *a = static_cast<char *>(allocate(one, bytes + 3));
        auto *b = static_cast<char *>(allocate(two, bytes + 3));
        CHECK(fcm_copy_in(one, a + 1, sent.data() + 1, bytes, nullptr) == FCM_OK, "in, %ld bytes", long(bytes));
        CHECK(fcm_copy(two, b + 2, one, a + 1, bytes, nullptr) == FCM_OK, "across, %ld bytes", long(bytes));
        CHECK(fcm_copy_out(two, received.data() + 1, b + 2, bytes, nullptr) == FCM_OK, "out, %ld bytes", long(bytes));
        CHECK(std::memcmp(received.data() + 1, sent.data() + 1, static_cast<size_t>(bytes)) == 0, "%ld bytes",
              long(bytes));
        CHECK(received.front() == before.front() && received.back() == before.back(), "%ld bytes: the ends",
              long(bytes));
        CHECK(byte_at(one, a) == 0 && byte_at(one, a + bytes + 1) == 0, "%ld bytes: around a", long(bytes));
        CHECK(byte_at(two, b + 1) == 0 && byte_at(two, b + bytes + 2) == 0, "%ld bytes: around b", long(bytes));

        CHECK(fcm_zero(two, b + 2, bytes, nullptr) == FCM_OK, "zero, %ld bytes", long(bytes));
        const int64_t set = count_set(peek(two, b + 2, bytes));
        CHECK(set == 0, "%ld of %ld bytes are left", long(set), long(bytes));
        release(one, a);
        release(two, b);
    }
}

TEST(zeroing_stays_within_bounds) {
    Device device;
    Vector<unsigned char> bytes(3 * kMiB + 9, 0x5a);
    CHECK(fcm_zero(device, bytes.data() + 1, 3 * kMiB + 7, nullptr) == FCM_OK, "fcm_zero");
    CHECK(bytes.front() == 0x5a && bytes.back() == 0x5a, "the ends were zeroed too");
}

TEST(copy_within_one_context) {
    Device device;
    auto *a = static_cast<char *>(allocate(device, 64));
    poke(device, a, std::vector<unsigned char>(32, 7));
    CHECK(fcm_copy(device, a + 32, device, a, 32, nullptr) == FCM_OK, "halves that touch");
    CHECK(byte_at(device, a + 32) == 7 && byte_at(device, a + 63) == 7, "the second half");
    release(device, a);
}

TEST(bad_copies_are_refused) {
    Device device;
    auto *a = static_cast<char *>(allocate(device, 64));
    const std::vector<unsigned char> before = bytes_of(64, 3);
    poke(device, a, before);
    const auto refuse = [&](const char *what, fcm_context *context, char *to, const char *from, int64_t bytes) {
        refused(FCM_INVALID_ARGUMENT, "fcm_copy_in", what,
                [&](fcm_error *e) { return fcm_copy_in(context, to, from, bytes, e); });
        refused(FCM_INVALID_ARGUMENT, "fcm_copy_out", what,
                [&](fcm_error *e) { return fcm_copy_out(context, to, from, bytes, e); });
        refused(FCM_INVALID_ARGUMENT, "fcm_copy", what,
                [&](fcm_error *e) { return fcm_copy(context, to, device, from, bytes, e); });
        refused(FCM_INVALID_ARGUMENT, "fcm_copy", what,
                [&](fcm_error *e) { return fcm_copy(device, to, context, from, bytes, e); });
    };
    refuse("onto itself", device, a, a, 8);
    refuse("one byte shared, forwards", device, a + 7, a, 8);
    refuse("one byte shared, backwards", device, a, a + 7, 8);
    refuse("to null", device, nullptr, a, 8);
    refuse("from null", device, a, nullptr, 8);
    refuse("-1 byte", device, a, a + 32, -1);
    refuse("INT64_MAX bytes", device, a, a + 32, INT64_MAX);
    refuse("null context", nullptr, a, a + 32, 8);
    CHECK(peek(device, a, 64) == before, "something was written");

    const auto refuse_zero = [&](const char *what, fcm_context *context, void *to, int64_t bytes) {
        refused(FCM_INVALID_ARGUMENT, "fcm_zero", what, [&](fcm_error *e) { return fcm_zero(context, to, bytes, e); });
    };
    refuse_zero("null", device, nullptr, 8);
    refuse_zero("-1 byte", device, a, -1);
    refuse_zero("INT64_MAX bytes", device, a, INT64_MAX);
    refuse_zero("null context", nullptr, a, 8);
    CHECK(peek(device, a, 64) == before, "something was zeroed");
    CHECK(fcm_copy_in(device, nullptr, nullptr, 0, nullptr) == FCM_OK, "nothing from null to null");
    CHECK(fcm_zero(device, nullptr, 0, nullptr) == FCM_OK, "nothing at null");
    release(device, a);
}
