// A simulated GPU that fails on order: every failure has a status, names device, doing and size, leaves nothing behind, and
// the context goes on as if it had not been.
#include <functional>
#include <set>

#include "cudasim/control.h"
#include "support.h"

namespace {

constexpr int64_t kClients = 3;
constexpr int64_t kN = 5000;
const fcm_matrix_block kBlocks[2] = {{20, 30, 0, 0, 0, 1.0}, {70, 60, 600, 600, 600, 1.0}};
const double kCoefficients[6] = {1.5, -0.5, 0.0, 1.5, -0.5, 0.0};

bool has(const fcm_error &error, const char *words) { return std::strstr(error.message, words) != nullptr; }

struct Operation {
    const char *function;
    std::function<fcm_status(fcm_error *)> call;
};

// Operands of every operation, always the same.
struct Operands {
    Vector<float> x, y, z, w, v{0.5f, -2.0f};
    Vector<double> norms;
    Vector<double> room;

    Operands() : x(kClients * kN), y(x.size()), z(x.size()), w(x.size()), norms(kClients, 1.0), room(1 << 16) {
        Random random(1);
        for (Vector<float> *operand : {&x, &y, &z, &w}) random.fill(*operand);
        for (float &value : z) value *= value;
    }
};

std::vector<Operation> operations(fcm_context *c, Operands &o) {
    const auto bytes = static_cast<int64_t>(o.room.size() * sizeof(double));
    return {
        {"fcm_ema",
         [=, &o](fcm_error *e) { return fcm_ema(c, kClients, kN, 0.5, o.x.data(), kN, o.y.data(), kN, e); }},
        {"fcm_compose_momentum",
         [=, &o](fcm_error *e) {
             return fcm_compose_momentum(c, kClients, kN / 2, 2, 0.5, o.x.data(), kN, o.v.data(), 0, o.y.data(), kN, e);
         }},
        {"fcm_project_compose_momentum",
         [=, &o](fcm_error *e) {
             return fcm_project_compose_momentum(c, kClients, kN / 2, 2, 0.5, o.norms.data(), 0.5, o.x.data(), kN,
                                                 o.v.data(), 0, o.y.data(), kN, e);
         }},
        {"fcm_project",
         [=, &o](fcm_error *e) { return fcm_project(c, kClients, kN, 0.5, o.norms.data(), o.x.data(), kN, e); }},
        {"fcm_storm",
         [=, &o](fcm_error *e) {
             return fcm_storm(c, kClients, kN, 0.5, o.x.data(), kN, o.z.data(), kN, o.y.data(), kN, o.norms.data(),
                              o.room.data(), bytes, e);
         }},
        {"fcm_norm",
         [=, &o](fcm_error *e) {
             return fcm_norm(c, kClients, kN, o.x.data(), kN, o.norms.data(), o.room.data(), bytes, e);
         }},
        {"fcm_vector_step",
         [=, &o](fcm_error *e) {
             return fcm_vector_step(c, kClients, kN, FCM_STEP_NORMALIZED, 0.5, o.x.data(), kN, o.w.data(), kN,
                                    o.room.data(), bytes, e);
         }},
        {"fcm_normalize",
         [=, &o](fcm_error *e) {
             return fcm_normalize(c, kClients, kN, 1.0, o.x.data(), kN, o.y.data(), kN, o.room.data(), bytes, e);
         }},
        {"fcm_adaptive_step",
         [=, &o](fcm_error *e) {
             return fcm_adaptive_step(c, kClients, kN, FCM_YOGI, 0.9, 0.99, 1e-3, 0.5, o.x.data(), kN, o.y.data(), kN,
                                      o.z.data(), kN, o.w.data(), kN, e);
         }},
        {"fcm_top_k",
         [=, &o](fcm_error *e) { return fcm_top_k(c, kClients, kN, 77, o.x.data(), kN, o.y.data(), kN, e); }},
        {"fcm_average",
         [=, &o](fcm_error *e) { return fcm_average(c, kClients, kN, nullptr, o.x.data(), kN, e); }},
        {"fcm_newton_schulz_small",
         [=, &o](fcm_error *e) {
             return fcm_newton_schulz_small(c, kClients, kBlocks, 2, kCoefficients, 2, 1.0, 0.5, o.x.data(), kN,
                                            o.y.data(), kN, o.w.data(), kN, o.room.data(), bytes, e);
         }},
        {"fcm_rearrange",
         [=, &o](fcm_error *e) {
             return fcm_rearrange(c, kClients, 50, 100, 4, o.x.data(), kN, 100, 1, o.y.data(), kN, 1, 50, e);
         }},
        {"fcm_multiply",
         [=, &o](fcm_error *e) {
             return fcm_multiply(c, kClients, 50, 40, 60, 0, 1.0, o.x.data(), kN, 60, 1, o.z.data(), kN, 40, 1, 0.0,
                                 nullptr, 0, o.y.data(), kN, nullptr, 0, e);
         }},
        {"fcm_triad",
         [=, &o](fcm_error *e) { return fcm_triad(c, kN, 0.5f, o.x.data(), o.z.data(), o.y.data(), 0, e); }},
    };
}

}  // namespace

