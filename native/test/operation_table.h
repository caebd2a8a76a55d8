// Every operation of the interface as one entry of a table: its operands, its settings and the values that it refuses, how
// it is called, and a reference in double with an error bound. The tests of operations iterate over the table, so that a new
// operation needs one entry here.
//
// Bounds count roundings: an operation with r roundings to float on its longest path has an error of at most r u times the
// sum of the magnitudes of its terms, u = 2^-24, plus a small amount for products of those errors, which is 0.01 u here.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "check.h"
#include "fedcomuon.h"
#include "iteration.h"
#include "reference.h"

namespace table {

using reference::Number;

struct Size {
    int64_t clients;
    int64_t n;
};

// long double represents every int64_t.
using Parameters = std::vector<long double>;

inline int64_t whole(long double value) { return static_cast<int64_t>(value); }
inline int32_t rule(long double value) { return static_cast<int32_t>(value); }
inline double real(long double value) { return static_cast<double>(value); }

enum class Use {
    kRead,
    kWritten,
    kRoom,    // a workspace; its contents after the call do not matter
    kAnswer,  // a host address for a result, without constraints
};

// `length` elements for each client, or in total if it is not a batch.
struct Operand {
    const char *name;
    int64_t length;
    Use use;
    bool strided;
    int64_t element;  // bytes
    bool host = false;
    bool optional = false;

    bool written() const { return use != Use::kRead; }
    int64_t clients(const Size &size) const { return strided ? size.clients : 1; }
    int64_t bytes(const Size &size) const { return clients(size) * length * element; }
};

inline Operand in(const char *name, int64_t n) { return {name, n, Use::kRead, true, 4}; }
inline Operand out(const char *name, int64_t n) { return {name, n, Use::kWritten, true, 4}; }
inline Operand numbers(const char *name, int64_t n, Use use) { return {name, n, use, false, 8}; }
inline Operand optional(Operand operand) {
    operand.optional = true;
    return operand;
}
inline Operand on_host(Operand operand) {
    operand.host = true;
    return operand;
}

constexpr size_t kMostOperands = 5;

// The addresses and strides of the operands, as passed to the operation.
struct Placement {
    void *at[kMostOperands] = {};
    int64_t stride[kMostOperands] = {};
    int64_t room_bytes = 0;

    float *floats(size_t i) const { return static_cast<float *>(at[i]); }
    double *doubles(size_t i) const { return static_cast<double *>(at[i]); }
    uint8_t *bytes(size_t i) const { return static_cast<uint8_t *>(at[i]); }
};

// The values of all operands, packed.
class Data {
   public:
    Data(std::vector<Operand> operands, const Size &size) : size_(size), operands_(std::move(operands)) {
        for (const Operand &operand : operands_) values_.emplace_back(static_cast<size_t>(operand.bytes(size)));
    }

    const Size &size() const { return size_; }
    const std::vector<Operand> &operands() const { return operands_; }
    std::vector<char> &bytes(size_t i) { return values_[i]; }
    const std::vector<char> &bytes(size_t i) const { return values_[i]; }
    float *floats(size_t i,
                  int64_t client) { return reinterpret_cast<float *>(values_[i].data()) + client * operands_[i].length; }
    const float *floats(size_t i, int64_t client) const { return const_cast<Data *>(this)->floats(i, client); }
    double *doubles(size_t i) { return reinterpret_cast<double *>(values_[i].data()); }
    const double *doubles(size_t i) const { return const_cast<Data *>(this)->doubles(i); }

    // Floats of mixed signs over eight powers of two, so that no term of a sum dominates all others; doubles in (0.1, 1.1);
    // bytes of any value; a workspace holds NaN, because its previous contents must not matter.
    void fill(uint64_t seed) {
        state_ = seed * 2 + 1;
        for (size_t i = 0; i < operands_.size(); ++i) {
            const auto count = static_cast<int64_t>(values_[i].size()) / operands_[i].element;
            float *values = floats(i, 0);
            for (int64_t j = 0; j < count && operands_[i].element == 1; ++j) {
                values_[i][static_cast<size_t>(j)] = static_cast<char>(bits() >> 56);
            }
            for (int64_t j = 0; j < count && operands_[i].element == 4; ++j) {
                const uint64_t exponent = bits() >> 61;
                values[j] = static_cast<float>(uniform() * static_cast<double>(1u << exponent) / 16.0);
            }
            for (int64_t j = 0; j < count && operands_[i].element == 8; ++j) {
                doubles(i)[j] = operands_[i].use == Use::kRoom ? std::numeric_limits<double>::quiet_NaN() : 0.6 + 0.5 * uniform();
            }
        }
    }
    uint64_t bits() { return split_mix(state_); }
    static uint64_t split_mix(uint64_t &state) {  // the generator SplitMix64
        uint64_t z = (state += 0x9e3779b97f4a7c15u);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
    }

   private:
    double uniform() { return static_cast<double>(static_cast<int64_t>(bits())) * 0x1p-63; }

    Size size_;
    std::vector<Operand> operands_;
    std::vector<std::vector<char>> values_;
    uint64_t state_ = 1;
};

// The operands after a call, and the largest error found so far, in units of u.
class Results {
   public:
    Results(const std::string &where, const Parameters &settings, const Data &old, const Data &now)
        : p(settings), size(old.size()), before(old), after(now), where_(where) {
        for (size_t i = 0; i < now.operands().size(); ++i) {
            results_[i] = now.floats(i, 0);
            lengths_[i] = now.operands()[i].length;
        }
    }

    const Parameters &p;
    const Size size;
    const Data &before;
    const Data &after;

