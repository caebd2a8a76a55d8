// Guarantees of single operations beyond the table: known results, extreme numbers and special arguments.
#include <numeric>

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
        for (size_t k = 0; k < weights.size(); ++k) total += weights[k] = k % 7 == 3 ? 0.0 : 0.1 + 0.003 * double(k);
        CHECK(fcm_average(device, clients, kN, weights.data(), clients, x.data(), x.stride(), &error) == FCM_OK, "%s",
              words(error));
        for (int64_t j = 0; j < kN; ++j) {
            std::vector<double> terms;
            for (int64_t k = 0; k < clients; ++k) {
                const double weight = weights[static_cast<size_t>(k)];
                if (weight > 0.0) terms.push_back(weight * double{before[static_cast<size_t>(k * kN + j)]});
            }
            const float mean = reference::mean_of(terms, reference::mean_bits(clients), total);
            for (int64_t k = 0; k < clients; ++k) {
                CHECK(x[k][j] == mean, "client %ld of %ld, element %ld: %.9g, wanted %.9g", long(k), long(clients),
                      long(j), double{x[k][j]}, double{mean});
            }
        }
        CHECK(x.guards_intact() && y.guards_intact(), "guards");
    }
}

// ---- Means -----------------------------------------------------------------------------------------------------

namespace {

// More precise than every sum here needs.
__extension__ typedef __float128 Exact;

using Rows = std::vector<std::vector<float>>;

size_t place(int64_t i) { return static_cast<size_t>(i); }

double total_of(const std::vector<double> &weights) {
    double total = 0.0;
    for (const double weight : weights) total += weight;
    return total;
}

// What all clients receive.
std::vector<float> average(Device &device, const Rows &rows, const std::vector<double> &weights, int64_t terms) {
    const auto clients = static_cast<int64_t>(rows.size());
    const auto n = static_cast<int64_t>(rows[0].size());
    Floats x(clients, n, 1, 2);
    for (int64_t k = 0; k < clients; ++k) std::copy(rows[place(k)].begin(), rows[place(k)].end(), x[k]);
    fcm_error error{};
    CHECK(fcm_average(device, clients, n, weights.empty() ? nullptr : weights.data(), terms, x.data(), x.stride(), &error) ==
              FCM_OK,
          "%s", words(error));
    for (int64_t k = 1; k < clients; ++k) {
        const bool same = std::memcmp(x[k], x[0], place(n) * sizeof(float)) == 0;
        CHECK(same, "client %ld of %ld has another mean", long(k), long(clients));
    }
    CHECK(x.guards_intact(), "guards");
    return {x[0], x[0] + n};
}

// The same by the steps, with the clients of each part in a place of their own.
std::vector<float> average_of_parts(Device &device, const Rows &rows, const std::vector<double> &weights, int64_t terms,
                                    const std::vector<std::vector<size_t>> &parts) {
    const auto n = static_cast<int64_t>(rows[0].size());
    std::vector<std::unique_ptr<Floats>> values;
    std::vector<std::unique_ptr<ByteBatch>> exponents;
    std::vector<std::unique_ptr<Longs>> sums;
    std::vector<std::vector<double>> own;
    std::vector<const uint8_t *> exponents_at;
    std::vector<const int64_t *> sums_at;
    fcm_error error{};
    for (const auto &part : parts) {
        const auto clients = static_cast<int64_t>(part.size());
        values.push_back(std::make_unique<Floats>(clients, n, 3, 1));
        exponents.push_back(std::make_unique<ByteBatch>(1, n, 1));
        sums.push_back(std::make_unique<Longs>(1, n));
        own.emplace_back();
        for (int64_t k = 0; k < clients; ++k) {
            const size_t client = part[place(k)];
            std::copy(rows[client].begin(), rows[client].end(), (*values.back())[k]);
            own.back().push_back(weights.empty() ? 1.0 : weights[client]);
        }
        CHECK(fcm_mean_exponents(device, clients, n, weights.empty() ? nullptr : own.back().data(), values.back()->data(),
                                 values.back()->stride(), exponents.back()->data(), &error) == FCM_OK,
              "%s", words(error));
        exponents_at.push_back(exponents.back()->data());
        sums_at.push_back(sums.back()->data());
    }
    const auto count = static_cast<int64_t>(parts.size());
    CHECK(fcm_mean_combine(device, count, n, exponents_at.data(), exponents[0]->data(), &error) == FCM_OK, "%s", words(error));
    for (size_t p = 0; p < parts.size(); ++p) {
        CHECK(fcm_mean_sums(device, static_cast<int64_t>(parts[p].size()), n, weights.empty() ? nullptr : own[p].data(), terms,
                            values[p]->data(), values[p]->stride(), exponents[0]->data(), sums[p]->data(), &error) == FCM_OK,
              "%s", words(error));
        CHECK(exponents[p]->guards_intact() && sums[p]->guards_intact(), "guards");
    }
    Floats mean(2, n, 1, 1);
    float *targets[] = {mean[1], mean[0]};
    const double total = weights.empty() ? static_cast<double>(rows.size()) : total_of(weights);
    CHECK(fcm_mean_finish(device, count, n, terms, total, sums_at.data(), exponents[0]->data(), 2, targets, &error) == FCM_OK,
          "%s", words(error));
    CHECK(mean.guards_intact() && std::memcmp(mean[0], mean[1], place(n) * sizeof(float)) == 0, "the targets differ");
    return {mean[0], mean[0] + n};
}

bool same_bits(const std::vector<float> &a, const std::vector<float> &b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

enum class Kind { kNormal, kDecades, kCancelling, kDenormal };
constexpr Kind kKinds[] = {Kind::kNormal, Kind::kDecades, Kind::kCancelling, Kind::kDenormal};

Rows values_of(Kind kind, int64_t clients, int64_t n, Random &random) {
    Rows rows(place(clients), std::vector<float>(place(n)));
    for (auto &row : rows) {
        for (float &value : row) {
            value = random.value();
            if (kind == Kind::kDecades) value *= static_cast<float>(std::pow(10.0, 12.0 * random.uniform()));
            if (kind == Kind::kDenormal) value *= 0x1p-140f;
        }
    }
    for (int64_t k = 0; k + 1 < clients && kind == Kind::kCancelling; k += 2) {  // what is left is small
        for (size_t j = 0; j < place(n); ++j) rows[place(k + 1)][j] = -rows[place(k)][j] * (1.0f + 0x1p-20f);
    }
    return rows;
}

std::vector<double> some_weights(int64_t clients, Random &random) {
    std::vector<double> weights(place(clients));
    for (double &weight : weights) weight = random.bits() % 5 == 0 ? 0.0 : std::fabs(random.uniform());
    weights[place(clients / 2)] = 1.0 / 3.0;
    return weights;
}

}  // namespace

// The error of the sum is at most half a unit for each term. So the mean is the nearest float, or, if the exact one is that close
// to the middle between two floats, one of them; only terms of very different sizes have such means here, and rarely.
TEST(means_are_correctly_rounded) {
    const int64_t n = kOnDevice ? 300 : 3000;
    int64_t others = 0;
    int64_t all = 0;
    for (const int32_t isa : isas()) {
        Device device(2, isa);
        Random random(29);
        for (const int64_t clients : {1, 2, 3, 10, 100}) {
            for (const Kind kind : kKinds) {
                for (const bool weighted : {false, true}) {
                    const Rows rows = values_of(kind, clients, n, random);
                    const auto weights = weighted ? some_weights(clients, random) : std::vector<double>{};
                    const double total = weighted ? total_of(weights) : static_cast<double>(clients);
                    const auto got = average(device, rows, weights, clients);
                    for (size_t j = 0; j < place(n); ++j) {
                        Exact sum = 0;
                        uint8_t exponent = 0;
                        for (size_t k = 0; k < rows.size(); ++k) {
                            const double term = weighted ? weights[k] * double{rows[k][j]} : double{rows[k][j]};
                            sum += static_cast<Exact>(term);
                            exponent = std::max(exponent, reference::mean_exponent(term));
                        }
                        const Exact mean = sum / static_cast<Exact>(total);
                        const auto wanted = static_cast<float>(mean);
                        ++all;
                        if (got[j] == wanted) continue;
                        ++others;
                        const double unit = std::ldexp(1.0, exponent - 126 - reference::mean_bits(clients));
                        const double bound = static_cast<double>(clients) * unit / 2.0 / total + 0x1p-51 * std::fabs(double{wanted});
                        const double error = std::fabs(static_cast<double>(static_cast<Exact>(got[j]) - mean));
                        const double least = std::fabs(static_cast<double>(static_cast<Exact>(wanted) - mean));
                        CHECK(kind == Kind::kDecades && error - least <= 2.0 * bound,
                              "isa %d, %ld clients, kind %d, weighted %d: %.9g, wanted %.9g", isa, long(clients), int(kind),
                              weighted, double{got[j]}, double{wanted});
                    }
                }
            }
        }
    }
    std::printf("%ld of %ld means are the other one of two floats\n", long(others), long(all));
    CHECK(others * 10000 < all, "%ld of %ld means are not the nearest float", long(others), long(all));
}

// Parts of one client and of many, in any order, some of them with no term at all.
TEST(any_grouping_of_clients_gives_the_same_mean) {
    constexpr int64_t kClients = 23;
    const int64_t n = kOnDevice ? 130 : 5003;
    Random random(31);
    for (const Kind kind : kKinds) {
        for (const bool weighted : {false, true}) {
            Rows rows = values_of(kind, kClients, n, random);
            rows[5][7] = kInf;
            rows[6][7] = -kInf;
            rows[11][100] = kNaN;
            auto weights = weighted ? some_weights(kClients, random) : std::vector<double>{};
            if (weighted) {
                weights[3] = 0.0;
                rows[3][60] = kNaN;
            }
            for (const int64_t terms : {kClients, int64_t{1000}, FCM_MOST_TERMS}) {
                std::vector<float> expected;
                for (const int32_t isa : isas()) {
                    for (const int32_t threads : {1, 2, 4}) {
                        if (kOnDevice && threads > 1) continue;  // a GPU has its own
                        Device device(threads, isa);
                        const auto all = average(device, rows, weights, terms);
                        if (expected.empty()) expected = all;
                        CHECK(same_bits(all, expected), "isa %d, %d threads: another mean", isa, threads);
                    }
                }
                for (int round = 0; round < (kOnDevice ? 3 : 6); ++round) {
                    Device device(1 + round % 3, isas()[static_cast<size_t>(round) % isas().size()]);
                    std::vector<std::vector<size_t>> parts(static_cast<size_t>(1 + round * 3));
                    std::vector<size_t> order(kClients);
                    std::iota(order.begin(), order.end(), size_t{0});
                    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.bits() % i]);
                    for (size_t i = 0; i < order.size(); ++i) {
                        parts[i < parts.size() ? i : random.bits() % parts.size()].push_back(order[i]);
                    }
                    CHECK(same_bits(average_of_parts(device, rows, weights, terms, parts), expected),
                          "round %d, kind %d, weighted %d, %ld terms: another mean", round, int(kind), weighted, long(terms));
                }
            }
        }
    }
}

