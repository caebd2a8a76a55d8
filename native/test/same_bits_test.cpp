// The same bits whatever the number of threads, and whatever the instruction set where the header promises it.
#include <map>

#include "support.h"

namespace {

constexpr int64_t kClients = 5;
constexpr int64_t kN = 100003;  // seven pieces, the last one odd
constexpr int64_t kD = 3;

using Bits = std::vector<unsigned char>;

template <class Numbers>
void append(Bits &bits, const Numbers &values) {
    const auto *bytes = reinterpret_cast<const unsigned char *>(values.data());
    bits.insert(bits.end(), bytes, bytes + values.size() * sizeof values[0]);
}

// Every operation once, on numbers that are the same in each call; what it wrote, under its name.
std::map<std::string, Bits> element_wise(int32_t threads, int32_t isa) {
    Device device(threads, isa);
    Random random(1);
    Vector<float> wide(kClients * kN * kD), first(kClients * kN), second(kClients * kN), v(kClients * kD);
    random.fill(wide);
    random.fill(first);
    random.fill(second);
    random.fill(v);
    // far apart in size, so that a sum in another order would show
    for (size_t i = 0; i < first.size(); i += 97) first[i] *= 1e4f;
    const double weights[kClients] = {0.1, 0.7, 0.0, 1.3, 2.9};
    Vector<double> norms(kClients);
    int64_t bytes = 0;
    CHECK(fcm_sum_workspace(device, kClients, kN, &bytes, nullptr) == FCM_OK, "query");
    Vector<double> workspace(static_cast<size_t>(bytes / 8));

    std::map<std::string, Bits> all;
    Vector<float> out = second;
    const auto keep = [&](const char *name, fcm_status status) {
        CHECK(status == FCM_OK, "%s: status %d", name, status);
        append(all[name], out);
        out = second;
    };
    keep("ema", fcm_ema(device, kClients, kN, 0.3, first.data(), kN, out.data(), kN, nullptr));
    keep("compose_momentum", fcm_compose_momentum(device, kClients, kN, kD, 0.3, wide.data(), kN * kD, v.data(), kD,
                                                  out.data(), kN, nullptr));
    keep("storm", fcm_storm(device, kClients, kN, 0.3, first.data(), kN, wide.data(), kN * kD, out.data(), kN,
                            norms.data(), workspace.data(), bytes, nullptr));
    append(all["storm"], norms);
    CHECK(fcm_norm(device, kClients, kN, first.data(), kN, norms.data(), workspace.data(), bytes, nullptr) == FCM_OK,
          "norm");
    append(all["norm"], norms);
    Vector<float> h = wide;
    keep("project_compose_momentum",
         fcm_project_compose_momentum(device, kClients, kN, kD, norms[2], norms.data(), 0.3, h.data(), kN * kD,
                                      v.data(), kD, out.data(), kN, nullptr));
    append(all["project_compose_momentum"], h);
    keep("plain step", fcm_vector_step(device, kClients, kN, FCM_STEP_PLAIN, 0.3, first.data(), kN, out.data(), kN,
                                       nullptr, 0, nullptr));
    keep("normalized step", fcm_vector_step(device, kClients, kN, FCM_STEP_NORMALIZED, 0.3, first.data(), kN,
                                            out.data(), kN, workspace.data(), bytes, nullptr));
    keep("project", fcm_project(device, kClients, kN, norms[2], norms.data(), out.data(), kN, nullptr));
    for (const int32_t rule : {FCM_ADAM, FCM_YOGI}) {
        const char *name = rule == FCM_ADAM ? "adam" : "yogi";
        Vector<float> m = second;
        // 0.9 m + 0.1 delta all but cancels, so that the rounding of a product in double shows
        for (size_t i = 0; i < m.size(); i += 3) m[i] = first[i] / -9.0f;
        Vector<float> squares = second;
        for (float &value : squares) value *= value;
        keep(name, fcm_adaptive_step(device, kClients, kN, rule, 0.9, 0.99, 1e-3, 0.3, first.data(), kN, m.data(), kN,
                                     squares.data(), kN, out.data(), kN, nullptr));
        append(all[name], m);
        append(all[name], squares);
    }
    // the clients spread over the threads, and one long client cut into pieces
    keep("top k", fcm_top_k(device, kClients, kN, kN / 9, first.data(), kN, out.data(), kN, nullptr));
    keep("top k of one", fcm_top_k(device, 1, kClients * kN, kN / 9, first.data(), 0, out.data(), 0, nullptr));
    keep("uniform average", fcm_average(device, kClients, kN, nullptr, out.data(), kN, nullptr));
    keep("weighted average", fcm_average(device, kClients, kN, weights, out.data(), kN, nullptr));
    for (const int32_t non_temporal : {0, 1}) {
        keep("triad", fcm_triad(device, kN, 0.3f, first.data(), wide.data(), out.data(), non_temporal, nullptr));
    }
    return all;
}

Bits newton_schulz(int32_t threads, int32_t isa) {
    Device device(threads, isa);
    const int64_t shapes[][2] = {{1, 1}, {1, 7}, {7, 1},     {4, 33},    {25, 6},   {16, 150}, {120, 256}, {256, 120},
                                 {10, 120}, {128, 128}, {127, 129}, {33, 47}, {65, 30}, {97, 111}};
    std::vector<fcm_matrix_block> blocks;
    int64_t length = 0;
    for (const auto &[rows, cols] : shapes) {
        blocks.push_back({rows, cols, length, length, length, 0.5});
        length += rows * cols;
    }
    const double coefficients[] = {8.2, -23.5, 17.3, 4.1, -2.9, 0.54, 3.4445, -4.7750, 2.0315};
    Vector<float> m(static_cast<size_t>(kClients * length)), o(m.size()), w(m.size());
    Random random(2);
    random.fill(m);
    random.fill(w);
    const auto count = static_cast<int64_t>(blocks.size());
    int64_t bytes = 0;
    CHECK(fcm_newton_schulz_small_workspace(device, kClients, blocks.data(), count, &bytes, nullptr) == FCM_OK,
          "query");
    // what a workspace held before must not matter either
    Vector<double> workspace(static_cast<size_t>(bytes / 8), threads == 1 ? 0.0 : double{kNaN});
    CHECK(fcm_newton_schulz_small(device, kClients, blocks.data(), count, coefficients, 3, 1.02, 0.1, m.data(), length,
                                  o.data(), length, w.data(), length, workspace.data(), bytes, nullptr) == FCM_OK,
          "newton_schulz_small");
    Bits bits;
    append(bits, o);
    append(bits, w);
    return bits;
}

const char *name_of(int32_t isa) {
    return isa == FCM_ISA_BASELINE ? "baseline" : isa == FCM_ISA_AVX2 ? "avx2" : "avx512";
}

}  // namespace

TEST(element_wise_operations_give_the_same_bits) {
    const auto expected = element_wise(1, FCM_ISA_BASELINE);
    CHECK(expected.size() == 15, "%zu operations", expected.size());
    for (const int32_t isa : isas()) {
        for (const int32_t threads : {1, 2, 4}) {
            const auto got = element_wise(threads, isa);
            for (const auto &[name, bits] : expected) {
                CHECK(got.at(name) == bits, "%s differs with %s and %d threads", name.c_str(), name_of(isa), threads);
            }
        }
    }
}

TEST(newton_schulz_gives_the_same_bits) {
    std::map<int32_t, Bits> single;
    for (const int32_t isa : isas()) {
        single[isa] = newton_schulz(1, isa);
        for (const int32_t threads : {2, 4}) {
            CHECK(newton_schulz(threads, isa) == single[isa], "%s differs with %d threads", name_of(isa), threads);
        }
    }
    if (single.count(FCM_ISA_AVX512) == 1) {
        CHECK(single[FCM_ISA_AVX512] == single[FCM_ISA_AVX2], "avx2 and avx512 differ");
    }
}
