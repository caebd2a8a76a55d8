// Loading of backends, and that every call with a backend's context arrives there with its arguments in the right order.
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>

#include "../common/functions.h"
#include "check.h"
#include "fedcomuon.h"

namespace {

struct Destroy {
    void operator()(fcm_context *context) const { fcm_context_destroy(context); }
    void operator()(fcm_event *event) const { fcm_event_destroy(event); }
};
using Context = std::unique_ptr<fcm_context, Destroy>;
using Event = std::unique_ptr<fcm_event, Destroy>;

// Loads a fixture, which may be done repeatedly, and checks that it has the expected kind.
void load(const char *path, int32_t wanted) {
    int32_t kind = -1;
    fcm_error error{};
    CHECK(fcm_backend_load(path, &kind, &error) == FCM_OK, "%s", error.message);
    CHECK(kind == wanted, "%s is of kind %d", path, kind);
}

void refused(const char *path, fcm_status wanted, const char *words) {
    int32_t kind = -1;
    fcm_error error{};
    const fcm_status status = fcm_backend_load(path, &kind, &error);
    CHECK(status == wanted && error.status == wanted, "%s: status %d", path, status);
    CHECK(std::strstr(error.message, words) != nullptr, "'%s' does not say '%s'", error.message, words);
    CHECK(kind == -1, "a kind has been written");
    CHECK(fcm_backend_load(path, &kind, nullptr) == wanted, "%s without an error", path);
}

Context open(int32_t kind, int32_t ordinal) {
    fcm_context *context = nullptr;
    fcm_error error{};
    CHECK(fcm_context_create(kind, ordinal, 1, FCM_ISA_AUTO, &context, &error) == FCM_OK, "%s", error.message);
    return Context{context};
}

Event make_event(const Context &context) {
    fcm_event *event = nullptr;
    fcm_error error{};
    CHECK(fcm_event_create(context.get(), &event, &error) == FCM_OK, "%s", error.message);
    return Event{event};
}

// The last call of the fake backend.
std::string last_call(const char *path = FAKE_CUDASIM) {
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    if (handle == nullptr) return "not loaded";
    const auto words = reinterpret_cast<const char *(*)()>(dlsym(handle, "fake_last_call"));
    std::string result = words == nullptr ? "no fake" : words();
    dlclose(handle);
    return result;
}

// A value that identifies its argument.
template <class T>
T argument(size_t place) {
    if constexpr (std::is_pointer_v<T>) {
        return reinterpret_cast<T>(static_cast<uintptr_t>(place) << 12);
    } else if constexpr (std::is_floating_point_v<T>) {
        return static_cast<T>(place) + static_cast<T>(0.5);
    } else {
        return static_cast<T>(place);
    }
}

template <class T>
std::string spelled(size_t place) {
    char text[40];
    if constexpr (std::is_pointer_v<T>) {
        std::snprintf(text, sizeof text, " %p", reinterpret_cast<void *>(static_cast<uintptr_t>(place) << 12));
    } else {
        std::snprintf(text, sizeof text, " %g", static_cast<double>(argument<T>(place)));
    }
    return text;
}

template <class Self, class... Arguments, size_t... Places>
void arrives(const char *name, fcm_status (*function)(Self *, Arguments...), fcm_context *context,
             std::index_sequence<Places...>) {
    const std::string wanted = name + std::string(" context1") + (spelled<Arguments>(Places + 1) + ... + "");
    const fcm_status status = function(context, argument<Arguments>(Places + 1)...);
    CHECK(status == FCM_OK, "%s: status %d", name, status);
    CHECK(last_call() == wanted, "'%s' arrived as '%s'", wanted.c_str(), last_call().c_str());
}

template <class... Arguments>
void forwarded(const char *name, fcm_status (*function)(fcm_context *, Arguments...), fcm_context *context) {
    arrives(name, function, context, std::index_sequence_for<Arguments...>{});
}

template <class... Arguments>
void forwarded(const char *name, fcm_status (*function)(const fcm_context *, Arguments...), fcm_context *context) {
    arrives(name, function, context, std::index_sequence_for<Arguments...>{});
}

std::set<std::string> listed() {
    std::set<std::string> names;
#define NAME(name) names.insert("fcm_" #name);
    FCM_EVERY_FUNCTION(NAME)
#undef NAME
    return names;
}

}  // namespace

