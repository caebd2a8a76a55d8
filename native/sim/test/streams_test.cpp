// Streams: work is deferred until it is needed, so that missing synchronization is detected.
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "support.h"

extern "C" __global__ void sets(float *out, float value) { out[threadIdx.x] = value; }
extern "C" __global__ void adds(float *out, const float *in) { out[threadIdx.x] += in[threadIdx.x]; }

namespace {

constexpr int kCount = 32;
constexpr size_t kBytes = kCount * sizeof(float);

class OwnStream {
   public:
    explicit OwnStream(unsigned flags = cudaStreamNonBlocking) { SUCCEEDS(cudaStreamCreateWithFlags(&stream_, flags)); }
    ~OwnStream() { cudaStreamDestroy(stream_); }
    OwnStream(const OwnStream &) = delete;
    OwnStream &operator=(const OwnStream &) = delete;
    operator cudaStream_t() const { return stream_; }

   private:
    cudaStream_t stream_ = nullptr;
};

class OwnEvent {
   public:
    explicit OwnEvent(unsigned flags = cudaEventDisableTiming) { SUCCEEDS(cudaEventCreateWithFlags(&event_, flags)); }
    ~OwnEvent() { cudaEventDestroy(event_); }
    OwnEvent(const OwnEvent &) = delete;
    OwnEvent &operator=(const OwnEvent &) = delete;
    operator cudaEvent_t() const { return event_; }

   private:
    cudaEvent_t event_ = nullptr;
};

class Pinned {
   public:
    Pinned() {
        SUCCEEDS(cudaMallocHost(&data_, kBytes));
        for (int i = 0; i < kCount; ++i) data_[i] = -1.0f;
    }
    ~Pinned() { cudaFreeHost(data_); }
    Pinned(const Pinned &) = delete;
    Pinned &operator=(const Pinned &) = delete;
    float *data() const { return data_; }
    float &operator[](int i) const { return data_[i]; }

   private:
    float *data_ = nullptr;
};

}  // namespace

TEST(a_missing_synchronize_shows) {
    const Simulated machine;
    const OwnStream stream;
    const Pinned host;
    const Array<float> array(kCount);
    LAUNCH(sets, 1, kCount, 0, stream, array.data(), 3.0f);
    SUCCEEDS(cudaMemcpyAsync(host.data(), array.data(), kBytes, cudaMemcpyDeviceToHost, stream));
    CHECK(host[0] == -1.0f, "%g is there already", double{host[0]});
    SUCCEEDS(cudaStreamSynchronize(stream));
    CHECK(host[0] == 3.0f && host[31] == 3.0f, "%g", double{host[0]});
}

TEST(eager_streams_do_not_wait) {
    const Simulated machine({{"STREAMS", "eager"}});
    const OwnStream stream;
    const Pinned host;
    const Array<float> array(kCount);
    LAUNCH(sets, 1, kCount, 0, stream, array.data(), 3.0f);
    SUCCEEDS(cudaMemcpyAsync(host.data(), array.data(), kBytes, cudaMemcpyDeviceToHost, stream));
    CHECK(host[0] == 3.0f, "%g", double{host[0]});
}

TEST(pinned_memory_is_read_late_and_pageable_memory_at_once) {
    const Simulated machine;
    const OwnStream stream;
    const Pinned pinned;
    std::vector<float> pageable(kCount, 1.0f);
    const Array<float> from_pinned(kCount);
    const Array<float> from_pageable(kCount);
    pinned[0] = 1.0f;
    SUCCEEDS(cudaMemcpyAsync(from_pinned.data(), pinned.data(), kBytes, cudaMemcpyHostToDevice, stream));
    SUCCEEDS(cudaMemcpyAsync(from_pageable.data(), pageable.data(), kBytes, cudaMemcpyHostToDevice, stream));
    pinned[0] = 2.0f;  // the error that this test is about
    pageable[0] = 2.0f;
    SUCCEEDS(cudaStreamSynchronize(stream));
    CHECK(from_pinned.values()[0] == 2.0f, "pinned memory was read early");
    CHECK(from_pageable.values()[0] == 1.0f, "pageable memory was read late");
}

TEST(a_copy_to_pageable_memory_is_done_when_it_returns) {
    const Simulated machine;
    const OwnStream stream;
    std::vector<float> host(kCount, -1.0f);
    const Array<float> array(kCount);
    LAUNCH(sets, 1, kCount, 0, stream, array.data(), 3.0f);
    SUCCEEDS(cudaMemcpyAsync(host.data(), array.data(), kBytes, cudaMemcpyDeviceToHost, stream));
    CHECK(host[0] == 3.0f, "%g", double{host[0]});
}

