// What a machine with several GPUs does to a program: contexts that cost memory, GPUs that another process has, and errors
// that others leave behind. sim/include/cudasim/runtime.h names the sources of this behaviour.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <initializer_list>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "check.h"
#include "cudasim/control.h"
#include "fedcomuon.h"
#include "iteration.h"

namespace {

bool has(const fcm_error &error, const char *words) { return std::strstr(error.message, words) != nullptr; }

// A new simulated machine with variables of its own (names without their prefix).
class Simulated {
   public:
    explicit Simulated(std::initializer_list<std::pair<const std::string, std::string>> variables = {})
        : variables_(variables) {
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

// Device 0 is current on a new thread.
void on_new_thread(const std::function<void()> &body) { std::thread(body).join(); }

class Context {
   public:
    explicit Context(int32_t ordinal) {
        fcm_error error{};
        CHECK(fcm_context_create(FCM_CUDASIM, ordinal, 1, FCM_ISA_AUTO, &context_, &error) == FCM_OK, "%s", error.message);
    }
    ~Context() { fcm_context_destroy(context_); }
    Context(const Context &) = delete;
    Context &operator=(const Context &) = delete;
    operator fcm_context *() const { return context_; }

   private:
    fcm_context *context_ = nullptr;
};

class Room {
   public:
    Room(fcm_context *context, int64_t count) : context_(context) {
        fcm_error error{};
        CHECK(fcm_buffer_allocate(context, count * 4, &address_, &error) == FCM_OK, "%s", error.message);
    }
    ~Room() { (void)fcm_buffer_free(context_, address_, nullptr); }  // also of a device that has failed
    Room(const Room &) = delete;
    Room &operator=(const Room &) = delete;
    float *data() const { return static_cast<float *>(address_); }

   private:
    fcm_context *context_;
    void *address_ = nullptr;
};

// Every kind of call that a thread of a device makes: memory, copies, kernels, events, and the stream for other libraries.
void use(fcm_context *context) {
    constexpr int64_t n = 300;
    fcm_error error{};
    const auto fine = [&](fcm_status status) { CHECK(status == FCM_OK, "%s", error.message); };
    const Room x(context, n), y(context, n);
    const std::vector<float> ones(n, 1.0f);
    std::vector<float> back(n);
    fine(fcm_copy_in(context, x.data(), ones.data(), n * 4, &error));
    fine(fcm_ema(context, 1, n, 1.0, x.data(), n, y.data(), n, &error));
    fcm_event *event = nullptr;
    fine(fcm_event_create(context, &event, &error));
    fine(fcm_event_record(event, &error));
    fine(fcm_event_wait(context, event, &error));
    void *host = nullptr;
    fine(fcm_host_allocate(context, 64, &host, &error));
    fine(fcm_host_free(context, host, &error));
    fine(fcm_copy_out(context, back.data(), y.data(), n * 4, &error));
    CHECK(back == ones, "%g", double{back[0]});
    fcm_event_destroy(event);
    fine(fcm_synchronize(context, &error));
}

}  // namespace

TEST(a_thread_of_one_device_makes_no_context_on_another) {
    const Simulated machine;
    on_new_thread([] {
        const Context context(1);
        use(context);
    });
    CHECK(cudasim_contexts(1) == 1, "%d contexts on device 1", cudasim_contexts(1));
    CHECK(cudasim_contexts(0) == 0, "%d contexts on device 0", cudasim_contexts(0));
}

// A cleaner destroys what its owner has left.
TEST(what_another_thread_destroys_makes_no_context_either) {
    const Simulated machine;
    fcm_context *context = nullptr;
    fcm_event *event = nullptr;
    on_new_thread([&] {
        CHECK(fcm_context_create(FCM_CUDASIM, 2, 1, FCM_ISA_AUTO, &context, nullptr) == FCM_OK, "no context");
        CHECK(fcm_event_create(context, &event, nullptr) == FCM_OK, "no event");
    });
    on_new_thread([&] { fcm_event_destroy(event); });
    on_new_thread([&] { fcm_context_destroy(context); });
    CHECK(cudasim_contexts(-1) == 1, "%d contexts", cudasim_contexts(-1));
    CHECK(cudasim_live_bytes(-1) == 0, "%lld bytes", cudasim_live_bytes(-1));
}

TEST(devices_are_listed_without_contexts) {
    const Simulated machine;
    on_new_thread([] {
        fcm_device_info info{};
        CHECK(fcm_device_describe(3, &info, nullptr) == FCM_OK && info.available == 1, "%s", info.reason);
    });
    CHECK(cudasim_contexts(-1) == 0, "%d contexts", cudasim_contexts(-1));
}

// The device that was current, and had a context, is current again: another library works with it.
TEST(a_current_device_with_a_context_stays_current) {
    const Simulated machine;
    on_new_thread([] {
        const Context context(1);
        CHECK(cudasim::cudaSetDevice(0) == cudasim::cudaSuccess, "device 0");
        use(context);
        int current = -1;
        CHECK(cudasim::cudaGetDevice(&current) == cudasim::cudaSuccess && current == 0, "device %d", current);
    });
}

TEST(a_context_makes_its_device_current_for_its_thread) {
    const Simulated machine;
    on_new_thread([] {
        const Context context(1);
        int current = -1;
        CHECK(cudasim::cudaGetDevice(&current) == cudasim::cudaSuccess && current == 1, "device %d", current);
    });
}

TEST(a_device_that_cannot_be_used_does_not_disturb_another) {
    for (const char *why : {"EXCLUSIVE", "SICK"}) {
        const Simulated machine({{why, "0"}});
        on_new_thread([] {
            const Context context(1);
            use(context);
        });
        CHECK(cudasim_contexts(-1) == 1 && cudasim_live_bytes(-1) == 0, "%s: %d contexts, %lld bytes", why,
              cudasim_contexts(-1), cudasim_live_bytes(-1));
    }
}

// A library on the same thread ignores an error, which CUDA keeps for the next caller of cudaGetLastError.
TEST(an_error_that_others_ignored_is_not_blamed_on_a_launch) {
    const Simulated machine;
    on_new_thread([] {
        const Context context(0);
        void *memory = nullptr;
        CHECK(cudasim::cudaMalloc(&memory, size_t{1} << 50) == cudasim::cudaErrorMemoryAllocation, "it fits");
        use(context);
        CHECK(cudasim::cudaSetDevice(99) == cudasim::cudaErrorInvalidDevice, "there is a device 99");
        use(context);
    });
}

// Unlike those, a fault of the device stays: no call succeeds, and memory is still released.
TEST(a_fault_of_the_device_is_not_forgotten) {
    const Simulated machine;
    on_new_thread([] {
        fcm_error error{};
        const Context context(0);
        const Room x(context, 300);
        void *stream = nullptr;
        CHECK(fcm_context_stream(context, &stream, &error) == FCM_OK, "%s", error.message);
        const auto fault = [] { throw std::runtime_error("an illegal access of another library"); };
        CHECK(cudasim::enqueue(static_cast<cudasim::cudaStream_t>(stream), "a kernel", fault) == cudasim::cudaSuccess, "refused");
        for (int i = 0; i < 3; ++i) {
            CHECK(fcm_synchronize(context, &error) == FCM_DEVICE_ERROR && has(error, "illegal access of another library"), "%s",
                  error.message);
            CHECK(fcm_ema(context, 1, 300, 1.0, x.data(), 300, x.data(), 300, &error) != FCM_OK, "a launch succeeds");
        }
        void *more = nullptr;
        CHECK(fcm_buffer_allocate(context, 8, &more, &error) == FCM_DEVICE_ERROR, "%s", error.message);
    });
    CHECK(cudasim_live_bytes(-1) == 0, "%lld bytes", cudasim_live_bytes(-1));
}

namespace {

int lines_with(const std::string &file, const char *words) {
    std::ifstream lines(file);
    int count = 0;
    for (std::string line; std::getline(lines, line);) count += line.find(words) != std::string::npos ? 1 : 0;
    return count;
}

// Copies between two devices, in both directions, of one byte and of more than two slots; returns the staged copies of CUDA.
int staged_copies(const char *peers) {
    const Simulated machine({{"PEERS", peers}});
    const std::string trace = "machines_test." + std::to_string(getpid()) + ".trace";
    CHECK(cudasim_trace(trace.c_str()) == 0, "no trace");
    on_new_thread([] {
        fcm_error error{};
        const auto fine = [&](fcm_status status) { CHECK(status == FCM_OK, "%s", error.message); };
        const Context here(0), there(1);
        for (const int64_t n : {int64_t{1}, int64_t{1000}, int64_t{3'500'001}}) {
            const Room x(here, n), y(there, n), z(here, n);
            std::vector<float> values(static_cast<size_t>(n)), back(values.size());
            for (int64_t j = 0; j < n; ++j) values[static_cast<size_t>(j)] = static_cast<float>(j % 1048573);
            for (int round = 0; round < 2; ++round) {
                values[0] += 1.0f;
                fine(fcm_copy_in(here, x.data(), values.data(), n * 4, &error));
                fine(fcm_copy(there, y.data(), here, x.data(), n * 4, &error));
                fine(fcm_zero(here, x.data(), n * 4, &error));  // after the copy has read it
                fine(fcm_copy(here, z.data(), there, y.data(), n * 4, &error));
                fine(fcm_zero(there, y.data(), n * 4, &error));
                fine(fcm_copy_out(here, back.data(), z.data(), n * 4, &error));
                CHECK(back == values, "%s of %ld", "a copy", long(n));
            }
        }
    });
    (void)cudasim_trace(nullptr);
    CHECK(cudasim_live_bytes(-1) == 0, "%lld bytes", cudasim_live_bytes(-1));
    const int count = lines_with(trace, " staged copy");
    (void)std::remove(trace.c_str());
    return count;
}

}  // namespace

TEST(copies_between_peers_are_direct) { CHECK(staged_copies("on") == 0, "%d are not", staged_copies("on")); }

// CUDA may block the caller in a copy that it stages, so we do it: through pinned memory, without waiting.
TEST(without_peers_no_copy_is_left_to_cuda_to_stage) { CHECK(staged_copies("off") == 0, "%d are", staged_copies("off")); }

namespace {

// The mean of a row on each of two devices, on the first; returns its status after all work is done.
fcm_status mean_of_two(const Context &here, const Context &there, fcm_error *error) {
    constexpr int64_t n = 300;
    const Room x(here, n), y(there, n);
    CHECK(fcm_synchronize(there, error) == FCM_OK, "%s", error->message);
    const float *rows[] = {x.data(), y.data()};
    float *targets[] = {x.data(), y.data()};
    const fcm_status status = fcm_average_rows(here, 2, n, nullptr, 2, rows, 2, targets, error);
    return status == FCM_OK ? fcm_synchronize(here, error) : status;
}

// The largest of the exponents on two devices, and the mean of sums on them, on the first.
fcm_status exponents_of_two(const Context &here, const Context &there, fcm_error *error) {
    constexpr int64_t n = 300;
    const Room x(here, n), y(there, n);
    CHECK(fcm_synchronize(there, error) == FCM_OK, "%s", error->message);
    const auto *of_there = reinterpret_cast<const uint8_t *>(y.data());
    auto *to = reinterpret_cast<uint8_t *>(x.data());
    const uint8_t *parts[] = {to, of_there};
    const fcm_status status = fcm_mean_combine(here, 2, n, parts, to, error);
    return status == FCM_OK ? fcm_synchronize(here, error) : status;
}
fcm_status sums_of_two(const Context &here, const Context &there, fcm_error *error) {
    constexpr int64_t n = 300;
    const Room x(here, 4 * n), y(there, 2 * n);
    CHECK(fcm_synchronize(there, error) == FCM_OK, "%s", error->message);
    const int64_t *parts[] = {reinterpret_cast<const int64_t *>(x.data()), reinterpret_cast<const int64_t *>(y.data())};
    float *targets[] = {x.data() + 3 * n};
    const fcm_status status = fcm_mean_finish(here, 2, n, 2, 2.0, parts, reinterpret_cast<const uint8_t *>(x.data() + 2 * n), 1,
                                              targets, error);
    return status == FCM_OK ? fcm_synchronize(here, error) : status;
}

constexpr fcm_status (*kMeansOfTwo[])(const Context &, const Context &, fcm_error *) = {mean_of_two, exponents_of_two,
                                                                                        sums_of_two};

}  // namespace

// A kernel that reads the memory of another GPU without having been given access to it fails, and here as well.
TEST(a_row_on_a_device_that_is_not_reached_is_a_fault) {
    for (const char *peers : {"on", "off"}) {
        for (const auto mean : kMeansOfTwo) {
            const Simulated machine({{"PEERS", peers}});
            on_new_thread([mean] {
                const Context here(0), there(1);
                fcm_error error{};
                CHECK(mean(here, there, &error) == FCM_DEVICE_ERROR && has(error, "illegal address"), "%s", error.message);
            });
        }
    }
}

TEST(reaching_gives_access_where_the_machine_allows_it) {
    for (const bool peers : {true, false}) {
        const Simulated machine({{"PEERS", peers ? "on" : "off"}});
        on_new_thread([peers] {
            const Context here(0), there(1), also_here(0);
            fcm_error error{};
            int32_t reaches = -1;
            CHECK(fcm_context_reaches(here, also_here, &reaches, &error) == FCM_OK && reaches == 1, "its own memory");
            CHECK(fcm_context_reaches(here, there, &reaches, &error) == FCM_OK && reaches == (peers ? 1 : 0), "%d", reaches);
            if (!peers) return;
            for (const auto mean : kMeansOfTwo) CHECK(mean(here, there, &error) == FCM_OK, "%s", error.message);
            // Access is not mutual: the other device has not been given any.
            CHECK(mean_of_two(there, here, &error) == FCM_DEVICE_ERROR, "%s", error.message);
        });
    }
}

TEST(a_device_that_cannot_be_used_says_so) {
    const Simulated machine({{"EXCLUSIVE", "0,2"}});
    on_new_thread([] {
        fcm_context *context = nullptr;
        fcm_error error{};
        CHECK(fcm_context_create(FCM_CUDASIM, 2, 1, FCM_ISA_AUTO, &context, &error) == FCM_DEVICE_ERROR, "it can be used");
        CHECK(has(error, "cudasim:2, cudaSetDevice") && has(error, "cudaErrorDevicesUnavailable"), "%s", error.message);
        const Context sound(1);  // on the same thread
        use(sound);
    });
    CHECK(cudasim_contexts(-1) == 1, "%d contexts", cudasim_contexts(-1));
}

// ---- Memory ----

namespace {

// The results of Newton-Schulz on GPU 0 of the machine that is simulated now.
std::vector<float> orthogonalized() {
    const Context device(0);
    constexpr int64_t kClients = 12;
    const std::vector<double> steps = {3.4445, -4.7750, 2.0315, 2.0, -1.5, 0.5};
    const fcm_matrix_block blocks[] = {
        {40, 50, 0, 0, 0, 1.0, 1}, {10, 20, 2000, 2000, 2000, 1.0, 0}, {60, 30, 2200, 2200, 2200, 1.0, 1}};
    constexpr int64_t kLength = 4000;
    std::vector<float> values(kClients * kLength);
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(static_cast<int>(i * 2654435761u % 2000) - 1000);
    const auto bytes = static_cast<int64_t>(values.size() * sizeof(float));
    fcm_error error{};
    const auto ok = [&](fcm_status status) { CHECK(status == FCM_OK, "%s", error.message); };
    const Iteration iteration(steps.data(), 2);
    void *m = nullptr;  // freed with the context
    void *workspace = nullptr;
    int64_t room = 0;
    ok(fcm_buffer_allocate(device, bytes, &m, &error));
    ok(fcm_copy_in(device, m, values.data(), bytes, &error));
    ok(fcm_newton_schulz_workspace(device, kClients, blocks, 3, iteration, &room, &error));
    ok(fcm_buffer_allocate(device, room, &workspace, &error));
    ok(fcm_newton_schulz_prepare(device, kClients, blocks, 3, iteration, workspace, room, &error));
    auto *matrices = static_cast<float *>(m);
    ok(fcm_newton_schulz(device, kClients, blocks, 3, iteration, 0.0, matrices, kLength, matrices, kLength, nullptr, 0, workspace,
                         room, &error));
    ok(fcm_copy_out(device, values.data(), m, bytes, &error));
    return values;
}

}  // namespace

// A GPU with little memory processes large matrices one after the other, and some clients at a time: 32 KiB for a client, with 16
// clients, are less than either matrix takes. The first is done for ten clients and for two, the second for all.
TEST(a_small_gpu_orthogonalizes_in_passes) {
    std::vector<float> results[2];
    int launches[2];
    for (const bool small : {true, false}) {
        const Simulated machine({{"MEMORY", small ? "2097152" : "4294967296"}});
        const std::string trace = "machines_test." + std::to_string(getpid()) + ".passes";
        CHECK(cudasim_trace(trace.c_str()) == 0, "no trace");
        on_new_thread([&] { results[small] = orthogonalized(); });
        (void)cudasim_trace(nullptr);
        launches[small] = lines_with(trace, "fcm_k_schulz_load");
        (void)std::remove(trace.c_str());
    }
    CHECK(launches[false] == 1 && launches[true] == 3, "%d and %d passes", launches[false], launches[true]);
    CHECK(std::memcmp(results[0].data(), results[1].data(), results[0].size() * sizeof(float)) == 0, "another result");
}
