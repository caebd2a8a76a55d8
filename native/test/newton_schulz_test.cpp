// Newton-Schulz against a double-precision iteration, with many shapes in one call, for each instruction set.
#include <map>

#include "support.h"

namespace {

struct Shape {
    int64_t rows;
    int64_t cols;
    int64_t gram = 0;
};

// Vectors, both orientations, sides around the register tiles and their padding to 16, and the longest side of 128.
const std::vector<Shape> kShapes = {{1, 1},     {1, 7},     {7, 1},    {4, 33},    {6, 25},
                                    {25, 6},    {16, 150},  {120, 256}, {256, 120}, {10, 120},
                                    {128, 128}, {127, 129}, {128, 1000}, {17, 17},   {33, 31}};

// The five steps of Muon.
std::vector<double> muon(int steps = 5) {
    std::vector<double> all;
    for (int i = 0; i < steps; ++i) all.insert(all.end(), {3.4445, -4.7750, 2.0315});
    return all;
}

// Different coefficients in each step, similar to Polar Express, so that exchanged steps are detected.
const std::vector<double> kSteps = {8.28721, -23.59589, 17.30039,  //
                                    4.10706, -2.94785,  0.54484,   //
                                    3.94869, -2.90890,  0.55182,   //
                                    3.31842, -2.48849,  0.51005,   //
                                    2.30065, -1.66890,  0.41881};

// Blocks one after the other, in the given order in m and w and in reverse order in o, with gaps between them.
struct Table {
    std::vector<fcm_matrix_block> blocks;
    int64_t m_length = 0;
    int64_t o_length = 0;
    int64_t w_length = 0;

    explicit Table(const std::vector<Shape> &shapes) {
        for (const Shape &shape : shapes) {
            fcm_matrix_block block{shape.rows, shape.cols, m_length, 0, w_length, 0.5 + 0.25 * double(blocks.size()),
                                   shape.gram};
            m_length += shape.rows * shape.cols + 3;
            w_length += shape.rows * shape.cols + 5;
            blocks.push_back(block);
        }
        for (size_t i = blocks.size(); i-- > 0;) {
            blocks[i].o_offset = o_length;
            o_length += blocks[i].rows * blocks[i].cols + 1;
        }
    }
    int64_t count() const { return static_cast<int64_t>(blocks.size()); }
    int64_t size(int64_t i) const { return blocks[static_cast<size_t>(i)].rows * blocks[static_cast<size_t>(i)].cols; }
    const fcm_matrix_block &at(int64_t i) const { return blocks[static_cast<size_t>(i)]; }

    // Elements of `after` outside of all blocks must be the same as in `before`.
    bool gaps_intact(const std::vector<float> &before, std::vector<float> after, int64_t clients, int64_t length,
                     int64_t fcm_matrix_block::*offset) const {
        for (int64_t k = 0; k < clients; ++k) {
            for (const fcm_matrix_block &block : blocks) {
                const int64_t start = k * length + block.*offset;
                const auto bytes = static_cast<size_t>(block.rows * block.cols) * sizeof(float);
                std::memcpy(after.data() + start, before.data() + start, bytes);
            }
        }
        return std::memcmp(before.data(), after.data(), before.size() * sizeof(float)) == 0;
    }
};

// The operands of one call; m, o and w always exist, and the test decides which of them it passes.
struct Call {
    const Table &table;
    int64_t clients;
    Floats m;
    Floats o;
    Floats w;
    double eta = 0.3;
    double divisor = 1.0;
    std::vector<int64_t> restarts = {};

    Call(const Table &t, int64_t k, int64_t shift = 1)
        : table(t),
          clients(k),
          m(k, t.m_length, shift, 2),
          o(k, t.o_length, (shift + 1) % 4, 7),
          w(k, t.w_length, (shift + 2) % 4, 1) {}

