// The CUDA kernels on a simulated device against the CPU's, which other tests compare with references: every operation of
// the table, and additional cases. Sizes are small, so that every order of threads, every architecture and the PTX
// interpreter can be tested.
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "both_devices.h"
#include "check.h"
#include "fedcomuon.h"
#include "operation_table.h"

namespace {

std::string words(const char *name, int64_t clients, int64_t n, Placing p) {
    return std::string(name) + " of " + std::to_string(clients) + " x " + std::to_string(n) + ", shift " +
           std::to_string(p.shift) + ", gap " + std::to_string(p.gap);
}

int64_t sum_room(const Side &side, int64_t clients, int64_t n) {
    int64_t bytes = 0;
    fcm_error error{};
    ok(fcm_sum_workspace(side.context(), clients, n, &bytes, &error), error);
    return bytes;
}

}  // namespace

// ---- The table of operations ----

namespace {

// One call on both devices. `bad` puts a value that the operation must find into the last element of the operand that has to
// be finite.
void compare(Both &both, const table::Operation &operation, const table::Size &size, const table::Parameters &settings,
             Placing placing, float bad) {
    auto data = data_of(operation, both.cpu.context(), size, settings, static_cast<uint64_t>(size.n));
    const auto &operands = data.operands();
    if (bad != 0.0f) {
        const auto finite = static_cast<size_t>(operation.finite);
        if (operands[finite].element == 8) {
            data.doubles(finite)[size.clients - 1] = double{bad};
        } else {
            data.floats(finite, size.clients - 1)[size.n - 1] = bad;
        }
    }
    std::vector<std::unique_ptr<Floats>> floats(operands.size());
    std::vector<std::unique_ptr<Doubles>> doubles(operands.size());
    std::vector<std::unique_ptr<Bytes>> bytes(operands.size());
    for (size_t i = 0; i < operands.size(); ++i) {
        const table::Operand &operand = operands[i];
        if (operand.host || operand.use == table::Use::kRoom) continue;
        const int64_t clients = operand.clients(size);
        if (operand.element == 8) {
            doubles[i] = std::make_unique<Doubles>(1, operand.length, Placing{placing.shift, 0});
            std::copy(data.doubles(i), data.doubles(i) + operand.length, (*doubles[i])[0]);
        } else if (operand.element == 1) {
            bytes[i] = std::make_unique<Bytes>(clients, operand.length, placing);
            for (int64_t k = 0; k < clients; ++k) {
                const char *from = data.bytes(i).data() + k * operand.length;
                std::copy(from, from + operand.length, (*bytes[i])[k]);
            }
        } else {
            // The operands have different strides, and either all or none of them are aligned to vectors.
            floats[i] = std::make_unique<Floats>(clients, operand.length,
                                                 Placing{placing.shift, placing.gap + (placing.gap > 0 ? 4 * int64_t(i) : 0)});
            for (int64_t k = 0; k < clients; ++k) {
                std::copy(data.floats(i, k), data.floats(i, k) + operand.length, (*floats[i])[k]);
            }
        }
    }
    std::vector<size_t> number(operands.size());
    std::vector<std::array<int64_t, 2>> answers;
    answers.reserve(2);
    const auto call = [&](Side &side, fcm_error *error) {
        const auto here = operation.operands(side.context(), size, settings);
        table::Placement p;
        for (size_t i = 0; i < here.size(); ++i) {
            number[i] = side.count();
            if (here[i].use == table::Use::kAnswer) {
                answers.push_back({-7, -7});
                p.at[i] = answers.back().data();
            } else if (here[i].use == table::Use::kRoom) {
                p.room_bytes = here[i].length * 8;
                p.at[i] = side.room(p.room_bytes);
            } else if (here[i].host) {
                p.at[i] = data.bytes(i).data();
            } else if (floats[i] != nullptr) {
                p.at[i] = side.put(*floats[i]);
                p.stride[i] = floats[i]->stride();
            } else if (bytes[i] != nullptr) {
                p.at[i] = side.put(*bytes[i]);
                p.stride[i] = bytes[i]->stride();
            } else {
                p.at[i] = side.put(*doubles[i]);
            }
        }
        if (operation.ready) operation.ready(side.context(), size, settings, p);
        return operation.call(side.context(), size, settings, p, error);
    };
    const std::string what = words(operation.name, size.clients, size.n, placing);
    both.run(what, call);
    for (size_t i = 0; i < operands.size(); ++i) {
        // Sums in double may differ in their last bits; a float only differs where such a sum is used.
        if (bytes[i] != nullptr) both.compare(what, number[i], *bytes[i], 0.0);
        if (doubles[i] != nullptr) both.compare(what, number[i], *doubles[i], operation.gpu);
        if (floats[i] != nullptr) both.compare(what, number[i], *floats[i], operation.gpu < 1e-9 ? 0.0 : operation.gpu);
    }
    CHECK(answers.empty() || answers[0] == answers[1], "%s: another answer", what.c_str());
    both.clear();
}

// Remainders of a vector, of one chunk and of several, and of a piece of a sum.
constexpr int64_t kLengths[] = {1, 3, 4, 6, 1023, 1030, 2052, 4100};

void compare_everywhere(const table::Operation &operation) {
    Both both;
    for (const int64_t n : kLengths) {
        for (const Placing &placing : kPlacings) {
            const table::Size size{n > 2000 ? 2 : 3, n};
            const auto all = operation.settings(size);
            for (size_t i = 0; i < all.size() && (i < 2 || (!interpreted() && n < 2000)); ++i) {
                compare(both, operation, size, all[i], placing, 0.0f);
            }
            if (operation.finite >= 0) compare(both, operation, size, all[0], placing, n % 4 == 0 ? kInf : kNaN);
        }
    }
}

const bool kAdded = table::add_tests(compare_everywhere);

}  // namespace

// ---- Element by element ----

// A launch takes the seeds of 256 clients.
TEST(dropout_masks_of_more_clients_than_a_launch_takes) {
    Both both;
    for (const int64_t clients : {256, 257, 600}) {
        Random random(static_cast<uint64_t>(clients));
        std::vector<uint64_t> seeds(static_cast<size_t>(clients));
        for (uint64_t &seed : seeds) seed = random.bits();
        Bytes mask(clients, 5, {0, 3});
        both.same("dropout_mask of " + std::to_string(clients) + " clients",
                  [&](Side &side, fcm_error *error) {
                      return fcm_dropout_mask(side.context(), clients, 5, 32768, seeds.data(), side.put(mask), mask.stride(),
                                              error);
                  },
                  mask);
    }
}

// ---- Means ----

namespace {

// Values of all kinds: ordinary ones, any finite ones, zeros, subnormal ones, and ones that lose bits beside the others, often
// exactly half a unit of the sum.
float any_term(Random &random) {
    const uint64_t bits = random.bits();
    const auto word = static_cast<uint32_t>(bits >> 32);
    const int away = static_cast<int>(bits >> 8 & 63);
    float value = 0.0f;
    switch (bits & 7) {
        case 0: return (bits & 8) != 0 ? -0.0f : 0.0f;
        case 1: {
            const uint32_t finite = (word >> 23 & 0xff) == 0xff ? word ^ 0x40000000u : word;
            std::memcpy(&value, &finite, sizeof value);
            return value;
        }
        case 2: {
            const uint32_t subnormal = word & 0x807fffffu;
            std::memcpy(&value, &subnormal, sizeof value);
            return value;
        }
        case 3:
        case 4: return std::ldexp(static_cast<float>(static_cast<int>(word % 15) - 7), -30 - away % 32);
        case 5: return std::ldexp(random.value(), -away);
        default: return random.value();
    }
}

// NaN and Inf are in a few elements of one client each.
void fill_terms(Floats &x, Random &random) {
    for (int64_t k = 0; k < x.clients(); ++k) {
        for (int64_t j = 0; j < x.n(); ++j) x[k][j] = any_term(random);
    }
    for (int64_t j = 5; j < x.n(); j += 61) x[j % x.clients()][j] = j % 2 == 0 ? kNaN : -kInf;
}

// Weights in [0, 1]; that of the second client is 0, and it has NaN and Inf.
std::vector<double> fill_weights(Floats &x, Random &random) {
    std::vector<double> weights(static_cast<size_t>(x.clients()));
    for (double &weight : weights) weight = std::min(random.positive(), 1.0);
    weights[0] = 1.0;
    if (x.clients() == 1) return weights;
    weights[1] = 0.0;
    for (int64_t j = 0; j < x.n(); ++j) x[1][j] = j % 2 == 0 ? kNaN : kInf;
    return weights;
}

// Up to 16 rows are in registers, the weights of up to 256 are passed with the launch.
constexpr int64_t kMeanClients[] = {1, 2, 10, 16, 17, 23, 300};

}  // namespace

TEST(average_of_many_clients) {
    Both both;
    Random random(5);
    for (const int64_t clients : kMeanClients) {
        for (const int64_t n : {1, 6, 1030}) {
            if (clients > 100 && n > 6) continue;
            for (const Placing &placing : kPlacings) {
                for (const bool weighted : {false, true}) {
                    Floats x(clients, n, placing);
                    fill_terms(x, random);
                    std::vector<double> weights;
                    if (weighted) weights = fill_weights(x, random);
                    const int64_t terms = n == 6 ? FCM_MOST_TERMS : clients;
                    const auto call = [&](Side &side, fcm_error *error) {
                        return fcm_average(side.context(), clients, n, weighted ? weights.data() : nullptr, terms, side.put(x),
                                           x.stride(), error);
                    };
                    both.same(words("average", clients, n, placing), call, x);
                }
            }
        }
    }
}

