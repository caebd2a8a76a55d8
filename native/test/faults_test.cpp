// A simulated GPU with injected faults: every failure returns a status, names the device, the call and the size, leaks
// nothing, and leaves the context usable.
#include <functional>
#include <set>

#include "cudasim/control.h"
#include "placed.h"

namespace {

bool has(const fcm_error &error, const char *words) { return std::strstr(error.message, words) != nullptr; }

// Calls body(operation, data) for every operation of the table.
template <class Body>
void for_operations(fcm_context *context, Body &&body) {
    const table::Size size{3, 5000};
    for (const table::Operation &operation : table::operations()) {
        const table::Parameters settings = operation.settings(size)[0];
        body(operation, settings, data_of(operation, context, size, settings, 1));
    }
}

}  // namespace

// The first launch of an operation fails, then the second, until it has no more; each time the operation must report it.
TEST(a_launch_that_fails_is_named) {
    Device device;
    std::set<std::string> kernels;
    for_operations(device, [&](const table::Operation &operation, const table::Parameters &settings, const table::Data &data) {
        int failed = 0;
        for (long long launch = 1;; ++launch) {
            Placed placed(data);
            CHECK(cudasim_inject("launch", 0, launch) == 0, "not understood");
            fcm_error error{};
            const fcm_status status = placed.run(operation, device, settings, &error);
            cudasim_inject("clear", 0, 0);
            if (status == FCM_OK) break;
            ++failed;
            CHECK(status == FCM_DEVICE_ERROR && error.status == status, "%s, launch %lld: status %d", operation.name, launch,
                  status);
            CHECK(std::strncmp(error.message, operation.function().c_str(), operation.function().size()) == 0 &&
                      has(error, ": cudasim:0, fcm_k_") && has(error, " x ") &&
                      has(error, "cudaErrorLaunchOutOfResources"),
                  "%s, launch %lld: %s", operation.name, launch, error.message);
            CHECK(error.client == -1 && error.block == -1 && error.index == -1, "%s: a place", operation.name);
            const std::string words = error.message;
            const size_t name = words.find("fcm_k_");
            if (name != std::string::npos) kernels.insert(words.substr(name, words.find(' ', name) - name));
            if (launch > 50) break;
        }
        CHECK(failed >= 1 && failed <= 50, "%s: %d launches", operation.name, failed);
    });
    CHECK(kernels.size() >= 20, "%zu kernels", kernels.size());
}

// After a failure, the same operands give the same results as on a device that never failed.
TEST(a_context_goes_on_after_a_failure) {
    Device sound;
    Device device;
    for_operations(device, [&](const table::Operation &operation, const table::Parameters &settings, const table::Data &data) {
        Placed spoilt(data);
        cudasim_inject("launch", 0, 1);
        CHECK(spoilt.run(operation, device, settings) == FCM_DEVICE_ERROR, "%s", operation.name);
        Placed after(data), expected(data);
        fcm_error error{};
        CHECK(after.run(operation, device, settings, &error) == FCM_OK, "%s", error.message);
        CHECK(expected.run(operation, sound, settings, &error) == FCM_OK, "%s", error.message);
        const auto got = after.values();
        const auto wanted = expected.values();
        for (size_t i = 0; i < data.operands().size(); ++i) {
            if (data.operands()[i].use == table::Use::kRoom) continue;
            CHECK(got.bytes(i) == wanted.bytes(i), "%s: a failure shows in what comes later", operation.name);
        }
    });
}

TEST(no_memory_is_said_with_device_and_size) {
    const long long before = cudasim_live_bytes(0);
    {
        Device device;
        const long long own = cudasim_live_bytes(0);
        int nowhere = 0;
        void *const untouched = &nowhere;
        void *address = untouched;
        fcm_error error{};
        CHECK(cudasim_inject("malloc", 0, 1) == 0, "not understood");
        CHECK(fcm_buffer_allocate(device, 123456, &address, &error) == FCM_OUT_OF_MEMORY, "%s", error.message);
        CHECK(error.status == FCM_OUT_OF_MEMORY && has(error, "fcm_buffer_allocate: cudasim:0, ") && has(error, "123456"),
              "%s", error.message);
        CHECK(address == untouched, "the address was written");
        int64_t live = -1;
        CHECK(fcm_live_bytes(device, &live, nullptr) == FCM_OK && live == 0, "%ld bytes are live", long(live));
        CHECK(fcm_buffer_allocate(device, 123456, &address, &error) == FCM_OK, "%s", error.message);
        CHECK(fcm_buffer_free(device, address, &error) == FCM_OK, "%s", error.message);
        CHECK(fcm_synchronize(device, &error) == FCM_OK, "%s", error.message);
        CHECK(cudasim_live_bytes(0) == own, "%lld bytes are left", cudasim_live_bytes(0) - own);
        address = untouched;
        CHECK(cudasim_inject("malloc", 0, 1) == 0, "not understood");
        CHECK(fcm_host_allocate(device, 777, &address, &error) == FCM_OUT_OF_MEMORY, "%s", error.message);
        CHECK(has(error, "fcm_host_allocate: cudasim:0, ") && has(error, "777"), "%s", error.message);
        CHECK(address == untouched, "the address was written");
    }
    CHECK(cudasim_live_bytes(0) == before, "%lld bytes are left", cudasim_live_bytes(0) - before);
}