TEST(streams_do_not_wait_for_each_other_unless_told) {
    const Simulated machine;
    const OwnStream first;
    const OwnStream second;
    const OwnEvent event;
    const Array<float> array(std::vector<float>(kCount, 0.0f));
    const Array<float> sum(std::vector<float>(kCount, 0.0f));
    LAUNCH(sets, 1, kCount, 0, first, array.data(), 5.0f);
    LAUNCH(adds, 1, kCount, 0, second, sum.data(), array.data());
    SUCCEEDS(cudaStreamSynchronize(second));
    SUCCEEDS(cudaStreamSynchronize(first));
    CHECK(sum.values()[0] == 0.0f, "%g: it waited", double{sum.values()[0]});

    LAUNCH(sets, 1, kCount, 0, first, array.data(), 7.0f);
    SUCCEEDS(cudaEventRecord(event, first));
    LAUNCH(sets, 1, kCount, 0, first, array.data(), 9.0f);
    SUCCEEDS(cudaStreamWaitEvent(second, event));
    LAUNCH(adds, 1, kCount, 0, second, sum.data(), array.data());
    SUCCEEDS(cudaStreamSynchronize(second));
    CHECK(sum.values()[0] == 7.0f, "%g", double{sum.values()[0]});
}

TEST(long_chains_of_waits) {
    const Simulated machine;
    const OwnStream first;
    const OwnStream second;
    const Array<float> one(std::vector<float>(kCount, 1.0f));
    const Array<float> sum(std::vector<float>(kCount, 0.0f));
    for (int i = 0; i < 3000; ++i) {
        const OwnEvent event;  // destroyed while a wait for it is queued, as CUDA allows
        const bool even = i % 2 == 0;
        LAUNCH(adds, 1, kCount, 0, even ? first : second, sum.data(), one.data());
        SUCCEEDS(cudaEventRecord(event, even ? first : second));
        SUCCEEDS(cudaStreamWaitEvent(even ? second : first, event));
    }
    SUCCEEDS(cudaStreamSynchronize(first));
    CHECK(sum.values()[0] == 3000.0f, "%g", double{sum.values()[0]});
}

TEST(an_event_is_reached_by_waiting_or_by_asking_often_enough) {
    const Simulated machine;
    const OwnStream stream;
    const OwnEvent event;
    const OwnEvent never;
    const Array<float> array(kCount);
    SUCCEEDS(cudaEventQuery(never));
    SUCCEEDS(cudaEventSynchronize(never));
    for (int i = 0; i < 3; ++i) LAUNCH(sets, 1, kCount, 0, stream, array.data(), 1.0f);
    SUCCEEDS(cudaEventRecord(event, stream));
    CHECK(cudaEventQuery(event) == cudaErrorNotReady, "ready at once");
    CHECK(cudaGetLastError() == cudaErrorNotReady, "CUDA remembers this one too");
    int asked = 1;
    while (cudaEventQuery(event) == cudaErrorNotReady) ++asked;
    CHECK(asked == 3, "asked %d times", asked);
    cudaGetLastError();
    SUCCEEDS(cudaStreamQuery(stream));

    LAUNCH(sets, 1, kCount, 0, stream, array.data(), 2.0f);
    SUCCEEDS(cudaEventRecord(event, stream));
    SUCCEEDS(cudaEventSynchronize(event));
    SUCCEEDS(cudaEventQuery(event));
}

TEST(time_passes_between_events) {
    const Simulated machine;
    const OwnStream stream;
    const OwnEvent start(cudaEventDefault);
    const OwnEvent end(cudaEventDefault);
    const OwnEvent untimed;
    const Array<float> array(kCount);
    float ms = -1.0f;
    REFUSED(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&ms, start, end));
    SUCCEEDS(cudaEventRecord(start, stream));
    for (int i = 0; i < 20; ++i) LAUNCH(sets, 1, kCount, 0, stream, array.data(), 1.0f);
    SUCCEEDS(cudaEventRecord(end, stream));
    SUCCEEDS(cudaEventRecord(untimed, stream));
    REFUSED(cudaErrorNotReady, cudaEventElapsedTime(&ms, start, end));
    SUCCEEDS(cudaStreamSynchronize(stream));
    SUCCEEDS(cudaEventElapsedTime(&ms, start, end));
    CHECK(ms > 0.0f && ms < 60000.0f, "%g ms", double{ms});
    REFUSED(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&ms, start, untimed));
}

