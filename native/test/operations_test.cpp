// Every element-wise operation and sum against a double-precision reference, for each instruction set.
//
// Bounds count roundings: an operation of r roundings to float on its longest path is off by at most r u of the sum
// of its terms' sizes, u = 2^-24, and a little for the products of those errors; that little is 0.01 u here.
#include <array>
#include <functional>

#include "support.h"

namespace {

struct Case {
    int32_t isa;
    int64_t n;
    int64_t clients;
    int64_t shift;  // operand i starts shift + i elements off, modulo 4
    int64_t gap;

    std::unique_ptr<Floats> operand(int64_t i, int64_t length) const {
        return std::make_unique<Floats>(clients, length, (shift + i) % 4, gap == 0 ? 0 : gap + i);
    }
    std::string at(int64_t client, int64_t index) const {
        char words[160];
        std::snprintf(words, sizeof words, "isa %d, n %ld, clients %ld, shift %ld, gap %ld, client %ld, element %ld",
                      isa, long(n), long(clients), long(shift), long(gap), long(client), long(index));
        return words;
    }
};

// Around the vector width, the strip of 1024 and the piece of 16384, with remainders; enough clients to pass the
// number of threads. Shifts and gaps rotate instead of multiplying the number of cases.
template <class Body>
void for_cases(Body &&body) {
    for (const int32_t isa : isas()) {
        Device device(2, isa);
        int64_t number = 0;
        for (const int64_t n : {1, 7, 63, 64, 65, 1000, 16384, 16385, 40000}) {
            for (const int64_t k : {1, 2, 5, 17}) {
                for (const int64_t gap : {0, 3}) {
                    Random random(static_cast<uint64_t>(number));
                    body(device, Case{isa, n, k, number++ % 4, gap}, random);
                }
            }
        }
    }
}

template <class Body>
void for_elements(const Case &c, Body &&body) {
    for (int64_t k = 0; k < c.clients; ++k) {
        for (int64_t j = 0; j < c.n; ++j) body(k, j, [&] { return c.at(k, j); });
    }
}

void check_norms(const Case &c, const Doubles &norms, const Floats &x) {
    for (int64_t k = 0; k < c.clients; ++k) {
        const double wanted = reference::norm(c.n, x[k]);
        CHECK(std::fabs(norms.data()[k] - wanted) <= 1e-12 * wanted, "%s: %.17g, wanted %.17g", c.at(k, -1).c_str(),
              norms.data()[k], wanted);
    }
}

template <class... Operands>
void check_guards(const Case &c, Operands &...operands) {
    int number = 0;
    for (const bool intact : {operands.guards_intact()...}) {
        CHECK(intact, "%s: around operand %d", c.at(-1, -1).c_str(), number);
        ++number;
    }
}

const char *words(fcm_error &error) { return error.message; }

}  // namespace

TEST(ema_matches_reference) {
    Accuracy accuracy("ema");
    for_cases([&](fcm_context *context, const Case &c, Random &random) {
        const auto x = c.operand(0, c.n);
        const auto y = c.operand(1, c.n);
        x->randomize(random);
        const auto x_before = x->values();
        for (const double a : {0.0, 0.3, 0.9, 1.0}) {
            const auto y_before = y->randomize(random).values();
            fcm_error error{};
            CHECK(fcm_ema(context, c.clients, c.n, a, x->data(), x->stride(), y->data(), y->stride(), &error) == FCM_OK,
                  "%s", words(error));
            // roundings: a or 1-a, the product, the sum
            for_elements(c, [&](int64_t k, int64_t j, auto where) {
                const float old = y_before[static_cast<size_t>(k * c.n + j)];
                accuracy.expect((*y)[k][j], reference::ema(a, (*x)[k][j], old), 3.01, where);
            });
        }
        CHECK(x->is(x_before), "%s: x was written", c.at(-1, -1).c_str());
        check_guards(c, *x, *y);
    });
}

