// Guarantees of single operations beyond the table: known results, extreme numbers and special arguments.
#include "support.h"

namespace {

const char *words(fcm_error &error) { return error.message; }

}  // namespace

// The layout described in the header: H is m x dn in column-major order, and the product with v kron I_n, formed here in
// full, is what the operation computes without forming it.
TEST(compose_momentum_is_the_kronecker_product) {
    Device device;
    Random random(1);
    for (const int64_t rows : {1, 2, 5}) {
        for (const int64_t cols : {1, 3, 4}) {
            for (int64_t d = 1; d <= 4; ++d) {
                const int64_t n = rows * cols;
                Vector<float> h(static_cast<size_t>(n * d));
                Vector<float> v(static_cast<size_t>(d));
                Vector<float> m(static_cast<size_t>(n), kNaN);
                random.fill(h);
                random.fill(v);
                reference::Matrix matrix(rows, d * cols);
                for (int64_t i = 0; i < rows; ++i) {
                    for (int64_t j = 0; j < d * cols; ++j) {
                        matrix.at(i, j) = double{h[static_cast<size_t>(i + j * rows)]};
                    }
                }
                const reference::Matrix product = times(matrix, reference::kronecker_identity(v, cols));
                CHECK(fcm_compose_momentum(device, 1, n, d, 1.0, h.data(), n * d, v.data(), d, m.data(), n,
                                           nullptr) == FCM_OK,
                      "%ld x %ld, d %ld", long(rows), long(cols), long(d));
                for (int64_t i = 0; i < rows; ++i) {
                    for (int64_t j = 0; j < cols; ++j) {
                        const double got = double{m[static_cast<size_t>(i + j * rows)]};
                        // terms of at most 8 x 8, d of them
                        const double bound = static_cast<double>(d * 64 * (d + 3)) * reference::kRound;
                        CHECK(std::fabs(got - product.at(i, j)) <= bound,
                              "%ld x %ld, d %ld: (%ld, %ld) is %g, not %g", long(rows), long(cols), long(d), long(i),
                              long(j),
                              got, product.at(i, j));
                    }
                }
            }
        }
    }
}

// Computed by hand: m = 1/2 m + 1/2 delta, then v, then w += m / (sqrt(v) + 1/4).
TEST(adaptive_step_by_hand) {
    for (const int32_t isa : isas()) {
        Device device(1, isa);
        for (const int32_t rule : {FCM_ADAM, FCM_YOGI}) {
            // v above, below and exactly at delta^2, and a first step from zero
            const Vector<float> delta{2.0f, -3.0f, 2.0f, -4.0f};
            Vector<float> m{4.0f, 1.0f, -2.0f, 0.0f};
            Vector<float> v{8.0f, 1.0f, 4.0f, 0.0f};
            Vector<float> w{10.0f, 10.0f, 10.0f, 10.0f};
            CHECK(fcm_adaptive_step(device, 1, 4, rule, 0.5, 0.75, 0.25, 1.0, delta.data(), 4, m.data(), 4, v.data(), 4,
                                    w.data(), 4, nullptr) == FCM_OK,
                  "status");
            const float wanted_m[4] = {3.0f, -1.0f, 0.0f, -2.0f};
            const float adam[4] = {7.0f, 3.0f, 4.0f, 4.0f};
            const float yogi[4] = {7.0f, 3.25f, 4.0f, 4.0f};
            const float *wanted_v = rule == FCM_ADAM ? adam : yogi;
            for (size_t j = 0; j < 4; ++j) {
                const double step = double{wanted_m[j]} / (std::sqrt(double{wanted_v[j]}) + 0.25);
                CHECK(m[j] == wanted_m[j] && v[j] == wanted_v[j] && w[j] == static_cast<float>(10.0 + step),
                      "isa %d, rule %d, element %zu: m %g, v %g, w %g", isa, rule, j, double{m[j]}, double{v[j]},
                      double{w[j]});
            }
        }
    }
}