    float *matrix(int64_t client, int64_t block) { return m[client] + table.at(block).m_offset; }
    float *result(int64_t client, int64_t block) { return o[client] + table.at(block).o_offset; }
    float *weights(int64_t client, int64_t block) { return w[client] + table.at(block).w_offset; }

    // The gaps of m stay NaN, so that reading one is detected.
    void randomize(Random &random) {
        for (int64_t k = 0; k < clients; ++k) {
            for (int64_t i = 0; i < table.count(); ++i) {
                for (int64_t j = 0; j < table.size(i); ++j) {
                    matrix(k, i)[j] = static_cast<float>(random.uniform());
                    weights(k, i)[j] = static_cast<float>(random.uniform());
                }
            }
        }
    }

    fcm_status run(fcm_context *context, const std::vector<double> &coefficients, bool with_o, bool with_w,
                   fcm_error *error = nullptr) {
        int64_t bytes = -1;
        const Iteration iteration = Iteration(coefficients.data(), static_cast<int64_t>(coefficients.size() / 3), divisor)
                                        .restarting(restarts.data(), static_cast<int64_t>(restarts.size()));
        const fcm_status asked =
            fcm_newton_schulz_workspace(context, clients, table.blocks.data(), table.count(), iteration, &bytes, error);
        if (asked != FCM_OK) return asked;
        Doubles workspace(1, bytes / 8, 3);
        const fcm_status status =
            fcm_newton_schulz(context, clients, table.blocks.data(), table.count(), iteration, eta, m.data(), m.stride(),
                              with_o ? o.data() : nullptr, o.stride(), with_w ? w.data() : nullptr, w.stride(),
                              workspace.data(), workspace.bytes(), error);
        CHECK(workspace.guards_intact(), "the workspace was left");
        return status;
    }
};

// The largest error of an element of O, whose elements are at most about 1 (1.2 with Muon's coefficients).
class Errors {
   public:
    Errors(const char *what, double bound) : what_(what), bound_(bound) {}
    ~Errors() { std::printf("%s: worst error of O %.3g, allowed %.3g\n", what_, worst_, bound_); }
    Errors(const Errors &) = delete;
    Errors &operator=(const Errors &) = delete;

    void expect(const float *got, const reference::Matrix &wanted, const char *where) {
        double worst = 0.0;
        for (size_t i = 0; i < wanted.values.size(); ++i) {
            const double error = std::fabs(double{got[i]} - wanted.values[i]);
            if (!(error <= worst)) worst = error;
        }
        CHECK(worst <= bound_, "%s, %s: off by %g", what_, where, worst);
        if (!(worst <= worst_)) worst_ = worst;
    }

   private:
    const char *what_;
    double bound_;
    double worst_ = 0.0;
};

std::string place(int32_t isa, int64_t client, const fcm_matrix_block &block) {
    char words[96];
    std::snprintf(words, sizeof words, "isa %d, client %ld, %ld x %ld", isa, long(client), long(block.rows),
                  long(block.cols));
    return words;
}

std::vector<std::vector<reference::Matrix>> expected(Call &call, const std::vector<double> &coefficients) {
    std::vector<std::vector<reference::Matrix>> all;
    for (int64_t k = 0; k < call.clients; ++k) {
        all.emplace_back();
        for (int64_t i = 0; i < call.table.count(); ++i) {
            const fcm_matrix_block &block = call.table.at(i);
            all.back().push_back(
                reference::newton_schulz(block.rows, block.cols, call.matrix(k, i), coefficients, call.divisor));
        }
    }
    return all;
}

// Runs with o and compares every block of every client.
void compare(Errors &errors, Call &call, const std::vector<double> &coefficients) {
    const auto wanted = expected(call, coefficients);
    for (const int32_t isa : isas()) {
        Device device(2, isa);
        fcm_error error{};
        CHECK(call.run(device, coefficients, true, false, &error) == FCM_OK, "%s", error.message);
        for (int64_t k = 0; k < call.clients; ++k) {
            for (int64_t i = 0; i < call.table.count(); ++i) {
                errors.expect(call.result(k, i), wanted[static_cast<size_t>(k)][static_cast<size_t>(i)],
                              place(isa, k, call.table.at(i)).c_str());
            }
        }
    }
}

// For a singular value near 0, a step multiplies by its first coefficient, including rounding errors: over Muon's five steps
// by 3.4445^5 = 485, over kSteps by 1020. An error of u = 2^-24 may then grow to 3e-5 and 6e-5. Random matrices have few
// such directions; a matrix of rank one has no others. Each bound is four times the largest error measured over all shapes
// and instruction sets.
constexpr double kMuonBound = 7e-6;      // measured: 1.7e-6
constexpr double kRankOneBound = 3.2e-5;  // measured: 8.1e-6
constexpr double kStepsBound = 4.8e-4;    // measured: 1.2e-4

}  // namespace

