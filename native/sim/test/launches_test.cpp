// Launches: invalid ones are refused as in CUDA, arguments have the declared types, and every thread runs once.
#include <chrono>
#include <cstddef>

#include "support.h"

namespace {

struct Shape {
    int rows;
    double scale;
    float bias;
};

}  // namespace

extern "C" __global__ void echoes(double *out, int32_t small, int64_t large, float f, double d, Shape shape, float4 v) {
    out[0] = small;
    out[1] = static_cast<double>(large);
    out[2] = double{f};
    out[3] = d;
    out[4] = shape.rows;
    out[5] = shape.scale;
    out[6] = double{shape.bias};
    out[7] = double{v.w};
}

extern "C" __global__ void nothing() {}

extern "C" __global__ void counts(int *seen, int *wrong) {
    const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    const unsigned threads = blockDim.x * blockDim.y * blockDim.z;
    atomicAdd(seen + block * threads + thread, 1);
    if (threadIdx.x >= blockDim.x || threadIdx.y >= blockDim.y || threadIdx.z >= blockDim.z) atomicAdd(wrong, 1);
}

// The indices must be the thread's own again after it has waited.
extern "C" __global__ void keeps_its_index(int *wrong) {
    const unsigned before = threadIdx.x + 1000 * threadIdx.y + 100000 * blockIdx.x;
    for (int i = 0; i < 3; ++i) {
        __syncthreads();
        const unsigned after = threadIdx.x + 1000 * threadIdx.y + 100000 * blockIdx.x;
        if (after != before) atomicAdd(wrong, 1);
    }
}

extern "C" __global__ void takes_a_number(int *counter, int *numbers) {
    numbers[blockIdx.x * blockDim.x + threadIdx.x] = atomicAdd(counter, 1);
}

extern "C" __global__ void axpy(float a, const float *x, float *y, int64_t n) {
    const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}

extern "C" __global__ void atomics(int *ints, unsigned *words, unsigned long long *longs) {
    const int t = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    atomicAdd(ints, 2);
    atomicMin(ints + 1, -t);
    atomicMax(ints + 2, t);
    atomicOr(words, 1u << (t % 32));
    atomicMin(words + 1, static_cast<unsigned>(t) + 7u);
    if (atomicCAS(words + 2, 0u, static_cast<unsigned>(t) + 1u) == 0u) atomicAdd(ints + 3, 1);
    atomicExch(words + 3, 5u);
    atomicMax(longs, static_cast<unsigned long long>(t) << 40);
    atomicAdd(longs + 1, 1ull << 33);
}

extern "C" __global__ void bits(int *out) {
    out[0] = static_cast<int>(__float_as_uint(1.0f)) == 0x3f800000;
    out[1] = __uint_as_float(0x40000000u) == 2.0f;
    out[2] = __double_as_longlong(1.0) == 0x3ff0000000000000ll;
    out[3] = __longlong_as_double(0x4000000000000000ll) == 2.0;
    out[4] = __popc(0xf0f0u) == 8;
    out[5] = __ffs(0) == 0 && __ffs(8) == 4;
    out[6] = __clz(0) == 32 && __clz(1) == 31 && __clz(-1) == 0;
    out[7] = fmaf(0x1.001p0f, 0x1.001p0f, -1.0f) == 0x1.0008p-11f;
    out[8] = isnan(fminf(NAN, NAN)) && fmaxf(NAN, 1.0f) == 1.0f && isfinite(1.0f) && !isfinite(INFINITY);
    out[9] = __ldg(out) == 1;
    out[10] = __double2ll_rn(2.5) == 2 && __double2ll_rn(-3.5) == -4 && __double2ll_rn(0x1.8p61) == 0x3000000000000000ll;
    out[11] = __double2ll_rn(0x1p63) == INT64_MAX && __double2ll_rn(-1e300) == INT64_MIN && __double2ll_rn(NAN) == INT64_MIN;
}