// One long vector is cut into pieces, which must not affect the result: equal magnitudes of both signs, with the last kept
// element at the boundary of a piece or next to it.
TEST(top_k_prefers_the_lower_index) {
    constexpr int64_t kN = 50000;
    for (const int32_t isa : isas()) {
        for (const int32_t threads : {1, 3}) {
            Device device(threads, isa);
            Floats x(1, kN, 1);
            Floats y(1, kN, 2);
            std::vector<float> values(kN);
            // every third element is a 2, the others are 1, with alternating signs
            for (int64_t j = 0; j < kN; ++j) {
                values[static_cast<size_t>(j)] = (j % 3 == 1 ? 2.0f : 1.0f) * (j % 2 == 0 ? 1.0f : -1.0f);
            }
            x.set(values);
            for (const int64_t twos : {5461, 5462, 10922, 10923, 16666, 16667}) {
                auto wanted = values;
                int64_t left = twos;
                for (float &value : wanted) {
                    if (std::fabs(value) != 2.0f || left-- <= 0) value = 0.0f;
                }
                CHECK(fcm_top_k(device, 1, kN, twos, x.data(), kN, y.data(), kN, nullptr) == FCM_OK, "status");
                CHECK(y.is(wanted), "isa %d, %d threads: %ld twos", isa, threads, long(twos));
            }
            for (const int64_t ones : {1, 10922, 10923, 20000, 33333}) {
                auto wanted = values;
                int64_t left = ones;
                for (float &value : wanted) {
                    if (std::fabs(value) == 1.0f && left-- <= 0) value = 0.0f;
                }
                CHECK(fcm_top_k(device, 1, kN, 16667 + ones, x.data(), kN, y.data(), kN, nullptr) == FCM_OK, "status");
                CHECK(y.is(wanted), "isa %d, %d threads: %ld ones", isa, threads, long(ones));
            }
        }
    }
}

// More clients than are passed with one launch, or than are searched at once.
TEST(hundreds_of_clients) {
    Device device;
    Random random(23);
    for (const int64_t clients : {130, 256, 257, 300}) {
        constexpr int64_t kN = 37;
        Floats x(clients, kN, 1, 2);
        Floats y(clients, kN, 2, 1);
        const auto before = x.randomize(random).values();
        fcm_error error{};
        CHECK(fcm_top_k(device, clients, kN, 5, x.data(), x.stride(), y.data(), y.stride(), &error) == FCM_OK, "%s",
              words(error));
        std::vector<float> wanted(before.size(), 0.0f);
        for (int64_t k = 0; k < clients; ++k) {
            const auto order = reference::by_magnitude(kN, before.data() + k * kN);
            for (size_t i = 0; i < 5; ++i) {
                const auto at = static_cast<size_t>(k * kN + order[i]);
                wanted[at] = before[at];
            }
        }
        CHECK(y.is(wanted), "top k of %ld clients", long(clients));

        std::vector<double> weights(static_cast<size_t>(clients));
        double total = 0.0;
        for (size_t k = 0; k < weights.size(); ++k) total += weights[k] = k % 7 == 3 ? 0.0 : 0.5 + 0.01 * double(k);
        CHECK(fcm_average(device, clients, kN, weights.data(), x.data(), x.stride(), &error) == FCM_OK, "%s",
              words(error));
        for (int64_t j = 0; j < kN; ++j) {
            double sum = 0.0;
            for (int64_t k = 0; k < clients; ++k) {
                sum += weights[static_cast<size_t>(k)] * double{before[static_cast<size_t>(k * kN + j)]};
            }
            const auto mean = static_cast<float>(sum / total);
            for (int64_t k = 0; k < clients; ++k) {
                CHECK(x[k][j] == mean, "client %ld of %ld, element %ld: %.9g, wanted %.9g", long(k), long(clients),
                      long(j), double{x[k][j]}, double{mean});
            }
        }
        CHECK(x.guards_intact() && y.guards_intact(), "guards");
    }
}