TEST(the_table_has_every_function_of_the_header) {
    std::ifstream file(FCM_HEADER);
    std::stringstream text;
    text << file.rdbuf();
    const std::string header = text.str();
    std::set<std::string> declared;
    // A name precedes the first parenthesis after FCM_API.
    const std::string mark = "\nFCM_API ";
    for (size_t at = header.find(mark); at != std::string::npos; at = header.find(mark, at + 1)) {
        const size_t end = header.find('(', at);
        const size_t begin = header.find_last_of(" *\n", end) + 1;
        declared.insert(header.substr(begin, end - begin));
    }
    CHECK(declared.size() > 40, "%zu functions found in %s", declared.size(), FCM_HEADER);
    for (const auto &name : declared) CHECK(listed().count(name) == 1, "functions.h does not list %s", name.c_str());
    for (const auto &name : listed()) CHECK(declared.count(name) == 1, "the header does not declare %s", name.c_str());
}

TEST(every_operation_is_forwarded_with_its_arguments_in_place) {
    load(FAKE_CUDASIM, FCM_CUDASIM);
    const Context context = open(FCM_CUDASIM, 1);
    CHECK(last_call() == "fcm_context_create 2 1 1 0", "%s", last_call().c_str());
#define FORWARDED(name) forwarded("fcm_" #name, &fcm_##name, context.get());
    FCM_EVERY_FORWARDED(FORWARDED)
#undef FORWARDED
}

// Functions that are answered without a backend, or that take more than one handle; other tests in this file cover them.
TEST(only_these_are_not_forwarded) {
    std::set<std::string> others = listed();
#define FORWARDED(name) others.erase("fcm_" #name);
    FCM_EVERY_FORWARDED(FORWARDED)
#undef FORWARDED
    const std::set<std::string> expected{
        "fcm_abi_version",    "fcm_build_info",      "fcm_backend_load", "fcm_device_count", "fcm_device_describe",
        "fcm_context_create", "fcm_context_destroy", "fcm_context_reaches", "fcm_event_create", "fcm_event_destroy", "fcm_event_record",
        "fcm_event_wait",     "fcm_copy"};
    for (const auto &name : others) CHECK(expected.count(name) == 1, "%s needs a test of its own", name.c_str());
}

TEST(a_context_of_a_backend_ends_there) {
    load(FAKE_CUDASIM, FCM_CUDASIM);
    open(FCM_CUDASIM, 0).reset();
    CHECK(last_call() == "fcm_context_destroy context0", "%s", last_call().c_str());
    fcm_context *context = nullptr;
    fcm_error error{};
    CHECK(fcm_context_create(FCM_CUDASIM, 7, 1, FCM_ISA_AUTO, &context, &error) == FCM_DEVICE_ERROR, "device 7");
    CHECK(std::strcmp(error.message, "fake: no device 7") == 0, "%s", error.message);
    CHECK(context == nullptr, "a context has been written");
}