    // |got - wanted| <= units u size. The error of a result below the normal range may be the spacing of that range instead.
    void near(size_t operand, int64_t client, int64_t j, const Number &wanted, double units) {
        const float got = results_[operand][client * lengths_[operand] + j];
        const double error = std::fabs(double{got} - wanted.value);
        const double scale = reference::kRound * wanted.size;
        CHECK(error <= units * scale + reference::kTiny, "%s, %s of client %ld, element %ld: %.9g, wanted %.17g, terms of %.3g",
              where_.c_str(), after.operands()[operand].name, long(client), long(j), double{got}, wanted.value, wanted.size);
        if (scale > 0x1p-120 && !(error / scale / units <= share_)) share_ = error / scale / units;
    }
    void same(size_t operand, int64_t client, int64_t j, float wanted) {
        const float got = results_[operand][client * lengths_[operand] + j];
        CHECK(std::memcmp(&got, &wanted, sizeof got) == 0, "%s, %s of client %ld, element %ld: %.9g, wanted exactly %.9g",
              where_.c_str(), after.operands()[operand].name, long(client), long(j), double{got}, double{wanted});
    }
    void byte(size_t operand, int64_t client, int64_t j, uint8_t wanted) {
        const auto got = static_cast<uint8_t>(after.bytes(operand)[static_cast<size_t>(client * lengths_[operand] + j)]);
        CHECK(got == wanted, "%s, %s of client %ld, element %ld: %d, wanted %d", where_.c_str(),
              after.operands()[operand].name, long(client), long(j), int{got}, int{wanted});
    }
    // Sums in double: 1e-12 of the value.
    void sum(size_t operand, int64_t j, double wanted) {
        const double got = after.doubles(operand)[j];
        CHECK(std::fabs(got - wanted) <= 1e-12 * wanted, "%s, %s %ld: %.17g, wanted %.17g", where_.c_str(),
              after.operands()[operand].name, long(j), got, wanted);
    }
    void number(size_t operand, int64_t j, double wanted) {
        const double got = after.doubles(operand)[j];
        CHECK(std::memcmp(&got, &wanted, sizeof got) == 0, "%s, %s, element %ld: %.17g, wanted exactly %.17g", where_.c_str(),
              after.operands()[operand].name, long(j), got, wanted);
    }
    void whole(size_t operand, int64_t j, uint64_t wanted) {
        uint64_t got;
        std::memcpy(&got, after.bytes(operand).data() + j * 8, sizeof got);
        CHECK(got == wanted, "%s, %s, element %ld: %ld, wanted %ld", where_.c_str(), after.operands()[operand].name, long(j),
              long(got), long(wanted));
    }
    void require(bool condition, const char *words, int64_t client) {
        CHECK(condition, "%s, client %ld: %s", where_.c_str(), long(client), words);
    }

    double share() const { return share_; }  // fraction of the bound

   private:
    std::string where_;
    const float *results_[kMostOperands] = {};
    int64_t lengths_[kMostOperands] = {};
    double share_ = 0.0;
};

// The devices on which results are bit-identical.
enum class Bits {
    kEverywhere,  // with every instruction set, and on a GPU
    kCpu,         // with every instruction set; a GPU adds in another order
    kFused,       // with fused multiply-add: AVX2 and AVX-512
};

// Where an operation reports an element of a client.
struct Spot {
    int64_t block;
    int64_t index;
};

struct Operation {
    const char *name;  // as in functions.h
    std::function<std::vector<Parameters>(const Size &)> settings;  // the first two where a few are enough
    std::function<std::vector<Parameters>(const Size &)> bad;       // for each parameter, the values that are refused
    std::function<std::vector<Operand>(const fcm_context *, const Size &, const Parameters &)> operands;
    std::function<fcm_status(fcm_context *, const Size &, const Parameters &, const Placement &, fcm_error *)> call;
    std::function<void(fcm_context *, const Size &, const Parameters &, const Placement &)> ready;  // prepares the workspace
    std::function<void(Data &, const Parameters &)> prepare;  // for operands with special values
    std::function<void(Results &, int64_t client)> reference;
    Bits bits = Bits::kEverywhere;
    double gpu = 0.0;       // maximum difference between GPU and CPU, relative for numbers above 1; 0: bit-identical
    std::function<Spot(const Size &, int64_t index)> spot;  // if the operand that must be finite has blocks
    int finite = -1;        // this operand must be finite; NaN in it is reported with its place, for norms with the client
    bool carries = false;   // NaN in an element of an input becomes NaN in the same element of the outputs and nowhere else
    int same_as = -1;       // the output may be this input, with the same stride
    int output = -1;
    bool slow = false;      // fewer settings for long vectors