// Rows in another order than in memory, of which some are targets, and targets elsewhere. Tables of up to 128 rows and 16
// targets are passed with the launch, and longer ones lie in memory of the device.
TEST(average_of_rows_anywhere) {
    Both both;
    Random random(6);
    struct Tables {
        int64_t rows;
        int64_t targets;
    };
    for (const Tables &tables : {Tables{1, 1}, Tables{5, 2}, Tables{20, 2}, Tables{128, 16}, Tables{129, 1}, Tables{3, 17},
                                 Tables{200, 40}, Tables{300, 1}}) {
        for (const int64_t n : {1, 6, 1030}) {
            if (tables.rows * tables.targets > 100 && n > 6) continue;
            // With a gap of 2, rows of 6 and of 1030 elements are aligned for vectors, and end within one.
            for (const Placing &placing : {Placing{0, 0}, Placing{0, 2}, Placing{1, 3}}) {
                for (const bool weighted : {false, true}) {
                    Floats x(tables.rows, n, placing), y(tables.targets, n, {weighted ? 1 : placing.shift, placing.gap});
                    fill_terms(x, random);
                    y.fill(random);
                    std::vector<double> weights;
                    if (weighted) weights = fill_weights(x, random);
                    std::reverse(weights.begin(), weights.end());  // as the rows
                    const auto call = [&](Side &side, fcm_error *error) {
                        std::vector<const float *> rows;
                        std::vector<float *> targets;
                        float *from = side.put(x);
                        float *to = side.put(y);
                        for (int64_t k = tables.rows - 1; k >= 0; --k) rows.push_back(from + k * x.stride());
                        for (int64_t t = 1; t < tables.targets; ++t) targets.push_back(to + t * y.stride());
                        targets.push_back(const_cast<float *>(rows.front()));
                        return fcm_average_rows(side.context(), tables.rows, n, weighted ? weights.data() : nullptr,
                                                tables.rows, rows.data(), tables.targets, targets.data(), error);
                    };
                    both.same(words("average_rows", tables.rows, n, placing), call, x, y);
                }
            }
        }
    }
}

// The steps, with operands that are aligned differently from each other, and more clients than weights of a launch.
TEST(exponents_and_sums_at_any_alignment) {
    Both both;
    Random random(11);
    struct Shifts {
        int64_t x;
        int64_t exponents;
        int64_t sums;
    };
    for (const Shifts &shifts : {Shifts{0, 0, 0}, Shifts{2, 2, 0}, Shifts{0, 1, 0}, Shifts{0, 0, 1}, Shifts{1, 0, 0}}) {
        for (const int64_t clients : {1, 3, 19, 300}) {
            const int64_t n = clients > 100 ? 6 : 1030;
            for (const bool weighted : {false, true}) {
                Floats x(clients, n, {shifts.x, 2});
                Bytes exponents(1, n, {shifts.exponents, 0});
                Doubles sums(1, n, {shifts.sums, 0});
                fill_terms(x, random);
                std::vector<double> weights;
                if (weighted) weights = fill_weights(x, random);
                const double *given = weighted ? weights.data() : nullptr;
                const auto call = [&](Side &side, fcm_error *error) {
                    const float *from = side.put(x);
                    uint8_t *largest = side.put(exponents);
                    auto *to = reinterpret_cast<int64_t *>(side.put(sums));
                    const fcm_status status =
                        fcm_mean_exponents(side.context(), clients, n, given, from, x.stride(), largest, error);
                    if (status != FCM_OK) return status;
                    return fcm_mean_sums(side.context(), clients, n, given, clients, from, x.stride(), largest, to, error);
                };
                both.same(words("exponents and sums", clients, n, {shifts.x, shifts.exponents}), call, x, exponents, sums);
            }
        }
    }
}

// Integers and double give the same, with every distance of the exponents, and so do all numbers of bits.
TEST(terms_of_weight_one_are_rounded_like_products) {
    Side sim(FCM_CUDASIM);
    Random random(12);
    constexpr int64_t n = 4096;
    Floats x(1, n);
    Bytes exponents(1, n);
    for (int64_t j = 0; j < n; ++j) {
        const auto bits = static_cast<uint32_t>(random.bits());
        const int distance = static_cast<int>(random.bits() % 80);
        // Few digits, so that what is lost is often half a unit; all digits; and all digits but the last.
        uint32_t fraction = bits & 0x7fffffu;
        if (j % 4 == 1) fraction &= 0x7f0000u;
        if (j % 4 == 2) fraction = 0x7fffffu;
        if (j % 4 == 3) fraction = 0x7ffffeu;
        const int field = static_cast<int>(bits >> 24 & 0xff) % 255;
        const uint32_t word = (bits & 0x80000000u) | static_cast<uint32_t>(field) << 23 | fraction;
        std::memcpy(x[0] + j, &word, sizeof word);
        exponents[0][j] = static_cast<uint8_t>(std::min(field + distance, j % 100 == 0 ? 255 : 254));
    }
    const double one = 1.0;
    fcm_error error{};
    for (const int64_t terms : {int64_t{1}, int64_t{2}, int64_t{10}, int64_t{1000}, FCM_MOST_TERMS}) {
        std::array<std::vector<int64_t>, 2> sums;
        for (size_t i = 0; i < 2; ++i) {
            Buffer to(sim.context(), n * 8);
            ok(fcm_mean_sums(sim.context(), 1, n, i == 0 ? nullptr : &one, terms, sim.put(x), n, sim.put(exponents),
                             static_cast<int64_t *>(to.address()), &error),
               error);
            ok(fcm_synchronize(sim.context(), &error), error);
            sums[i].resize(n);
            to.out(sums[i].data(), n * 8);
            sim.clear();
        }
        for (size_t j = 0; j < n; ++j) {
            CHECK(sums[0][j] == sums[1][j], "%ld terms, %a with %d: %ld, and as a product %ld", long(terms), double(x[0][j]),
                  int(exponents[0][j]), long(sums[0][j]), long(sums[1][j]));
        }
    }
}

// Parts of several devices, with tables that are passed with the launch and longer ones.
TEST(parts_of_a_mean_anywhere) {
    Both both;
    Random random(13);
    struct Tables {
        int64_t parts;
        int64_t targets;
    };
    for (const Tables &tables : {Tables{1, 1}, Tables{3, 2}, Tables{64, 16}, Tables{65, 1}, Tables{2, 17}, Tables{100, 40}}) {
        for (const int64_t n : {1, 6, 1030}) {
            if (tables.parts * tables.targets > 10 && n > 6) continue;
            for (const int64_t unaligned : {-1, 0, 1, 2}) {  // no operand, or one of them
                // Rows of 6 and of 1030 exponents with a gap of 2 are aligned for vectors, and end within one.
                Bytes exponents(tables.parts, n, {unaligned == 0 ? 1 : 0, 2});
                Doubles sums(tables.parts, n, {unaligned == 1 ? 1 : 0, 2});
                Floats targets(tables.targets, n, {unaligned == 2 ? 1 : 0, 2});
                for (int64_t p = 0; p < tables.parts; ++p) {
                    for (int64_t j = 0; j < n; ++j) {
                        exponents[p][j] = static_cast<uint8_t>(random.bits());
                        const uint64_t sum = random.bits() / static_cast<uint64_t>(tables.parts);
                        std::memcpy(sums[p] + j, &sum, sizeof sum);
                    }
                }
                const bool in_place = n % 2 == 0;
                const auto call = [&](Side &side, fcm_error *error) {
                    std::vector<const uint8_t *> from;
                    std::vector<const int64_t *> adders;
                    std::vector<float *> to;
                    uint8_t *bytes = side.put(exponents);
                    double *longs = side.put(sums);
                    float *floats = side.put(targets);
                    for (int64_t p = tables.parts - 1; p >= 0; --p) {
                        from.push_back(bytes + p * exponents.stride());
                        adders.push_back(reinterpret_cast<const int64_t *>(longs + p * sums.stride()));
                    }
                    for (int64_t t = 0; t < tables.targets; ++t) to.push_back(floats + t * targets.stride());
                    uint8_t *largest = in_place ? bytes : static_cast<uint8_t *>(side.room(n));
                    const fcm_status status =
                        fcm_mean_combine(side.context(), tables.parts, n, from.data(), largest, error);
                    if (status != FCM_OK) return status;
                    return fcm_mean_finish(side.context(), tables.parts, n, 1000, 7.5, adders.data(), largest, tables.targets,
                                           to.data(), error);
                };
                both.same(words("parts", tables.parts, n, {unaligned, 0}), call, exponents, sums, targets);
            }
        }
    }
}

namespace {

// Some guards of operands are not numbers, which are equal to nothing.
template <class T>
bool same_bytes(const std::vector<T> &one, const std::vector<T> &other) {
    return one.size() == other.size() && std::memcmp(one.data(), other.data(), one.size() * sizeof(T)) == 0;
}

}  // namespace

// None of these is in the table of operations.
TEST(means_after_a_fault_write_nothing) {
    Side sim(FCM_CUDASIM);
    Random random(14);
    constexpr int64_t n = 70;
    Floats x(2, n), bad(1, n);
    Bytes exponents(2, n);
    Doubles sums(1, n);
    x.fill(random);
    std::fill(bad[0], bad[0] + n, kNaN);
    std::fill(exponents[0], exponents[0] + n, uint8_t{130});
    std::fill(exponents[1], exponents[1] + n, uint8_t{120});
    std::fill(sums[0], sums[0] + n, 1e-300);
    for (int i = 0; i < 3; ++i) {
        float *rows = sim.put(x);
        uint8_t *bytes = sim.put(exponents);
        const auto *adders = reinterpret_cast<const int64_t *>(sim.put(sums));
        const float *none = sim.put(bad);
        const float *from[] = {rows, rows + x.stride()};
        float *to[] = {rows};
        const uint8_t *parts[] = {bytes, bytes + exponents.stride()};
        fcm_error error{};
        const auto call = [&] {
            if (i == 0) return fcm_average_rows(sim.context(), 2, n, nullptr, 2, from, 1, to, &error);
            if (i == 1) return fcm_mean_combine(sim.context(), 2, n, parts, bytes + exponents.stride(), &error);
            return fcm_mean_finish(sim.context(), 1, n, 2, 2.0, &adders, bytes, 1, to, &error);
        };
        ok(fcm_require_finite(sim.context(), 1, n, none, n, nullptr, 0, &error), error);
        ok(call(), error);
        CHECK(fcm_synchronize(sim.context(), &error) == FCM_NOT_FINITE, "no fault");
        const auto unchanged = [&] {
            return same_bytes(sim.get(0, x), x.all()) && same_bytes(sim.get(1, exponents), exponents.all());
        };
        CHECK(unchanged(), "call %d wrote after a fault", i);
        ok(call(), error);
        ok(fcm_synchronize(sim.context(), &error), error);
        CHECK(!unchanged(), "call %d does nothing any more", i);
        sim.clear();
    }
}

namespace {

// Clients on several devices that reach each other, and what their mean is on a CPU that has all of them.
struct Spread {
    static constexpr int64_t kDevices = 3, kClients = 7, n = 1500;

    std::vector<Context> contexts;
    Floats all{kClients, n};
    std::vector<double> weights{1.0, 0.3, 0.0, 0.9, 0.7, 0.21, 0.4};
    std::vector<float> wanted;
    std::vector<std::unique_ptr<Buffer>> buffers;
    std::vector<float *> rows;  // row k on device k % kDevices