TEST(events_and_streams_of_different_devices_do_not_mix) {
    const Simulated machine;
    const OwnEvent event;
    SUCCEEDS(cudaSetDevice(1));
    const OwnStream stream;
    REFUSED(cudaErrorInvalidResourceHandle, cudaEventRecord(event, stream));
    SUCCEEDS(cudaStreamWaitEvent(stream, event));
}

TEST(the_null_stream_waits_for_blocking_streams_only) {
    const Simulated machine;
    const OwnStream blocking(cudaStreamDefault);
    const OwnStream apart(cudaStreamNonBlocking);
    const Array<float> array(std::vector<float>(kCount, 0.0f));
    const Array<float> other(std::vector<float>(kCount, 0.0f));
    LAUNCH(sets, 1, kCount, 0, blocking, array.data(), 4.0f);
    LAUNCH(sets, 1, kCount, 0, apart, other.data(), 4.0f);
    CHECK(array.values()[0] == 4.0f, "the null stream overtook a blocking stream");
    CHECK(other.values()[0] == 0.0f, "the null stream waited for a non-blocking stream");
    LAUNCH(sets, 1, kCount, 0, nullptr, array.data(), 6.0f);
    LAUNCH(adds, 1, kCount, 0, blocking, other.data(), array.data());
    SUCCEEDS(cudaStreamSynchronize(blocking));
    CHECK(other.values()[0] == 6.0f, "%g", double{other.values()[0]});
}

TEST(memory_of_a_stream_is_there_in_its_order) {
    const Simulated machine;
    const OwnStream owner;
    const OwnStream stranger;
    float *array = nullptr;
    SUCCEEDS(cudaMallocAsync(&array, kBytes, owner));
    LAUNCH(sets, 1, kCount, 0, owner, array, 1.0f);
    SUCCEEDS(cudaStreamSynchronize(owner));
    SUCCEEDS(cudaFreeAsync(array, owner));
    SUCCEEDS(cudaStreamSynchronize(owner));
    SUCCEEDS(cudaMallocAsync(&array, kBytes, owner));
    LAUNCH(sets, 1, kCount, 0, stranger, array, 1.0f);  // nothing orders it after the allocation
    REFUSED(cudaErrorLaunchFailure, cudaStreamSynchronize(stranger));
    CHECK(last_fault().find("has not made yet") != std::string::npos, "%s", last_fault().c_str());
}

TEST(a_free_overtakes_nothing_in_its_stream) {
    const Simulated machine;
    const OwnStream stream;
    const OwnStream other;
    const Pinned host;
    float *array = nullptr;
    SUCCEEDS(cudaMallocAsync(&array, kBytes, stream));
    LAUNCH(sets, 1, kCount, 0, stream, array, 8.0f);
    SUCCEEDS(cudaMemcpyAsync(host.data(), array, kBytes, cudaMemcpyDeviceToHost, stream));
    SUCCEEDS(cudaFreeAsync(array, stream));
    SUCCEEDS(cudaStreamSynchronize(stream));
    CHECK(host[0] == 8.0f, "%g", double{host[0]});
    CHECK(cudasim_live_bytes(0) == 0, "%lld bytes", cudasim_live_bytes(0));

    // A copy on another stream that the free does not wait for.
    SUCCEEDS(cudaMallocAsync(&array, kBytes, stream));
    SUCCEEDS(cudaStreamSynchronize(stream));
    SUCCEEDS(cudaMemcpyAsync(host.data(), array, kBytes, cudaMemcpyDeviceToHost, other));
    SUCCEEDS(cudaFreeAsync(array, stream));
    SUCCEEDS(cudaStreamSynchronize(stream));
    REFUSED(cudaErrorLaunchFailure, cudaStreamSynchronize(other));
}

TEST(work_of_others_runs_on_a_stream) {
    const Simulated machine;
    const OwnStream stream;
    const Array<float> array(kCount);
    float *cells = array.data();
    bool ran = false;
    LAUNCH(sets, 1, kCount, 0, stream, cells, 3.0f);
    SUCCEEDS(enqueue(stream, "a library", [&] {
        ran = true;
        cells[0] *= 2.0f;
    }));
    CHECK(!ran, "it ran at once");
    SUCCEEDS(cudaStreamSynchronize(stream));
    CHECK(array.values()[0] == 6.0f && array.values()[1] == 3.0f, "%g", double{array.values()[0]});
    CHECK(stream_device(stream) == 0, "%d", stream_device(stream));
    SUCCEEDS(enqueue(stream, "a library", [] { throw std::runtime_error("no good"); }));
    expect_fault("a library: no good", "thrown");
}