    bool answers(const std::vector<Operand> &given) const {  // unlike one that only refuses
        return std::any_of(given.begin(), given.end(),
                           [](const Operand &o) { return o.use == Use::kWritten || o.use == Use::kAnswer; });
    }
    std::string function() const { return std::string("fcm_") + name; }
};

inline auto fixed(std::vector<Parameters> values) {
    return [values](const Size &) { return values; };
}

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
const Parameters kNoFractions = {-0.1, 1.1, kNan, kInfinity, -kInfinity};
const Parameters kNotFinite = {kNan, kInfinity, -kInfinity};
const Parameters kNoRadii = {0.0, -1.0, kNan, -kInfinity};
const Parameters kNoCounts = {0, -1, INT64_MIN};

inline Operand sums(const fcm_context *context, const Size &size) {
    int64_t bytes = 0;
    fcm_sum_workspace(context, size.clients, size.n, &bytes, nullptr);
    return numbers("workspace", bytes / 8, Use::kRoom);
}

// Clients on the boundary of the ball, outside and inside in turn; a single client is outside.
inline void set_norms(Data &data, size_t x, size_t norms, double radius) {
    const int64_t length = data.operands()[x].length;
    for (int64_t k = 0; k < data.size().clients; ++k) {
        const int turn = data.size().clients == 1 ? 1 : static_cast<int>(k % 3);
        const double scale = (turn == 1 ? 3.0 : turn == 2 ? 0.3 : 1.0) * radius / reference::norm(length, data.floats(x, k));
        for (int64_t j = 0; j < length; ++j) {
            data.floats(x, k)[j] = static_cast<float>(scale * double{data.floats(x, k)[j]});
        }
        data.doubles(norms)[k] = turn == 0 ? radius : reference::norm(length, data.floats(x, k));
    }
}

inline void expect_in_ball(Results &r, size_t x, int64_t k, double norm, double radius) {
    const double after = reference::norm(r.after.operands()[x].length, r.after.floats(x, k));
    r.require(norm <= radius || std::fabs(after / radius - 1.0) <= 1e-6, "the norm is not the radius", k);
}

inline int64_t root(int64_t n) { return std::max<int64_t>(1, static_cast<int64_t>(std::sqrt(static_cast<double>(n)))); }
inline int64_t side(const Size &size) { return std::min<int64_t>(root(size.n), 40); }

// Two matrices, the second with one row.
inline std::array<fcm_matrix_block, 2> matrices(const Size &size) {
    const int64_t rows = side(size);
    const int64_t cols = std::max<int64_t>(1, std::min<int64_t>((size.n - 2) / rows, 60));
    return {{{rows, cols, 0, 0, 0, 0.5, 0}, {1, 2, rows * cols, rows * cols, rows * cols, 2.0, 0}}};
}
inline int64_t matrices_length(const Size &size) { return matrices(size)[1].m_offset + 2; }

// Three vectors of a client, the second without elements; the third changes places with the first in w.
inline std::array<fcm_vector_block, 3> vectors(const Size &size) {
    const int64_t half = size.n - size.n / 2;
    return {{{half, 0, size.n - half, 0.5}, {0, half, size.n, 1.0}, {size.n - half, half, 0, 2.0}}};
}

inline const std::vector<double> &schulz_coefficients() {
    static const std::vector<double> five = [] {
        std::vector<double> all;
        for (int i = 0; i < 5; ++i) all.insert(all.end(), {3.4445, -4.7750, 2.0315});
        return all;
    }();
    return five;
}

// ---- Means ----

// As many terms as there are clients, and as many as there can be.
inline std::vector<Parameters> mean_terms(const Size &size) {
    const int64_t fewest = std::min(std::max<int64_t>(size.clients, 1), FCM_MOST_TERMS);
    return {{static_cast<long double>(fewest)}, {FCM_MOST_TERMS}};
}
const Parameters kNoTerms = {0, -1, INT64_MIN, FCM_MOST_TERMS + 1, INT64_MAX};

inline Operand mean_weights(const Size &size) { return optional(on_host(numbers("weights", size.clients, Use::kRead))); }

// Weights, if there are any, are in (0, 1]. A client of weight 0 may hold anything; others have NaN and Inf in a few elements.
inline void set_terms(Data &data, size_t x, int weights) {
    const Size &size = data.size();
    for (int64_t j = 13; j < size.n; j += 97) {
        data.floats(x, j % size.clients)[j] = static_cast<float>(j % 2 == 0 ? kNan : -kInfinity);
    }
    for (int64_t j = 5; j < size.n; j += 31) {  // far from the others
        data.floats(x, j % size.clients)[j] *= j % 2 == 0 ? 0x1p100f : 0x1p-140f;
    }
    if (weights < 0) return;
    double *weight = data.doubles(static_cast<size_t>(weights));
    for (int64_t k = 0; k < size.clients; ++k) weight[k] = std::min(weight[k], 1.0);
    if (size.clients < 2) return;
    const int64_t silent = size.clients / 2;
    weight[silent] = 0.0;
    for (int64_t j = 0; j < size.n; ++j) data.floats(x, silent)[j] = static_cast<float>(j % 2 == 0 ? kNan : kInfinity);
}

// The terms of element j; x holds all clients, packed.
inline std::vector<double> terms_of(const Results &r, const float *x, const double *weights, int64_t j) {
    std::vector<double> terms;
    for (int64_t k = 0; k < r.size.clients; ++k) {
        const double weight = weights == nullptr ? 1.0 : weights[k];
        if (weight > 0.0) terms.push_back(weight * double{x[k * r.size.n + j]});
    }
    return terms;
}

inline std::vector<Operation> make() {
    std::vector<Operation> all;
    {
        Operation op{};
        op.name = "ema";  // a
        op.settings = fixed({{0.3}, {1.0}, {0.0}, {0.9}});
        op.bad = fixed({kNoFractions});
        op.operands = [](auto, const Size &s, auto &) -> std::vector<Operand> { return {in("x", s.n), out("y", s.n)}; };
        op.call = [](fcm_context *c, const Size &s, const Parameters &p, const Placement &at, fcm_error *e) {
            return fcm_ema(c, s.clients, s.n, real(p[0]), at.floats(0), at.stride[0], at.floats(1), at.stride[1], e);
        };
        op.reference = [](Results &r, int64_t k) {
            const double a = real(r.p[0]);
            const float *x = r.before.floats(0, k);
            const float *y = r.before.floats(1, k);
            for (int64_t j = 0; j < r.size.n; ++j) {
                Number wanted;
                wanted.add(a * double{x[j]});
                if (a != 1.0) wanted.add((1.0 - a) * double{y[j]});
                r.near(1, k, j, wanted, 3.01);  // roundings: a or 1-a, the product, the sum
            }
        };
        op.carries = true;
        all.push_back(op);
    }
    {
        Operation op{};
        op.name = "compose_momentum";  // d, b
        // Blocks are processed eight at a time: up to one group, slightly more than one, and with a group in the middle.
        op.settings = fixed({{2, 0.1}, {3, 1.0}, {17, 0.1}, {1, 0.1}, {4, 0.1}, {5, 0.1}, {6, 1.0}, {7, 0.1}, {8, 0.1}, {9,
                1.0}});
        op.bad = fixed({kNoCounts, kNoFractions});
        op.operands = [](auto, const Size &s, const Parameters &p) -> std::vector<Operand> {
            return {in("h", s.n * whole(p[0])), in("v", whole(p[0])), out("m", s.n)};
        };
        op.call = [](fcm_context *c, const Size &s, const Parameters &p, const Placement &at, fcm_error *e) {
            return fcm_compose_momentum(c, s.clients, s.n, whole(p[0]), real(p[1]), at.floats(0), at.stride[0], at.floats(1),
                                        at.stride[1], at.floats(2), at.stride[2], e);
        };
        op.reference = [](Results &r, int64_t k) {
            const float *h = r.before.floats(0, k);
            const float *v = r.before.floats(1, k);
            const float *m = r.before.floats(2, k);
            const int64_t d = whole(r.p[0]);
            const double b = real(r.p[1]);
            // roundings: v_i h_i, d-1 sums, b, its product, the last sum
            for (int64_t j = 0; j < r.size.n; ++j) {
                r.near(2, k, j, reference::compose(r.size.n, d, b, 1.0, h, v, m[j], j), static_cast<double>(d) + 3.01);
            }
        };
        op.slow = true;
        all.push_back(op);
    }
    {
        Operation op{};
        op.name = "storm";  // g
        op.settings = fixed({{0.25}, {0.0}, {1.0}});
        op.bad = fixed({kNoFractions});
        op.operands = [](const fcm_context *c, const Size &s, auto &) -> std::vector<Operand> {
            return {in("g_new", s.n), in("g_old", s.n), out("h", s.n), numbers("norms", s.clients, Use::kWritten), sums(c, s)};
        };
        op.call = [](fcm_context *c, const Size &s, const Parameters &p, const Placement &at, fcm_error *e) {
            return fcm_storm(c, s.clients, s.n, real(p[0]), at.floats(0), at.stride[0], at.floats(1), at.stride[1],
                             at.floats(2),
                             at.stride[2], at.doubles(3), at.at[4], at.room_bytes, e);
        };
        op.reference = [](Results &r, int64_t k) {
            const double keep = 1.0 - real(r.p[0]);
            const float *fresh = r.before.floats(0, k);
            const float *old = r.before.floats(1, k);
            const float *h = r.before.floats(2, k);
            for (int64_t j = 0; j < r.size.n; ++j) {
                Number wanted;
                wanted.add(double{fresh[j]});
                wanted.add(keep * double{h[j]});
                wanted.add(-keep * double{old[j]});
                r.near(2, k, j, wanted, 4.01);  // roundings: the difference, 1-g, the product, the sum
            }
            r.sum(3, k, reference::norm(r.size.n, r.after.floats(2, k)));
        };
        op.bits = Bits::kCpu;
        op.gpu = 1e-13;
        all.push_back(op);
    }
    {
        Operation op{};
        op.name = "project_compose_momentum";  // d, b, radius
        op.settings = fixed({{2, 0.2, 0.5},
                             {3, 1.0, 0.5},
                             {1, 0.2, 0.5},
                             {5, 0.2, 0.5},
                             {8, 0.2, 0.5},
                             {9, 1.0, 0.5},
                             {17, 0.2, 0.5}});
        op.bad = fixed({kNoCounts, kNoFractions, kNoRadii});
        op.operands = [](auto, const Size &s, const Parameters &p) -> std::vector<Operand> {
            return {out("h", s.n * whole(p[0])), in("v", whole(p[0])), out("m", s.n), numbers("norms", s.clients, Use::kRead)};
        };
        op.call = [](fcm_context *c, const Size &s, const Parameters &p, const Placement &at, fcm_error *e) {
            return fcm_project_compose_momentum(c, s.clients, s.n, whole(p[0]), real(p[2]), at.doubles(3), real(p[1]),
                                                at.floats(0), at.stride[0], at.floats(1), at.stride[1], at.floats(2),
                                                at.stride[2], e);
        };
        op.prepare = [](Data &data, const Parameters &p) { set_norms(data, 0, 3, real(p[2])); };
        op.reference = [](Results &r, int64_t k) {
            const int64_t d = whole(r.p[0]);
            const double norm = r.before.doubles(3)[k];
            const double scale = std::min(1.0, real(r.p[2]) / norm);
            const float *h = r.before.floats(0, k);
            for (int64_t j = 0; j < r.size.n * d; ++j) {
                if (scale == 1.0) {
                    r.same(0, k, j, h[j]);  // inside the ball nothing is written
                } else {
                    r.near(0, k, j, {scale * double{h[j]}, std::fabs(scale * double{h[j]})}, 2.01);  // the scale, the product
                }
            }
            const float *v = r.before.floats(1, k);
            const float *m = r.before.floats(2, k);
            const double b = real(r.p[1]);
            // the two roundings of h, and those of compose_momentum
            for (int64_t j = 0; j < r.size.n; ++j) {
                r.near(2, k, j, reference::compose(r.size.n, d, b, scale, h, v, m[j], j), static_cast<double>(d) + 5.01);
            }
            expect_in_ball(r, 0, k, norm, real(r.p[2]));
        };
        op.finite = 3;
        op.slow = true;
        all.push_back(op);
    }
    {
        Operation op{};
        op.name = "project";  // radius
        op.settings = fixed({{0.5}, {3.0}});
        op.bad = fixed({kNoRadii});
        op.operands = [](auto, const Size &s, auto &) -> std::vector<Operand> {
            return {out("x", s.n), numbers("norms", s.clients, Use::kRead)};
        };
        op.call = [](fcm_context *c, const Size &s, const Parameters &p, const Placement &at, fcm_error *e) {
            return fcm_project(c, s.clients, s.n, real(p[0]), at.doubles(1), at.floats(0), at.stride[0], e);
        };
        op.prepare = [](Data &data, const Parameters &p) { set_norms(data, 0, 1, real(p[0])); };
        op.reference = [](Results &r, int64_t k) {
            const double radius = real(r.p[0]);
            const double norm = r.before.doubles(1)[k];
            const float *x = r.before.floats(0, k);
            for (int64_t j = 0; j < r.size.n; ++j) {
                if (norm <= radius) {
                    r.same(0, k, j, x[j]);
                } else {
                    const double wanted = radius / norm * double{x[j]};
                    r.near(0, k, j, reference::rounded_once({wanted, std::fabs(wanted)}), 1.01);
                }
            }
            expect_in_ball(r, 0, k, norm, radius);
        };
        op.finite = 1;
        all.push_back(op);
    }
    {
        Operation op{};
        op.name = "norm";
        op.settings = fixed({{}});
        op.bad = fixed({});
        op.operands = [](const fcm_context *c, const Size &s, auto &) -> std::vector<Operand> {
            return {in("x", s.n), numbers("norms", s.clients, Use::kWritten), sums(c, s)};
        };
        op.call = [](fcm_context *c, const Size &s, const Parameters &, const Placement &at, fcm_error *e) {
            return fcm_norm(c, s.clients, s.n, at.floats(0), at.stride[0], at.doubles(1), at.at[2], at.room_bytes, e);
        };
        op.reference = [](Results &r, int64_t k) { r.sum(1, k, reference::norm(r.size.n, r.before.floats(0, k))); };
        op.bits = Bits::kCpu;
        op.gpu = 1e-13;
        all.push_back(op);
    }
    {
        Operation op{};
        op.name = "vector_step";  // eta
        op.settings = fixed({{0.7}});
        op.bad = fixed({kNotFinite});
        op.operands = [](auto, const Size &s, auto &) -> std::vector<Operand> { return {in("m", s.n), out("w", s.n)}; };
        op.call = [](fcm_context *c, const Size &s, const Parameters &p, const Placement &at, fcm_error *e) {
            return fcm_vector_step(c, s.clients, s.n, real(p[0]), at.floats(0), at.stride[0], at.floats(1), at.stride[1], e);
        };
        op.reference = [](Results &r, int64_t k) {
            const float *m = r.before.floats(0, k);
            const float *w = r.before.floats(1, k);
            // roundings: the product, the difference
            for (int64_t j = 0; j < r.size.n; ++j) r.near(1, k, j, reference::step(real(r.p[0]), m[j], w[j]), 2.01);
        };
        op.carries = true;
        all.push_back(op);
    }
    for (const int32_t kind : {FCM_STEP_PLAIN, FCM_STEP_NORMALIZED}) {
        Operation op{};
        op.name = "vector_steps";  // rule, eta
        const bool normalized = kind == FCM_STEP_NORMALIZED;
        op.settings = fixed({{static_cast<long double>(kind), 0.7}});
        op.bad = fixed({{-1, 2}, kNotFinite});
        op.operands = [](const fcm_context *c, const Size &s, auto &) -> std::vector<Operand> {
            int64_t bytes = 0;
            const auto blocks = vectors(s);
            fcm_vector_steps_workspace(c, s.clients, blocks.data(), 3, &bytes, nullptr);
            return {in("m", s.n), out("w", s.n), numbers("workspace", bytes / 8, Use::kRoom)};
        };
        op.ready = [](fcm_context *c, const Size &s, const Parameters &, const Placement &at) {
            (void)fcm_vector_steps_prepare(c, s.clients, vectors(s).data(), s.n == 0 ? 0 : 3, at.at[2], at.room_bytes, nullptr);
        };
        op.call = [](fcm_context *c, const Size &s, const Parameters &p, const Placement &at, fcm_error *e) {
            return fcm_vector_steps(c, s.clients, vectors(s).data(), s.n == 0 ? 0 : 3, rule(p[0]), real(p[1]), at.floats(0),
                                    at.stride[0],
                                    at.floats(1), at.stride[1], at.at[2], at.room_bytes, e);
        };
        op.reference = [normalized](Results &r, int64_t k) {
            for (const fcm_vector_block &block : vectors(r.size)) {
                const float *m = r.before.floats(0, k) + block.m_offset;
                const double norm = normalized ? reference::norm(block.n, m) : 1.0;
                for (int64_t j = 0; j < block.n; ++j) {
                    // roundings: the product, the difference
                    r.near(1, k, block.w_offset + j,
                           reference::step(real(r.p[1]) * block.scale / norm, m[j], r.before.floats(1, k)[block.w_offset + j]),
                           2.01);
                }
            }
        };
        op.spot = [](const Size &s, int64_t index) {
            const int64_t first = vectors(s)[0].n;
            return index < first ? Spot{0, index} : Spot{2, index - first};
        };
        if (normalized) {
            op.bits = Bits::kCpu;
            op.gpu = 1e-6;  // a norm that differs in its last bit may change the rounding of a step
            op.finite = 0;
        }
        all.push_back(op);
    }
    {
        Operation op{};
        op.name = "normalize";  // divisor
        op.settings = fixed({{1.02}});
        op.bad = fixed({{0.0, -1.0, kNan, kInfinity}});
        op.operands = [](const fcm_context *c, const Size &s, auto &) -> std::vector<Operand> {
            return {in("x", s.n), out("y", s.n), sums(c, s)};
        };
        op.call = [](fcm_context *c, const Size &s, const Parameters &p, const Placement &at, fcm_error *e) {
            return fcm_normalize(c, s.clients, s.n, real(p[0]), at.floats(0), at.stride[0], at.floats(1), at.stride[1],
                                 at.at[2],
                                 at.room_bytes, e);
        };
        op.prepare = [](Data &data, const Parameters &) {  // one of the clients is zero
            if (data.size().clients > 1) std::fill(data.floats(0, 1), data.floats(0, 1) + data.size().n, 0.0f);
        };
        op.reference = [](Results &r, int64_t k) {
            const float *x = r.before.floats(0, k);
            const double norm = reference::norm(r.size.n, x);
            for (int64_t j = 0; j < r.size.n; ++j) {
                const double wanted = norm == 0.0 ? 0.0 : double{x[j]} / (norm * real(r.p[0]));
                r.near(1, k, j, reference::rounded_once({wanted, std::fabs(wanted)}), 1.01);
            }
        };
        op.bits = Bits::kCpu;
        op.gpu = 1e-6;
        op.finite = 0;
        op.same_as = 0;
        op.output = 1;
        all.push_back(op);
    }
    {
        Operation op{};
        op.name = "adaptive_step";  // rule, beta1, beta2, epsilon, eta
        // with beta = 0 a moment only depends on the last change
        op.settings = fixed({{FCM_YOGI, 0.9, 0.75, 0.01, -1.7},
                             {FCM_ADAM, 0.9, 0.75, 0.01, 0.3},
                             {FCM_YOGI, 0.0, 0.75, 0.01, -1.7},
                             {FCM_ADAM, 0.0, 0.0, 0.01, 0.3},
                             {FCM_YOGI, 0.9, 0.0, 0.01, -1.7},
                             {FCM_ADAM, 0.9, 0.0, 1e-300, 0.0}});
        const Parameters no_betas{-0.1, 1.0, 1.1, kNan, kInfinity, -kInfinity};
        op.bad = fixed({{-1, 2}, no_betas, no_betas, {0.0, -1e-3, kNan, kInfinity, -kInfinity}, kNotFinite});
        op.operands = [](auto, const Size &s, auto &) -> std::vector<Operand> {
            return {in("delta", s.n), out("m", s.n), out("v", s.n), out("w", s.n)};
        };
        op.call = [](fcm_context *c, const Size &s, const Parameters &p, const Placement &at, fcm_error *e) {
            return fcm_adaptive_step(c, s.clients, s.n, rule(p[0]), real(p[1]), real(p[2]), real(p[3]), real(p[4]),
                                     at.floats(0),
                                     at.stride[0], at.floats(1), at.stride[1], at.floats(2), at.stride[2], at.floats(3),
                                     at.stride[3], e);
        };
        // Second moments are not negative; some are zero, and some are exactly the square of the change. Where 0.9 m + 0.1
        // delta nearly cancels, the rounding of a product in double becomes visible.
        op.prepare = [](Data &data, const Parameters &) {
            for (int64_t i = 0; i < data.size().clients * data.size().n; ++i) {
                float &delta = data.floats(0, 0)[i];
                float &moment = data.floats(2, 0)[i];
                moment = std::fabs(moment);
                if (i % 7 == 3) moment = 0.0f;
                if (i % 7 == 5) {
                    delta = std::round(delta * 16.0f) / 16.0f;
                    moment = delta * delta;
                }
                if (i % 3 == 0) data.floats(1, 0)[i] = delta / -9.0f;
            }
        };
        op.reference = [](Results &r, int64_t k) {
            const double beta1 = real(r.p[1]);
            const double beta2 = real(r.p[2]);
            const bool adam = rule(r.p[0]) == FCM_ADAM;
            const float *change = r.before.floats(0, k);
            const float *first = r.before.floats(1, k);
            const float *second = r.before.floats(2, k);
            const float *weight = r.before.floats(3, k);
            for (int64_t j = 0; j < r.size.n; ++j) {
                const double delta = double{change[j]};
                const double old = double{second[j]};
                const double square = delta * delta;
                Number m, v, w;
                m.add(beta1 * double{first[j]});
                m.add((1.0 - beta1) * delta);
                if (adam) {
                    v.add(beta2 * old);
                    v.add((1.0 - beta2) * square);
                } else {
                    v.add(old);
                    if (old != square) v.add(-std::copysign((1.0 - beta2) * square, old - square));
                }
                w.add(double{weight[j]});
                w.add(real(r.p[4]) * m.value / (std::sqrt(v.value) + real(r.p[3])));
                r.near(1, k, j, reference::rounded_once(m), 1.01);
                r.near(2, k, j, reference::rounded_once(v), 1.01);
                r.near(3, k, j, reference::rounded_once(w), 1.01);
                r.require(r.after.floats(2, k)[j] >= 0.0f, "a second moment is negative", k);
            }
        };
        op.carries = true;
        op.slow = true;
        all.push_back(op);
    }
    {
        Operation op{};
        op.name = "top_k";  // k
        op.settings = [](const Size &s) -> std::vector<Parameters> {
            const auto n = static_cast<long double>(s.n);
            return {{std::floor(n / 2)},   {std::floor(n / 9)},     {0}, {std::min(n, 1.0L)},
                    {std::floor(n / 100)}, {std::max(n - 1, 0.0L)}, {n}};
        };
        op.bad = [](const Size &s) -> std::vector<Parameters> {
            return {{-1, static_cast<long double>(s.n) + 1, INT64_MAX, INT64_MIN}};
        };
        op.operands = [](auto, const Size &s, auto &) -> std::vector<Operand> { return {in("x", s.n), out("y", s.n)}; };
        op.call = [](fcm_context *c, const Size &s, const Parameters &p, const Placement &at, fcm_error *e) {
            return fcm_top_k(c, s.clients, s.n, whole(p[0]), at.floats(0), at.stride[0], at.floats(1), at.stride[1], e);
        };
        // Numbers that differ in all digits of their bits, only in the lowest ones, or hardly at all; and zeros of both
        // signs.
        op.prepare = [](Data &data, const Parameters &p) {
            for (int64_t k = 0; k < data.size().clients; ++k) {
                for (int64_t j = 0; j < data.size().n; ++j) {
                    auto bits = static_cast<uint32_t>(data.bits());
                    switch ((k + whole(p[0])) % 4) {
                        case 0: continue;
                        case 1: bits &= 0xff7fffffu; break;
                        case 2: bits = (bits & 0x800001ffu) | 0x3f800200u; break;
                        default: bits = j % 5 == 0 ? bits & 0x80000000u : (bits & 0x80c00000u) | 0x3f000000u;
                    }
                    std::memcpy(data.floats(0, k) + j, &bits, sizeof bits);
                }
            }
        };
        op.reference = [](Results &r, int64_t k) {
            const float *x = r.before.floats(0, k);
            std::vector<float> wanted(static_cast<size_t>(r.size.n), 0.0f);
            const auto order = reference::by_magnitude(r.size.n, x);
            for (int64_t i = 0; i < whole(r.p[0]); ++i) {
                const int64_t j = order[static_cast<size_t>(i)];
                wanted[static_cast<size_t>(j)] = x[j];
            }
            for (int64_t j = 0; j < r.size.n; ++j) r.same(1, k, j, wanted[static_cast<size_t>(j)]);
        };
        op.finite = 0;
        op.same_as = 0;
        op.output = 1;
        op.slow = true;
        all.push_back(op);
    }
    for (const bool weighted : {true, false}) {
        Operation op{};
        op.name = "average";  // terms
        op.settings = mean_terms;
        op.bad = fixed({kNoTerms});
        op.operands = [weighted](auto, const Size &s, auto &) {
            std::vector<Operand> operands{out("x", s.n)};
            if (weighted) operands.push_back(mean_weights(s));
            return operands;
        };
        op.call = [](fcm_context *c, const Size &s, const Parameters &p, const Placement &at, fcm_error *e) {
            return fcm_average(c, s.clients, s.n, at.doubles(1), whole(p[0]), at.floats(0), at.stride[0], e);
        };
        op.prepare = [weighted](Data &data, const Parameters &) { set_terms(data, 0, weighted ? 1 : -1); };
        op.reference = [weighted](Results &r, int64_t k) {
            const float *x = r.before.floats(0, 0);
            const float *first = r.after.floats(0, 0);
            const int bits = reference::mean_bits(whole(r.p[0]));
            double total = 0.0;
            for (int64_t i = 0; i < r.size.clients; ++i) total += weighted ? r.before.doubles(1)[i] : 1.0;
            for (int64_t j = 0; j < r.size.n; ++j) {
                if (k > 0) {
                    r.same(0, k, j, first[j]);
                    continue;
                }
                const auto terms = terms_of(r, x, weighted ? r.before.doubles(1) : nullptr, j);
                const float wanted = reference::mean_of(terms, bits, total);
                r.same(0, k, j, wanted);
                if (!std::isfinite(wanted)) continue;
                Number mean;
                for (const double term : terms) mean.add(term / total);
                r.near(0, k, j, reference::rounded_once(mean), 1.01);
            }
        };
        op.slow = true;
        all.push_back(op);
    }
    for (const bool weighted : {true, false}) {
        Operation op{};
        op.name = "mean_exponents";
        op.settings = fixed({{}});
        op.bad = fixed({});
        op.operands = [weighted](auto, const Size &s, auto &) {
            std::vector<Operand> operands{in("x", s.n), {"exponents", s.n, Use::kWritten, false, 1}};
            if (weighted) operands.push_back(mean_weights(s));
            return operands;
        };
        op.call = [](fcm_context *c, const Size &s, const Parameters &, const Placement &at, fcm_error *e) {
            return fcm_mean_exponents(c, s.clients, s.n, at.doubles(2), at.floats(0), at.stride[0], at.bytes(1), e);
        };
        op.prepare = [weighted](Data &data, const Parameters &) { set_terms(data, 0, weighted ? 2 : -1); };
        op.reference = [weighted](Results &r, int64_t k) {
            if (k > 0) return;
            for (int64_t j = 0; j < r.size.n; ++j) {
                uint8_t wanted = 0;
                for (const double term : terms_of(r, r.before.floats(0, 0), weighted ? r.before.doubles(2) : nullptr, j)) {
                    wanted = std::max(wanted, reference::mean_exponent(term));
                }
                r.byte(1, 0, j, wanted);
            }
        };
        all.push_back(op);
    }
    for (const bool weighted : {true, false}) {
        Operation op{};
        op.name = "mean_sums";  // terms
        op.settings = mean_terms;
        op.bad = fixed({kNoTerms});
        op.operands = [weighted](auto, const Size &s, auto &) {
            std::vector<Operand> operands{
                {"exponents", s.n, Use::kRead, false, 1}, in("x", s.n), numbers("sums", s.n, Use::kWritten)};
            if (weighted) operands.push_back(mean_weights(s));
            return operands;
        };
        op.call = [](fcm_context *c, const Size &s, const Parameters &p, const Placement &at, fcm_error *e) {
            return fcm_mean_sums(c, s.clients, s.n, at.doubles(3), whole(p[0]), at.floats(1), at.stride[1], at.bytes(0),
                                 static_cast<int64_t *>(at.at[2]), e);
        };
        op.prepare = [weighted](Data &data, const Parameters &) {  // elsewhere are larger terms
            set_terms(data, 1, weighted ? 3 : -1);
            for (int64_t j = 0; j < data.size().n; ++j) {
                uint8_t exponent = 0;
                for (int64_t k = 0; k < data.size().clients; ++k) {
                    const double weight = weighted ? data.doubles(3)[k] : 1.0;
                    if (weight == 0.0) continue;
                    exponent = std::max(exponent, reference::mean_exponent(weight * double{data.floats(1, k)[j]}));
                }
                const int larger = exponent + static_cast<int>(j % 3) * 20;
                data.bytes(0)[static_cast<size_t>(j)] = static_cast<char>(std::min(larger, 255));
            }
        };
        op.reference = [weighted](Results &r, int64_t k) {
            if (k > 0) return;
            const int bits = reference::mean_bits(whole(r.p[0]));
            for (int64_t j = 0; j < r.size.n; ++j) {
                const auto exponent = static_cast<uint8_t>(r.before.bytes(0)[static_cast<size_t>(j)]);
                uint64_t wanted = 0;
                for (const double term : terms_of(r, r.before.floats(1, 0), weighted ? r.before.doubles(3) : nullptr, j)) {
                    wanted += reference::mean_term(term, exponent, bits);
                }
                r.whole(2, j, wanted);
            }
        };
        op.slow = true;
        all.push_back(op);
    }
    {
        Operation op{};
        op.name = "all_finite";
        op.settings = fixed({{}});
        op.bad = fixed({});
        op.operands = [](auto, const Size &s, auto &) -> std::vector<Operand> {
            return {in("x", s.n), on_host(numbers("place", 2, Use::kAnswer))};
        };
        op.call = [](fcm_context *c, const Size &s, const Parameters &, const Placement &at, fcm_error *e) {
            auto *place = static_cast<int64_t *>(at.at[1]);
            return fcm_all_finite(c, s.clients, s.n, at.floats(0), at.stride[0], place, place == nullptr ? place : place + 1,
                                  e);
        };
        op.prepare = [](Data &data, const Parameters &) {
            if (data.size().clients * data.size().n == 0) return;
            data.floats(0, data.size().clients - 1)[data.size().n - 1] = std::numeric_limits<float>::max();
            data.floats(0, 0)[0] = std::numeric_limits<float>::lowest();
        };
        op.reference = [](Results &r, int64_t k) {
            int64_t place[2];
            std::memcpy(place, r.after.bytes(1).data(), sizeof place);
            r.require(place[0] == -1 && place[1] == -1, "something was found", k);
        };
        all.push_back(op);
    }
    {
        Operation op{};
        op.name = "require_finite";
        op.settings = fixed({{}});
        op.bad = fixed({});
        op.operands = [](auto, const Size &s, auto &) -> std::vector<Operand> { return {in("x", s.n)}; };
        op.call = [](fcm_context *c, const Size &s, const Parameters &, const Placement &at, fcm_error *e) {
            return fcm_require_finite(c, s.clients, s.n, at.floats(0), at.stride[0], nullptr, 0, e);
        };
        op.reference = [](Results &r, int64_t k) { r.require(true, "returned", k); };
        op.finite = 0;
        all.push_back(op);
    }
    {
        Operation op{};
        op.name = "newton_schulz";  // steps, divisor, eta
        op.settings = fixed({{5, 1.0, 0.3}});
        op.bad = fixed({{-1, INT64_MAX}, {0.0, -1.0, kNan, kInfinity}, {kNan}});
        op.operands = [](const fcm_context *c, const Size &s, auto &) -> std::vector<Operand> {
            int64_t bytes = 0;
            const auto blocks = matrices(s);
            fcm_newton_schulz_workspace(c, s.clients, blocks.data(), 2, Iteration(), &bytes, nullptr);
            const int64_t length = matrices_length(s);
            return {in("m", length), optional(out("o", length)), optional(out("w", length)),
                    numbers("workspace", bytes / 8, Use::kRoom)};
        };
        op.ready = [](fcm_context *c, const Size &s, const Parameters &p, const Placement &at) {
            (void)fcm_newton_schulz_prepare(c, s.clients, matrices(s).data(), s.n == 0 ? 0 : 2,
                                            Iteration(schulz_coefficients().data(), whole(p[0])), at.at[3], at.room_bytes,
                                                nullptr);
        };
        op.call = [](fcm_context *c, const Size &s, const Parameters &p, const Placement &at, fcm_error *e) {
            const auto blocks = matrices(s);
            return fcm_newton_schulz(c, s.clients, blocks.data(), s.n == 0 ? 0 : 2, Iteration(schulz_coefficients().data(),
                    whole(p[0]), real(p[1])), real(p[2]), at.floats(0), at.stride[0], at.floats(1), at.stride[1], at.floats(2),
                        at.stride[2], at.at[3], at.room_bytes, e);
        };
        op.reference = [](Results &r, int64_t k) {
            for (const fcm_matrix_block &block : matrices(r.size)) {
                const auto wanted = reference::newton_schulz(block.rows, block.cols, r.before.floats(0, k) + block.m_offset,
                                                             schulz_coefficients(), real(r.p[1]));
                for (int64_t j = 0; j < block.rows * block.cols; ++j) {
                    const int64_t at = block.o_offset + j;
                    // for elements of at most about 1; newton_schulz_test explains the bound
                    r.near(1, k, at, {wanted.values[static_cast<size_t>(j)], 1.0}, 7e-6 / reference::kRound);
                    // roundings: eta scale, the product, the difference
                    r.near(2, k, at,
                           reference::step(real(r.p[2]) * block.scale, r.after.floats(1, k)[at], r.before.floats(2, k)[at]),
                               3.01);
                }
            }
        };
        op.bits = Bits::kFused;
        op.gpu = 2e-4;
        op.same_as = 0;
        op.output = 1;
        op.slow = true;
        all.push_back(op);
    }
    {
        Operation op{};
        op.name = "rearrange";  // bytes of an element
        op.settings = fixed({{4}});
        op.bad = fixed({{3, 0, -4}});
        op.operands = [](auto, const Size &s, auto &) -> std::vector<Operand> {
            const int64_t rows = root(s.n);
            return {in("x", rows * (s.n / rows)), out("y", rows * (s.n / rows))};
        };
        op.call = [](fcm_context *c, const Size &s, const Parameters &p, const Placement &at, fcm_error *e) {
            const int64_t rows = s.n > 0 ? root(s.n) : s.n;
            const int64_t cols = s.n > 0 ? s.n / rows : s.n;
            return fcm_rearrange(c, s.clients, rows, cols, rule(p[0]), at.at[0], at.stride[0], cols, 1, at.at[1], at.stride[1],
                                 1,
                                 rows, e);
        };
        op.reference = [](Results &r, int64_t k) {
            const int64_t rows = root(r.size.n);
            const int64_t cols = r.size.n / rows;
            const float *x = r.before.floats(0, k);
            for (int64_t i = 0; i < rows; ++i) {
                for (int64_t j = 0; j < cols; ++j) r.same(1, k, j * rows + i, x[i * cols + j]);
            }
        };
        all.push_back(op);
    }
    {
        Operation op{};
        op.name = "dropout_mask";  // left
        op.settings = fixed({{32768}, {6554}, {0}, {1}, {65535}, {65536}});
        op.bad = fixed({{-1, 65537, INT32_MIN, INT32_MAX}});
        op.operands = [](auto, const Size &s, auto &) -> std::vector<Operand> {
            return {on_host(numbers("seeds", s.clients, Use::kRead)), {"mask", s.n, Use::kWritten, true, 1}};
        };
        op.call = [](fcm_context *c, const Size &s, const Parameters &p, const Placement &at, fcm_error *e) {
            return fcm_dropout_mask(c, s.clients, s.n, rule(p[0]), static_cast<const uint64_t *>(at.at[0]), at.bytes(1),
                                    at.stride[1], e);
        };
        op.prepare = [](Data &data, const Parameters &) {
            for (int64_t k = 0; k < data.size().clients; ++k) {
                const uint64_t seed = k == 1 ? 0 : data.bits();
                std::memcpy(data.doubles(0) + k, &seed, sizeof seed);
            }
        };
        // The generator with its state, number after number.
        op.reference = [](Results &r, int64_t k) {
            uint64_t state;
            std::memcpy(&state, r.before.doubles(0) + k, sizeof state);
            uint64_t number = 0;
            for (int64_t j = 0; j < r.size.n; ++j) {
                if (j % 4 == 0) number = Data::split_mix(state);
                r.byte(1, k, j, static_cast<int64_t>(number & 0xffffu) < whole(r.p[0]) ? 1 : 0);
                number >>= 16;
            }
        };
        all.push_back(op);
    }
    {
        Operation op{};
        op.name = "widen";
        op.settings = fixed({{}});
        op.bad = fixed({});
        op.operands = [](auto, const Size &s, auto &) -> std::vector<Operand> {
            return {in("x", s.n), numbers("y", s.clients * s.n, Use::kWritten)};
        };
        op.call = [](fcm_context *c, const Size &s, const Parameters &, const Placement &at, fcm_error *e) {
            return fcm_widen(c, s.clients, s.n, at.floats(0), at.stride[0], at.doubles(1), e);
        };
        op.reference = [](Results &r, int64_t k) {
            for (int64_t j = 0; j < r.size.n; ++j) r.number(1, k * r.size.n + j, double{r.before.floats(0, k)[j]});
        };
        all.push_back(op);
    }
    {
        Operation op{};
        op.name = "narrow";
        op.settings = fixed({{}});
        op.bad = fixed({});
        op.operands = [](auto, const Size &s, auto &) -> std::vector<Operand> {
            return {numbers("x", s.clients * s.n, Use::kRead), out("y", s.n)};
        };
        op.call = [](fcm_context *c, const Size &s, const Parameters &, const Placement &at, fcm_error *e) {
            return fcm_narrow(c, s.clients, s.n, at.doubles(0), at.floats(1), at.stride[1], e);
        };
        // Some in the middle between two floats, beyond their range, and below their normal range.
        op.prepare = [](Data &data, const Parameters &) {
            for (int64_t j = 3; j < data.size().clients * data.size().n; j += 7) {
                double &value = data.doubles(0)[j];
                value = j % 3 == 0 ? 1.0 + (1.0 + static_cast<double>(j % 4)) * 0x1p-24 : j % 3 == 1 ? -1e300 : 1e-42 * value;
            }
        };
        op.reference = [](Results &r, int64_t k) {
            for (int64_t j = 0; j < r.size.n; ++j) {
                r.same(1, k, j, static_cast<float>(r.before.doubles(0)[k * r.size.n + j]));
            }
        };
        all.push_back(op);
    }
    {
        Operation op{};
        op.name = "multiply";  // product_factor, base_factor
        op.settings = fixed({{-1.5, 0.75}, {1.0, 0.0}});
        op.bad = fixed({kNotFinite, kNotFinite});
        op.operands = [](const fcm_context *c, const Size &s, auto &) -> std::vector<Operand> {
            const int64_t n = side(s);
            int64_t bytes = 0;
            fcm_multiply_workspace(c, s.clients, n, n, n, &bytes, nullptr);
            return {in("a", n * n), in("b", n * n), optional(in("base", n * n)), out("out", n * n),
                    numbers("workspace", (bytes + 7) / 8, Use::kRoom)};
        };
        op.call = [](fcm_context *c, const Size &s, const Parameters &p, const Placement &at, fcm_error *e) {
            const int64_t n = s.n > 0 && s.n < INT32_MAX ? side(s) : s.n;
            const int64_t depth = std::max<int64_t>(n, 1);  // B is transposed
            return fcm_multiply(c, s.clients, n, n, depth, 0, real(p[0]), at.floats(0), at.stride[0], depth, 1, at.floats(1),
                                at.stride[1], 1, depth, real(p[1]), at.floats(2), at.stride[2], at.floats(3), at.stride[3],
                                at.at[4], at.room_bytes, e);
        };
        op.reference = [](Results &r, int64_t k) {
            const int64_t n = side(r.size);
            const float *a = r.before.floats(0, k);
            const float *b = r.before.floats(1, k);
            const float *base = r.before.floats(2, k);
            for (int64_t i = 0; i < n; ++i) {
                for (int64_t j = 0; j < n; ++j) {
                    Number wanted;
                    for (int64_t d = 0; d < n; ++d) {
                        wanted.add(real(r.p[0]) * double{a[i * n + d]} * double{b[j * n + d]});
                    }
                    wanted.add(real(r.p[1]) * double{base[i * n + j]});
                    // a chain of n roundings (two each without fusing), the factor and the base
                    r.near(3, k, i * n + j, wanted, 2.0 * static_cast<double>(n) + 3.0);
                }
            }
        };
        op.bits = Bits::kFused;
        op.gpu = 1e-4;
        op.slow = true;
        all.push_back(op);
    }
    {
        Operation op{};
        op.name = "triad";  // s, non_temporal
        op.settings = fixed({{1.5, 0}, {1.5, 1}});
        op.bad = fixed({{}, {}});
        op.operands = [](auto, const Size &s, auto &) -> std::vector<Operand> {
            return {{"b", s.n, Use::kRead, false, 4}, {"c", s.n, Use::kRead, false, 4}, {"a", s.n, Use::kWritten, false, 4}};
        };
        op.call = [](fcm_context *c, const Size &s, const Parameters &p, const Placement &at, fcm_error *e) {
            return fcm_triad(c, s.n, static_cast<float>(p[0]), at.floats(0), at.floats(1), at.floats(2), rule(p[1]), e);
        };
        op.reference = [](Results &r, int64_t k) {
            if (k > 0) return;
            for (int64_t j = 0; j < r.size.n; ++j) {
                r.near(2, 0, j, reference::step(-real(r.p[0]), r.before.floats(1, 0)[j], r.before.floats(0, 0)[j]), 2.01);
            }
        };
        op.carries = true;
        all.push_back(op);
    }
    return all;
}

inline const std::vector<Operation> &operations() {
    static const std::vector<Operation> all = make();
    return all;
}

// Defines a test named after each operation, which may have several entries; it calls `body` for each of them. CMake lists
// them.
inline bool add_tests(void (*body)(const Operation &)) {
    std::set<std::string> names;
    for (const Operation &operation : operations()) names.insert(operation.name);
    for (const std::string &name : names) {
        check::add(name, [name, body] {
            for (const Operation &operation : operations()) {
                if (operation.name == name) body(operation);
            }
        });
    }
    return true;
}

// The operand values that an operation is tested with.
inline Data data_of(const Operation &operation, const fcm_context *context, const Size &size, const Parameters &settings,
                    uint64_t seed) {
    Data data(operation.operands(context, size, settings), size);
    data.fill(seed);
    if (operation.prepare && size.clients > 0 && size.n > 0) operation.prepare(data, settings);
    return data;
}

}  // namespace table
