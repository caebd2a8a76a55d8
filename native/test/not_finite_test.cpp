// NaN and Inf beyond the table of operations: the first one is found regardless of thread timing, and nothing is written.
#include "support.h"

namespace {

struct Place {
    int64_t client;
    int64_t index;
};

const float kBad[] = {kNaN, kInf, -kInf, -kNaN};

}  // namespace

// Several are placed; the first in client order is reported, even if a thread finds a later one earlier.
TEST(all_finite_finds_the_first) {
    constexpr int64_t kClients = 4;
    constexpr int64_t kN = 40000;  // three pieces of 16384
    const std::vector<std::vector<Place>> plantings = {
        {{0, 0}},
        {{3, kN - 1}},
        {{0, 16383}, {0, 16384}},
        {{0, 16384}, {0, 32768}, {1, 0}},
        {{0, 39999}, {1, 0}, {2, 5}},
        {{1, 20000}, {2, 0}, {3, 16384}},
        {{2, 1023}, {2, 1024}, {2, 33000}, {3, 1}},
        {{2, 1025}, {2, 1500}, {2, 1026}},
        {{3, 32767}, {3, 32768}, {3, 39999}},
    };
    for (const int32_t isa : isas()) {
        for (const int32_t threads : {1, 2, 4}) {
            Device device(threads, isa);
            for (size_t p = 0; p < plantings.size(); ++p) {
                Floats x(kClients, kN, 3, 5);
                Random random(p);
                x.randomize(random);
                for (const Place &place : plantings[p]) x[place.client][place.index] = kBad[(p + place.index) % 4];
                int64_t client = -7;
                int64_t index = -7;
                CHECK(fcm_all_finite(device, kClients, kN, x.data(), x.stride(), &client, &index, nullptr) == FCM_OK,
                      "status");
                CHECK(client == plantings[p][0].client && index == plantings[p][0].index,
                      "isa %d, %d threads: (%ld, %ld), wanted (%ld, %ld)", isa, threads, long(client), long(index),
                      long(plantings[p][0].client), long(plantings[p][0].index));
            }
        }
    }
}

// Every position of a vector register and its remainder, both in the main loop and in the tail.
TEST(all_finite_looks_at_every_element) {
    for (const int32_t isa : isas()) {
        Device device(1, isa);
        Floats x(1, 1100, 1);
        for (int64_t j = 0; j < 1100; ++j) {
            x.fill(0.0f);
            x.data()[j] = kBad[j % 4];
            int64_t client = -7;
            int64_t index = -7;
            CHECK(fcm_all_finite(device, 1, 1100, x.data(), 1100, &client, &index, nullptr) == FCM_OK, "status");
            CHECK(client == 0 && index == j, "isa %d: (%ld, %ld), wanted %ld", isa, long(client), long(index), long(j));
        }
    }
}

TEST(a_projection_refuses_norms_that_are_no_numbers) {
    Device device;
    for (const double bad : {double{kNaN}, double{kInf}, -double{kInf}}) {
        for (const double radius : {0.5, double{kInf}}) {
            Floats h(3, 40000);
            Floats m(3, 20000);
            Random random(1);
            const auto h_before = h.randomize(random).values();
            const auto m_before = m.randomize(random).values();
            const Vector<float> v{1.0f, 2.0f};
            const Vector<double> norms{1.0, bad, bad};
            const auto project = [&](fcm_error *e) {
                return fcm_project_compose_momentum(device, 3, 20000, 2, radius, norms.data(), 0.5, h.data(), h.stride(),
                                                    v.data(), 0,
                                                    m.data(), m.stride(), e);
            };
            refused(FCM_NOT_FINITE, "fcm_project_compose_momentum", "a norm", project);
            fcm_error error{};
            project(&error);
            CHECK(error.client == 1 && error.block == -1 && error.index == -1, "(%ld, %ld, %ld)", long(error.client),
                  long(error.block), long(error.index));
            CHECK(h.is(h_before) && m.is(m_before), "something was written for %g", bad);
        }
    }
}

TEST(a_plain_projection_refuses_them_too) {
    Device device;
    for (const double bad : {double{kNaN}, double{kInf}, -double{kInf}}) {
        for (const double radius : {0.5, double{kInf}}) {
            Floats x(3, 20000, 1, 3);
            Random random(1);
            const auto before = x.randomize(random).values();
            const Vector<double> norms{1.0, bad, bad};
            const auto project = [&](fcm_error *e) {
                return fcm_project(device, 3, 20000, radius, norms.data(), x.data(), x.stride(), e);
            };
            refused(FCM_NOT_FINITE, "fcm_project", "a norm", project);
            fcm_error error{};
            project(&error);
            CHECK(error.client == 1 && error.block == -1 && error.index == -1, "(%ld, %ld, %ld)", long(error.client),
                  long(error.block), long(error.index));
            CHECK(x.is(before), "something was written for %g", bad);
        }
    }
}