    Spread() {
        fcm_error error{};
        for (int32_t i = 0; i < kDevices; ++i) contexts.push_back(context_of(FCM_CUDASIM, i));
        for (const Context &context : contexts) {
            for (const Context &other : contexts) {
                int32_t reaches = -1;
                ok(fcm_context_reaches(context.get(), other.get(), &reaches, &error), error);
                CHECK(reaches == 1, "%d", reaches);
            }
        }
        Random random(8);
        for (int64_t k = 0; k < kClients; ++k) {
            for (int64_t j = 0; j < n; ++j) all[k][j] = any_term(random);
        }
        all[5][77] = kNaN;
        Side cpu(FCM_CPU);
        float *on_cpu = cpu.put(all);
        ok(fcm_average(cpu.context(), kClients, n, weights.data(), kClients, on_cpu, all.stride(), &error), error);
        wanted.assign(on_cpu, on_cpu + n);
        for (int64_t k = 0; k < kClients; ++k) {
            buffers.push_back(std::make_unique<Buffer>(context(k), n * 4));
            buffers.back()->in(all[k], n * 4);
            rows.push_back(static_cast<float *>(buffers.back()->address()));
        }
        wait();
    }

    fcm_context *context(int64_t k) const { return contexts[static_cast<size_t>(k % kDevices)].get(); }

    void wait() const {
        fcm_error error{};
        for (const Context &context : contexts) ok(fcm_synchronize(context.get(), &error), error);
    }

    // The first row of each device has the mean, and the others are as they were.
    void check() {
        wait();
        for (int64_t k = 0; k < kClients; ++k) {
            std::vector<float> back(n);
            buffers[static_cast<size_t>(k)]->out(back.data(), n * 4);
            CHECK(std::memcmp(back.data(), k < kDevices ? wanted.data() : all[k], n * 4) == 0, "row %ld", long(k));
        }
        buffers.clear();
    }
};

}  // namespace

// The same bits as from one device that has all rows, with the rows and the targets on three.
TEST(rows_of_several_devices_are_read_where_they_are) {
    Spread spread;
    fcm_error error{};
    // Each device has its own stretch, and writes it to the first row of every device.
    for (int64_t i = 0; i < Spread::kDevices; ++i) {
        const int64_t from = Spread::n * i / Spread::kDevices, length = Spread::n * (i + 1) / Spread::kDevices - from;
        std::vector<const float *> parts;
        for (const float *row : spread.rows) parts.push_back(row + from);
        std::vector<float *> targets;
        for (int64_t d = 0; d < Spread::kDevices; ++d) targets.push_back(spread.rows[static_cast<size_t>(d)] + from);
        ok(fcm_average_rows(spread.context(i), Spread::kClients, length, spread.weights.data(), Spread::kClients, parts.data(),
                            Spread::kDevices, targets.data(), &error),
           error);
    }
    spread.check();
}

// By the steps: each device has exponents and sums of its own clients, and combines and finishes its stretch from those of all.
TEST(parts_of_several_devices_are_read_where_they_are) {
    Spread spread;
    fcm_error error{};
    std::vector<std::unique_ptr<Buffer>> exponents, sums, largest, packed;
    std::vector<std::vector<double>> weights(Spread::kDevices);
    std::vector<int64_t> clients(Spread::kDevices);
    double total = 0.0;
    for (const double weight : spread.weights) total += weight;
    for (int64_t i = 0; i < Spread::kDevices; ++i) {
        const auto d = static_cast<size_t>(i);
        exponents.push_back(std::make_unique<Buffer>(spread.context(i), Spread::n));
        largest.push_back(std::make_unique<Buffer>(spread.context(i), Spread::n));
        sums.push_back(std::make_unique<Buffer>(spread.context(i), Spread::n * 8));
        std::vector<float> own;
        for (int64_t k = i; k < Spread::kClients; k += Spread::kDevices) {
            own.insert(own.end(), spread.all[k], spread.all[k] + Spread::n);
            weights[d].push_back(spread.weights[static_cast<size_t>(k)]);
        }
        clients[d] = static_cast<int64_t>(weights[d].size());
        packed.push_back(std::make_unique<Buffer>(spread.context(i), clients[d] * Spread::n * 4));
        packed.back()->in(own.data(), clients[d] * Spread::n * 4);
        ok(fcm_mean_exponents(spread.context(i), clients[d], Spread::n, weights[d].data(),
                              static_cast<const float *>(packed[d]->address()), Spread::n,
                              static_cast<uint8_t *>(exponents[d]->address()), &error),
           error);
    }
    spread.wait();
    for (int64_t i = 0; i < Spread::kDevices; ++i) {
        const auto d = static_cast<size_t>(i);
        std::vector<const uint8_t *> parts;
        for (const auto &part : exponents) parts.push_back(static_cast<const uint8_t *>(part->address()));
        auto *to = static_cast<uint8_t *>(largest[d]->address());
        ok(fcm_mean_combine(spread.context(i), Spread::kDevices, Spread::n, parts.data(), to, &error), error);
        ok(fcm_mean_sums(spread.context(i), clients[d], Spread::n, weights[d].data(), Spread::kClients,
                         static_cast<const float *>(packed[d]->address()), Spread::n, to,
                         static_cast<int64_t *>(sums[d]->address()), &error),
           error);
    }
    spread.wait();
    for (int64_t i = 0; i < Spread::kDevices; ++i) {
        const auto d = static_cast<size_t>(i);
        const int64_t from = Spread::n * i / Spread::kDevices, length = Spread::n * (i + 1) / Spread::kDevices - from;
        std::vector<const int64_t *> parts;
        for (const auto &part : sums) parts.push_back(static_cast<const int64_t *>(part->address()) + from);
        std::vector<float *> targets;
        for (int64_t t = 0; t < Spread::kDevices; ++t) targets.push_back(spread.rows[static_cast<size_t>(t)] + from);
        ok(fcm_mean_finish(spread.context(i), Spread::kDevices, length, Spread::kClients, total, parts.data(),
                           static_cast<const uint8_t *>(largest[d]->address()) + from, Spread::kDevices, targets.data(), &error),
           error);
    }
    spread.check();
}

// More tasks than a grid has blocks.
TEST(more_clients_than_blocks) {
    if (interpreted()) return;
    Both both;
    Random random(7);
    constexpr int64_t kClients = 65536 + 9;
    Floats x(kClients, 1), y(kClients, 1);
    x.fill(random);
    y.fill(random);
    const auto call = [&](Side &side, fcm_error *error) {
        float *to_x = side.put(x);
        return fcm_ema(side.context(), kClients, 1, 0.5, to_x, 1, side.put(y), 1, error);
    };
    both.same("ema of more clients than blocks", call, x, y);
}

// A client with an offset of more than 2^31 elements. No test device has that much memory, but the kernel only accesses two
// pages at either end, and the simulator accepts host addresses as well.
TEST(client_beyond_two_to_the_31) {
    if (interpreted()) return;
    constexpr int64_t kStride = (int64_t{1} << 31) + 64;
    constexpr size_t kBytes = static_cast<size_t>(kStride + 4096) * sizeof(float);
    const auto reserve = [] {
        void *range = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (range == MAP_FAILED) throw std::runtime_error("no addresses");
        return std::unique_ptr<float, void (*)(float *)>(static_cast<float *>(range),
                                                         [](float *memory) { munmap(memory, kBytes); });
    };
    const auto x = reserve();
    const auto y = reserve();
    constexpr int64_t n = 9;
    for (int64_t j = 0; j < n; ++j) {
        x.get()[j] = static_cast<float>(j);
        x.get()[kStride + j] = static_cast<float>(100 + j);
    }
    const Context sim = context_of(FCM_CUDASIM);
    fcm_error error{};
    ok(fcm_ema(sim.get(), 2, n, 1.0, x.get(), kStride, y.get(), kStride, &error), error);
    ok(fcm_synchronize(sim.get(), &error), error);
    for (int64_t j = 0; j < n; ++j) {
        CHECK(y.get()[j] == static_cast<float>(j), "client 0, %ld: %g", long(j), double(y.get()[j]));
        CHECK(y.get()[kStride + j] == static_cast<float>(100 + j), "client 1, %ld: %g", long(j), double(y.get()[kStride + j]));
    }
    CHECK(y.get()[64] == 0.0f && y.get()[n] == 0.0f, "something was written elsewhere");
}

// ---- Sums ----

namespace {

constexpr int kThreads = 256;

// The order that the kernels guarantee: within a block a tree over each warp, then warp by warp.
double block_sum(std::array<double, kThreads> values) {
    double total = 0.0;
    for (int warp = 0; warp < kThreads; warp += 32) {
        for (int distance = 16; distance > 0; distance /= 2) {
            for (int lane = 0; lane < distance; ++lane) values[warp + lane] += values[warp + lane + distance];
        }
        total += values[warp];
    }
    return total;
}

// Each piece of 4096 elements belongs to a block, and four consecutive elements belong to a thread.
double norm_in_order(const float *x, int64_t n) {
    std::array<double, kThreads> of_pieces{};
    int64_t piece = 0;
    for (int64_t start = 0; start < n; start += 4096, ++piece) {
        std::array<double, kThreads> sums{};
        for (int64_t j = start; j < std::min(start + 4096, n); ++j) {
            double &sum = sums[static_cast<size_t>((j - start) / 4 % kThreads)];
            sum = std::fma(double{x[j]}, double{x[j]}, sum);
        }
        of_pieces[static_cast<size_t>(piece % kThreads)] += block_sum(sums);
    }
    return std::sqrt(block_sum(of_pieces));
}

void expect_norms(const std::string &what, Floats &x, const std::vector<double> &norms, int64_t first) {
    for (int64_t k = 0; k < x.clients(); ++k) {
        const double wanted = norm_in_order(x[k], x.n());
        CHECK(norms[static_cast<size_t>(first + k)] == wanted, "%s, client %ld: %.17g, wanted %.17g", what.c_str(), long(k),
              norms[static_cast<size_t>(first + k)], wanted);
    }
}

}  // namespace

TEST(norm_is_summed_in_its_order) {
    Side sim(FCM_CUDASIM);
    Random random(11);
    for (const int64_t n : {1, 5, 300, 4095, 4097, 3 * 4096 + 70}) {
        for (const Placing &placing : kPlacings) {
            const int64_t clients = n > 4097 ? 2 : 3;
            Floats x(clients, n, placing);
            Doubles norms(1, clients);
            x.fill(random);
            const float *to_x = sim.put(x);
            double *to_norms = sim.put(norms);
            const int64_t room = sum_room(sim, clients, n);
            fcm_error error{};
            ok(fcm_norm(sim.context(), clients, n, to_x, x.stride(), to_norms, sim.room(room), room, &error), error);
            expect_norms(words("norm", clients, n, placing), x, sim.get(1, norms), norms.first());
            sim.clear();
        }
    }
}