TEST(a_misspelt_setting_is_refused) {
    for (const auto &[name, value] : std::multimap<std::string, std::string>{
             {"ORDER", "backward"}, {"ORDER", "random:x"}, {"STREAMS", "slow"}, {"DEVICES", "four"}, {"ARCH", "88"}}) {
        const Simulated machine({{name, value}});
        int count = 0;
        REFUSED(cudaErrorInitializationError, cudaGetDeviceCount(&count));
    }
    const Simulated none({{"DEVICES", "0"}});
    int count = -1;
    REFUSED(cudaErrorNoDevice, cudaGetDeviceCount(&count));
    CHECK(count == 0, "%d", count);
}

namespace {

struct Line {
    int device;
    unsigned long long stream, position, after_stream, after_position;
    std::string what;
};

// What a trace records while `body` runs.
template <class Body>
std::vector<Line> traced(Body &&body) {
    const std::string path = "streams_test." + std::to_string(getpid()) + ".trace";  // tests run side by side
    CHECK(cudasim_trace(path.c_str()) == 0, "no trace");
    body();
    CHECK(cudasim_trace(nullptr) == 0, "not ended");
    std::vector<Line> lines;
    std::ifstream file(path);
    for (Line line; file >> line.device >> line.stream >> line.position >> line.after_stream >> line.after_position &&
                    std::getline(file >> std::ws, line.what);) {
        lines.push_back(line);
    }
    std::remove(path.c_str());
    return lines;
}

// The waits of the host, in a line each.
template <class Body>
std::string waits(Body &&body) {
    std::string all;
    for (const Line &line : traced(std::forward<Body>(body))) {
        if (line.stream == 0) all += line.what + "\n";
    }
    return all;
}

}  // namespace

TEST(a_trace_says_what_is_put_where_and_what_it_waits_for) {
    const Simulated machine;
    const OwnStream first;
    const OwnStream second;
    const OwnEvent event;
    const Array<float> array(kCount);
    CHECK(cudasim_trace("/no/such/directory/trace") != 0, "written nowhere");
    cudaGetLastError();
    const auto lines = traced([&] {
        LAUNCH(sets, 1, kCount, 0, first, array.data(), 3.0f);
        SUCCEEDS(cudaEventRecord(event, first));
        SUCCEEDS(cudaStreamWaitEvent(second, event));
    });
    LAUNCH(sets, 1, kCount, 0, first, array.data(), 4.0f);
    SUCCEEDS(cudaStreamSynchronize(second));
    CHECK(lines.size() == 3, "%zu lines", lines.size());
    CHECK(lines[0].what.find("sets") != std::string::npos && lines[0].after_stream == 0, "%s", lines[0].what.c_str());
    CHECK(lines[1].stream == lines[0].stream && lines[1].position == lines[0].position + 1, "another stream");
    CHECK(lines[2].stream != lines[0].stream && lines[2].after_stream == lines[1].stream &&
              lines[2].after_position == lines[1].position,
          "the wait is for %llu at %llu", lines[2].after_stream, lines[2].after_position);
}

TEST(a_trace_says_what_the_host_waits_for) {
    const Simulated machine;
    SUCCEEDS(cudaSetDevice(1));
    const OwnStream stream;
    const OwnEvent event;
    const OwnEvent never;
    const Array<float> array(kCount);
    const auto lines = traced([&] {
        LAUNCH(sets, 1, kCount, 0, stream, array.data(), 3.0f);
        SUCCEEDS(cudaEventRecord(event, stream));
        LAUNCH(sets, 1, kCount, 0, stream, array.data(), 4.0f);
        SUCCEEDS(cudaEventSynchronize(event));
        SUCCEEDS(cudaEventSynchronize(never));
        SUCCEEDS(cudaStreamSynchronize(stream));
        SUCCEEDS(cudaDeviceSynchronize());
    });
    CHECK(lines.size() == 6, "%zu lines", lines.size());
    const auto expect = [&](size_t line, const char *what, unsigned long long after_stream, unsigned long long after) {
        const Line &wait = lines[line];
        CHECK(wait.what == what && wait.device == 1 && wait.stream == 0 && wait.position == 0, "%d %llu %llu %s", wait.device,
              wait.stream, wait.position, wait.what.c_str());
        CHECK(wait.after_stream == after_stream && wait.after_position == after, "%s: for %llu at %llu", what,
              wait.after_stream, wait.after_position);
    };
    expect(3, "wait cudaEventSynchronize", lines[1].stream, lines[1].position);
    expect(4, "wait cudaStreamSynchronize", lines[2].stream, lines[2].position);
    expect(5, "wait cudaDeviceSynchronize", 0, 0);
}