TEST(all_shapes_match_the_reference) {
    const Table table(kShapes);
    Call call(table, 3);
    Random random(1);
    call.randomize(random);
    Errors errors("Muon's five steps", kMuonBound);
    compare(errors, call, muon());
    CHECK(call.m.guards_intact() && call.o.guards_intact(), "something wrote around an operand");
}

TEST(each_step_has_its_own_coefficients) {
    const Table table({{4, 33}, {25, 6}, {16, 150}, {120, 256}, {127, 129}});
    Call call(table, 2);
    call.divisor = 1.02;
    Random random(2);
    call.randomize(random);
    Errors errors("five different steps, divisor 1.02", kStepsBound);
    compare(errors, call, kSteps);
}

// Matrices beyond the small sizes, those in Gram form of any size, and small ones beside them.
TEST(large_matrices_and_gram_forms_match_the_reference) {
    const Table table({{129, 129}, {300, 130}, {25, 6}, {130, 300}, {150, 700, 1}, {700, 150, 1}, {20, 50, 1}, {1, 1, 1}, {3,
            2, 1}});
    Call call(table, 2);
    call.restarts = {2};
    Random random(9);
    call.randomize(random);
    Errors errors("large matrices", kMuonBound);
    compare(errors, call, muon());
    CHECK(call.m.guards_intact() && call.o.guards_intact(), "something wrote around an operand");
    // Without a restart and with one after each step, the polynomials are the same.
    for (const auto &restarts : {std::vector<int64_t>{}, {1, 2}}) {
        call.restarts = restarts;
        compare(errors, call, muon(3));
    }
}

TEST(a_large_step_without_its_last_coefficient) {
    const Table table({{140, 150}, {150, 320, 1}});
    Call call(table, 1);
    Random random(10);
    call.randomize(random);
    Errors errors("cubic", kMuonBound);
    compare(errors, call, {1.5, -0.5, 0.0, 1.5, -0.5, 0.0});
}

// The norm is a double, so neither huge nor tiny matrices are lost, and the result does not depend on their scale.
TEST(scale_does_not_matter) {
    const Table table({{1, 7}, {6, 25}, {25, 6}, {17, 40}, {64, 64}});
    Errors errors("scaled by 1e-30 ... 1e38", kMuonBound);
    for (const double scale : {1e-42, 1e-38, 1e-30, 1e30, 1e38}) {
        Call call(table, 1);
        Random random(3);
        call.randomize(random);
        for (int64_t i = 0; i < table.count(); ++i) {
            for (int64_t j = 0; j < table.size(i); ++j) {
                call.matrix(0, i)[j] = static_cast<float>(scale * double{call.matrix(0, i)[j]});
            }
        }
        compare(errors, call, muon());
    }
}