// How a NaN in a gradient is reported to the user: storm carries it into the norm, and the projection names the client.
TEST(a_nan_gradient_is_reported_by_the_projection) {
    Device device;
    constexpr int64_t kN = 20000;
    Floats g(2, kN);
    Floats h(2, kN);
    Random random(2);
    g.randomize(random);
    h.randomize(random);
    g[1][17000] = kNaN;
    const auto workspace = sum_workspace(device, 2, kN);
    Doubles norms(1, 2);
    CHECK(fcm_storm(device, 2, kN, 0.5, g.data(), kN, g.data(), kN, h.data(), kN, norms.data(), workspace->data(),
                    workspace->bytes(), nullptr) == FCM_OK,
          "storm");
    CHECK(std::isfinite(norms.data()[0]) && std::isnan(norms.data()[1]), "norms %g, %g", norms.data()[0],
          norms.data()[1]);
    Floats m(2, kN);
    const auto before = m.randomize(random).values();
    const Vector<float> v{1.0f};
    fcm_error error{};
    CHECK(fcm_project_compose_momentum(device, 2, kN, 1, 1.0, norms.data(), 0.5, h.data(), kN, v.data(), 0, m.data(), kN,
                                       &error) ==
              FCM_NOT_FINITE,
          "project");
    CHECK(error.client == 1, "client %ld", long(error.client));
    CHECK(m.is(before), "m was written");
}

// ---- Newton-Schulz --------------------------------------------------------------------------------------------

namespace {

// Enough elements for the pool to be used; the block that the pool starts with is not the first of the table.
const fcm_matrix_block kBlocks[] = {{20, 30, 0, 0, 0, 1.0, 0},
                                    {100, 120, 600, 600, 600, 2.0, 0},
                                    {16, 16, 12600, 12600, 12600, 1.0, 0},
                                    {3, 1, 12856, 12856, 12856, 0.5, 0}};
constexpr int64_t kBlockCount = 4;
constexpr int64_t kLength = 12859;
const std::vector<double> kMuon = {3.4445, -4.7750, 2.0315, 3.4445, -4.7750, 2.0315, 3.4445, -4.7750, 2.0315};

fcm_status newton_schulz(fcm_context *context, int64_t clients, const std::vector<double> &coefficients,
                         const Floats &m, float *o, int64_t o_stride, Floats &w, fcm_error *error) {
    int64_t bytes = 0;
    CHECK(fcm_newton_schulz_workspace(context, clients, kBlocks, kBlockCount, Iteration(), &bytes, nullptr) == FCM_OK,
          "query");
    Vector<double> workspace(static_cast<size_t>(bytes / 8));
    return fcm_newton_schulz(context, clients, kBlocks, kBlockCount, Iteration(coefficients.data(),
                                                                               static_cast<int64_t>(coefficients.size() / 3),
                                                                                   1.0), 0.5, m.data(), m.stride(), o,
                                                                                       o_stride, w.data(), w.stride(),
                                                                                               workspace.data(), bytes, error);
}

struct Spot {
    int64_t client;
    int64_t block;
    int64_t index;
};

}  // namespace

TEST(newton_schulz_refuses_and_writes_nothing) {
    constexpr int64_t kClients = 3;
    const std::vector<std::vector<Spot>> plantings = {
        {{0, 0, 0}},
        {{2, 3, 2}},
        {{0, 3, 1}, {1, 1, 0}},                // the cheapest block comes first, although it is processed last
        {{1, 1, 11999}, {1, 2, 0}, {2, 0, 0}},
        {{1, 2, 17}, {1, 2, 255}, {1, 3, 0}},
    };
    for (const int32_t threads : {1, 2, 4}) {
        Device device(threads);
        for (const bool in_place : {false, true}) {
            for (size_t p = 0; p < plantings.size(); ++p) {
                Floats m(kClients, kLength, 1, 1);
                Floats o(kClients, kLength, 2, 2);
                Floats w(kClients, kLength, 3, 0);
                Random random(p);
                m.randomize(random);
                for (const Spot &spot : plantings[p]) {
                    m[spot.client][kBlocks[spot.block].m_offset + spot.index] = kBad[(p + spot.index) % 4];
                }
                const auto m_before = m.values();
                const auto o_before = o.randomize(random).values();
                const auto w_before = w.randomize(random).values();
                Floats &out = in_place ? m : o;
                fcm_error error{};
                const auto call = [&](fcm_error *e) {
                    return newton_schulz(device, kClients, kMuon, m, out.data(), out.stride(), w, e);
                };
                refused(FCM_NOT_FINITE, "fcm_newton_schulz", "NaN in m", call);
                call(&error);
                const Spot &first = plantings[p][0];
                CHECK(error.client == first.client && error.block == first.block && error.index == first.index,
                      "%d threads: (%ld, %ld, %ld), wanted (%ld, %ld, %ld)", threads, long(error.client),
                      long(error.block),
                      long(error.index), long(first.client), long(first.block), long(first.index));
                CHECK(m.is(m_before) && o.is(o_before) && w.is(w_before),
                      "%d threads, planting %zu: something was written", threads, p);
            }
        }
    }
}