// More pieces than threads of the block that adds them.
TEST(norm_of_many_pieces) {
    if (interpreted()) return;
    Side sim(FCM_CUDASIM);
    Random random(12);
    constexpr int64_t n = 260 * 4096 + 3;
    Floats x(1, n);
    Doubles norms(1, 1);
    x.fill(random);
    const float *to_x = sim.put(x);
    double *to_norms = sim.put(norms);
    const int64_t room = sum_room(sim, 1, n);
    fcm_error error{};
    ok(fcm_norm(sim.context(), 1, n, to_x, n, to_norms, sim.room(room), room, &error), error);
    expect_norms("norm of many pieces", x, sim.get(1, norms), norms.first());
}

TEST(first_that_is_not_finite) {
    const Context cpu = context_of(FCM_CPU);
    Side sim(FCM_CUDASIM);
    Random random(15);
    for (const int64_t n : {1, 6, 1030}) {
        for (const Placing &placing : kPlacings) {
            for (const float bad : {0.0f, kNaN, kInf}) {
                Floats x(3, n, placing);
                x.fill(random);
                if (bad != 0.0f) x[1][n - 1] = x[1][n / 2] = x[2][0] = bad;
                int64_t client = -7, index = -7;
                fcm_error error{};
                const float *to_x = sim.put(x);
                ok(fcm_all_finite(sim.context(), 3, n, to_x, x.stride(), &client, &index, &error), error);
                const bool right = bad == 0.0f ? client == -1 && index == -1 : client == 1 && index == n / 2;
                CHECK(right, "%s: client %ld, index %ld", words("all_finite", 3, n, placing).c_str(), long(client),
                      long(index));
                sim.clear();
            }
        }
    }
}

// ---- What follows a fault ----

// Each operation of the table is given to a device on which another has found NaN: it writes nothing, and the next wait names
// the first fault, even if the operation would have found one as well. Afterwards it works.
TEST(what_follows_a_fault_writes_nothing) {
    const table::Size size{2, 1030};
    for (const table::Operation &operation : table::operations()) {
        const table::Parameters settings = operation.settings(size)[0];
        Side sim(FCM_CUDASIM);
        auto data = data_of(operation, sim.context(), size, settings, 7);
        const auto &operands = data.operands();
        table::Placement p;
        std::array<int64_t, 2> answer{};
        std::vector<std::unique_ptr<Buffer>> buffers;
        for (size_t i = 0; i < operands.size(); ++i) {
            const int64_t bytes = operands[i].bytes(size);
            p.stride[i] = operands[i].length;
            if (operands[i].use == table::Use::kAnswer) {
                p.at[i] = answer.data();
            } else if (operands[i].host) {
                p.at[i] = data.bytes(i).data();
            } else {
                buffers.push_back(std::make_unique<Buffer>(sim.context(), bytes));
                if (bytes > 0) buffers.back()->in(data.bytes(i).data(), bytes);
                p.at[i] = buffers.back()->address();
                if (operands[i].use == table::Use::kRoom) p.room_bytes = bytes;
            }
        }
        const auto unchanged = [&] {
            bool same = true;
            size_t buffer = 0;
            for (size_t i = 0; i < operands.size(); ++i) {
                if (operands[i].use == table::Use::kAnswer || operands[i].host) continue;
                std::vector<char> now(data.bytes(i).size());
                if (!now.empty()) buffers[buffer]->out(now.data(), static_cast<int64_t>(now.size()));
                ++buffer;
                if (operands[i].use == table::Use::kWritten) same = same && now == data.bytes(i);
            }
            return same;
        };
        fcm_error error{};
        if (operation.ready) operation.ready(sim.context(), size, settings, p);
        Floats x(3, 700, {1, 2});
        for (int64_t k = 0; k < 3; ++k) std::fill(x[k], x[k] + 700, 1.0f);
        x[1][650] = x[2][3] = kNaN;
        ok(fcm_context_mark(sim.context(), 41, &error), error);
        ok(fcm_require_finite(sim.context(), 3, 700, sim.put(x), x.stride(), nullptr, 0, &error), error);
        ok(fcm_context_mark(sim.context(), 42, &error), error);
        fcm_status status = operation.call(sim.context(), size, settings, p, &error);
        if (status == FCM_OK) status = fcm_synchronize(sim.context(), &error);
        CHECK(status == FCM_NOT_FINITE && error.client == 1 && error.index == 650 && error.mark == 41,
              "%s: status %d, client %ld, index %ld, mark %ld", operation.name, status, long(error.client), long(error.index),
              long(error.mark));
        CHECK(std::strstr(error.message, "fcm_require_finite") == error.message, "%s: %s", operation.name, error.message);
        // A benchmark's kernel has no state to protect.
        CHECK(unchanged() || operation.name == std::string("triad"), "%s wrote after a fault", operation.name);
        ok(operation.call(sim.context(), size, settings, p, &error), error);
        ok(fcm_synchronize(sim.context(), &error), error);
        CHECK(!unchanged() || !operation.answers(operands) || operation.name == std::string("all_finite"),
              "%s does nothing any more", operation.name);
    }
}

// Of two operations that find something the first is named.
TEST(the_first_fault_is_named) {
    const Context sim = context_of(FCM_CUDASIM);
    Buffer x(sim.get(), 4000), y(sim.get(), 4000);
    std::vector<float> bad(1000, kInf);
    x.in(bad.data(), 4000);
    y.in(bad.data(), 4000);
    fcm_error error{};
    // The second is at a lower address, or the other way round.
    for (const auto &[first, second] : {std::pair<Buffer *, Buffer *>{&x, &y}, {&y, &x}}) {
        auto *one = static_cast<float *>(first->address());
        ok(fcm_require_finite(sim.get(), 10, 100, one, 100, nullptr, 0, &error), error);
        ok(fcm_require_finite(sim.get(), 10, 100, static_cast<float *>(second->address()), 100, nullptr, 0, &error), error);
        CHECK(fcm_synchronize(sim.get(), &error) == FCM_NOT_FINITE, "status");
        CHECK(error.address == reinterpret_cast<uintptr_t>(one), "another address");
    }
    ok(fcm_synchronize(sim.get(), &error), error);
}

// What was computed is named by what it was computed from.
TEST(a_result_is_named_by_its_operand) {
    const Context sim = context_of(FCM_CUDASIM);
    Buffer x(sim.get(), 400), of(sim.get(), 4000);
    std::vector<float> values(100, 1.0f);
    values[75] = values[80] = kNaN;
    x.in(values.data(), 400);
    fcm_error error{};
    auto *base = static_cast<float *>(of.address()) + 7;
    ok(fcm_require_finite(sim.get(), 10, 10, static_cast<float *>(x.address()), 10, base, 90, &error), error);
    CHECK(fcm_synchronize(sim.get(), &error) == FCM_NOT_FINITE, "status");
    CHECK(error.client == 7 && error.index == -1 && error.address == reinterpret_cast<uintptr_t>(base + 7 * 90),
          "client %ld, index %ld", long(error.client), long(error.index));
}

TEST(a_workspace_must_be_prepared) {
    const Context sim = context_of(FCM_CUDASIM);
    Buffer m(sim.get(), 400), w(sim.get(), 400), room(sim.get(), 1 << 16);
    const fcm_vector_block blocks[2] = {{10, 0, 0, 1.0}, {20, 10, 10, 1.0}};
    fcm_error error{};
    const auto step = [&](int64_t count) {
        return fcm_vector_steps(sim.get(), 3, blocks, count, FCM_STEP_NORMALIZED, 0.1, static_cast<float *>(m.address()), 30,
                                static_cast<float *>(w.address()), 30, room.address(), 1 << 16, &error);
    };
    CHECK(step(2) == FCM_INVALID_ARGUMENT && std::strstr(error.message, "prepared") != nullptr, "%s", error.message);
    ok(fcm_vector_steps_prepare(sim.get(), 3, blocks, 2, room.address(), 1 << 16, &error), error);
    ok(step(2), error);
    CHECK(step(1) == FCM_INVALID_ARGUMENT, "prepared for other blocks");
    int64_t needed = 0;
    ok(fcm_vector_steps_workspace(sim.get(), 3, blocks, 2, &needed, &error), error);
    CHECK(fcm_vector_steps_prepare(sim.get(), 3, blocks, 2, room.address(), needed - 8, &error) == FCM_INVALID_ARGUMENT &&
              error.bytes == needed,
          "%ld bytes, needed %ld", long(error.bytes), long(needed));
}

// ---- Largest elements ----

TEST(top_k_of_ties) {
    Both both;
    Random random(21);
    for (const int64_t n : {1, 7, 1030, 17000}) {
        for (const Placing &placing : {Placing{0, 0}, Placing{1, 3}}) {
            Floats x(2, n, placing), y(2, n, placing);
            y.fill(random);
            for (int64_t k = 0; k < 2; ++k) {
                // Few different magnitudes with both signs, so that there are many ties.
                for (int64_t j = 0; j < n; ++j) {
                    const uint64_t bits = random.bits();
                    x[k][j] = static_cast<float>(static_cast<int>(bits % 7)) * (bits & 64 ? 0.25f : -0.25f);
                }
            }
            for (const int64_t keep : {int64_t{0}, int64_t{1}, n / 3, n / 2 + 1, n}) {
                if (keep > n) continue;
                const auto call = [&](Side &side, fcm_error *error) {
                    float *to_x = side.put(x);
                    return fcm_top_k(side.context(), 2, n, keep, to_x, x.stride(), side.put(y), y.stride(), error);
                };
                both.same(words("top_k", 2, n, placing) + ", k = " + std::to_string(keep), call, x, y);
            }
        }
    }
}

TEST(top_k_of_different_magnitudes) {
    Both both;
    Random random(22);
    constexpr int64_t n = 1500;
    Floats x(3, n), y(3, n);
    x.fill(random);
    y.fill(random);
    for (int64_t j = 0; j < n; ++j) x[1][j] = std::ldexp(x[1][j], static_cast<int>(j % 80) - 40);
    for (const int64_t keep : {1, 100, 1499}) {
        const auto call = [&](Side &side, fcm_error *error) {
            float *to_x = side.put(x);
            return fcm_top_k(side.context(), 3, n, keep, to_x, n, side.put(y), n, error);
        };
        both.same("top_k, k = " + std::to_string(keep), call, x, y);
    }
    x[2][3] = kNaN;
    const auto call = [&](Side &side, fcm_error *error) {
        float *to_x = side.put(x);
        return fcm_top_k(side.context(), 3, n, 5, to_x, n, side.put(y), n, error);
    };
    both.same("top_k with NaN", call, x, y);
}