TEST(means_of_special_numbers) {
    constexpr float kMax = std::numeric_limits<float>::max();
    constexpr float kLeast = 0x1p-149f;
    struct Case {
        std::vector<float> values;
        float mean;
    };
    const std::vector<Case> cases = {
        {{0.0f, 0.0f, 0.0f}, 0.0f},
        {{-0.0f, -0.0f, -0.0f}, 0.0f},  // the sum of integers has no sign
        {{kMax, kMax, kMax}, kMax},
        {{-kMax, kMax, -kMax}, -kMax / 3.0f},
        {{kLeast, kLeast, kLeast}, kLeast},
        {{kLeast, 0.0f, 0.0f}, 0.0f},
        {{kLeast, kLeast, 0.0f}, kLeast},
        {{kLeast, 0x1p-126f, -0x1p-126f}, 0.0f},
        {{0x1p-126f, 0x1p-126f, 0x1p-127f}, 0x1.aaaaacp-127f},
        {{1.0f, -1.0f, 3 * kLeast}, 0.0f},  // 2^-148 is less than a unit beside 1
        {{kInf, 1.0f, 1.0f}, kNaN},
        {{1.0f, 1.0f, -kInf}, kNaN},
        {{1.0f, kNaN, 1.0f}, kNaN},
        {{kInf, 1.0f, kInf}, kNaN},
        {{1.0f, 2.0f, 3.0f}, 2.0f},
        {{0.5f, 0.5f, 0.5f}, 0.5f},
    };
    Rows rows(3, std::vector<float>(cases.size()));
    std::vector<float> wanted;
    for (size_t j = 0; j < cases.size(); ++j) {
        for (size_t k = 0; k < 3; ++k) rows[k][j] = cases[j].values[k];
        wanted.push_back(cases[j].mean);
    }
    for (const int32_t isa : isas()) {
        Device device(2, isa);
        for (const int64_t terms : {int64_t{3}, int64_t{4}, FCM_MOST_TERMS}) {
            const auto got = average(device, rows, {}, terms);
            for (size_t j = 0; j < cases.size(); ++j) {
                CHECK(std::memcmp(&got[j], &wanted[j], sizeof(float)) == 0, "isa %d, %ld terms, case %zu: %.9g, wanted %.9g",
                      isa, long(terms), j, double{got[j]}, double{wanted[j]});
            }
        }
    }
}