TEST(a_zero_matrix_gives_zero) {
    const Table table({{5, 9}, {9, 5}, {16, 16}});
    for (const int32_t isa : isas()) {
        Device device(2, isa);
        Call call(table, 2);
        Random random(4);
        call.randomize(random);
        for (int64_t j = 0; j < 45; ++j) call.matrix(0, 0)[j] = 0.0f;
        for (int64_t j = 0; j < 45; ++j) call.matrix(1, 1)[j] = -0.0f;
        const std::vector<float> w_before(call.weights(0, 0), call.weights(0, 0) + 45);
        CHECK(call.run(device, muon(), true, true) == FCM_OK, "isa %d", isa);
        int wrong = 0;
        for (int64_t j = 0; j < 45; ++j) wrong += call.result(0, 0)[j] != 0.0f;
        for (int64_t j = 0; j < 45; ++j) wrong += call.result(1, 1)[j] != 0.0f;
        for (int64_t j = 0; j < 45; ++j) wrong += call.weights(0, 0)[j] != w_before[static_cast<size_t>(j)];
        CHECK(wrong == 0, "isa %d: %d elements", isa, wrong);
        CHECK(call.result(0, 1)[0] != 0.0f && call.result(1, 0)[0] != 0.0f, "isa %d: the others are zero too", isa);
    }
}

// One singular value of 1 and the others 0, which must not grow from rounding errors.
TEST(rank_one_matches_the_reference) {
    const Table table({{1, 1}, {6, 25}, {25, 6}, {40, 40}, {128, 200}});
    Call call(table, 1);
    Random random(5);
    for (int64_t i = 0; i < table.count(); ++i) {
        const fcm_matrix_block &block = table.at(i);
        std::vector<float> left(static_cast<size_t>(block.rows));
        std::vector<float> right(static_cast<size_t>(block.cols));
        for (auto &value : left) value = static_cast<float>(random.uniform());
        for (auto &value : right) value = static_cast<float>(random.uniform());
        for (int64_t r = 0; r < block.rows; ++r) {
            for (int64_t c = 0; c < block.cols; ++c) {
                call.matrix(0, i)[r * block.cols + c] = left[static_cast<size_t>(r)] * right[static_cast<size_t>(c)];
            }
        }
    }
    Errors errors("rank one", kRankOneBound);
    compare(errors, call, muon());
}

TEST(no_steps_only_normalize) {
    const Table table({{1, 1}, {7, 9}, {9, 7}, {16, 16}, {128, 130}});
    Call call(table, 2);
    call.divisor = 1.25;
    Random random(6);
    call.randomize(random);
    for (const int32_t isa : isas()) {
        Device device(2, isa);
        CHECK(call.run(device, {}, true, false) == FCM_OK, "isa %d", isa);
        for (int64_t k = 0; k < 2; ++k) {
            for (int64_t i = 0; i < table.count(); ++i) {
                const double norm = reference::norm(table.size(i), call.matrix(k, i));
                for (int64_t j = 0; j < table.size(i); ++j) {
                    const double wanted = double{call.matrix(k, i)[j]} / (norm * 1.25);
                    const double error = std::fabs(double{call.result(k, i)[j]} - wanted);
                    // computed in double, rounded once
                    CHECK(error <= 1.01 * reference::kRound * std::fabs(wanted),
                          "%s, element %ld", place(isa, k, table.at(i)).c_str(), long(j));
                }
            }
        }
    }
    // the same with a null pointer as the table
    Device device;
    int64_t bytes = 0;
    CHECK(fcm_newton_schulz_workspace(device, 2, table.blocks.data(), table.count(), Iteration(), &bytes, nullptr) == FCM_OK,
          "query");
    Vector<double> workspace(static_cast<size_t>(bytes / 8));
    CHECK(fcm_newton_schulz(device, 2, table.blocks.data(), table.count(), Iteration(nullptr, 0, 1.25), 0.0, call.m.data(),
                            call.m.stride(), call.o.data(), call.o.stride(), nullptr, 0, workspace.data(), bytes,
                                nullptr) == FCM_OK,
          "no coefficients");
}