// ---- Matrices ----

TEST(rearrange_of_each_layout) {
    Both both;
    Random random(31);
    constexpr int64_t kRows = 41;
    constexpr int64_t kCols = 70;
    for (const int32_t bytes : {4, 8}) {
        for (const bool from_transposed : {false, true}) {
            for (const bool to_transposed : {false, true}) {
                constexpr int64_t kSpan = (kRows + 3) * (kCols + 3);
                const auto call = [&](auto &x, auto &y) {
                    return [&](Side &side, fcm_error *error) {
                        auto *to_x = side.put(x);
                        auto *to_y = side.put(y);
                        return fcm_rearrange(side.context(), 2, kRows, kCols, bytes, to_x, x.stride(),
                                             from_transposed ? 1 : kCols + 2, from_transposed ? kRows + 1 : 1, to_y, y.stride(),
                                             to_transposed ? 1 : kCols, to_transposed ? kRows + 3 : 1, error);
                    };
                };
                if (bytes == 4) {
                    Floats x(2, kSpan), y(2, kSpan, {0, 5});
                    both.same("rearrange", call(x.fill(random), y), x, y);
                } else {
                    Doubles x(2, kSpan), y(2, kSpan, {0, 5});
                    both.same("rearrange", call(x.fill(random), y), x, y);
                }
            }
        }
    }
}

TEST(multiply_of_each_layout) {
    Both both;
    Random random(32);
    struct Case {
        int64_t rows, cols, depth;
        int32_t symmetric;
        bool a_transposed, b_transposed, based;
    };
    const Case cases[] = {{70, 90, 37, 0, false, false, true}, {5, 66, 16, 0, true, true, false},
                          {64, 64, 1, 0, false, true, false},  {130, 130, 33, 1, false, true, true},
                          {66, 66, 40, 1, true, false, false}};
    for (const Case &c : cases) {
        Floats a(2, c.rows * c.depth), b(2, c.depth * c.cols), base(2, c.rows * c.cols), out(2, c.rows * c.cols, {0, 3});
        a.fill(random);
        b.fill(random);
        base.fill(random);
        out.fill(random);
        if (c.symmetric != 0) {
            // A B is A A^T, and the base is symmetric as well.
            for (int64_t k = 0; k < 2; ++k) {
                for (int64_t i = 0; i < c.rows; ++i) {
                    for (int64_t j = 0; j < c.depth; ++j) {
                        const float value = a[k][c.a_transposed ? j * c.rows + i : i * c.depth + j];
                        b[k][c.b_transposed ? i * c.depth + j : j * c.cols + i] = value;
                    }
                    for (int64_t j = 0; j < i; ++j) base[k][i * c.cols + j] = base[k][j * c.cols + i];
                }
            }
        }
        const auto call = [&](Side &side, fcm_error *error) {
            float *to_a = side.put(a);
            float *to_b = side.put(b);
            float *to_base = side.put(base);
            float *to_out = side.put(out);
            int64_t room = 0;
            ok(fcm_multiply_workspace(side.context(), 2, c.rows, c.cols, c.depth, &room, error), *error);
            return fcm_multiply(side.context(), 2, c.rows, c.cols, c.depth, c.symmetric, 0.7, to_a, a.stride(),
                                c.a_transposed ? 1 : c.depth, c.a_transposed ? c.rows : 1, to_b, b.stride(),
                                c.b_transposed ? 1 : c.cols, c.b_transposed ? c.depth : 1, -0.4,
                                c.based ? to_base : nullptr, base.stride(), to_out, out.stride(), side.room(room), room, error);
        };
        both.near("multiply " + std::to_string(c.rows) + " x " + std::to_string(c.cols), 1e-4, call, a, b, base, out);
    }
}

// A block of threads takes several tiles one after the other.
TEST(multiply_of_more_tiles_than_a_launch_has_blocks) {
    if (brief()) return;
    Both both;
    Random random(33);
    constexpr int64_t kClients = 66000;
    Floats a(kClients, 2), b(kClients, 2), out(kClients, 1);
    a.fill(random);
    b.fill(random);
    out.fill(random);
    const auto call = [&](Side &side, fcm_error *error) {
        int64_t bytes = 0;
        ok(fcm_multiply_workspace(side.context(), kClients, 1, 1, 2, &bytes, error), *error);
        const float *to_a = side.put(a);
        const float *to_b = side.put(b);
        float *to_out = side.put(out);
        return fcm_multiply(side.context(), kClients, 1, 1, 2, 0, 1.0, to_a, a.stride(), 2, 1, to_b, b.stride(), 1, 1, 0.0,
                            nullptr, 0, to_out, out.stride(), side.room(bytes), bytes, error);
    };
    both.same("many products", call, a, b, out);
}

// The tiles of a long side: 65 in a row, of which the last is 8 wide. Most of the work is the comparison.
TEST(multiply_of_a_side_beyond_8192) {
    if (brief()) return;
    Both both;
    Random random(34);
    constexpr int64_t kSide = 8200;
    Floats a(1, kSide), out(1, kSide * kSide);
    a.fill(random);
    const auto call = [&](Side &side, fcm_error *error) {
        int64_t bytes = 0;
        ok(fcm_multiply_workspace(side.context(), 1, kSide, kSide, 1, &bytes, error), *error);
        const float *to_a = side.put(a);
        float *to_out = side.put(out);
        return fcm_multiply(side.context(), 1, kSide, kSide, 1, 1, 1.0, to_a, kSide, 1, 1, to_a, kSide, 1, 1, 0.0, nullptr, 0,
                            to_out, kSide * kSide, side.room(bytes), bytes, error);
    };
    both.same("8200 x 8200", call, a, out);
}

// ---- Newton-Schulz ----

namespace {

struct Sides {
    int64_t rows;
    int64_t cols;
    int64_t gram = 0;
};

class Matrices {
   public:
    Matrices(const std::vector<Sides> &shapes, int64_t clients, uint64_t seed)
        : blocks_(layout(shapes)),
          length_(blocks_.back().m_offset + blocks_.back().rows * blocks_.back().cols),
          m_(clients, length_, {0, 2}),
          o_(clients, length_, {0, 1}),
          w_(clients, length_, {1, 0}) {
        Random random(seed);
        m_.fill(random);
        o_.fill(random);
        w_.fill(random);
    }

    std::vector<fcm_matrix_block> &blocks() { return blocks_; }
    Floats &m() { return m_; }

    void use(int32_t precision) { precision_ = precision; }

    // One element in each row and column, a power of two: every sum has one term, so that no order rounds differently.
    void make_sparse(Random &random) {
        for (const fcm_matrix_block &block : blocks_) {
            const int64_t shift = static_cast<int64_t>(random.bits() % static_cast<uint64_t>(block.cols));
            for (int64_t k = 0; k < m_.clients(); ++k) {
                float *m = m_[k] + block.m_offset;
                std::fill(m, m + block.rows * block.cols, 0.0f);
                for (int64_t i = 0; i < std::min(block.rows, block.cols); ++i) {
                    const int64_t row = block.rows > block.cols ? (i + shift) % block.rows : i;
                    const int64_t col = block.rows > block.cols ? i : (i + shift) % block.cols;
                    m[row * block.cols + col] = std::ldexp(random.bits() % 2 == 0 ? 1.0f : -1.0f, static_cast<int>(random.bits() % 3));
                }
            }
        }
    }

    // Integers, whose squares add up exactly in any order, so that all devices compute the same norm.
    void make_whole(Random &random) {
        for (int64_t k = 0; k < m_.clients(); ++k) {
            for (int64_t j = 0; j < length_; ++j) m_[k][j] = static_cast<float>(random.bits() % 31) - 15.0f;
        }
    }

    fcm_status run(Side &side, const std::vector<double> &coefficients, fcm_error *error) {
        const auto count = static_cast<int64_t>(blocks_.size());
        const auto steps = static_cast<int64_t>(coefficients.size() / 3);
        const int64_t restart = 1;
        const Iteration iteration =
            Iteration(coefficients.data(), steps, 1.01, precision_).restarting(&restart, steps > 1 ? 1 : 0);
        float *to_m = side.put(m_);
        float *to_o = side.put(o_);
        float *to_w = side.put(w_);
        int64_t room = 0;
        ok(fcm_newton_schulz_workspace(side.context(), m_.clients(), blocks_.data(), count, iteration, &room, error), *error);
        void *workspace = side.room(room);
        ok(fcm_newton_schulz_prepare(side.context(), m_.clients(), blocks_.data(), count, iteration, workspace, room, error),
           *error);
        return fcm_newton_schulz(side.context(), m_.clients(), blocks_.data(), count, iteration, 0.5, to_m, m_.stride(), to_o,
                                 o_.stride(), to_w, w_.stride(), workspace, room, error);
    }

    void compare(Both &both, const char *what, const std::vector<double> &coefficients, double tolerance = 2e-4) {
        both.near(what, tolerance, [&](Side &side, fcm_error *error) { return run(side, coefficients, error); }, m_, o_, w_);
    }

    void same_bits(Both &both, const char *what, const std::vector<double> &coefficients) {
        both.same(what, [&](Side &side, fcm_error *error) { return run(side, coefficients, error); }, m_, o_, w_);
    }

   private:
    static std::vector<fcm_matrix_block> layout(const std::vector<Sides> &shapes) {
        std::vector<fcm_matrix_block> blocks;
        int64_t at = 0;
        for (const Sides &shape : shapes) {
            blocks.push_back({shape.rows, shape.cols, at, at, at, 0.25 + 0.5 * static_cast<double>(blocks.size()), shape.gram});
            at += shape.rows * shape.cols;
        }
        return blocks;
    }

    int32_t precision_ = FCM_FP32;
    std::vector<fcm_matrix_block> blocks_;
    int64_t length_;
    Floats m_;
    Floats o_;
    Floats w_;
};

const std::vector<double> kTwoSteps = {3.4445, -4.7750, 2.0315, 2.0, -1.5, 0.5, 0};

// Whether the simulated device, or the PTX that is interpreted, has tensor cores.
bool has_tensor_cores() {
    const char *arch = std::getenv("FEDCOMUON_CUDASIM_ARCH");
    const char *ptx = std::getenv("FEDCOMUON_CUDASIM_PTX");
    return (arch == nullptr || std::atoi(arch) >= 80) && (ptx == nullptr || std::strstr(ptx, "ptx/75") == nullptr);
}

// The precisions of the device, and how far results in each may be from the CPU's.
std::vector<int32_t> precisions() {
    return has_tensor_cores() ? std::vector<int32_t>{FCM_FP32, FCM_BF16, FCM_TF32} : std::vector<int32_t>{FCM_FP32};
}
double tolerance_in(int32_t precision) { return precision == FCM_BF16 ? 1e-2 : precision == FCM_TF32 ? 1e-3 : 2e-4; }

}  // namespace