TEST(copies_find_their_way) {
    load(FAKE_CUDASIM, FCM_CUDASIM);
    load(FAKE_CUDA, FCM_CUDA);
    const Context cpu = open(FCM_CPU, 0);
    const Context here = open(FCM_CUDASIM, 0);
    const Context there = open(FCM_CUDASIM, 1);
    const Context foreign = open(FCM_CUDA, 0);
    std::array<char, 8> from{"abcdefg"};
    std::array<char, 8> to{};
    char wanted[200];

    CHECK(fcm_copy(there.get(), to.data(), here.get(), from.data(), 5, nullptr) == FCM_OK, "within a backend");
    std::snprintf(wanted, sizeof wanted, "fcm_copy context1 %p context0 %p 5 (nil)", static_cast<void *>(to.data()),
                  static_cast<void *>(from.data()));
    CHECK(last_call() == wanted, "'%s', not '%s'", last_call().c_str(), wanted);

    CHECK(fcm_copy(there.get(), to.data(), cpu.get(), from.data(), 5, nullptr) == FCM_OK, "in");
    std::snprintf(wanted, sizeof wanted, "fcm_copy_in context1 %p %p 5 (nil)", static_cast<void *>(to.data()),
                  static_cast<void *>(from.data()));
    CHECK(last_call() == wanted, "'%s', not '%s'", last_call().c_str(), wanted);

    CHECK(fcm_copy(cpu.get(), to.data(), here.get(), from.data(), 5, nullptr) == FCM_OK, "out");
    std::snprintf(wanted, sizeof wanted, "fcm_copy_out context0 %p %p 5 (nil)", static_cast<void *>(to.data()),
                  static_cast<void *>(from.data()));
    CHECK(last_call() == wanted, "'%s', not '%s'", last_call().c_str(), wanted);

    CHECK(fcm_copy(cpu.get(), to.data(), cpu.get(), from.data(), 8, nullptr) == FCM_OK && to == from, "on the CPU");

    fcm_error error{};
    CHECK(fcm_copy(foreign.get(), to.data(), here.get(), from.data(), 5, &error) == FCM_UNSUPPORTED, "between backends");
    CHECK(std::strstr(error.message, "do not know each other") != nullptr, "%s", error.message);
    CHECK(fcm_copy(nullptr, to.data(), here.get(), from.data(), 5, &error) == FCM_INVALID_ARGUMENT, "to nowhere");
    CHECK(fcm_copy(here.get(), to.data(), nullptr, from.data(), 5, &error) == FCM_INVALID_ARGUMENT, "from nowhere");
}

TEST(contexts_of_one_library_may_reach_each_other) {
    load(FAKE_CUDASIM, FCM_CUDASIM);
    load(FAKE_CUDA, FCM_CUDA);
    const Context cpu = open(FCM_CPU, 0), second = open(FCM_CPU, 1);
    const Context here = open(FCM_CUDASIM, 0), there = open(FCM_CUDASIM, 1), foreign = open(FCM_CUDA, 0);
    const auto reaches = [](const Context &context, const Context &other) {
        int32_t answer = -1;
        CHECK(fcm_context_reaches(context.get(), other.get(), &answer, nullptr) == FCM_OK, "status");
        return answer;
    };
    CHECK(reaches(here, there) == 1, "the backend says so");
    CHECK(last_call() == "fcm_context_reaches context0 context1", "%s", last_call().c_str());
    CHECK(reaches(cpu, second) == 1 && reaches(cpu, cpu) == 1, "the CPU has one memory");
    CHECK(reaches(cpu, here) == 0 && reaches(here, cpu) == 0 && reaches(here, foreign) == 0, "between libraries");
    int32_t answer = -1;
    CHECK(fcm_context_reaches(cpu.get(), second.get(), nullptr, nullptr) == FCM_INVALID_ARGUMENT, "no place");
    CHECK(fcm_context_reaches(nullptr, cpu.get(), &answer, nullptr) == FCM_INVALID_ARGUMENT, "no context");
    CHECK(fcm_context_reaches(cpu.get(), nullptr, &answer, nullptr) == FCM_INVALID_ARGUMENT, "no other");
    CHECK(answer == -1, "written");
}