TEST(arguments_become_the_parameters) {
    const Simulated machine;
    const Array<double> output(8);
    short small = -5;
    LAUNCH(echoes, 1, 1, 0, nullptr, output.data(), small, 1 << 30, 0.1f, 3, Shape{4, 0.5, 0.25f},
           make_float4(1.0f, 2.0f, 3.0f, 4.5f));
    small = 77;  // the launch has its own copy
    expect_no_fault("");
    const std::vector<double> wanted{-5, 1 << 30, double{0.1f}, 3, 4, 0.5, 0.25, 4.5};
    const std::vector<double> got = output.values();
    for (size_t i = 0; i < wanted.size(); ++i) CHECK(got[i] == wanted[i], "argument %zu: %g", i, got[i]);
    CHECK(small == 77, "%d", small);
}

TEST(arguments_are_packed_at_their_alignment) {
    constexpr cudasim::detail::ParameterLayout<double *, int32_t, int64_t, float, double, Shape, float4> layout;
    const size_t offsets[] = {0, 8, 16, 24, 32, 40, 64};
    for (size_t i = 0; i < 7; ++i) CHECK(layout.offsets[i] == offsets[i], "%zu: %zu", i, layout.offsets[i]);
    CHECK(layout.total == 80, "%zu", layout.total);
    CHECK(layout.is_pointer[0] && !layout.is_pointer[1], "pointers");
}

TEST(every_thread_of_every_block_runs_once) {
    for (const std::string &order : orders()) {
        const Simulated machine({{"ORDER", order}});
        const dim3 grid(5, 3, 2);
        const dim3 block(7, 4, 3);
        const Array<int> seen(std::vector<int>(30 * 84, 0));
        const Array<int> wrong(std::vector<int>{0});
        LAUNCH(counts, grid, block, 0, nullptr, seen.data(), wrong.data());
        LAUNCH(keeps_its_index, 4, dim3(33, 3), 0, nullptr, wrong.data());
        expect_no_fault(order.c_str());
        for (const int count : seen.values()) CHECK(count == 1, "%s: %d", order.c_str(), count);
        CHECK(wrong.values()[0] == 0, "%s: %d wrong indices", order.c_str(), wrong.values()[0]);
    }
}

namespace {

std::vector<int> numbers_taken(const std::string &order) {
    const Simulated machine({{"ORDER", order}, {"THREADS", "1"}});
    const Array<int> counter(std::vector<int>{0});
    const Array<int> numbers(5 * 96);
    LAUNCH(takes_a_number, 5, 96, 0, nullptr, counter.data(), numbers.data());
    expect_no_fault(order.c_str());
    return numbers.values();
}

}  // namespace

TEST(threads_and_blocks_run_in_the_order_asked_for) {
    const std::vector<int> forward = numbers_taken("forward");
    const std::vector<int> reverse = numbers_taken("reverse");
    const std::vector<int> random = numbers_taken("random:1");
    for (int i = 0; i < 5 * 96; ++i) {
        CHECK(forward[static_cast<size_t>(i)] == i, "forward: thread %d is number %d", i, forward[static_cast<size_t>(i)]);
        CHECK(reverse[static_cast<size_t>(i)] == 5 * 96 - 1 - i, "reverse: thread %d is number %d", i,
              reverse[static_cast<size_t>(i)]);
    }
    CHECK(random != forward && random != reverse, "not random");
    CHECK(random != numbers_taken("random:2"), "another seed is another order");
    CHECK(random == numbers_taken("random:1"), "the same seed is the same order");
}

TEST(dimensions_beyond_the_limits_are_refused) {
    const Simulated machine;
    const auto refuse = [](dim3 grid, dim3 block) {
        LAUNCH(nothing, grid, block, 0, nullptr);
        REFUSED(cudaErrorInvalidConfiguration, cudaGetLastError());
    };
    refuse(dim3(0), dim3(1));
    refuse(dim3(1), dim3(0));
    refuse(dim3(1), dim3(1025));
    refuse(dim3(1), dim3(32, 33));
    refuse(dim3(1), dim3(1, 1, 65));
    refuse(dim3(1, 65536), dim3(1));
    refuse(dim3(1, 1, 65536), dim3(1));
    refuse(dim3(2147483648u), dim3(1));
    LAUNCH(nothing, dim3(1, 65535), dim3(16, 1, 64), 0, nullptr);
    SUCCEEDS(cudaGetLastError());
    LAUNCH(nothing, 1, 1024, 0, nullptr);
    expect_no_fault("as large as may be");
}