// The squares of these values leave the range of float, on either side.
TEST(norm_of_extreme_numbers) {
    constexpr int64_t kN = 40000;
    for (const int32_t isa : isas()) {
        Device device(2, isa);
        for (const float value : {1e-30f, 1e30f, 3e38f, 1e-42f, 0x1p-149f, 1e-38f}) {
            Floats x(2, kN, 1);
            Random random(3);
            for (int64_t j = 0; j < kN; ++j) {
                x[0][j] = value;
                x[1][j] = static_cast<float>(random.uniform() * double{value});
            }
            const auto workspace = sum_workspace(device, 2, kN);
            Doubles norms(1, 2);
            CHECK(fcm_norm(device, 2, kN, x.data(), x.stride(), norms.data(), workspace->data(), workspace->bytes(),
                           nullptr) == FCM_OK,
                  "status");
            CHECK(std::fabs(norms.data()[0] / (double{value} * 200.0) - 1.0) <= 1e-12, "isa %d: %g of %g", isa,
                  norms.data()[0], double{value});
            const double wanted = reference::norm(kN, x[1]);
            CHECK(std::fabs(norms.data()[1] - wanted) <= 1e-12 * wanted, "isa %d, %g: %.17g, wanted %.17g", isa,
                  double{value}, norms.data()[1], wanted);
        }
    }
}

TEST(storm_keeps_the_norm_of_extreme_numbers) {
    Device device;
    constexpr int64_t kN = 20000;
    for (const float value : {1e-30f, 3e38f, 1e-42f}) {
        Floats g_new(1, kN);
        Floats g_old(1, kN);
        Floats h(1, kN);
        g_new.fill(value);
        g_old.fill(value / 2);
        h.fill(value / 2);
        const auto workspace = sum_workspace(device, 1, kN);
        Doubles norm(1, 1);
        CHECK(fcm_storm(device, 1, kN, 0.5, g_new.data(), kN, g_old.data(), kN, h.data(), kN, norm.data(),
                        workspace->data(), workspace->bytes(), nullptr) == FCM_OK,
              "status");
        const double wanted = double{value} * std::sqrt(double{kN});
        CHECK(std::fabs(norm.data()[0] / wanted - 1.0) <= 1e-12, "%.17g, wanted %.17g", norm.data()[0], wanted);
    }
}

namespace {

// A step of one vector of each client.
fcm_status normalized_step(fcm_context *context, int64_t clients, int64_t n, double eta, const Floats &m, Floats &w) {
    const fcm_vector_block block{n, 0, 0, 1.0};
    int64_t bytes = 0;
    CHECK(fcm_vector_steps_workspace(context, clients, &block, 1, &bytes, nullptr) == FCM_OK, "query");
    Doubles workspace(1, bytes / 8);
    return fcm_vector_steps(context, clients, &block, 1, FCM_STEP_NORMALIZED, eta, m.data(), m.stride(), w.data(), w.stride(),
                            workspace.data(), bytes, nullptr);
}

}  // namespace

// 1 / ||m|| is then outside the range of float, so the step must be computed in double.
TEST(normalized_step_of_extreme_numbers) {
    Device device;
    for (const float value : {1e-42f, 1e-30f, 1e30f, 3e38f}) {
        constexpr int64_t kN = 10000;
        Floats m(1, kN);
        Floats w(1, kN);
        m.fill(value);
        w.fill(0.0f);
        CHECK(normalized_step(device, 1, kN, 1.0, m, w) == FCM_OK, "status");
        for (int64_t j = 0; j < kN; ++j) {
            CHECK(std::fabs(w.data()[j] + 0.01f) <= 1e-9f, "%g: %g", double{value}, double{w.data()[j]});
        }
    }
}