// The first launch of an operation fails, then the second, until it has no more: each time the operation says so.
TEST(a_launch_that_fails_is_named) {
    Device device;
    Operands operands;
    std::set<std::string> kernels;
    for (const Operation &operation : operations(device, operands)) {
        int failed = 0;
        for (long long launch = 1;; ++launch) {
            CHECK(cudasim_inject("launch", 0, launch) == 0, "not understood");
            fcm_error error{};
            const fcm_status status = operation.call(&error);
            cudasim_inject("clear", 0, 0);
            if (status == FCM_OK) break;
            ++failed;
            CHECK(status == FCM_DEVICE_ERROR && error.status == status, "%s, launch %lld: status %d", operation.function,
                  launch, status);
            CHECK(std::strncmp(error.message, operation.function, std::strlen(operation.function)) == 0 &&
                      has(error, ": cudasim:0, fcm_k_") && has(error, " x ") &&
                      has(error, "cudaErrorLaunchOutOfResources"),
                  "%s, launch %lld: %s", operation.function, launch, error.message);
            CHECK(error.client == -1 && error.block == -1 && error.index == -1, "%s: a place", operation.function);
            const std::string words = error.message;
            const size_t name = words.find("fcm_k_");
            if (name != std::string::npos) kernels.insert(words.substr(name, words.find(' ', name) - name));
            if (launch > 50) break;
        }
        CHECK(failed >= 1 && failed <= 50, "%s: %d launches", operation.function, failed);
    }
    CHECK(kernels.size() >= 20, "%zu kernels", kernels.size());
}

// After failures of every kind the same operands give what they give on a device that never failed.
TEST(a_context_goes_on_after_a_failure) {
    const auto results = [](bool with_failures) {
        Device device;
        Operands operands;
        std::vector<std::vector<float>> all;
        for (size_t i = 0; i < operations(device, operands).size(); ++i) {
            Operands fresh;
            const Operation operation = operations(device, fresh)[i];
            if (with_failures) {
                Operands spoilt;
                cudasim_inject("launch", 0, 1);
                CHECK(operations(device, spoilt)[i].call(nullptr) == FCM_DEVICE_ERROR, "%s", operation.function);
            }
            fcm_error error{};
            CHECK(operation.call(&error) == FCM_OK, "%s", error.message);
            for (const Vector<float> *operand : {&fresh.x, &fresh.y, &fresh.z, &fresh.w}) {
                all.emplace_back(operand->begin(), operand->end());
            }
        }
        return all;
    };
    CHECK(results(true) == results(false), "a failure shows in what comes later");
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

// A context takes several pieces of memory; whichever of them it does not get, the others go back.
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