TEST(an_error_is_taken_back_by_asking_for_it) {
    const Simulated machine;
    LAUNCH(nothing, 0, 1, 0, nullptr);
    CHECK(cudaPeekAtLastError() == cudaErrorInvalidConfiguration, "peek");
    CHECK(cudaPeekAtLastError() == cudaErrorInvalidConfiguration, "peek again");
    CHECK(cudaGetLastError() == cudaErrorInvalidConfiguration, "get");
    CHECK(cudaGetLastError() == cudaSuccess, "get again");
}

TEST(streams_that_are_none_or_of_another_device_are_refused) {
    const Simulated machine;
    cudaStream_t stream = nullptr;
    SUCCEEDS(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    SUCCEEDS(cudaSetDevice(1));
    LAUNCH(nothing, 1, 1, 0, stream);
    REFUSED(cudaErrorInvalidResourceHandle, cudaGetLastError());
    SUCCEEDS(cudaSetDevice(0));
    LAUNCH(nothing, 1, 1, 0, stream);
    SUCCEEDS(cudaGetLastError());
    SUCCEEDS(cudaStreamDestroy(stream));
    LAUNCH(nothing, 1, 1, 0, stream);
    REFUSED(cudaErrorInvalidResourceHandle, cudaGetLastError());
    REFUSED(cudaErrorInvalidDevice, cudaSetDevice(4));
}

TEST(atomics_are_atomic_over_blocks) {
    for (const std::string &order : orders()) {
        const Simulated machine({{"ORDER", order}});
        const Array<int> ints(std::vector<int>{0, 0, 0, 0});
        const Array<unsigned> words(std::vector<unsigned>{0, 1000000, 0, 0});
        const Array<unsigned long long> longs(std::vector<unsigned long long>{0, 0});
        LAUNCH(atomics, 64, 256, 0, nullptr, ints.data(), words.data(), longs.data());
        expect_no_fault(order.c_str());
        const int n = 64 * 256;
        CHECK((ints.values() == std::vector<int>{2 * n, 1 - n, n - 1, 1}), "%s: ints", order.c_str());
        const std::vector<unsigned> w = words.values();
        CHECK(w[0] == 0xffffffffu && w[1] == 7 && w[2] != 0 && w[3] == 5, "%s: words", order.c_str());
        const std::vector<unsigned long long> l = longs.values();
        CHECK(l[0] == (static_cast<unsigned long long>(n - 1) << 40) && l[1] == (n * 1ull) << 33, "%s: longs",
              order.c_str());
    }
}

TEST(functions_of_bits_and_numbers) {
    const Simulated machine;
    const Array<int> output(12);
    LAUNCH(bits, 1, 1, 0, nullptr, output.data());
    expect_no_fault("");
    const std::vector<int> out = output.values();
    for (size_t i = 0; i < out.size(); ++i) CHECK(out[i] == 1, "line %zu of the kernel", i);
}

TEST(elementwise_kernels_are_fast_enough) {
    const Simulated machine;
    const size_t n = 1 << 20;
    const Array<float> x(counting(n));
    const Array<float> y(std::vector<float>(n, 1.0f));
    SUCCEEDS(cudaDeviceSynchronize());
    const auto start = std::chrono::steady_clock::now();
    LAUNCH(axpy, (n + 255) / 256, 256, 0, nullptr, 2.0f, x.data(), y.data(), static_cast<int64_t>(n));
    expect_no_fault("");
    const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    std::printf("%zu threads of a plain kernel: %.1f ms\n", n, ms);
    const std::vector<float> in = counting(n);
    const std::vector<float> out = y.values();
    for (size_t i = 0; i < n; ++i) CHECK(out[i] == 1.0f + 2.0f * in[i], "%zu", i);
    // Far more than needed, for busy machines: it detects a slowdown by a factor of a hundred.
    CHECK(ms < 2000.0, "%.1f ms", ms);
}