// O is bit-identical for every way to request it, and w moves by eta scale O.
TEST(o_and_w_and_in_place_agree) {
    const std::vector<Shape> shapes = {{1, 1}, {1, 7}, {7, 1}, {6, 25}, {25, 6}, {40, 40}, {65, 80}, {130, 131}, {12, 30, 1}};
    const Table table(shapes);
    constexpr int64_t kClients = 3;
    for (const int32_t isa : isas()) {
        Device device(2, isa);
        Call only_o(table, kClients);
        Call only_w(table, kClients);
        Call both(table, kClients);
        for (Call *call : {&only_o, &only_w, &both}) {
            Random random(7);
            call->randomize(random);
        }
        const auto m_before = both.m.values();
        const auto o_before = both.o.values();
        const auto w_before = both.w.values();
        CHECK(only_o.run(device, muon(), true, false) == FCM_OK, "isa %d: o only", isa);
        CHECK(only_w.run(device, muon(), false, true) == FCM_OK, "isa %d: w only", isa);
        CHECK(both.run(device, muon(), true, true) == FCM_OK, "isa %d: both", isa);
        CHECK(both.o.is(only_o.o.values()), "isa %d: o differs when w is given", isa);
        CHECK(both.w.is(only_w.w.values()), "isa %d: w differs when o is given", isa);
        CHECK(only_o.w.is(w_before) && only_w.o.is(o_before), "isa %d: what was not given was written", isa);
        for (Call *call : {&only_o, &only_w, &both}) {
            CHECK(call->m.is(m_before), "isa %d: m was written", isa);
            CHECK(call->m.guards_intact() && call->o.guards_intact() && call->w.guards_intact(), "isa %d: guards", isa);
            CHECK(table.gaps_intact(o_before, call->o.values(), kClients, table.o_length, &fcm_matrix_block::o_offset),
                  "isa %d: between the blocks of o", isa);
            CHECK(table.gaps_intact(w_before, call->w.values(), kClients, table.w_length, &fcm_matrix_block::w_offset),
                  "isa %d: between the blocks of w", isa);
        }
        for (int64_t k = 0; k < kClients; ++k) {
            for (int64_t i = 0; i < table.count(); ++i) {
                const fcm_matrix_block &block = table.at(i);
                for (int64_t j = 0; j < table.size(i); ++j) {
                    const float old = w_before[static_cast<size_t>(k * table.w_length + block.w_offset + j)];
                    const auto wanted = reference::step(both.eta * block.scale, both.result(k, i)[j], old);
                    const double error = std::fabs(double{both.weights(k, i)[j]} - wanted.value);
                    // roundings: eta scale, the product, the difference
                    CHECK(error <= 3.01 * reference::kRound * wanted.size, "%s, element %ld: off by %g",
                          place(isa, k, block).c_str(), long(j), error);
                }
            }
        }

        Table same(shapes);
        for (auto &block : same.blocks) block.o_offset = block.m_offset;
        Call in_place(same, kClients);
        Random random(7);
        in_place.randomize(random);
        int64_t bytes = 0;
        CHECK(fcm_newton_schulz_workspace(device, kClients, same.blocks.data(), same.count(), Iteration(muon().data(), 5),
                                          &bytes, nullptr) == FCM_OK, "query");
        Vector<double> workspace(static_cast<size_t>(bytes / 8));
        const auto coefficients = muon();
        CHECK(fcm_newton_schulz(device, kClients, same.blocks.data(), same.count(), Iteration(coefficients.data(), 5, 1.0),
                                in_place.eta, in_place.m.data(), in_place.m.stride(), in_place.m.data(), in_place.m.stride(),
                                    in_place.w.data(), in_place.w.stride(), workspace.data(), bytes, nullptr) == FCM_OK,
              "isa %d: in place", isa);
        CHECK(in_place.w.is(both.w.values()), "isa %d: w differs in place", isa);
        CHECK(same.gaps_intact(m_before, in_place.m.values(), kClients, same.m_length, &fcm_matrix_block::m_offset),
              "isa %d: between the blocks of m", isa);
        CHECK(in_place.m.guards_intact(), "isa %d: guards", isa);
        for (int64_t k = 0; k < kClients; ++k) {
            for (int64_t i = 0; i < table.count(); ++i) {
                CHECK(std::memcmp(in_place.matrix(k, i), both.result(k, i),
                                  static_cast<size_t>(table.size(i)) * sizeof(float)) == 0,
                      "%s: o differs in place", place(isa, k, table.at(i)).c_str());
            }
        }
    }
}