TEST(compose_momentum_matches_reference) {
    Accuracy accuracy("compose_momentum");
    for_cases([&](fcm_context *context, const Case &c, Random &random) {
        // Blocks are taken eight at a time: up to one group, one and a bit, and with a group in the middle. Where n is
        // large, a few of these.
        std::vector<int64_t> sizes{1, 2, 3, 4, 5, 6, 7, 8, 9, 17};
        if (c.n > 1000 && c.clients <= 2) sizes = {1, 4, 8, 9, 17};
        if (c.n > 1000 && c.clients > 2) sizes = {1 + (c.clients + c.gap) % 9};
        for (const int64_t d : sizes) {
            const auto h = c.operand(0, c.n * d);
            const auto v = c.operand(1, d);
            const auto m = c.operand(2, c.n);
            const auto h_before = h->randomize(random).values();
            const auto v_before = v->randomize(random).values();
            const auto m_before = m->randomize(random).values();
            const double b = d % 3 == 0 ? 1.0 : 0.1;
            fcm_error error{};
            CHECK(fcm_compose_momentum(context, c.clients, c.n, d, b, h->data(), h->stride(), v->data(), v->stride(),
                                       m->data(), m->stride(), &error) == FCM_OK,
                  "%s", words(error));
            // roundings: v_i h_i, d-1 sums, b, its product, the last sum
            const double units = static_cast<double>(d + 3) + 0.01;
            for_elements(c, [&](int64_t k, int64_t j, auto where) {
                const float old = m_before[static_cast<size_t>(k * c.n + j)];
                accuracy.expect((*m)[k][j], reference::compose(c.n, d, b, 1.0, (*h)[k], (*v)[k], old, j), units, where);
            });
            CHECK(h->is(h_before) && v->is(v_before), "%s: an input was written", c.at(-1, -1).c_str());
            check_guards(c, *h, *v, *m);
        }
    });
}

// The layout that the header claims: H is m x dn in column-major order, and the product with v kron I_n, formed here
// in full, is what the operation computes without forming it.
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

TEST(storm_matches_reference) {
    Accuracy accuracy("storm");
    for_cases([&](fcm_context *context, const Case &c, Random &random) {
        const auto g_new = c.operand(0, c.n);
        const auto g_old = c.operand(1, c.n);
        const auto h = c.operand(2, c.n);
        const auto workspace = sum_workspace(context, c.clients, c.n);
        Doubles norms(1, c.clients, 1);
        const auto new_before = g_new->randomize(random).values();
        const auto old_before = g_old->randomize(random).values();
        for (const double g : {0.0, 0.25, 1.0}) {
            const auto h_before = h->randomize(random).values();
            fcm_error error{};
            CHECK(fcm_storm(context, c.clients, c.n, g, g_new->data(), g_new->stride(), g_old->data(), g_old->stride(),
                            h->data(), h->stride(), norms.data(), workspace->data(), workspace->bytes(),
                            &error) == FCM_OK,
                  "%s", words(error));
            // roundings: the difference, 1-g, the product, the sum
            for_elements(c, [&](int64_t k, int64_t j, auto where) {
                const float old = h_before[static_cast<size_t>(k * c.n + j)];
                accuracy.expect((*h)[k][j], reference::storm(g, (*g_new)[k][j], (*g_old)[k][j], old), 4.01, where);
            });
            check_norms(c, norms, *h);
        }
        CHECK(g_new->is(new_before) && g_old->is(old_before), "%s: an input was written", c.at(-1, -1).c_str());
        check_guards(c, *g_new, *g_old, *h, norms, *workspace);
    });
}

TEST(project_compose_momentum_matches_reference) {
    Accuracy accuracy("project_compose_momentum, m");
    Accuracy projected("project_compose_momentum, h");
    for_cases([&](fcm_context *context, const Case &c, Random &random) {
        const int64_t d = std::array<int64_t, 7>{1, 2, 3, 5, 8, 9, 17}[size_t(c.shift + c.gap + c.clients) % 7];
        const auto h = c.operand(0, c.n * d);
        const auto v = c.operand(1, d);
        const auto m = c.operand(2, c.n);
        const auto h_before = h->randomize(random).values();
        const auto v_before = v->randomize(random).values();
        const auto m_before = m->randomize(random).values();
        Doubles norms(1, c.clients, 1);
        for (int64_t k = 0; k < c.clients; ++k) norms.data()[k] = reference::norm(c.n * d, (*h)[k]);
        const auto norms_before = norms.values();
        // Some clients are inside the ball, some outside, and the first is exactly on its border.
        const double radius = norms.data()[0];
        const double b = 0.2;
        fcm_error error{};
        CHECK(fcm_project_compose_momentum(context, c.clients, c.n, d, radius, norms.data(), b, h->data(), h->stride(),
                                           v->data(), v->stride(), m->data(), m->stride(), &error) == FCM_OK,
              "%s", words(error));
        for (int64_t k = 0; k < c.clients; ++k) {
            const double scale = std::min(1.0, radius / norms.data()[k]);
            const float *old_h = h_before.data() + k * c.n * d;
            for (int64_t j = 0; j < c.n * d; ++j) {
                const auto where = [&] { return c.at(k, j); };
                reference::Number wanted;
                wanted.add(scale * double{old_h[j]});
                // not written inside the ball; outside, roundings: the scale, the product
                projected.expect((*h)[k][j], wanted, scale < 1.0 ? 2.01 : 1e-9, where);
            }
            for (int64_t j = 0; j < c.n; ++j) {
                const auto where = [&] { return c.at(k, j); };
                const float old = m_before[static_cast<size_t>(k * c.n + j)];
                // the two of h, and those of compose_momentum
                accuracy.expect((*m)[k][j], reference::compose(c.n, d, b, scale, old_h, (*v)[k], old, j),
                                static_cast<double>(d + 5) + 0.01, where);
            }
            CHECK(scale == 1.0 || std::fabs(reference::norm(c.n * d, (*h)[k]) / radius - 1.0) <= 1e-6,
                  "%s: the norm is %g of the radius", c.at(k, -1).c_str(), reference::norm(c.n * d, (*h)[k]) / radius);
        }
        CHECK(v->is(v_before) && norms.is(norms_before), "%s: an input was written", c.at(-1, -1).c_str());
        check_guards(c, *h, *v, *m, norms);
    });
}