TEST(newton_schulz_of_mixed_shapes) {
    Both both;
    Matrices matrices({{5, 9}, {9, 5}, {20, 33}, {1, 1}, {40, 70}, {17, 3}}, 2, 41);
    matrices.compare(both, "mixed shapes", kTwoSteps);
}

namespace {

// Twice with the same workspace. The norm of the second matrix is a sum of several pieces.
void run_twice(int32_t precision) {
    Side sim(FCM_CUDASIM);
    const std::vector<fcm_matrix_block> blocks = {{6, 9, 0, 0, 0, 1.0, 0}, {3, 3000, 54, 54, 0, 1.0, 0}};
    constexpr int64_t kLength = 54 + 9000;
    Floats m(2, kLength), o(2, kLength);
    Random random(48);
    m.fill(random);
    o.fill(random);
    const float *to_m = sim.put(m);
    float *to_o = sim.put(o);
    int64_t room = 0;
    fcm_error error{};
    ok(fcm_newton_schulz_workspace(sim.context(), 2, blocks.data(), 2, Iteration(kTwoSteps.data(), 2, 1.0, precision), &room, &error), error);
    void *workspace = sim.room(room);
    ok(fcm_newton_schulz_prepare(sim.context(), 2, blocks.data(), 2, Iteration(kTwoSteps.data(), 2, 1.0, precision), workspace, room, &error),
       error);
    std::vector<std::vector<float>> results;
    for (int i = 0; i < 2; ++i) {
        ok(fcm_zero(sim.context(), to_o, 2 * kLength * 4, &error), error);
        ok(fcm_newton_schulz(sim.context(), 2, blocks.data(), 2, Iteration(kTwoSteps.data(), 2, 1.0, precision), 0.0, to_m, kLength, to_o,
                             kLength, nullptr, 0, workspace, room, &error),
           error);
        results.push_back(sim.get(1, o));
        for (float *x : {m[0], m[1]}) {  // another norm for the second time
            for (int64_t j = 0; j < kLength; ++j) x[j] *= 2.0f;
        }
        ok(fcm_copy_in(sim.context(), const_cast<float *>(to_m), m[0], 2 * kLength * 4, &error), error);
    }
    CHECK(std::memcmp(results[0].data() + o.first(), results[1].data() + o.first(), 2 * kLength * 4) == 0, "another result");
    CHECK(results[1][static_cast<size_t>(o.first())] != 0.0f, "no result");
}

}  // namespace

TEST(newton_schulz_twice) {
    for (const int32_t precision : precisions()) run_twice(precision);
}

// A call of fewer clients than the workspace was prepared for leaves it as it has to be for all. There are as many matrices as make
// the counts of all clients longer than those of one.
TEST(newton_schulz_of_fewer_clients_than_prepared) {
    Side sim(FCM_CUDASIM);
    constexpr int64_t kBlocks = 20;
    constexpr int64_t kClients = 4;
    constexpr int64_t kSize = 2 * 2100;  // several pieces of a norm
    std::vector<fcm_matrix_block> blocks;
    for (int64_t i = 0; i < kBlocks; ++i) blocks.push_back({2, kSize / 2, i * kSize, i * kSize, 0, 1.0, 0});
    constexpr int64_t kLength = kBlocks * kSize;
    Floats m(kClients, kLength), o(kClients, kLength);
    Random random(49);
    m.fill(random);
    o.fill(random);
    const float *to_m = sim.put(m);
    float *to_o = sim.put(o);
    int64_t room = 0;
    fcm_error error{};
    const Iteration iteration(kTwoSteps.data(), 2);
    ok(fcm_newton_schulz_workspace(sim.context(), kClients, blocks.data(), kBlocks, iteration, &room, &error), error);
    void *workspace = sim.room(room);
    ok(fcm_newton_schulz_prepare(sim.context(), kClients, blocks.data(), kBlocks, iteration, workspace, room, &error), error);
    std::vector<std::vector<float>> results;
    for (const int64_t clients : {kClients, int64_t{1}, kClients}) {
        ok(fcm_zero(sim.context(), to_o, kClients * kLength * 4, &error), error);
        ok(fcm_newton_schulz(sim.context(), clients, blocks.data(), kBlocks, iteration, 0.0, to_m, kLength, to_o, kLength, nullptr,
                             0, workspace, room, &error),
           error);
        results.push_back(sim.get(1, o));
    }
    CHECK(std::memcmp(results[0].data() + o.first(), results[1].data() + o.first(), kLength * 4) == 0, "one client is another");
    CHECK(std::memcmp(results[0].data() + o.first(), results[2].data() + o.first(), kClients * kLength * 4) == 0,
          "after a call of one client, all are others");
    CHECK(results[2][static_cast<size_t>(o.first() + 3 * kLength)] != 0.0f, "no result");
    CHECK(fcm_newton_schulz(sim.context(), kClients + 1, blocks.data(), kBlocks, iteration, 0.0, to_m, 0, to_o, kLength, nullptr, 0,
                            workspace, 2 * room, &error) == FCM_INVALID_ARGUMENT,
          "more clients than prepared for");
}

TEST(newton_schulz_of_a_tall_matrix) {
    Both both;
    Matrices matrices({{45, 20}}, 2, 42);
    matrices.compare(both, "tall", kTwoSteps);
}

// On most GPUs the first matrix stays in shared memory. On those with the least, neither does, and for the second not even
// the Gram matrix.
TEST(newton_schulz_of_long_sides) {
    Both both;
    Matrices matrices({{100, 130}, {128, 150}}, 1, 43);
    matrices.compare(both, "long sides", brief() ? std::vector<double>{2.0, -1.5, 0.5} : kTwoSteps);
}

// The first and the last side of every tiling, and sides that leave its last blocks empty.
TEST(newton_schulz_of_sides_around_each_tiling) {
    Both both;
    std::vector<int64_t> sides = {1, 2, 3, 8, 9, 16, 17, 20, 29, 32, 33, 47, 64, 65, 72, 73, 84, 96, 97, 104, 105, 119, 121, 128};
    if (brief()) sides = {3, 16, 17, 33, 65, 97};
    uint64_t seed = 60;
    for (const int64_t side : sides) {
        // As long as wide; wide and tall, with rows left over after those that a thread takes together. The tall one is the
        // first to be computed, in shared memory that nobody has cleared.
        Matrices matrices({{side, side}, {side, side + 13}, {side + 21, side}}, 1, seed++);
        Random random(seed);
        matrices.make_whole(random);
        matrices.same_bits(both, ("side " + std::to_string(side)).c_str(),
                           brief() ? std::vector<double>{2.0, -1.5, 0.5} : kTwoSteps);
    }
}

// So long that Y is streamed, for each tiling, with a last panel of few rows; on some GPUs through panels of other sizes.
TEST(newton_schulz_of_streams) {
    Both both;
    const std::vector<double> step = {2.0, -1.5, 0.5};
    // A tiny one fits the shared memory of every GPU up to a length of 2800.
    std::vector<Sides> shapes = {{16, 3001}, {1700, 32}, {64, 900}, {700, 96}, {90, 600}, {128, 500}, {515, 104}, {121, 450}};
    if (brief()) shapes = {{3001, 5}, {103, 240}};
    uint64_t seed = 90;
    for (const Sides &sides : shapes) {
        Matrices matrices({sides}, 1, seed++);
        Random random(seed);
        matrices.make_whole(random);
        matrices.same_bits(both, (std::to_string(sides.rows) + " x " + std::to_string(sides.cols)).c_str(), step);
    }
}

// Norms of matrices of one piece and of more, beside each other.
TEST(newton_schulz_norms_of_many_pieces) {
    Both both;
    Matrices matrices({{3, 5}, {2, 4097}, {64, 65}, {64, 64}, {1, 4096}, {4099, 3}}, 3, 61);
    Random random(62);
    matrices.make_whole(random);
    matrices.same_bits(both, "norms", {});
}

TEST(newton_schulz_that_passes_through) {
    if (brief()) return;
    Both both;
    Matrices matrices({{260, 120}}, 1, 44);
    matrices.compare(both, "260 x 120", kTwoSteps);
}

// Matrices of all kinds in one call: small ones, and grouped products of all kinds of tiles beside each other.
TEST(newton_schulz_of_any_size_has_the_bits_of_the_cpu) {
    Both both;
    Random random(49);
    const std::vector<double> one_step = {2.0, -1.5, 0.5};
    const std::vector<Sides> few = {{5, 9}, {131, 133}, {9, 14, 1}, {70, 40, 1}};
    const std::vector<Sides> many = {{5, 9},       {131, 133}, {9, 14, 1}, {200, 130}, {130, 260, 1},
                                     {300, 132, 1}, {1, 1, 1},  {40, 70},   {7, 1, 1},  {192, 192}};
    for (const int64_t clients : {1, 3}) {
        if (brief() && clients > 1) continue;
        Matrices matrices(brief() ? few : many, clients, 50);
        matrices.make_whole(random);
        matrices.same_bits(both, "matrices of any size", brief() ? one_step : kTwoSteps);
    }
}

namespace {

// The tiles of all sizes and layouts: the two Gram matrices, squares, and both sides of an update.
const std::vector<Sides> kTensorShapes = {{131, 200}, {200, 132}, {9, 14, 1}, {70, 40, 1}};

}  // namespace

TEST(newton_schulz_on_tensor_cores_is_that_of_the_cpu) {
    if (!has_tensor_cores()) return;
    Both both;
    Random random(53);
    for (const int32_t precision : {FCM_BF16, FCM_TF32}) {
        Matrices sparse(kTensorShapes, brief() ? 1 : 2, 54);
        sparse.use(precision);
        sparse.make_sparse(random);
        sparse.compare(both, "sums of one term", brief() ? std::vector<double>{2.0, -1.5, 0.5} : kTwoSteps, 1e-7);
    }
}