// One m for all clients, and the same block of m read for several blocks of o.
TEST(inputs_may_be_shared) {
    Table table({{6, 9}, {6, 9}});
    table.blocks[1].m_offset = table.blocks[0].m_offset;
    Device device;
    Random random(8);
    Floats m(1, 54);
    m.randomize(random);
    Floats o(3, table.o_length);
    int64_t bytes = 0;
    CHECK(fcm_newton_schulz_workspace(device, 3, table.blocks.data(), 2, Iteration(), &bytes, nullptr) == FCM_OK, "query");
    Vector<double> workspace(static_cast<size_t>(bytes / 8));
    const auto coefficients = muon();
    CHECK(fcm_newton_schulz(device, 3, table.blocks.data(), 2, Iteration(coefficients.data(), 5, 1.0), 0.0, m.data(), 0,
                            o.data(), o.stride(), nullptr, 0, workspace.data(), bytes, nullptr) == FCM_OK,
          "status");
    for (int64_t k = 0; k < 3; ++k) {
        for (const auto &block : table.blocks) {
            CHECK(std::memcmp(o[k] + block.o_offset, o[0] + table.blocks[0].o_offset, 54 * sizeof(float)) == 0,
                  "client %ld", long(k));
        }
    }
    CHECK(o[0][table.blocks[0].o_offset] != 0.0f, "nothing was written");
}

// More blocks than threads, with mixed costs: the order of execution must not affect the results.
TEST(many_blocks_keep_their_places) {
    std::vector<Shape> shapes;
    for (int64_t i = 0; i < 40; ++i) shapes.push_back({1 + i * 7 % 20, 1 + i * 11 % 30});
    const Table table(shapes);
    Call call(table, 4);
    Random random(9);
    call.randomize(random);
    Errors errors("forty small blocks", kMuonBound);
    compare(errors, call, muon());
}

// A table that is too long to be copied to a device in one piece.
TEST(thousands_of_blocks) {
    std::vector<Shape> shapes;
    for (int64_t i = 0; i < 2000; ++i) shapes.push_back({1 + i % 2, 1 + i % 3});
    const Table table(shapes);
    Call call(table, 1);
    Random random(10);
    call.randomize(random);
    Errors errors("two thousand tiny blocks", kMuonBound);
    compare(errors, call, muon());
}