TEST(project_matches_reference) {
    Accuracy accuracy("project");
    for_cases([&](fcm_context *context, const Case &c, Random &random) {
        const auto x = c.operand(0, c.n);
        const auto before = x->randomize(random).values();
        Doubles norms(1, c.clients, 1);
        for (int64_t k = 0; k < c.clients; ++k) norms.data()[k] = reference::norm(c.n, (*x)[k]);
        const auto norms_before = norms.values();
        // Some clients are inside the ball, some outside, and the middle one is exactly on its border; alone, it is
        // outside.
        const double radius = norms.data()[c.clients / 2] * (c.clients == 1 ? 0.3 : 1.0);
        fcm_error error{};
        CHECK(fcm_project(context, c.clients, c.n, radius, norms.data(), x->data(), x->stride(), &error) == FCM_OK, "%s",
              words(error));
        for (int64_t k = 0; k < c.clients; ++k) {
            const float *old = before.data() + k * c.n;
            if (norms.data()[k] <= radius) {
                CHECK(std::memcmp((*x)[k], old, static_cast<size_t>(c.n) * sizeof(float)) == 0, "%s: was written",
                      c.at(k, -1).c_str());
                continue;
            }
            for (int64_t j = 0; j < c.n; ++j) {
                reference::Number wanted;
                wanted.add(radius / norms.data()[k] * double{old[j]});
                accuracy.expect((*x)[k][j], reference::rounded_once(wanted), 1.01, [&] { return c.at(k, j); });
            }
            CHECK(std::fabs(reference::norm(c.n, (*x)[k]) / radius - 1.0) <= 1e-6, "%s: the norm is %g of the radius",
                  c.at(k, -1).c_str(), reference::norm(c.n, (*x)[k]) / radius);
        }
        CHECK(norms.is(norms_before), "%s: the norms were written", c.at(-1, -1).c_str());
        check_guards(c, *x, norms);
    });
}

TEST(norm_matches_reference) {
    for_cases([&](fcm_context *context, const Case &c, Random &random) {
        const auto x = c.operand(0, c.n);
        const auto x_before = x->randomize(random).values();
        const auto workspace = sum_workspace(context, c.clients, c.n);
        Doubles norms(1, c.clients, 1);
        fcm_error error{};
        CHECK(fcm_norm(context, c.clients, c.n, x->data(), x->stride(), norms.data(), workspace->data(),
                       workspace->bytes(), &error) == FCM_OK,
              "%s", words(error));
        check_norms(c, norms, *x);
        CHECK(x->is(x_before), "%s: x was written", c.at(-1, -1).c_str());
        check_guards(c, *x, norms, *workspace);
    });
}

TEST(vector_step_matches_reference) {
    Accuracy plain("vector_step, plain");
    Accuracy normalized("vector_step, normalized");
    for_cases([&](fcm_context *context, const Case &c, Random &random) {
        const auto m = c.operand(0, c.n);
        const auto w = c.operand(1, c.n);
        const auto m_before = m->randomize(random).values();
        const auto workspace = sum_workspace(context, c.clients, c.n);
        for (const int32_t rule : {FCM_STEP_PLAIN, FCM_STEP_NORMALIZED}) {
            const auto w_before = w->randomize(random).values();
            const double eta = 0.7;
            fcm_error error{};
            CHECK(fcm_vector_step(context, c.clients, c.n, rule, eta, m->data(), m->stride(), w->data(), w->stride(),
                                  rule == FCM_STEP_PLAIN ? nullptr : workspace->data(),
                                  rule == FCM_STEP_PLAIN ? 0 : workspace->bytes(), &error) == FCM_OK,
                  "%s", words(error));
            for (int64_t k = 0; k < c.clients; ++k) {
                const double step = rule == FCM_STEP_PLAIN ? eta : eta / reference::norm(c.n, (*m)[k]);
                for (int64_t j = 0; j < c.n; ++j) {
                    const auto where = [&] { return c.at(k, j); };
                    const float old = w_before[static_cast<size_t>(k * c.n + j)];
                    // roundings: the product, the difference
                    (rule == FCM_STEP_PLAIN ? plain : normalized)
                        .expect((*w)[k][j], reference::step(step, (*m)[k][j], old), 2.01, where);
                }
            }
        }
        CHECK(m->is(m_before), "%s: m was written", c.at(-1, -1).c_str());
        check_guards(c, *m, *w, *workspace);
    });
}