// Where C / ||H|| is below the normal range of float, the projected H may still be in the normal range.
TEST(projection_of_extreme_numbers) {
    Device device;
    for (const double radius : {1e-4, 1e-8, 1e-12}) {
        Floats h(1, 64);
        Floats m(1, 64);
        Random random(5);
        h.randomize(random);
        for (int64_t j = 0; j < 64; ++j) h.data()[j] *= 1e35f;
        m.fill(0.0f);
        const Vector<float> one{1.0f};
        const Vector<double> norm{reference::norm(64, h.data())};
        CHECK(fcm_project_compose_momentum(device, 1, 64, 1, radius, norm.data(), 1.0, h.data(), 64, one.data(), 1,
                                           m.data(), 64, nullptr) == FCM_OK,
              "status");
        const double after = reference::norm(64, h.data());
        CHECK(std::fabs(after / radius - 1.0) <= 1e-6, "the norm is %g, the radius %g", after, radius);
    }
}

TEST(project_of_extreme_numbers) {
    for (const int32_t isa : isas()) {
        Device device(2, isa);
        for (const double radius : {1e-4, 1e-8, 1e-12}) {
            Floats x(1, 67);
            Random random(5);
            x.randomize(random);
            for (int64_t j = 0; j < 67; ++j) x.data()[j] *= 1e35f;
            const Vector<double> norm{reference::norm(67, x.data())};
            CHECK(fcm_project(device, 1, 67, radius, norm.data(), x.data(), 67, nullptr) == FCM_OK, "status");
            const double after = reference::norm(67, x.data());
            CHECK(std::fabs(after / radius - 1.0) <= 1e-6, "isa %d: the norm is %g, the radius %g", isa, after, radius);
        }
    }
}

// The squares of these values are outside the range of float, but the resulting step is an ordinary number.
TEST(adaptive_step_of_extreme_numbers) {
    for (const int32_t isa : isas()) {
        Device device(2, isa);
        for (const float value : {1e-40f, 1e-25f, 1e25f, 3e38f}) {
            for (const int32_t rule : {FCM_ADAM, FCM_YOGI}) {
                Floats delta(1, 37), m(1, 37), v(1, 37), w(1, 37);
                delta.fill(value);
                m.fill(0.0f);
                v.fill(0.0f);
                w.fill(0.0f);
                CHECK(fcm_adaptive_step(device, 1, 37, rule, 0.9, 0.99, 1e-300, 1.0, delta.data(), 37, m.data(), 37,
                                        v.data(), 37, w.data(), 37, nullptr) == FCM_OK,
                      "status");
                // 0.1 delta / sqrt(0.01 delta^2)
                for (int64_t j = 0; j < 37; ++j) {
                    CHECK(std::fabs(w.data()[j] - 1.0f) <= 1e-6f, "isa %d, rule %d: %g moves w by %g", isa, rule,
                          double{value}, double{w.data()[j]});
                }
            }
        }
    }
}