// X <- 300 (X X^T)^2 X is 300 s^5 for a singular value s. With three steps, 1 leaves the range of float; 1/4, the value for
// the normalized identity of size 16, does not. One matrix can therefore fail next to others that must be stepped.
TEST(a_matrix_out_of_range_is_left_and_the_others_stepped) {
    constexpr int64_t kClients = 3;
    const std::vector<double> diverging = {0.0, 0.0, 300.0, 0.0, 0.0, 300.0, 0.0, 0.0, 300.0};
    const fcm_matrix_block blocks[] = {{16, 16, 0, 0, 0, 1.0, 0}, {40, 60, 256, 256, 256, 1.0, 0},
                                       {5, 5, 2656, 2656, 2656, 1.0, 0}};
    constexpr int64_t kSize = 2681;
    for (const int32_t isa : isas()) {
        for (const int32_t threads : {1, 2}) {
            for (const bool in_place : {false, true}) {
                Device device(threads, isa);
                Floats m(kClients, kSize, 1, 1);
                Floats o(kClients, kSize, 2, 1);
                Floats w(kClients, kSize, 3, 1);
                // block 0: the identity; blocks 1 and 2: zero. Client 1 has a matrix of rank one as block 1, client 2 as
                // blocks 0 and 2.
                m.fill(0.0f);
                for (int64_t k = 0; k < kClients; ++k) {
                    for (int64_t i = 0; i < 16; ++i) m[k][i * 17] = 3.0f;
                }
                for (int64_t j = 0; j < 40 * 60; ++j) m[1][256 + j] = 1.0f;
                for (int64_t j = 0; j < 16 * 16; ++j) m[2][j] = 1.0f;
                for (int64_t j = 0; j < 25; ++j) m[2][2656 + j] = -1.0f;
                const auto m_before = m.values();
                const auto o_before = o.fill(5.0f).values();
                const auto w_before = w.fill(1.0f).values();
                Floats &out = in_place ? m : o;
                const auto &out_before = in_place ? m_before : o_before;
                int64_t bytes = 0;
                CHECK(fcm_newton_schulz_workspace(device, kClients, blocks, 3, Iteration(), &bytes, nullptr) == FCM_OK,
                      "query");
                Vector<double> workspace(static_cast<size_t>(bytes / 8));
                fcm_error error{};
                CHECK(fcm_newton_schulz(device, kClients, blocks, 3, Iteration(diverging.data(), 3, 1.0), 0.5, m.data(),
                                        m.stride(), out.data(), out.stride(), w.data(), w.stride(), workspace.data(), bytes,
                                            &error) == FCM_NOT_FINITE,
                      "isa %d", isa);
                CHECK(error.status == FCM_NOT_FINITE && error.client == 1 && error.block == 1 && error.index == -1,
                      "isa %d: (%ld, %ld, %ld)", isa, long(error.client), long(error.block), long(error.index));
                const auto unwritten = [&](int64_t k, const fcm_matrix_block &block) {
                    const auto size = static_cast<size_t>(block.rows * block.cols) * sizeof(float);
                    return std::memcmp(out[k] + block.o_offset, out_before.data() + k * kSize + block.o_offset,
                                       size) == 0 &&
                           std::memcmp(w[k] + block.w_offset, w_before.data() + k * kSize + block.w_offset, size) == 0;
                };
                CHECK(unwritten(1, blocks[1]) && unwritten(2, blocks[0]) && unwritten(2, blocks[2]),
                      "isa %d: a matrix out of range was written", isa);
                // 1/4 -> 0.293 -> 0.647 -> 34.0
                double s = 0.25;
                for (int i = 0; i < 3; ++i) s = 300.0 * std::pow(s, 5);
                for (const int64_t k : {0, 1}) {
                    CHECK(std::fabs(double{out[k][0]} - s) <= 1e-4 * s && out[k][1] == 0.0f, "isa %d: %g, wanted %g",
                          isa, double{out[k][0]}, s);
                    CHECK(std::fabs(double{w[k][0]} - (1.0 - 0.5 * s)) <= 1e-4 * s && w[k][1] == 1.0f,
                          "isa %d: w is %g", isa, double{w[k][0]});
                }
                CHECK(out[0][256] == 0.0f && w[0][256] == 1.0f, "isa %d: the zero matrix", isa);
                CHECK(m.guards_intact() && o.guards_intact() && w.guards_intact(), "isa %d: guards", isa);
            }
        }
    }
}