TEST(adaptive_step_matches_reference) {
    Accuracy first("adaptive_step, m");
    Accuracy second("adaptive_step, v");
    Accuracy weights("adaptive_step, w");
    for_cases([&](fcm_context *context, const Case &c, Random &random) {
        if (c.n > 1000 && c.clients > 5) return;  // nothing new, and slow under a sanitizer
        const auto delta = c.operand(0, c.n);
        const auto m = c.operand(1, c.n);
        const auto v = c.operand(2, c.n);
        const auto w = c.operand(3, c.n);
        delta->randomize(random);
        for (const int32_t rule : {FCM_ADAM, FCM_YOGI}) {
            // with beta = 0 a moment is that of the last change alone
            const double beta1 = c.gap == 0 ? 0.9 : 0.0;
            const double beta2 = c.clients == 2 ? 0.0 : 0.75;
            const double epsilon = 0.01;
            const double eta = rule == FCM_ADAM ? 0.3 : -1.7;
            const auto m_before = m->randomize(random).values();
            v->randomize(random);
            // second moments are not negative; some are zero, and some exactly the square of the change
            for_elements(c, [&](int64_t k, int64_t j, auto) {
                float &moment = (*v)[k][j];
                moment = std::fabs(moment);
                if (j % 7 == 3) moment = 0.0f;
                if (j % 7 == 5) {
                    (*delta)[k][j] = std::round((*delta)[k][j] * 16.0f) / 16.0f;
                    moment = (*delta)[k][j] * (*delta)[k][j];
                }
            });
            const auto delta_used = delta->values();
            const auto v_before = v->values();
            const auto w_before = w->randomize(random).values();
            fcm_error error{};
            CHECK(fcm_adaptive_step(context, c.clients, c.n, rule, beta1, beta2, epsilon, eta, delta->data(),
                                    delta->stride(), m->data(), m->stride(), v->data(), v->stride(), w->data(),
                                    w->stride(), &error) == FCM_OK,
                  "%s", words(error));
            for_elements(c, [&](int64_t k, int64_t j, auto where) {
                const auto i = static_cast<size_t>(k * c.n + j);
                const reference::Adaptive wanted = reference::adaptive_step(
                    rule == FCM_YOGI, beta1, beta2, epsilon, eta, delta_used[i], m_before[i], v_before[i], w_before[i]);
                first.expect((*m)[k][j], reference::rounded_once(wanted.m), 1.01, where);
                second.expect((*v)[k][j], reference::rounded_once(wanted.v), 1.01, where);
                weights.expect((*w)[k][j], reference::rounded_once(wanted.w), 1.01, where);
                CHECK((*v)[k][j] >= 0.0f, "%s: a second moment of %g", c.at(k, j).c_str(), double{(*v)[k][j]});
            });
            CHECK(delta->is(delta_used), "%s: delta was written", c.at(-1, -1).c_str());
        }
        check_guards(c, *delta, *m, *v, *w);
    });
}

// By hand: m = 1/2 m + 1/2 delta, then v, then w += m / (sqrt(v) + 1/4).
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

TEST(top_k_keeps_the_largest) {
    for_cases([&](fcm_context *context, const Case &c, Random &random) {
        if (c.n > 1000 && c.clients > 5) return;  // nothing new, and slow under a sanitizer
        const auto x = c.operand(0, c.n);
        const auto y = c.operand(1, c.n);
        x->randomize(random);
        // Numbers that differ in all digits of their bits, in the lowest only, or hardly ever; and zeros of either sign.
        for_elements(c, [&](int64_t k, int64_t j, auto) {
            auto bits = static_cast<uint32_t>(random.bits());
            switch ((k + c.gap + c.shift) % 4) {
                case 0: return;
                case 1: bits &= 0xff7fffffu; break;
                case 2: bits = (bits & 0x800001ffu) | 0x3f800200u; break;
                default: bits = j % 5 == 0 ? bits & 0x80000000u : (bits & 0x80c00000u) | 0x3f000000u;
            }
            std::memcpy((*x)[k] + j, &bits, sizeof bits);
        });
        const auto before = x->values();
        std::vector<std::vector<int64_t>> orders;
        for (int64_t k = 0; k < c.clients; ++k) orders.push_back(reference::by_magnitude(c.n, (*x)[k]));
        for (const int64_t keep : {int64_t{0}, int64_t{1}, c.n / 100, c.n / 2, c.n - 1, c.n}) {
            std::vector<float> wanted(before.size(), 0.0f);
            for (int64_t k = 0; k < c.clients; ++k) {
                for (int64_t i = 0; i < keep; ++i) {
                    const auto at = static_cast<size_t>(k * c.n + orders[static_cast<size_t>(k)][static_cast<size_t>(i)]);
                    wanted[at] = before[at];
                }
            }
            y->fill(kNaN);
            fcm_error error{};
            CHECK(fcm_top_k(context, c.clients, c.n, keep, x->data(), x->stride(), y->data(), y->stride(), &error) ==
                      FCM_OK,
                  "%s", words(error));
            CHECK(y->is(wanted), "%s: %ld of them", c.at(-1, -1).c_str(), long(keep));
            CHECK(x->is(before), "%s: x was written", c.at(-1, -1).c_str());
            CHECK(fcm_top_k(context, c.clients, c.n, keep, x->data(), x->stride(), x->data(), x->stride(), &error) ==
                      FCM_OK,
                  "%s", words(error));
            CHECK(x->is(wanted), "%s: %ld of them in place", c.at(-1, -1).c_str(), long(keep));
            x->set(before);
        }
        check_guards(c, *x, *y);
    });
}