namespace {

// Small matrices on tensor cores: each number of tiles, and sides around them; wide, tall and square.
std::vector<Sides> small_tensor_shapes() {
    if (brief()) return {{1, 1}, {17, 33}, {50, 40}, {96, 100}, {128, 113}};
    return {{1, 1},   {5, 9},    {9, 16},   {17, 33},  {32, 31},   {40, 50},   {64, 64},   {70, 65},  {90, 81},
            {96, 96}, {96, 100}, {112, 97}, {105, 300}, {120, 256}, {256, 120}, {128, 128}, {129, 128}, {50, 2}};
}
// So long that Y is streamed, with a last panel of few rows; the third one on GPUs with the least shared memory only.
std::vector<Sides> long_tensor_shapes() {
    if (brief()) return {{128, 300}, {420, 120}};
    return {{16, 6001}, {700, 128}, {120, 256}, {128, 523}, {2001, 40}, {90, 1100}};
}

// Every sum has one term, so that no order rounds differently.
void compare_sparse(Both &both, const std::vector<Sides> &shapes, int32_t precision, Random &random) {
    Matrices sparse(shapes, brief() ? 1 : 2, 56);
    sparse.use(precision);
    sparse.make_sparse(random);
    sparse.compare(both, "sums of one term", brief() ? std::vector<double>{2.0, -1.5, 0.5} : kTwoSteps, 1e-7);
}

// One step, in which all three terms are about as large, with results about as large as 1.
void compare_full(Both &both, const Sides &sides, int32_t precision, uint64_t seed) {
    Matrices full({sides}, 1, seed);
    full.use(precision);
    const auto side = static_cast<double>(std::min(sides.rows, sides.cols));
    const double unit = std::sqrt(static_cast<double>(sides.rows * sides.cols));
    full.compare(both, (std::to_string(sides.rows) + " x " + std::to_string(sides.cols)).c_str(),
                 {unit, -0.5 * side * unit, 0.2 * side * side * unit}, tolerance_in(precision));
}

}  // namespace

TEST(newton_schulz_of_large_matrices_on_tensor_cores) {
    if (!has_tensor_cores()) return;
    Both both;
    for (const int32_t precision : {FCM_BF16, FCM_TF32}) {
        uint64_t seed = 55;
        for (const Sides &sides : kTensorShapes) compare_full(both, sides, precision, seed++);
    }
}

TEST(newton_schulz_of_small_matrices_on_tensor_cores) {
    if (!has_tensor_cores()) return;
    Both both;
    Random random(57);
    for (const int32_t precision : {FCM_BF16, FCM_TF32}) {
        compare_sparse(both, small_tensor_shapes(), precision, random);
        uint64_t seed = 58;
        for (const Sides &sides : small_tensor_shapes()) compare_full(both, sides, precision, seed++);
    }
}

TEST(newton_schulz_of_streams_on_tensor_cores) {
    if (!has_tensor_cores()) return;
    Both both;
    Random random(59);
    for (const int32_t precision : {FCM_BF16, FCM_TF32}) {
        if (!brief()) compare_sparse(both, long_tensor_shapes(), precision, random);
        uint64_t seed = 60;
        for (const Sides &sides : long_tensor_shapes()) compare_full(both, sides, precision, seed++);
    }
}

TEST(newton_schulz_in_a_precision_that_is_missing_is_refused) {
    Side sim(FCM_CUDASIM);
    const fcm_matrix_block block{6, 9, 0, 0, 0, 1.0, 0};
    const Iteration iteration(kTwoSteps.data(), 2, 1.0, FCM_BF16);
    int64_t room = 0;
    fcm_error error{};
    ok(fcm_newton_schulz_workspace(sim.context(), 2, &block, 1, iteration, &room, &error), error);
    const fcm_status status = fcm_newton_schulz_prepare(sim.context(), 2, &block, 1, iteration, sim.room(room), room, &error);
    CHECK(status == (has_tensor_cores() ? FCM_OK : FCM_UNSUPPORTED), "status %d: %s", status, error.message);
}

TEST(newton_schulz_of_a_large_zero) {
    Both both;
    Matrices matrices({{12, 30, 1}, {20, 30}, {7, 6, 1}}, 2, 51);
    std::fill(matrices.m()[1], matrices.m()[1] + 12 * 30, 0.0f);
    matrices.compare(both, "zero", kTwoSteps);
}

TEST(newton_schulz_finds_what_is_not_finite) {
    Both both;
    for (const float bad : {kNaN, kInf}) {
        Matrices matrices({{6, 9, 1}, {12, 4}}, 3, 45);
        matrices.m()[1][13] = bad;
        matrices.m()[2][6 * 9 + 1] = bad;
        matrices.compare(both, "not finite", kTwoSteps);
    }
    for (const int32_t precision : precisions()) {
        for (const float bad : {kNaN, kInf}) {
            Matrices matrices({{6, 9}, {12, 4}}, 3, 45);
            matrices.use(precision);
            matrices.m()[1][6 * 9 + 13] = bad;
            matrices.m()[2][1] = bad;
            matrices.compare(both, "not finite", kTwoSteps);
        }
    }
}

TEST(newton_schulz_that_leaves_the_range) {
    Both both;
    for (const int32_t precision : precisions()) {
        Matrices matrices({{6, 9}, {20, 30}}, 2, 46);
        matrices.use(precision);
        matrices.compare(both, "out of range", {1e30, 1e30, 1e30, 1e30, 1e30, 1e30});
    }
}

// Only one of the matrices does, with a norm in one element; the others are stepped.
TEST(newton_schulz_of_one_matrix_that_leaves_the_range) {
    Both both;
    for (const int32_t precision : precisions()) {
        Matrices matrices({{20, 20}, {6, 9}}, 2, 46);
        matrices.use(precision);
        for (int64_t k = 0; k < 2; ++k) {
            std::fill(matrices.m()[k], matrices.m()[k] + 20 * 20, 0.0f);
            for (int64_t i = 0; i < 20; ++i) matrices.m()[k][i * 21] = 3.0f;
        }
        std::fill(matrices.m()[1], matrices.m()[1] + 20 * 20, 1.0f);
        matrices.compare(both, "one out of range", {0.0, 0.0, 300.0, 0.0, 0.0, 300.0, 0.0, 0.0, 300.0}, 2e-2);
    }
}

// One matrix of one client leaves the range, which has a singular value of 1; the others are stepped.
TEST(newton_schulz_of_a_large_matrix_that_leaves_the_range) {
    Both both;
    Matrices matrices({{16, 16, 1}, {6, 9}, {12, 20, 1}}, 3, 52);
    for (int64_t k = 0; k < 3; ++k) {
        std::fill(matrices.m()[k], matrices.m()[k] + 16 * 16, 0.0f);
        for (int64_t i = 0; i < 16; ++i) matrices.m()[k][i * 17] = 3.0f;
    }
    std::fill(matrices.m()[1], matrices.m()[1] + 16 * 16, 1.0f);
    matrices.compare(both, "one out of range", {0.0, 0.0, 300.0, 0.0, 0.0, 300.0, 0.0, 0.0, 300.0}, 1e-3);
}

// A matrix that left the range in one call is stepped by the next, in the same workspace.
TEST(newton_schulz_after_one_that_left_the_range) {
    Side sim(FCM_CUDASIM);
    const fcm_matrix_block block{16, 16, 0, 0, 0, 1.0, 1};
    const std::vector<double> diverging = {0.0, 0.0, 300.0, 0.0, 0.0, 300.0, 0.0, 0.0, 300.0};
    const Iteration iteration(diverging.data(), 3);
    Floats ones(1, 256), identity(1, 256), o(1, 256);
    std::fill(ones[0], ones[0] + 256, 1.0f);
    std::fill(identity[0], identity[0] + 256, 0.0f);
    for (int64_t i = 0; i < 16; ++i) identity[0][i * 17] = 3.0f;
    const float *bad = sim.put(ones);
    const float *good = sim.put(identity);
    float *to_o = sim.put(o);
    int64_t room = 0;
    fcm_error error{};
    ok(fcm_newton_schulz_workspace(sim.context(), 1, &block, 1, iteration, &room, &error), error);
    void *workspace = sim.room(room);
    ok(fcm_newton_schulz_prepare(sim.context(), 1, &block, 1, iteration, workspace, room, &error), error);
    for (const float *m : {bad, good}) {
        ok(fcm_newton_schulz(sim.context(), 1, &block, 1, iteration, 0.0, m, 256, to_o, 256, nullptr, 0, workspace, room, &error),
           error);
        const fcm_status status = fcm_synchronize(sim.context(), &error);
        CHECK(status == (m == bad ? FCM_NOT_FINITE : FCM_OK), "status %d: %s", status, error.message);
    }
    double wanted = 0.25;
    for (int i = 0; i < 3; ++i) wanted = 300.0 * std::pow(wanted, 5);
    const float got = sim.get(2, o)[static_cast<size_t>(o.first())];
    CHECK(std::fabs(double{got} - wanted) < 1e-4 * wanted, "%g, wanted %g", double{got}, wanted);
}

TEST(newton_schulz_of_zero) {
    Both both;
    for (const int32_t precision : precisions()) {
        Matrices matrices({{6, 9}, {20, 30}}, 2, 47);
        matrices.use(precision);
        std::fill(matrices.m()[1], matrices.m()[1] + 6 * 9, 0.0f);
        matrices.compare(both, "zero", kTwoSteps, tolerance_in(precision));
    }
}

// ---- Copies ----

TEST(copies_are_done_when_they_return) {
    const Context sim = context_of(FCM_CUDASIM);
    constexpr int64_t n = 3000;
    constexpr int64_t kBytes = n * 4;
    Buffer x(sim.get(), kBytes), y(sim.get(), kBytes);
    std::vector<float> host(n);
    fcm_error error{};
    for (int round = 0; round < 3; ++round) {
        for (int64_t j = 0; j < n; ++j) host[static_cast<size_t>(j)] = static_cast<float>(j + round);
        x.in(host.data(), kBytes);
        std::fill(host.begin(), host.end(), -1.0f);  // the copy must already have been made
        ok(fcm_ema(sim.get(), 1, n, 1.0, static_cast<float *>(x.address()), n, static_cast<float *>(y.address()), n, &error),
           error);
        y.out(host.data(), kBytes);
        for (int64_t j = 0; j < n; ++j) {
            const float value = host[static_cast<size_t>(j)];
            CHECK(value == static_cast<float>(j + round), "round %d, %ld: %g", round, long(j), double(value));
        }
    }
}

namespace {

// Pinned host memory, which devices access asynchronously.
class Pinned {
   public:
    Pinned(fcm_context *context, int64_t count) : context_(context) {
        fcm_error error{};
        ok(fcm_host_allocate(context, count * 4, &address_, &error), error);
    }
    ~Pinned() {
        fcm_error error{};
        ok(fcm_host_free(context_, address_, &error), error);
    }
    Pinned(const Pinned &) = delete;
    Pinned &operator=(const Pinned &) = delete;

