// Threads of a block meet at barriers, and errors in how they meet are found.
#include "support.h"

namespace {

constexpr int kThreads = 256;

}  // namespace

// The sum of a block by halving, which needs a barrier per step.
extern "C" __global__ void sum_by_halving(const float *in, float *out) {
    SHARED(float, part, [kThreads]);
    const unsigned t = threadIdx.x;
    part[t] = in[blockIdx.x * blockDim.x + t];
    __syncthreads();
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        if (t < half) part[t] += part[t + half];
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = part[0];
}

// The same without the barrier in the loop.
extern "C" __global__ void sum_without_barrier(const float *in, float *out) {
    SHARED(float, part, [kThreads]);
    const unsigned t = threadIdx.x;
    part[t] = in[blockIdx.x * blockDim.x + t];
    __syncthreads();
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        if (t < half) part[t] += part[t + half];
    }
    if (t == 0) out[blockIdx.x] = part[0];
}

// Reads the neighbour's value before it is guaranteed to be written.
extern "C" __global__ void shift_without_barrier(const float *in, float *out) {
    SHARED(float, part, [kThreads]);
    const unsigned t = threadIdx.x;
    part[t] = in[t];
    out[t] = part[(t + 1) % blockDim.x];
}

extern "C" __global__ void barrier_in_a_branch(float *out) {
    if (threadIdx.x < 100) __syncthreads();
    out[threadIdx.x] = 1.0f;
}

extern "C" __global__ void two_barriers(float *out) {
    if (threadIdx.x < 32) {
        __syncthreads();
    } else {
        __syncthreads();
    }
    out[threadIdx.x] = 1.0f;
}

extern "C" __global__ void returns_before_the_barrier(float *out, int n) {
    if (static_cast<int>(threadIdx.x) >= n) return;
    __syncthreads();
    out[threadIdx.x] = 1.0f;
}

extern "C" __global__ void votes(int *out) {
    const int t = static_cast<int>(threadIdx.x);
    const int count = __syncthreads_count(t % 3 == 0);
    const int some = __syncthreads_or(t == 17);
    const int none = __syncthreads_or(t == 1000);
    const int every = __syncthreads_and(t >= 0);
    const int not_every = __syncthreads_and(t != 5);
    out[t] = count * 10000 + some * 1000 + none * 100 + every * 10 + not_every;
}

TEST(sums_by_halving_are_right_in_every_order) {
    for (const std::string &order : orders()) {
        const Simulated machine({{"ORDER", order}});
        const int blocks = 37;
        const std::vector<float> in = counting(kThreads * blocks);
        const Array<float> input(in);
        const Array<float> output(blocks);
        LAUNCH(sum_by_halving, blocks, kThreads, 0, nullptr, input.data(), output.data());
        expect_no_fault(order.c_str());
        const std::vector<float> out = output.values();
        for (int b = 0; b < blocks; ++b) {
            float wanted = 0.0f;
            for (int t = 0; t < kThreads; ++t) wanted += in[static_cast<size_t>(b * kThreads + t)];
            CHECK(out[static_cast<size_t>(b)] == wanted, "%s, block %d: %g instead of %g", order.c_str(), b,
                  double{out[static_cast<size_t>(b)]}, double{wanted});
        }
    }
}

TEST(a_missing_barrier_gives_wrong_sums_in_some_order) {
    int wrong = 0;
    for (const std::string &order : orders()) {
        const Simulated machine({{"ORDER", order}});
        const Array<float> input(counting(kThreads));
        const Array<float> output(1);
        LAUNCH(sum_without_barrier, 1, kThreads, 0, nullptr, input.data(), output.data());
        expect_no_fault(order.c_str());
        wrong += !(output.values()[0] == 256.0f * 257.0f / 2.0f);
    }
    CHECK(wrong >= 4, "%d of %zu orders show it", wrong, orders().size());
}

TEST(a_value_read_before_it_is_written_is_nan) {
    for (const std::string &order : orders()) {
        const Simulated machine({{"ORDER", order}});
        // The previous block must not have left the right values behind.
        for (int launch = 0; launch < 2; ++launch) {
            const Array<float> input(counting(kThreads));
            const Array<float> output(kThreads);
            LAUNCH(shift_without_barrier, 1, kThreads, 0, nullptr, input.data(), output.data());
            expect_no_fault(order.c_str());
            int nans = 0;
            for (const float value : output.values()) nans += isnan(value);
            CHECK(nans > 0, "%s: every value is there already", order.c_str());
        }
    }
}

TEST(a_barrier_that_not_all_reach_is_found) {
    for (const std::string &order : orders()) {
        const Simulated machine({{"ORDER", order}});
        const Array<float> output(kThreads);
        LAUNCH(barrier_in_a_branch, 1, kThreads, 0, nullptr, output.data());
        expect_fault("divergent barrier", order.c_str());
    }
}

TEST(barriers_of_two_branches_are_not_one) {
    for (const std::string &order : orders()) {
        const Simulated machine({{"ORDER", order}});
        const Array<float> output(kThreads);
        LAUNCH(two_barriers, 1, kThreads, 0, nullptr, output.data());
        expect_fault("divergent barrier", order.c_str());
    }
}

TEST(a_thread_that_ended_is_missed_at_the_barrier) {
    for (const std::string &order : orders()) {
        const Simulated machine({{"ORDER", order}});
        const Array<float> output(kThreads);
        LAUNCH(returns_before_the_barrier, 1, kThreads, 0, nullptr, output.data(), kThreads);
        expect_no_fault("all there");
        LAUNCH(returns_before_the_barrier, 1, kThreads, 0, nullptr, output.data(), kThreads - 1);
        expect_fault("ended", order.c_str());
    }
}

TEST(barriers_that_vote) {
    for (const std::string &order : orders()) {
        const Simulated machine({{"ORDER", order}});
        const Array<int> output(96);
        LAUNCH(votes, 1, 96, 0, nullptr, output.data());
        expect_no_fault(order.c_str());
        for (const int value : output.values()) CHECK(value == 321010, "%s: %d", order.c_str(), value);
    }
}