// One long vector is cut into pieces, and where it is cut must not show: equal magnitudes of both signs, the last of
// those that stay at the border of a piece or next to it.
TEST(top_k_prefers_the_lower_index) {
    constexpr int64_t kN = 50000;
    for (const int32_t isa : isas()) {
        for (const int32_t threads : {1, 3}) {
            Device device(threads, isa);
            Floats x(1, kN, 1);
            Floats y(1, kN, 2);
            std::vector<float> values(kN);
            // every third is a 2, the others are 1, of alternating signs
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

TEST(average_matches_reference) {
    Accuracy uniform("average, uniform");
    Accuracy weighted("average, weighted");
    for_cases([&](fcm_context *context, const Case &c, Random &random) {
        const auto x = c.operand(0, c.n);
        Doubles weights(1, c.clients, 1);
        for (int64_t k = 0; k < c.clients; ++k) weights.data()[k] = 0.5 + 0.25 * static_cast<double>(k);
        // A client that takes no part may hold anything.
        const int64_t silent = c.clients > 1 ? c.clients / 2 : -1;
        if (silent >= 0) weights.data()[silent] = 0.0;
        const auto weights_before = weights.values();
        for (const bool with_weights : {false, true}) {
            x->randomize(random);
            if (with_weights && silent >= 0) {
                for (int64_t j = 0; j < c.n; ++j) (*x)[silent][j] = j % 2 == 0 ? kNaN : kInf;
            }
            const auto before = x->values();
            fcm_error error{};
            CHECK(fcm_average(context, c.clients, c.n, with_weights ? weights.data() : nullptr, x->data(), x->stride(),
                              &error) == FCM_OK,
                  "%s", words(error));
            double total = 0.0;
            for (int64_t k = 0; k < c.clients; ++k) total += with_weights ? weights.data()[k] : 1.0;
            for (int64_t j = 0; j < c.n; ++j) {
                const auto where = [&] { return c.at(0, j); };
                reference::Number mean;
                for (int64_t k = 0; k < c.clients; ++k) {
                    const double weight = with_weights ? weights.data()[k] : 1.0;
                    if (weight > 0.0) mean.add(weight * double{before[static_cast<size_t>(k * c.n + j)]} / total);
                }
                (with_weights ? weighted : uniform).expect((*x)[0][j], reference::rounded_once(mean), 1.01, where);
            }
            for (int64_t k = 1; k < c.clients; ++k) {
                CHECK(std::memcmp((*x)[k], (*x)[0], static_cast<size_t>(c.n) * sizeof(float)) == 0,
                      "%s: not what client 0 has", c.at(k, -1).c_str());
            }
        }
        CHECK(weights.is(weights_before), "%s: the weights were written", c.at(-1, -1).c_str());
        check_guards(c, *x, weights);
    });
}

// More clients than travel with one launch, or than are searched at once.
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

TEST(all_finite_passes_finite_numbers) {
    for_cases([&](fcm_context *context, const Case &c, Random &random) {
        const auto x = c.operand(0, c.n);
        x->randomize(random);
        (*x)[c.clients - 1][c.n - 1] = std::numeric_limits<float>::max();
        (*x)[0][0] = std::numeric_limits<float>::lowest();
        int64_t client = 7;
        int64_t index = 7;
        // The guards are NaN: looking past a piece would find them.
        CHECK(fcm_all_finite(context, c.clients, c.n, x->data(), x->stride(), &client, &index, nullptr) == FCM_OK,
              "status");
        CHECK(client == -1 && index == -1, "%s: found client %ld, element %ld", c.at(-1, -1).c_str(), long(client),
              long(index));
        check_guards(c, *x);
    });
}

TEST(triad_matches_reference) {
    Accuracy accuracy("triad");
    for_cases([&](fcm_context *context, const Case &c, Random &random) {
        if (c.clients > 1) return;
        const auto b = c.operand(0, c.n);
        const auto cc = c.operand(1, c.n);
        const auto a = c.operand(2, c.n);
        b->randomize(random);
        cc->randomize(random);
        for (const int32_t non_temporal : {0, 1}) {
            a->fill(kNaN);
            CHECK(fcm_triad(context, c.n, 1.5f, b->data(), cc->data(), a->data(), non_temporal, nullptr) == FCM_OK,
                  "status");
            for_elements(c, [&](int64_t k, int64_t j, auto where) {
                accuracy.expect((*a)[k][j], reference::step(-1.5, (*cc)[k][j], (*b)[k][j]), 2.01, where);
            });
        }
        check_guards(c, *a, *b, *cc);
    });
}

// ---- Extremes -------------------------------------------------------------------------------------------------

// Squares of these leave the range of float, on either side.
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

// 1 / ||m|| is then no float: the step has to be taken in one go.
TEST(normalized_step_of_extreme_numbers) {
    Device device;
    for (const float value : {1e-42f, 1e-30f, 1e30f, 3e38f}) {
        constexpr int64_t kN = 10000;
        Floats m(1, kN);
        Floats w(1, kN);
        m.fill(value);
        w.fill(0.0f);
        const auto workspace = sum_workspace(device, 1, kN);
        CHECK(fcm_vector_step(device, 1, kN, FCM_STEP_NORMALIZED, 1.0, m.data(), kN, w.data(), kN, workspace->data(),
                              workspace->bytes(), nullptr) == FCM_OK,
              "status");
        for (int64_t j = 0; j < kN; ++j) {
            CHECK(std::fabs(w.data()[j] + 0.01f) <= 1e-9f, "%g: %g", double{value}, double{w.data()[j]});
        }
    }
}

// Where C / ||H|| lies below the normal range of float, the projected H may still be an ordinary number.
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

// Squares of these are no floats, but the step that they lead to is an ordinary number.
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

// ---- Special arguments ----------------------------------------------------------------------------------------

// 0 * NaN is NaN: multiplying what should not be read shows.
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
    const auto workspace = sum_workspace(device, 2, 30000);
    CHECK(fcm_vector_step(device, 2, 30000, FCM_STEP_NORMALIZED, 0.1, m.data(), 30000, w.data(), 30000,
                          workspace->data(), workspace->bytes(), nullptr) == FCM_OK,
          "status");
    CHECK(std::memcmp(w[0], before.data(), 30000 * sizeof(float)) == 0, "client 0 was stepped");
    CHECK(std::memcmp(w[1], before.data() + 30000, 30000 * sizeof(float)) != 0, "client 1 was not stepped");
}

// Stride 0 must give the bits that the same values give, copied out for every client.
TEST(stride_zero_is_a_broadcast) {
    constexpr int64_t kClients = 3;
    constexpr int64_t kN = 20000;
    Device device;
    Random random(19);
    const auto one = Floats::shared(2 * kN, 1);
    one->randomize(random);
    const auto two = Floats::shared(kN, 3);
    two->randomize(random);
    Floats many_one(kClients, 2 * kN);
    Floats many_two(kClients, kN);
    for (int64_t k = 0; k < kClients; ++k) {
        std::memcpy(many_one[k], one->data(), static_cast<size_t>(2 * kN) * sizeof(float));
        std::memcpy(many_two[k], two->data(), static_cast<size_t>(kN) * sizeof(float));
    }
    std::vector<float> start(static_cast<size_t>(kClients * kN));
    random.fill(start);
    const auto workspace = sum_workspace(device, kClients, kN);
    Doubles norms(1, kClients);

    // each operation with a as its first input and b as its second
    using Operation = std::function<fcm_status(const Floats &a, const Floats &b, Floats &out)>;
    const std::pair<const char *, Operation> operations[] = {
        {"ema",
         [&](const Floats &a, const Floats &, Floats &out) {
             return fcm_ema(device, kClients, kN, 0.3, a.data(), a.stride(), out.data(), out.stride(), nullptr);
         }},
        {"compose",
         [&](const Floats &a, const Floats &b, Floats &out) {
             return fcm_compose_momentum(device, kClients, kN, 2, 0.3, a.data(), a.stride(), b.data(), b.stride(),
                                         out.data(), out.stride(), nullptr);
         }},
        {"storm",
         [&](const Floats &a, const Floats &b, Floats &out) {
             return fcm_storm(device, kClients, kN, 0.3, a.data(), a.stride(), b.data(), b.stride(), out.data(),
                              out.stride(), norms.data(), workspace->data(), workspace->bytes(), nullptr);
         }},
        {"vector step",
         [&](const Floats &a, const Floats &, Floats &out) {
             return fcm_vector_step(device, kClients, kN, FCM_STEP_NORMALIZED, 0.3, a.data(), a.stride(), out.data(),
                                    out.stride(), workspace->data(), workspace->bytes(), nullptr);
         }},
        {"project",
         [&](const Floats &, const Floats &b, Floats &out) {
             norms.fill(1.0);
             Floats h(kClients, kN);
             h.set(start);
             return fcm_project_compose_momentum(device, kClients, kN, 1, 0.5, norms.data(), 0.3, h.data(), kN,
                                                 b.data(), b.stride(), out.data(), out.stride(), nullptr);
         }},
        {"adaptive step",
         [&](const Floats &a, const Floats &, Floats &out) {
             Floats m(kClients, kN);
             Floats v(kClients, kN);
             m.set(start);
             v.fill(0.5f);
             return fcm_adaptive_step(device, kClients, kN, FCM_YOGI, 0.9, 0.99, 1e-3, 0.3, a.data(), a.stride(),
                                      m.data(), kN, v.data(), kN, out.data(), out.stride(), nullptr);
         }},
        {"top k",
         [&](const Floats &a, const Floats &, Floats &out) {
             return fcm_top_k(device, kClients, kN, 777, a.data(), a.stride(), out.data(), out.stride(), nullptr);
         }},
        {"norm",
         [&](const Floats &a, const Floats &, Floats &out) {
             const fcm_status status = fcm_norm(device, kClients, kN, a.data(), a.stride(), norms.data(),
                                                workspace->data(), workspace->bytes(), nullptr);
             for (int64_t k = 0; k < kClients; ++k) out[k][0] = static_cast<float>(norms.data()[k]);
             return status;
         }},
    };
    for (const auto &[name, operation] : operations) {
        Floats shared(kClients, kN);
        Floats copied(kClients, kN);
        CHECK(operation(*one, *two, shared.set(start)) == FCM_OK, "%s", name);
        CHECK(operation(many_one, many_two, copied.set(start)) == FCM_OK, "%s", name);
        CHECK(shared.is(copied.values()), "%s", name);
        CHECK(!shared.is(start), "%s did nothing", name);
    }
    CHECK(one->guards_intact() && two->guards_intact(), "something wrote around the inputs");
    int64_t client = 0;
    int64_t index = 0;
    one->data()[kN - 1] = kInf;
    CHECK(fcm_all_finite(device, kClients, kN, one->data(), 0, &client, &index, nullptr) == FCM_OK, "all_finite");
    CHECK(client == 0 && index == kN - 1, "found client %ld, element %ld", long(client), long(index));
}

// ---- Nothing to do --------------------------------------------------------------------------------------------

// "An empty batch is valid and does nothing", with null for every pointer that has nothing to point at.
TEST(empty_batches_do_nothing) {
    Device device;
    const std::pair<int64_t, int64_t> empties[] = {{0, 0}, {0, 5}, {3, 0}};
    for (const auto &[clients, n] : empties) {
        const long k = long(clients);
        const long j = long(n);
        CHECK(fcm_ema(device, clients, n, 0.5, nullptr, n, nullptr, n, nullptr) == FCM_OK, "ema %ld x %ld", k, j);
        CHECK(fcm_compose_momentum(device, clients, n, 2, 0.5, nullptr, 2 * n, nullptr, 2, nullptr, n,
                                   nullptr) == FCM_OK,
              "compose %ld x %ld", k, j);
        CHECK(fcm_storm(device, clients, n, 0.5, nullptr, n, nullptr, n, nullptr, n, nullptr, nullptr, 0,
                        nullptr) == FCM_OK,
              "storm %ld x %ld", k, j);
        CHECK(fcm_project_compose_momentum(device, clients, n, 2, 1.0, nullptr, 0.5, nullptr, 2 * n, nullptr, 2,
                                           nullptr, n, nullptr) == FCM_OK,
              "project and compose %ld x %ld", k, j);
        CHECK(fcm_norm(device, clients, n, nullptr, n, nullptr, nullptr, 0, nullptr) == FCM_OK, "norm %ld x %ld", k, j);
        for (const int32_t rule : {FCM_STEP_PLAIN, FCM_STEP_NORMALIZED}) {
            CHECK(fcm_vector_step(device, clients, n, rule, 0.5, nullptr, n, nullptr, n, nullptr, 0, nullptr) == FCM_OK,
                  "step %ld x %ld", k, j);
        }
        CHECK(fcm_project(device, clients, n, 1.0, nullptr, nullptr, n, nullptr) == FCM_OK, "project %ld x %ld", k, j);
        for (const int32_t rule : {FCM_ADAM, FCM_YOGI}) {
            CHECK(fcm_adaptive_step(device, clients, n, rule, 0.9, 0.99, 1e-3, 0.5, nullptr, n, nullptr, n, nullptr, n,
                                    nullptr, n, nullptr) == FCM_OK,
                  "adaptive step %ld x %ld", k, j);
        }
        for (const int64_t keep : {int64_t{0}, n}) {
            CHECK(fcm_top_k(device, clients, n, keep, nullptr, n, nullptr, n, nullptr) == FCM_OK, "top k %ld x %ld", k,
                  j);
        }
        CHECK(fcm_average(device, clients, n, nullptr, nullptr, n, nullptr) == FCM_OK, "average %ld x %ld", k, j);
        int64_t client = 7;
        int64_t index = 7;
        CHECK(fcm_all_finite(device, clients, n, nullptr, n, &client, &index, nullptr) == FCM_OK,
              "all_finite %ld x %ld", k, j);
        CHECK(client == -1 && index == -1, "all_finite %ld x %ld found (%ld, %ld)", k, j, long(client), long(index));
        int64_t bytes = 7;
        CHECK(fcm_sum_workspace(device, clients, n, &bytes, nullptr) == FCM_OK && bytes == 0, "%ld x %ld: %ld bytes", k, j,
              long(bytes));
    }
    CHECK(fcm_triad(device, 0, 1.0f, nullptr, nullptr, nullptr, 0, nullptr) == FCM_OK, "triad");
}

TEST(empty_batches_write_nothing) {
    Device device;
    Floats x(3, 4);
    Floats y(3, 4);
    Floats z(3, 4);
    Doubles norms(1, 3);
    Doubles workspace(1, 3);
    const auto x_before = x.fill(2.0f).values();
    const auto y_before = y.fill(3.0f).values();
    const auto z_before = z.fill(6.0f).values();
    const auto norms_before = norms.fill(4.0).values();
    const auto workspace_before = workspace.fill(5.0).values();
    const double weights[3] = {1.0, 2.0, 3.0};
    const Vector<float> v{2.0f};
    const std::pair<int64_t, int64_t> empties[] = {{0, 4}, {3, 0}};
    for (const auto &[clients, n] : empties) {
        CHECK(fcm_ema(device, clients, n, 1.0, x.data(), 4, y.data(), 4, nullptr) == FCM_OK, "ema");
        CHECK(fcm_compose_momentum(device, clients, n, 1, 1.0, x.data(), 4, x.data(), 4, y.data(), 4,
                                   nullptr) == FCM_OK, "compose");
        CHECK(fcm_storm(device, clients, n, 1.0, x.data(), 4, x.data(), 4, y.data(), 4, norms.data(), workspace.data(),
                        workspace.bytes(), nullptr) == FCM_OK,
              "storm");
        CHECK(fcm_project_compose_momentum(device, clients, n, 1, 0.5, norms.data(), 1.0, y.data(), 4, v.data(), 0,
                                           x.data(), 4, nullptr) == FCM_OK,
              "project");
        CHECK(fcm_norm(device, clients, n, x.data(), 4, norms.data(), workspace.data(), workspace.bytes(),
                       nullptr) == FCM_OK,
              "norm");
        CHECK(fcm_vector_step(device, clients, n, FCM_STEP_NORMALIZED, 0.5, x.data(), 4, y.data(), 4, workspace.data(),
                              workspace.bytes(), nullptr) == FCM_OK,
              "step");
        CHECK(fcm_project(device, clients, n, 0.5, norms.data(), x.data(), 4, nullptr) == FCM_OK, "project");
        CHECK(fcm_adaptive_step(device, clients, n, FCM_ADAM, 0.9, 0.99, 1e-3, 0.5, x.data(), 4, y.data(), 4, z.data(), 4,
                                z.data(), 4, nullptr) == FCM_OK,
              "adaptive step");
        CHECK(fcm_top_k(device, clients, n, 0, x.data(), 4, y.data(), 4, nullptr) == FCM_OK, "top k");
        CHECK(fcm_average(device, clients, n, weights, x.data(), 4, nullptr) == FCM_OK, "average");
        CHECK(x.is(x_before), "%ld x %ld: x was written", long(clients), long(n));
        CHECK(y.is(y_before) && z.is(z_before), "%ld x %ld: y or z was written", long(clients), long(n));
        CHECK(norms.is(norms_before), "%ld x %ld: the norms were written", long(clients), long(n));
        CHECK(workspace.is(workspace_before), "%ld x %ld: the workspace was written", long(clients), long(n));
    }
}
