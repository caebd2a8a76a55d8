// Warp primitives return the same results as CUDA's, and masks that do not match are found.
#include <array>

#include "support.h"

namespace {

template <class T>
__device__ T warp_sum(T value) {
    for (int delta = 16; delta > 0; delta /= 2) value += __shfl_down_sync(0xffffffffu, value, delta);
    return value;
}

constexpr unsigned kAll = 0xffffffffu;

}  // namespace

extern "C" __global__ void sum_by_shuffles(const float *in, double *out) {
    SHARED(double, sums, [32]);
    const unsigned t = threadIdx.x;
    const double sum = warp_sum(double{in[blockIdx.x * blockDim.x + t]});
    if (t % 32 == 0) sums[t / 32] = sum;
    __syncthreads();
    if (t < 32) {
        const double total = warp_sum(t < blockDim.x / 32 ? sums[t] : 0.0);
        if (t == 0) out[blockIdx.x] = total;
    }
}

extern "C" __global__ void all_shuffles(int *out) {
    const int t = static_cast<int>(threadIdx.x);
    int *mine = out + t * 12;
    mine[0] = __shfl_sync(kAll, t, 5);
    mine[1] = __shfl_sync(kAll, t, t + 1);       // wraps around
    mine[2] = __shfl_sync(kAll, t, 3, 8);        // within eight lanes
    mine[3] = __shfl_up_sync(kAll, t, 1u);
    mine[4] = __shfl_up_sync(kAll, t, 3u, 8);
    mine[5] = __shfl_down_sync(kAll, t, 2u);
    mine[6] = __shfl_down_sync(kAll, t, 5u, 16);
    mine[7] = __shfl_xor_sync(kAll, t, 7);
    mine[8] = __shfl_xor_sync(kAll, t, 9, 8);
    mine[9] = static_cast<int>(__ballot_sync(kAll, t % 2));
    mine[10] = __any_sync(kAll, t == 31) + 2 * __any_sync(kAll, t == 32);
    mine[11] = __all_sync(kAll, t < 32) + 2 * __all_sync(kAll, t < 31);
}

extern "C" __global__ void every_type(double *out) {
    const int t = static_cast<int>(threadIdx.x);
    double sum = 0.0;
    sum += __shfl_xor_sync(kAll, -t, 1);
    sum += __shfl_xor_sync(kAll, static_cast<unsigned>(t), 1);
    sum += static_cast<double>(__shfl_xor_sync(kAll, static_cast<long long>(t) << 40, 1));
    sum += static_cast<double>(__shfl_xor_sync(kAll, static_cast<unsigned long long>(t) << 40, 1));
    sum += double{__shfl_xor_sync(kAll, static_cast<float>(t) + 0.5f, 1)};
    sum += __shfl_xor_sync(kAll, t + 0.25, 1);
    __syncwarp();
    out[t] = sum;
}

// Two halves of a warp, each with its own mask, at the same time.
extern "C" __global__ void two_halves(int *out) {
    const int t = static_cast<int>(threadIdx.x);
    const unsigned mask = t < 16 ? 0x0000ffffu : 0xffff0000u;
    out[t] = __shfl_sync(mask, t, t < 16 ? 3 : 20);
}

extern "C" __global__ void reads_a_lane_outside_its_mask(float *out) {
    const unsigned t = threadIdx.x;
    if (t < 16) out[t] = __shfl_sync(0x0000ffffu, 1.0f, 20);
}

extern "C" __global__ void half_comes_to_a_full_mask(int *out) {
    const int t = static_cast<int>(threadIdx.x);
    if (t < 16) out[t] = __shfl_down_sync(kAll, t, 1u);
    __syncthreads();
}

extern "C" __global__ void not_in_its_own_mask(int *out) {
    const int t = static_cast<int>(threadIdx.x);
    out[t] = __shfl_sync(0x7fffffffu, t, 0);
}

extern "C" __global__ void a_lane_has_ended(int *out) {
    const int t = static_cast<int>(threadIdx.x);
    if (t == 31) return;
    out[t] = __shfl_down_sync(kAll, t, 1u);
}

extern "C" __global__ void different_primitives(int *out) {
    const int t = static_cast<int>(threadIdx.x);
    if (t % 2 == 0) {
        out[t] = __shfl_xor_sync(kAll, t, 1);
    } else {
        out[t] = __any_sync(kAll, t);
    }
}

extern "C" __global__ void different_masks(int *out) {
    const int t = static_cast<int>(threadIdx.x);
    out[t] = __shfl_xor_sync(t < 8 ? 0x000000ffu : kAll, t, 1);
}

extern "C" __global__ void mask_beyond_the_block(int *out) {
    const int t = static_cast<int>(threadIdx.x);
    out[t] = __shfl_sync(kAll, t, 0);
}

extern "C" __global__ void divides_a_warp_by_three(int *out) {
    const int t = static_cast<int>(threadIdx.x);
    out[t] = __shfl_sync(kAll, t, 0, 3);
}