TEST(empty_tables_and_matrices_do_nothing) {
    Device device;
    const auto coefficients = muon();
    Vector<float> o{1.0f, 2.0f, 3.0f, 4.0f};
    const Vector<float> before = o;
    int64_t bytes = -1;
    CHECK(fcm_newton_schulz_workspace(device, 0, nullptr, 0, Iteration(), &bytes, nullptr) == FCM_OK, "query");
    CHECK(bytes == 0, "%ld bytes for nothing", long(bytes));
    CHECK(fcm_newton_schulz(device, 3, nullptr, 0, Iteration(coefficients.data(), 5, 1.0), 1.0, nullptr, 0, o.data(), 0,
                            nullptr, 0, nullptr, 0, nullptr) == FCM_OK,
          "no blocks");
    const fcm_matrix_block block{2, 2, 0, 0, 0, 1.0, 0};
    CHECK(fcm_newton_schulz_workspace(device, 0, &block, 1, Iteration(), &bytes, nullptr) == FCM_OK, "query");
    Vector<double> workspace(static_cast<size_t>(bytes / 8));
    CHECK(fcm_newton_schulz(device, 0, &block, 1, Iteration(coefficients.data(), 5, 1.0), 1.0, nullptr, 0, o.data(), 4,
                            nullptr, 0, workspace.data(), bytes, nullptr) == FCM_OK,
          "no clients");
    const fcm_matrix_block flat[2] = {{0, 5, 0, 0, 0, 1.0, 0}, {5, 0, 0, 0, 0, 1.0, 0}};
    CHECK(fcm_newton_schulz_workspace(device, 2, flat, 2, Iteration(), &bytes, nullptr) == FCM_OK, "query");
    workspace.assign(static_cast<size_t>(bytes / 8), 0.0);
    CHECK(fcm_newton_schulz(device, 2, flat, 2, Iteration(coefficients.data(), 5, 1.0), 1.0, nullptr, 0, o.data(), 0, o.data(),
                            0, workspace.data(), bytes, nullptr) == FCM_OK,
          "matrices without elements");
    CHECK(o == before, "something was written");
}

namespace {

std::vector<uint32_t> bits_of(int32_t threads, int32_t isa) {
    Device device(threads, isa);
    const int64_t shapes[][2] = {{1, 1}, {1, 7}, {7, 1},     {4, 33},    {25, 6},   {16, 150}, {120, 256}, {256, 120},
                                 {10, 120}, {128, 128}, {127, 129}, {33, 47}, {65, 30}, {97, 111}, {131, 140}};
    std::vector<fcm_matrix_block> blocks;
    int64_t length = 0;
    for (const auto &[rows, cols] : shapes) {
        blocks.push_back({rows, cols, length, length, length, 0.5, rows == 97});
        length += rows * cols;
    }
    const double coefficients[] = {8.2, -23.5, 17.3, 4.1, -2.9, 0.54, 3.4445, -4.7750, 2.0315};
    Vector<float> m(static_cast<size_t>(5 * length)), o(m.size()), w(m.size());
    Random random(2);
    random.fill(m);
    random.fill(w);
    const auto count = static_cast<int64_t>(blocks.size());
    int64_t bytes = 0;
    const Iteration iteration(coefficients, 3, 1.02);
    CHECK(fcm_newton_schulz_workspace(device, 5, blocks.data(), count, iteration, &bytes, nullptr) == FCM_OK, "query");
    // the previous contents of a workspace must not matter either
    Vector<double> workspace(static_cast<size_t>(bytes / 8), threads == 1 ? 0.0 : double{kNaN});
    CHECK(fcm_newton_schulz(device, 5, blocks.data(), count, iteration, 0.1, m.data(), length, o.data(), length, w.data(),
                            length, workspace.data(), bytes, nullptr) == FCM_OK,
          "newton_schulz");
    std::vector<uint32_t> results(2 * o.size());
    std::memcpy(results.data(), o.data(), o.size() * sizeof(float));
    std::memcpy(results.data() + o.size(), w.data(), w.size() * sizeof(float));
    return results;
}

}  // namespace

// For any number of threads, and with every instruction set that has fused multiply-add.
TEST(newton_schulz_gives_the_same_bits) {
    std::map<int32_t, std::vector<uint32_t>> single;
    for (const int32_t isa : isas()) {
        single[isa] = bits_of(1, isa);
        for (const int32_t threads : {2, 4}) {
            CHECK(bits_of(threads, isa) == single[isa], "isa %d differs with %d threads", isa, threads);
        }
    }
    for (const int32_t isa : {FCM_ISA_AVX512, FCM_ISA_AVX512_BF16}) {
        if (single.count(isa) == 1 && single.count(FCM_ISA_AVX2) == 1) CHECK(single[isa] == single[FCM_ISA_AVX2], "avx2 and isa %d differ", isa);
    }
}