TEST(copies_are_waits_as_documented) {
    const Simulated machine({{"PEERS", "off"}});
    const OwnStream stream;
    const Pinned pinned;
    std::vector<float> pageable(kCount, 1.0f);
    const Array<float> one(kCount);
    const Array<float> two(kCount);
    SUCCEEDS(cudaSetDevice(1));
    const Array<float> elsewhere(kCount);
    SUCCEEDS(cudaSetDevice(0));
    const auto copied = [&](void *to, const void *from) {
        return waits([&] { SUCCEEDS(cudaMemcpy(to, from, kBytes, cudaMemcpyDefault)); });
    };
    const auto async = [&](void *to, const void *from) {
        return waits([&] { SUCCEEDS(cudaMemcpyAsync(to, from, kBytes, cudaMemcpyDefault, stream)); });
    };
    const auto expect = [](const std::string &found, const std::string &expected, const char *which) {
        CHECK(found == expected, "%s: \"%s\" instead of \"%s\"", which, found.c_str(), expected.c_str());
    };
    const std::string of_pageable = " of pageable memory\n";
    expect(copied(one.data(), pageable.data()), "wait cudaMemcpy" + of_pageable, "pageable to device");
    expect(copied(pageable.data(), one.data()), "wait cudaMemcpy" + of_pageable, "device to pageable");
    expect(copied(one.data(), pinned.data()), "wait cudaMemcpy\n", "pinned to device");
    expect(copied(pinned.data(), one.data()), "wait cudaMemcpy\n", "device to pinned");
    expect(copied(two.data(), one.data()), "", "device to device");
    expect(async(one.data(), pageable.data()), "wait cudaMemcpyAsync" + of_pageable, "pageable to device");
    expect(async(pageable.data(), one.data()), "wait cudaMemcpyAsync" + of_pageable, "device to pageable");
    expect(async(one.data(), pinned.data()), "", "pinned to device");
    expect(async(pinned.data(), one.data()), "", "device to pinned");
    expect(async(two.data(), one.data()), "", "device to device");
    expect(async(elsewhere.data(), one.data()), "wait cudaMemcpyAsync between devices without peer access\n", "without access");
    expect(waits([&] { SUCCEEDS(cudaMemset(one.data(), 0, kBytes)); }), "", "memset");
}

TEST(frees_are_waits_as_documented) {
    const Simulated machine;
    const OwnStream stream;
    float *plain = nullptr;
    float *pooled = nullptr;
    float *freed_in_order = nullptr;
    float *pinned = nullptr;
    SUCCEEDS(cudaMalloc(&plain, kBytes));
    SUCCEEDS(cudaMallocAsync(&pooled, kBytes, stream));
    SUCCEEDS(cudaMallocAsync(&freed_in_order, kBytes, stream));
    SUCCEEDS(cudaMallocHost(&pinned, kBytes));
    SUCCEEDS(cudaStreamSynchronize(stream));
    const std::string found = waits([&] {
        SUCCEEDS(cudaFreeAsync(freed_in_order, stream));
        SUCCEEDS(cudaFree(pooled));
        SUCCEEDS(cudaFree(plain));
        SUCCEEDS(cudaFreeHost(pinned));
        SUCCEEDS(cudaFree(nullptr));
        const OwnStream brief;
    });
    CHECK(found == "wait cudaFree\nwait cudaFreeHost\n", "%s", found.c_str());
}

// The copy is in the null stream, so that the kernel in another stream is not ordered after it by itself.
TEST(a_copy_from_device_to_device_that_nobody_waits_for_has_not_happened) {
    const Simulated machine;
    const OwnStream stream;
    const Pinned host;
    const Array<float> one(std::vector<float>(kCount, 1.0f));
    const Array<float> two(std::vector<float>(kCount, 2.0f));
    SUCCEEDS(cudaMemcpy(two.data(), one.data(), kBytes, cudaMemcpyDeviceToDevice));
    SUCCEEDS(cudaMemcpyAsync(host.data(), two.data(), kBytes, cudaMemcpyDeviceToHost, stream));
    SUCCEEDS(cudaStreamSynchronize(stream));
    CHECK(host[0] == 2.0f, "%g: the copy was complete", double{host[0]});
    SUCCEEDS(cudaDeviceSynchronize());
    CHECK(two.values()[0] == 1.0f, "%g", double{two.values()[0]});
}