TEST(events_keep_the_order_between_devices) {
    load(FAKE_CUDASIM, FCM_CUDASIM);
    load(FAKE_CUDA, FCM_CUDA);
    const Context cpu = open(FCM_CPU, 0);
    const Context here = open(FCM_CUDASIM, 0);
    const Context there = open(FCM_CUDASIM, 1);
    const Context foreign = open(FCM_CUDA, 0);
    {
        const Event event = make_event(here);
        CHECK(last_call() == "fcm_event_create context0", "%s", last_call().c_str());
        CHECK(fcm_event_record(event.get(), nullptr) == FCM_OK, "record");
        CHECK(last_call() == "fcm_event_record event0", "%s", last_call().c_str());
        CHECK(fcm_event_wait(there.get(), event.get(), nullptr) == FCM_OK, "wait");
        CHECK(last_call() == "fcm_event_wait context1 event0", "%s", last_call().c_str());
        // Neither the CPU nor another library can wait for the event, so all of the work is waited for.
        for (const Context *other : {&cpu, &foreign}) {
            CHECK(fcm_event_record(event.get(), nullptr) == FCM_OK, "record");
            CHECK(fcm_event_wait(other->get(), event.get(), nullptr) == FCM_OK, "wait");
            CHECK(last_call() == "fcm_synchronize context0 (nil)", "%s", last_call().c_str());
        }
    }
    CHECK(last_call() == "fcm_event_destroy event0", "%s", last_call().c_str());
    const Event event = make_event(cpu);
    CHECK(fcm_event_record(event.get(), nullptr) == FCM_OK, "record");
    CHECK(fcm_event_wait(there.get(), event.get(), nullptr) == FCM_OK, "a mark of the CPU is always passed");
    CHECK(fcm_event_wait(cpu.get(), event.get(), nullptr) == FCM_OK, "a mark of the CPU is always passed");
    CHECK(last_call() == "fcm_event_destroy event0", "%s", last_call().c_str());
    CHECK(fcm_event_create(nullptr, nullptr, nullptr) == FCM_INVALID_ARGUMENT, "null");
    CHECK(fcm_event_record(nullptr, nullptr) == FCM_INVALID_ARGUMENT, "null");
    CHECK(fcm_event_wait(cpu.get(), nullptr, nullptr) == FCM_INVALID_ARGUMENT, "null");
    CHECK(fcm_event_wait(nullptr, event.get(), nullptr) == FCM_INVALID_ARGUMENT, "null");
    fcm_event_destroy(nullptr);
}

TEST(devices_of_backends_join_the_list) {
    const auto list = [] {
        std::string all;
        int32_t count = 0;
        CHECK(fcm_device_count(&count, nullptr) == FCM_OK, "count");
        for (int32_t i = 0; i < count; ++i) {
            fcm_device_info info{};
            CHECK(fcm_device_describe(i, &info, nullptr) == FCM_OK, "device %d", i);
            CHECK((info.reason[0] == 0) == (info.available == 1), "device %d: '%s'", i, info.reason);
            CHECK(info.name[0] != 0, "device %d has no name", i);
            all += std::to_string(info.kind) + ":" + std::to_string(info.ordinal) + " ";
        }
        fcm_device_info info{};
        CHECK(fcm_device_describe(count, &info, nullptr) == FCM_INVALID_ARGUMENT, "beyond the end");
        CHECK(fcm_device_describe(-1, &info, nullptr) == FCM_INVALID_ARGUMENT, "before the start");
        return all;
    };
    // Backends loaded by an earlier test of this process stay loaded.
    const std::string before = list();
    if (before == "0:0 1:-1 ") {
        load(FAKE_CUDASIM, FCM_CUDASIM);
        CHECK(list() == "0:0 2:0 2:1 1:-1 ", "%s", list().c_str());
        load(FAKE_CUDA, FCM_CUDA);
    }
    load(FAKE_CUDA, FCM_CUDA);
    load(FAKE_CUDASIM, FCM_CUDASIM);
    CHECK(list() == "0:0 2:0 2:1 1:0 1:1 " || list() == "0:0 1:0 1:1 2:0 2:1 ", "%s", list().c_str());
}

TEST(what_is_no_backend_is_refused) {
    load(FAKE_CUDASIM, FCM_CUDASIM);
    refused("/no/such/library.so", FCM_UNSUPPORTED, "/no/such/library.so");
    refused(OTHER_ABI, FCM_UNSUPPORTED, "has ABI version 999, but version 7 is needed");
    refused(NOT_OURS, FCM_UNSUPPORTED, "has no fcm_abi_version");
    refused(FAKE_INCOMPLETE, FCM_UNSUPPORTED, "has no fcm_triad");
    refused(FAKE_SECOND, FCM_INVALID_ARGUMENT, "has devices of the kind that");
    refused(FCM_LIBRARY, FCM_INVALID_ARGUMENT, "is this library itself");
    int32_t kind = 0;
    CHECK(fcm_backend_load(nullptr, &kind, nullptr) == FCM_INVALID_ARGUMENT, "no path");
    CHECK(fcm_backend_load(FAKE_CUDA, nullptr, nullptr) == FCM_INVALID_ARGUMENT, "no place");
}