// Every exponent and sign, with a full mantissa: a mean of one is the number itself, and -0 becomes 0.
TEST(the_mean_of_one_is_itself) {
    std::vector<float> values;
    for (uint32_t high = 0; high < 0x7f8u * 2; ++high) {
        for (const uint32_t low : {0u, 1u, 0x7ffffu, 0xfffffu}) {
            const uint32_t bits = (high & 1u) << 31 | (high >> 1) << 20 | low;
            float value;
            std::memcpy(&value, &bits, sizeof value);
            values.push_back(value);
        }
    }
    for (const int32_t isa : isas()) {
        Device device(1, isa);
        for (const int64_t terms : {int64_t{1}, FCM_MOST_TERMS}) {
            const auto got = average(device, {values}, {}, terms);
            for (size_t j = 0; j < values.size(); ++j) {
                const float wanted = values[j] == 0.0f ? 0.0f : values[j];
                CHECK(std::memcmp(&got[j], &wanted, sizeof wanted) == 0, "isa %d: %.9g became %.9g", isa, double{wanted},
                      double{got[j]});
            }
        }
    }
}

// The largest sum there is: 2^20 terms of 2^42 less one unit of a float.
TEST(means_of_a_million_clients) {
    const int64_t clients = kOnDevice ? int64_t{1} << 14 : FCM_MOST_TERMS;
    constexpr int64_t n = 3;
    for (const int32_t isa : isas()) {
        Device device(2, isa);
        Floats x(clients, n);
        constexpr float kMax = std::numeric_limits<float>::max();
        double sum = 0.0;
        for (int64_t k = 0; k < clients; ++k) {
            x[k][0] = kMax;
            x[k][1] = k % 4 == 3 ? kMax : -kMax;
            x[k][2] = static_cast<float>(k);
            sum += static_cast<double>(k);
        }
        fcm_error error{};
        CHECK(fcm_average(device, clients, n, nullptr, FCM_MOST_TERMS, x.data(), n, &error) == FCM_OK, "%s", words(error));
        for (const int64_t k : {int64_t{0}, clients - 1}) {
            CHECK(x[k][0] == kMax && x[k][1] == -kMax / 2 && x[k][2] == static_cast<float>(sum / static_cast<double>(clients)),
                  "isa %d: %g, %g, %g", isa, double{x[k][0]}, double{x[k][1]}, double{x[k][2]});
        }
    }
}