// A context makes several allocations; if any of them fails, the others are freed.
TEST(half_a_context_is_taken_apart) {
    const long long before = cudasim_live_bytes(0);
    int failed = 0;
    for (long long after = 1; after <= 20; ++after) {
        CHECK(cudasim_inject("malloc", 0, after) == 0, "not understood");
        fcm_context *context = nullptr;
        fcm_error error{};
        const fcm_status status = fcm_context_create(FCM_CUDASIM, 0, 1, FCM_ISA_AUTO, &context, &error);
        cudasim_inject("clear", 0, 0);
        if (status == FCM_OK) {
            fcm_context_destroy(context);
            break;
        }
        ++failed;
        CHECK(status == FCM_OUT_OF_MEMORY && context == nullptr, "status %d", status);
        CHECK(has(error, "fcm_context_create: cudasim:0, "), "%s", error.message);
        CHECK(cudasim_live_bytes(0) == before, "%lld bytes are left", cudasim_live_bytes(0) - before);
    }
    CHECK(failed >= 3 && failed < 20, "%d pieces", failed);
    CHECK(cudasim_live_bytes(0) == before, "%lld bytes are left", cudasim_live_bytes(0) - before);
}

TEST(a_copy_that_fails_is_named) {
    Device one;
    Device two;
    void *a = nullptr;
    void *b = nullptr;
    CHECK(fcm_buffer_allocate(one, 4321, &a, nullptr) == FCM_OK && fcm_buffer_allocate(two, 4321, &b, nullptr) == FCM_OK,
          "allocate");
    std::vector<char> host(4321);
    const std::pair<const char *, std::function<fcm_status(fcm_error *)>> copies[] = {
        {"fcm_copy_in", [&](fcm_error *e) { return fcm_copy_in(one, a, host.data(), 4321, e); }},
        {"fcm_copy_out", [&](fcm_error *e) { return fcm_copy_out(one, host.data(), a, 4321, e); }},
        {"fcm_copy", [&](fcm_error *e) { return fcm_copy(two, b, one, a, 4321, e); }},
    };
    for (const auto &[function, copy] : copies) {
        CHECK(cudasim_inject("copy", 0, 1) == 0, "not understood");
        fcm_error error{};
        CHECK(copy(&error) == FCM_DEVICE_ERROR, "%s", function);
        CHECK(std::strncmp(error.message, function, std::strlen(function)) == 0 && has(error, ": cudasim:0, ") &&
                  has(error, "4321 bytes"),
              "%s", error.message);
        CHECK(copy(&error) == FCM_OK, "%s: %s", function, error.message);
    }
}

TEST(devices_that_are_not_there_are_unsupported) {
    int32_t count = 0;
    CHECK(fcm_device_count(&count, nullptr) == FCM_OK && count >= 2, "%d devices", count);
    for (int32_t i = 0; i < count; ++i) {
        fcm_device_info info{};
        CHECK(fcm_device_describe(i, &info, nullptr) == FCM_OK, "device %d", i);
        CHECK(info.kind == FCM_CUDASIM && info.ordinal == i && info.available == 1 && info.memory_bytes > 0 &&
                  std::strcmp(info.name, "simulated GPU") == 0 && info.reason[0] == '\0',
              "device %d: %s, %s", i, info.name, info.reason);
    }
    const auto refuse = [](fcm_status wanted, int32_t kind, int32_t ordinal) {
        refused(wanted, "fcm_context_create", "a device", [&](fcm_error *e) {
            fcm_context *context = nullptr;
            return fcm_context_create(kind, ordinal, 1, FCM_ISA_AUTO, &context, e);
        });
    };
    refuse(FCM_UNSUPPORTED, FCM_CUDASIM, count);
    refuse(FCM_UNSUPPORTED, FCM_CPU, 0);
    refuse(FCM_UNSUPPORTED, FCM_CUDA, 0);
    refuse(FCM_INVALID_ARGUMENT, 3, 0);
    refuse(FCM_INVALID_ARGUMENT, FCM_CUDASIM, -1);
    int32_t kind = -1;
    refused(FCM_UNSUPPORTED, "fcm_backend_load", "a backend of a backend",
            [&](fcm_error *e) { return fcm_backend_load("libother.so", &kind, e); });
}