TEST(without_a_backend_its_devices_are_unsupported) {
    int32_t count = 0;
    CHECK(fcm_device_count(&count, nullptr) == FCM_OK, "count");
    if (count > 2) return;  // an earlier test of this process has loaded them
    for (const int32_t kind : {FCM_CUDA, FCM_CUDASIM}) {
        fcm_context *context = nullptr;
        fcm_error error{};
        CHECK(fcm_context_create(kind, 0, 1, FCM_ISA_AUTO, &context, &error) == FCM_UNSUPPORTED, "kind %d", kind);
        CHECK(std::strstr(error.message, "is loaded") != nullptr, "%s", error.message);
    }
}

TEST(on_the_cpu_nothing_is_pending) {
    const Context cpu = open(FCM_CPU, 0);
    CHECK(fcm_synchronize(cpu.get(), nullptr) == FCM_OK, "synchronize");
    CHECK(fcm_synchronize(nullptr, nullptr) == FCM_INVALID_ARGUMENT, "no context");
    int32_t done = -1;
    CHECK(fcm_query(cpu.get(), &done, nullptr) == FCM_OK && done == 1, "query");
    CHECK(fcm_query(cpu.get(), nullptr, nullptr) == FCM_INVALID_ARGUMENT, "no place");
    int something = 0;
    void *stream = &something;
    CHECK(fcm_context_stream(cpu.get(), &stream, nullptr) == FCM_OK && stream == nullptr, "stream");
    CHECK(fcm_context_stream(cpu.get(), nullptr, nullptr) == FCM_INVALID_ARGUMENT, "no place");

    void *host = nullptr;
    void *device = nullptr;
    int64_t live = -1;
    CHECK(fcm_host_allocate(cpu.get(), 24, &host, nullptr) == FCM_OK, "host memory");
    CHECK(reinterpret_cast<uintptr_t>(host) % 64 == 0, "%p is not aligned", host);
    CHECK(fcm_live_bytes(cpu.get(), &live, nullptr) == FCM_OK && live == 0, "%ld bytes live", long(live));
    CHECK(fcm_buffer_allocate(cpu.get(), 24, &device, nullptr) == FCM_OK, "buffer");
    std::memcpy(host, "through both directions", 24);
    CHECK(fcm_copy_in_async(cpu.get(), device, host, 24, nullptr) == FCM_OK, "in");
    std::memset(host, 0, 24);
    CHECK(fcm_copy_out_async(cpu.get(), host, device, 24, nullptr) == FCM_OK, "out");
    CHECK(std::strcmp(static_cast<char *>(host), "through both directions") == 0, "%s", static_cast<char *>(host));
    CHECK(fcm_buffer_free(cpu.get(), host, nullptr) == FCM_INVALID_ARGUMENT, "host memory is no buffer");
    CHECK(fcm_host_free(cpu.get(), device, nullptr) == FCM_INVALID_ARGUMENT, "a buffer is no host memory");
    CHECK(fcm_host_free(cpu.get(), host, nullptr) == FCM_OK, "free");
    CHECK(fcm_host_free(cpu.get(), host, nullptr) == FCM_INVALID_ARGUMENT, "once only");
    CHECK(fcm_host_allocate(cpu.get(), -1, &host, nullptr) == FCM_INVALID_ARGUMENT, "negative");
    CHECK(fcm_host_allocate(cpu.get(), INT64_MAX, &host, nullptr) == FCM_OUT_OF_MEMORY, "too much");
    CHECK(fcm_host_allocate(cpu.get(), 0, &host, nullptr) == FCM_OK && host != nullptr, "nothing has an address too");
    // Everything that still exists is destroyed with its context; the sanitizers check it.
}