// Rows and targets anywhere have the bits of a batch; a row of weight 0 need not be readable.
TEST(means_of_rows_anywhere_have_the_same_bits) {
    constexpr int64_t kClients = 11;
    const int64_t n = kOnDevice ? 130 : 9001;
    Random random(37);
    const Rows rows = values_of(Kind::kNormal, kClients, n, random);
    for (const bool weighted : {false, true}) {
        const auto weights = weighted ? some_weights(kClients, random) : std::vector<double>{};
        for (const int32_t isa : isas()) {
            Device device(2, isa);
            const auto expected = average(device, rows, weights, kClients);
            Floats x(kClients, n, 2, 3), y(2, n, 1, 1);
            std::vector<const float *> from;
            for (int64_t k = 0; k < kClients; ++k) {
                std::copy(rows[place(k)].begin(), rows[place(k)].end(), x[k]);
                from.push_back(x[k]);
            }
            float *to[] = {y[1], x[4], y[0]};
            fcm_error error{};
            CHECK(fcm_average_rows(device, kClients, n, weighted ? weights.data() : nullptr, kClients, from.data(), 3, to,
                                   &error) == FCM_OK,
                  "%s", words(error));
            for (const float *target : to) CHECK(same_bits({target, target + n}, expected), "isa %d: another mean", isa);
            CHECK(std::equal(rows[3].begin(), rows[3].end(), x[3]) && x.guards_intact() && y.guards_intact(), "guards");
        }
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

// ---- Eigenvectors ----

namespace {

// Eigenvalues that ascend over forty decades and fewer, the first ones not positive, and vectors of any numbers.
struct Eigen {
    Eigen(int64_t clients, int64_t side)
        : n(side), info(1, clients, 1), values(1, clients * side, 1), vectors(1, clients * side * side, 1), kept(1, clients) {
        Random random(static_cast<uint64_t>(side));
        std::vector<double> all(place(clients * side));
        for (int64_t k = 0; k < clients; ++k) {
            for (int64_t i = 0; i < side; ++i) {
                const double part = side == 1 ? 1.0 : static_cast<double>(i) / static_cast<double>(side - 1);
                const double value = std::pow(10.0, 40.0 * part / (1.0 + static_cast<double>(k)) - 20.0);
                all[place(k * side + i)] = side > 2 && i == 0 ? -1e-30 : side > 3 && i == 1 ? 0.0 : value;
            }
        }
        values.set(all);
        vectors.randomize(random);
        before = vectors.values();
        info.fill(0);
        kept.fill(-1);
    }

    fcm_status keep(fcm_context *context, int64_t clients, double tolerance, fcm_error *error) {
        return fcm_keep_directions(context, clients, n, tolerance, info.data(), values.data(), vectors.data(), kept.data(),
                                   error);
    }

    int64_t n;
    Batch<int32_t> info;
    Doubles values;
    Doubles vectors;
    Longs kept;
    std::vector<double> before;
};

}  // namespace

TEST(directions_are_left_out_by_their_tolerance) {
    for (const int64_t n : {1, 2, 5, 63, 257}) {
        for (const int64_t clients : {1, 3}) {
            for (const double tolerance : {0.0, 1e-7, 0.5}) {
                Device device(2);
                Eigen eigen(clients, n);
                fcm_error error{};
                CHECK(eigen.keep(device, clients, tolerance, &error) == FCM_OK, "%s", words(error));
                const auto values = eigen.values.values();
                const auto kept = eigen.kept.values();
                auto wanted = eigen.before;
                for (int64_t k = 0; k < clients; ++k) {
                    int64_t count = 0;
                    for (int64_t i = 0; i < n; ++i) {
                        if (values[place(k * n + i)] > tolerance * tolerance * values[place(k * n + n - 1)]) {
                            ++count;
                        } else {
                            std::fill_n(wanted.begin() + (k * n + i) * n, n, 0.0);
                        }
                    }
                    CHECK(kept[place(k)] == count, "n %ld, tolerance %g: %ld kept, wanted %ld", long(n), tolerance,
                          long(kept[place(k)]), long(count));
                    CHECK(n < 5 || (count >= 1 && count < n), "%ld of %ld kept", long(count), long(n));
                }
                CHECK(eigen.vectors.is(wanted), "n %ld, tolerance %g: other vectors", long(n), tolerance);
                CHECK(eigen.vectors.guards_intact() && eigen.kept.guards_intact(), "something was written around");
            }
        }
    }
}

TEST(of_zero_no_direction_is_kept) {
    Device device;
    Eigen eigen(2, 3);
    eigen.values.fill(0.0);
    CHECK(eigen.keep(device, 2, 1e-7, nullptr) == FCM_OK, "zero");
    CHECK(eigen.kept.is({0, 0}) && eigen.vectors.is(std::vector<double>(18, 0.0)), "of zero nothing is kept");
    for (const auto &[clients, n] : std::vector<std::pair<int64_t, int64_t>>{{0, 3}, {2, 0}}) {
        CHECK(fcm_keep_directions(device, clients, n, 0.0, static_cast<const int32_t *>(nullptr),
                                  static_cast<const double *>(nullptr), static_cast<double *>(nullptr),
                                  static_cast<int64_t *>(nullptr), static_cast<fcm_error *>(nullptr)) == FCM_OK,
              "an empty batch");
        CHECK(fcm_inverse_roots(device, clients, n, static_cast<double *>(nullptr), static_cast<fcm_error *>(nullptr)) == FCM_OK,
              "an empty batch");
    }
}

TEST(eigenvectors_that_did_not_converge_are_told_with_their_client) {
    Device device;
    Eigen eigen(3, 9);
    eigen.info.set(std::vector<int32_t>{0, 4, 7});
    const auto keep = [&](fcm_error *e) { return eigen.keep(device, 3, 1e-7, e); };
    refused(FCM_NOT_FINITE, "fcm_keep_directions", "info", keep);
    fcm_error error{};
    keep(&error);
    CHECK(error.client == 1 && error.block == -1 && error.index == -1, "(%ld, %ld, %ld)", long(error.client),
          long(error.block), long(error.index));
    CHECK(eigen.vectors.is(eigen.before) && eigen.kept.is({-1, -1, -1}), "something was written");
}

// Times itself and times G it is the identity, but for the square of what is beside the diagonal. Scales over thirty decades,
// and the first direction is missing.
TEST(inverse_roots_of_nearly_diagonal_matrices) {
    constexpr double kBeside = 1e-5;
    for (const int64_t n : {1, 2, 7, 63, 260}) {
        for (const int64_t clients : {1, 2}) {
            Device device(2);
            Doubles gram(1, clients * n * n, 1);
            Random random(static_cast<uint64_t>(n));
            std::vector<double> scales(place(n)), all(place(clients * n * n));
            for (int64_t i = 0; i < n; ++i) {
                const double part = static_cast<double>(i) / static_cast<double>(n);
                scales[place(i)] = n > 2 && i == 0 ? 0.0 : std::pow(10.0, 30.0 * part - 20.0);
            }
            for (int64_t k = 0; k < clients; ++k) {
                for (int64_t i = 0; i < n; ++i) {
                    for (int64_t j = 0; j < n; ++j) {
                        const double beside = i == j ? 1.0 : kBeside * random.uniform();
                        all[place((k * n + i) * n + j)] = j < i ? std::nan("") : scales[place(i)] * scales[place(j)] * beside;
                    }
                }
            }
            gram.set(all);
            fcm_error error{};
            CHECK(fcm_inverse_roots(device, clients, n, gram.data(), &error) == FCM_OK, "%s", words(error));
            const auto roots = gram.values();
            const auto at = [n](const std::vector<double> &of, int64_t k, int64_t i, int64_t j) {
                return of[place((k * n + std::min(i, j)) * n + std::max(i, j))];
            };
            const int64_t first = n > 2 ? 1 : 0;
            for (int64_t k = 0; k < clients; ++k) {
                std::vector<double> product(place(n * n));  // G R
                for (int64_t i = first; i < n; ++i) {
                    for (int64_t j = first; j < n; ++j) {
                        double sum = 0.0;
                        for (int64_t p = first; p < n; ++p) sum += at(all, k, i, p) * at(roots, k, p, j);
                        product[place(i * n + j)] = sum;
                    }
                }
                for (int64_t i = 0; i < n; ++i) {
                    for (int64_t j = 0; j < i; ++j) {
                        CHECK(std::isnan(roots[place((k * n + i) * n + j)]), "the other triangle was written");
                    }
                    if (scales[place(i)] == 0.0) {
                        for (int64_t j = 0; j < n; ++j) CHECK(at(roots, k, i, j) == 0.0, "a missing direction");
                        continue;
                    }
                    for (int64_t j = i; j < n; ++j) {
                        double sum = 0.0;
                        for (int64_t p = first; p < n; ++p) sum += at(roots, k, i, p) * product[place(p * n + j)];
                        const double wanted = i == j ? 1.0 : 0.0;
                        CHECK(std::fabs(sum - wanted) < 20.0 * kBeside * kBeside * static_cast<double>(n),
                              "n %ld, (%ld, %ld): off by %g", long(n), long(i), long(j), sum - wanted);
                    }
                }
            }
            CHECK(gram.guards_intact(), "something was written around");
        }
    }
}