    float *data() const { return static_cast<float *>(address_); }

   private:
    fcm_context *context_;
    void *address_ = nullptr;
};

}  // namespace

// CUDA itself waits for copies of pageable memory, but not of pinned memory, so fcm_copy_in and fcm_copy_out must wait.
TEST(pinned_copies_are_done_when_they_return) {
    const Context sim = context_of(FCM_CUDASIM);
    constexpr int64_t n = 500;
    constexpr int64_t kBytes = n * 4;
    const Pinned host(sim.get(), n);
    Buffer x(sim.get(), kBytes);
    std::fill(host.data(), host.data() + n, 5.0f);
    x.in(host.data(), kBytes);
    std::fill(host.data(), host.data() + n, -1.0f);
    x.out(host.data(), kBytes);
    CHECK(std::count(host.data(), host.data() + n, 5.0f) == n, "%g", double(host.data()[0]));
}

TEST(pinned_copies_are_done_when_the_stream_is) {
    const Context sim = context_of(FCM_CUDASIM);
    constexpr int64_t n = 500;
    constexpr int64_t kBytes = n * 4;
    const Pinned from(sim.get(), n), to(sim.get(), n);
    fcm_error error{};
    Buffer x(sim.get(), kBytes);
    for (int64_t j = 0; j < n; ++j) from.data()[j] = static_cast<float>(j);
    ok(fcm_copy_in_async(sim.get(), x.address(), from.data(), kBytes, &error), error);
    ok(fcm_copy_out_async(sim.get(), to.data(), x.address(), kBytes, &error), error);
    ok(fcm_synchronize(sim.get(), &error), error);
    for (int64_t j = 0; j < n; ++j) {
        CHECK(to.data()[j] == static_cast<float>(j), "%ld: %g", long(j), double(to.data()[j]));
    }
}

// A query does not wait: work that nothing has needed yet is not done. A simulated device does one task a query.
TEST(a_query_says_whether_the_stream_is_done_without_waiting) {
    const Context sim = context_of(FCM_CUDASIM);
    constexpr int64_t n = 400;
    fcm_error error{};
    Buffer x(sim.get(), n * 4), y(sim.get(), n * 4);
    ok(fcm_synchronize(sim.get(), &error), error);
    int32_t done = -1;
    ok(fcm_query(sim.get(), &done, &error), error);
    CHECK(done == 1, "nothing has been given to it");
    for (int i = 0; i < 5; ++i) {
        ok(fcm_ema(sim.get(), 1, n, 0.5, static_cast<float *>(x.address()), n, static_cast<float *>(y.address()), n, &error),
           error);
    }
    int queries = 0;
    for (done = 0; done == 0 && queries < 1000; ++queries) ok(fcm_query(sim.get(), &done, &error), error);
    const char *streams = std::getenv("FEDCOMUON_CUDASIM_STREAMS");
    const bool eager = streams != nullptr && std::strcmp(streams, "eager") == 0;
    CHECK(done == 1 && (queries > 1) == !eager, "%d after %d queries", done, queries);
    // It is no error, which the next launch would report.
    ok(fcm_ema(sim.get(), 1, n, 0.5, static_cast<float *>(x.address()), n, static_cast<float *>(y.address()), n, &error),
       error);
    CHECK(fcm_query(sim.get(), nullptr, &error) == FCM_INVALID_ARGUMENT, "no place");
}

// The copy between devices runs after the work submitted to both before, and before the work submitted to both afterwards,
// whichever of the two is synchronized first.
TEST(copies_between_devices_are_in_order) {
    const Context here = context_of(FCM_CUDASIM, 0);
    const Context there = context_of(FCM_CUDASIM, 1);
    constexpr int64_t n = 700;
    constexpr int64_t kBytes = n * 4;
    fcm_error error{};
    const auto floats = [](const Buffer &buffer) { return static_cast<float *>(buffer.address()); };
    for (const bool here_first : {true, false}) {
        Buffer one(here.get(), kBytes), x(here.get(), kBytes), y(there.get(), kBytes), result(there.get(), kBytes);
        const std::vector<float> ones(n, 1.0f), sevens(n, 7.0f);
        one.in(ones.data(), kBytes);
        x.in(sevens.data(), kBytes);
        // x becomes 1 on the first device and is copied; then it becomes 0, and the second device uses the copy.
        ok(fcm_ema(here.get(), 1, n, 1.0, floats(one), n, floats(x), n, &error), error);
        ok(fcm_copy(there.get(), y.address(), here.get(), x.address(), kBytes, &error), error);
        ok(fcm_zero(here.get(), x.address(), kBytes, &error), error);
        ok(fcm_synchronize(here_first ? here.get() : there.get(), &error), error);
        ok(fcm_ema(there.get(), 1, n, 1.0, floats(y), n, floats(result), n, &error), error);
        std::vector<float> back(n);
        result.out(back.data(), kBytes);
        CHECK(std::count(back.begin(), back.end(), 1.0f) == n, "%s device first: %g", here_first ? "first" : "second",
              double(back[0]));
    }
}

TEST(events_hold_up_who_waits) {
    const Context first = context_of(FCM_CUDASIM, 0);
    const Context second = context_of(FCM_CUDASIM, 0);
    constexpr int64_t n = 600;
    constexpr int64_t kBytes = n * 4;
    fcm_error error{};
    fcm_event *event = nullptr;
    ok(fcm_event_create(first.get(), &event, &error), error);
    {
        Buffer one(first.get(), kBytes), x(first.get(), kBytes), y(second.get(), kBytes);
        const std::vector<float> ones(n, 1.0f);
        one.in(ones.data(), kBytes);
        ok(fcm_synchronize(second.get(), &error), error);
        ok(fcm_ema(first.get(), 1, n, 1.0, static_cast<float *>(one.address()), n, static_cast<float *>(x.address()), n,
                   &error),
           error);
        ok(fcm_event_record(event, &error), error);
        ok(fcm_event_wait(second.get(), event, &error), error);
        ok(fcm_ema(second.get(), 1, n, 1.0, static_cast<float *>(x.address()), n, static_cast<float *>(y.address()), n, &error),
           error);
        std::vector<float> back(n);
        y.out(back.data(), kBytes);
        CHECK(std::all_of(back.begin(), back.end(), [](float value) { return value == 1.0f; }), "%g", double(back[0]));
    }
    fcm_event_destroy(event);
}

// After all tests of a device, no memory is left allocated on it, and nothing around its memory was written.
TEST(nothing_is_left) {
    Side sim(FCM_CUDASIM);
    Random random(61);
    Floats x(2, 100);
    x.fill(random);
    (void)sim.put(x);
    sim.clear();
    fcm_error error{};
    ok(fcm_synchronize(sim.context(), &error), error);
    int64_t bytes = -1;
    ok(fcm_live_bytes(sim.context(), &bytes, &error), error);
    CHECK(bytes == 0, "%ld bytes", long(bytes));
}

// ---- Eigenvectors ----

TEST(directions_and_inverse_roots_as_on_the_cpu) {
    Both both;
    for (const int64_t n : {1, 2, 31, 300}) {
        for (const int64_t clients : {1, 3}) {
            Random random(static_cast<uint64_t>(n));
            Doubles values(1, clients * n, {1, 0}), vectors(1, clients * n * n, {1, 0}), kept(1, clients, {1, 0});
            vectors.fill(random);
            for (int64_t i = 0; i < clients * n; ++i) {  // over 30, 15 and 10 decades: clients keep different numbers
                const double decades = 30.0 / static_cast<double>(1 + i / n);
                values[0][i] = std::pow(10.0, decades * (static_cast<double>(i % n) / static_cast<double>(n)) - 40.0);
            }
            for (const int32_t answer : {0, 5}) {
                Floats info(1, clients, {1, 0});
                std::fill(info[0], info[0] + clients, 0.0f);
                std::memcpy(info[0] + clients - 1, &answer, sizeof answer);
                both.same(words("keep_directions", clients, n, {1, 0}),
                          [&](Side &side, fcm_error *error) {
                              const auto *answers = reinterpret_cast<const int32_t *>(side.put(info));
                              const double *from = side.put(values);
                              double *to = side.put(vectors);
                              return fcm_keep_directions(side.context(), clients, n, 1e-7, answers, from, to,
                                                         reinterpret_cast<int64_t *>(side.put(kept)), error);
                          },
                          info, values, vectors, kept);
            }
            for (int64_t i = 0; i < clients * n; ++i) vectors[0][i * n + i % n] = values[0][i];
            both.same(words("inverse_roots", clients, n, {1, 0}),
                      [&](Side &side, fcm_error *error) {
                          return fcm_inverse_roots(side.context(), clients, n, side.put(vectors), error);
                      },
                      vectors);
        }
    }
}

// Neither is in the table of operations.
TEST(directions_after_a_fault_are_left_alone) {
    Side sim(FCM_CUDASIM);
    constexpr int64_t n = 5;
    Floats info(1, 1), bad(1, n);
    Doubles values(1, n), vectors(1, n * n), kept(1, 1);
    std::fill(info[0], info[0] + 1, 0.0f);
    std::fill(bad[0], bad[0] + n, kNaN);
    std::fill(values[0], values[0] + n, 0.0);
    std::fill(vectors[0], vectors[0] + n * n, 4.0);
    for (int i = 0; i < 2; ++i) {
        const auto *answers = reinterpret_cast<const int32_t *>(sim.put(info));
        double *to = sim.put(vectors);
        const double *from = sim.put(values);
        auto *counts = reinterpret_cast<int64_t *>(sim.put(kept));
        const float *none = sim.put(bad);
        fcm_error error{};
        const auto call = [&] {
            return i == 0 ? fcm_keep_directions(sim.context(), 1, n, 0.5, answers, from, to, counts, &error)
                          : fcm_inverse_roots(sim.context(), 1, n, to, &error);
        };
        ok(fcm_require_finite(sim.context(), 1, n, none, n, nullptr, 0, &error), error);
        ok(call(), error);
        CHECK(fcm_synchronize(sim.context(), &error) == FCM_NOT_FINITE, "no fault");
        CHECK(same_bytes(sim.get(1, vectors), vectors.all()), "call %d wrote after a fault", i);
        ok(call(), error);
        ok(fcm_synchronize(sim.context(), &error), error);
        CHECK(!same_bytes(sim.get(1, vectors), vectors.all()), "call %d does nothing any more", i);
        sim.clear();
    }
}