TEST(sums_by_shuffles_are_right_in_every_order) {
    for (const std::string &order : orders()) {
        const Simulated machine({{"ORDER", order}});
        const int blocks = 9;
        const int threads = 512;
        const std::vector<float> in = counting(static_cast<size_t>(threads * blocks));
        const Array<float> input(in);
        const Array<double> output(blocks);
        LAUNCH(sum_by_shuffles, blocks, threads, 0, nullptr, input.data(), output.data());
        expect_no_fault(order.c_str());
        const std::vector<double> out = output.values();
        for (int b = 0; b < blocks; ++b) {
            double wanted = 0.0;
            for (int t = 0; t < threads; ++t) wanted += double{in[static_cast<size_t>(b * threads + t)]};
            CHECK(out[static_cast<size_t>(b)] == wanted, "%s, block %d: %g", order.c_str(), b,
                  out[static_cast<size_t>(b)]);
        }
    }
}

TEST(shuffles_give_what_cuda_gives) {
    for (const std::string &order : orders()) {
        const Simulated machine({{"ORDER", order}});
        const Array<int> output(32 * 12);
        LAUNCH(all_shuffles, 1, 32, 0, nullptr, output.data());
        expect_no_fault(order.c_str());
        const std::vector<int> out = output.values();
        for (int t = 0; t < 32; ++t) {
            const int in8 = t % 8;
            const int in16 = t % 16;
            const std::array<int, 12> wanted{5,
                                             (t + 1) % 32,
                                             t - in8 + 3,
                                             t == 0 ? 0 : t - 1,
                                             in8 < 3 ? t : t - 3,
                                             t >= 30 ? t : t + 2,
                                             in16 + 5 > 15 ? t : t + 5,
                                             t ^ 7,
                                             // 9 is outside of the eight lanes: forward is refused, backward is not
                                             (t ^ 9) > t - in8 + 7 ? t : t ^ 9,
                                             static_cast<int>(0xaaaaaaaau),
                                             1,
                                             1};
            for (size_t i = 0; i < wanted.size(); ++i) {
                const int got = out[static_cast<size_t>(t) * 12 + i];
                CHECK(got == wanted[i], "%s, lane %d, shuffle %zu: %d instead of %d", order.c_str(), t, i, got, wanted[i]);
            }
        }
    }
}

TEST(every_type_keeps_its_bits) {
    const Simulated machine;
    const Array<double> output(32);
    LAUNCH(every_type, 1, 32, 0, nullptr, output.data());
    expect_no_fault("");
    const std::vector<double> out = output.values();
    for (int t = 0; t < 32; ++t) {
        const double other = t ^ 1;
        const double wanted = 2.0 * other * 0x1p40 + other + 0.5 + other + 0.25;
        CHECK(out[static_cast<size_t>(t)] == wanted, "lane %d: %.17g instead of %.17g", t, out[static_cast<size_t>(t)],
              wanted);
    }
}

TEST(groups_of_a_warp_meet_apart) {
    for (const std::string &order : orders()) {
        const Simulated machine({{"ORDER", order}});
        const Array<int> output(32);
        LAUNCH(two_halves, 1, 32, 0, nullptr, output.data());
        expect_no_fault(order.c_str());
        const std::vector<int> out = output.values();
        for (int t = 0; t < 32; ++t) CHECK(out[static_cast<size_t>(t)] == (t < 16 ? 3 : 20), "lane %d", t);
    }
}

TEST(a_lane_outside_the_mask_gives_nan) {
    const Simulated machine;
    const Array<float> output(32);
    LAUNCH(reads_a_lane_outside_its_mask, 1, 32, 0, nullptr, output.data());
    expect_no_fault("");
    for (const float value : output.values()) CHECK(isnan(value), "%g", double{value});
}

namespace {

void expect_in_every_order(void (*kernel)(int *), int threads, const char *words) {
    for (const std::string &order : orders()) {
        const Simulated machine({{"ORDER", order}});
        const Array<int> output(64);
        LAUNCH(kernel, 1, threads, 0, nullptr, output.data());
        expect_fault(words, order.c_str());
    }
}

}  // namespace

TEST(lanes_that_do_not_come_are_missed) {
    expect_in_every_order(half_comes_to_a_full_mask, 32, "waits for ever");
    expect_in_every_order(half_comes_to_a_full_mask, 64, "waits for ever");
}

TEST(a_caller_outside_its_mask_is_found) { expect_in_every_order(not_in_its_own_mask, 32, "not in its mask"); }

TEST(a_lane_that_ended_is_missed) { expect_in_every_order(a_lane_has_ended, 32, "ended"); }

TEST(lanes_at_different_primitives_are_found) { expect_in_every_order(different_primitives, 32, "__any_sync"); }

TEST(lanes_with_different_masks_are_found) { expect_in_every_order(different_masks, 32, "mask"); }

TEST(lanes_the_block_does_not_have_are_found) { expect_in_every_order(mask_beyond_the_block, 48, "lacks"); }

TEST(a_width_that_is_no_power_of_two_is_found) { expect_in_every_order(divides_a_warp_by_three, 32, "width 3"); }