// 0 * NaN is NaN, so that multiplying a value that must not be read is detected.
TEST(a_fresh_start_does_not_read_the_old_output) {
    constexpr int64_t kN = 20000;
    for (const int32_t isa : isas()) {
        Device device(2, isa);
        Random random(11);
        Floats x(2, kN);
        Floats y(2, kN);
        const auto x_values = x.randomize(random).values();
        y.fill(kNaN);
        CHECK(fcm_ema(device, 2, kN, 1.0, x.data(), kN, y.data(), kN, nullptr) == FCM_OK, "ema");
        CHECK(y.is(x_values), "isa %d: ema with a = 1 is no copy", isa);

        const Vector<float> v{1.0f, 1.0f};
        y.fill(kNaN);
        CHECK(fcm_compose_momentum(device, 2, kN, 1, 1.0, x.data(), kN, v.data(), 1, y.data(), kN,
                                   nullptr) == FCM_OK,
              "compose");
        CHECK(y.is(x_values), "isa %d: compose with b = 1 and v = 1 is no copy", isa);

        const Vector<double> norms{1e-3, 1e-3};
        y.fill(kNaN);
        CHECK(fcm_project_compose_momentum(device, 2, kN, 1, 1.0, norms.data(), 1.0, x.data(), kN, v.data(), 1, y.data(),
                                           kN, nullptr) ==
                  FCM_OK,
              "project");
        CHECK(y.is(x_values), "isa %d: project with b = 1 and v = 1 is no copy", isa);

        const Vector<double> large{4.0, 4.0};
        y.fill(kNaN);
        CHECK(fcm_project_compose_momentum(device, 2, kN, 1, 1.0, large.data(), 1.0, x.data(), kN, v.data(), 1, y.data(),
                                           kN, nullptr) ==
                  FCM_OK,
              "project");
        CHECK(y.is(x.values()), "isa %d: project with b = 1 reads M outside the ball", isa);
        CHECK(x.data()[5] == 0.25f * x_values[5], "isa %d: H is not scaled by C / norm", isa);
    }
}

TEST(an_infinite_radius_leaves_h_alone) {
    Device device;
    Random random(13);
    Floats h(3, 600, 1, 2);
    Floats m(3, 200);
    const Vector<float> v{0.5f, -1.0f, 2.0f};
    const auto before = h.randomize(random).values();
    m.fill(0.0f);
    const Vector<double> norms{0.0, 1e300, 1.0};
    CHECK(fcm_project_compose_momentum(device, 3, 200, 3, double{kInf}, norms.data(), 0.5, h.data(), h.stride(),
                                       v.data(), 0, m.data(), m.stride(), nullptr) == FCM_OK,
          "status");
    CHECK(h.is(before), "h was written");
    Floats other(3, 200);
    other.fill(0.0f);
    CHECK(fcm_compose_momentum(device, 3, 200, 3, 0.5, h.data(), h.stride(), v.data(), 0, other.data(),
                               other.stride(), nullptr) ==
              FCM_OK,
          "status");
    CHECK(m.is(other.values()), "without a projection both give the same bits");
}

TEST(an_infinite_radius_projects_nobody) {
    Device device;
    Random random(14);
    Floats x(3, 20000, 1, 2);
    const auto before = x.randomize(random).values();
    const Vector<double> norms{0.0, 1e300, 1.0};
    CHECK(fcm_project(device, 3, 20000, double{kInf}, norms.data(), x.data(), x.stride(), nullptr) == FCM_OK, "status");
    CHECK(x.is(before), "x was written");
}

TEST(a_zero_vector_takes_no_normalized_step) {
    Device device;
    Random random(17);
    Floats m(2, 30000);
    Floats w(2, 30000);
    m.randomize(random);
    for (int64_t j = 0; j < 30000; ++j) m[0][j] = j % 2 == 0 ? 0.0f : -0.0f;
    const auto before = w.randomize(random).values();
    CHECK(normalized_step(device, 2, 30000, 0.1, m, w) == FCM_OK, "status");
    CHECK(std::memcmp(w[0], before.data(), 30000 * sizeof(float)) == 0, "client 0 was stepped");
    CHECK(std::memcmp(w[1], before.data() + 30000, 30000 * sizeof(float)) != 0, "client 1 was not stepped");
}

TEST(one_vector_for_all_is_searched_once) {
    Device device;
    constexpr int64_t kN = 20000;
    Floats x(1, kN, 1);
    x.fill(1.0f);
    x.data()[kN - 1] = kInf;
    int64_t client = 0;
    int64_t index = 0;
    CHECK(fcm_all_finite(device, 3, kN, x.data(), 0, &client, &index, nullptr) == FCM_OK, "all_finite");
    CHECK(client == 0 && index == kN - 1, "found client %ld, element %ld", long(client), long(index));
}
