// What must be refused is, with nothing written; what only looks alike is accepted.
#include <functional>

#include "support.h"

namespace {

constexpr int64_t kClients = 3;
constexpr int64_t kN = 8;
constexpr int64_t kD = 2;
constexpr int64_t kPiece = kOnDevice ? 4096 : 16384;  // elements that share one place of a workspace for sums
constexpr int64_t kMost = 5;  // operands an operation has at most

// One operand of an operation: `length` elements a client, or in all when it is not a batch (`strided` false).
struct Operand {
    const char *name;
    int64_t length;
    bool written;
    bool strided;
    int64_t element;  // bytes
    bool host = false;  // read there: on a device, memory of its own

    int64_t clients() const { return strided ? kClients : 1; }
    int64_t bytes() const { return clients() * length * element; }  // packed
};

Operand read(const char *name, int64_t length) { return {name, length, false, true, 4}; }
Operand write(const char *name, int64_t length) { return {name, length, true, true, 4}; }
Operand doubles(const char *name, int64_t length, bool written) { return {name, length, written, false, 8}; }
Operand on_the_host(const char *name, int64_t length) { return {name, length, false, false, 8, true}; }

// Where the operands lie and how far apart their pieces are.
struct Placement {
    char *at[kMost] = {};
    int64_t stride[kMost] = {};

    float *floats(int i) const { return reinterpret_cast<float *>(at[i]); }
    double *numbers(int i) const { return reinterpret_cast<double *>(at[i]); }
};

struct Operation {
    const char *function;
    std::vector<Operand> operands;
    std::function<fcm_status(fcm_context *, const Placement &, fcm_error *)> call;
    // output that may be exactly this input, -1 for none
    int in_place_output = -1;
    int in_place_input = -1;
};

const fcm_matrix_block kBlocks[2] = {{2, 3, 0, 0, 0, 1.0}, {1, 2, 6, 6, 6, 1.0}};
const double kCoefficients[3] = {1.5, -0.5, 0.0};

std::vector<Operation> operations(fcm_context *context) {
    const int64_t sums = kClients;  // one piece a client
    int64_t schulz = 0;
    CHECK(fcm_newton_schulz_small_workspace(context, kClients, kBlocks, 2, &schulz, nullptr) == FCM_OK, "query");
    return {
        {"fcm_ema", {read("x", kN), write("y", kN)}, [](fcm_context *c, const Placement &p, fcm_error *e) {
             return fcm_ema(c, kClients, kN, 0.5, p.floats(0), p.stride[0], p.floats(1), p.stride[1], e);
         }},
        {"fcm_compose_momentum", {read("h", kN * kD), read("v", kD), write("m", kN)},
         [](fcm_context *c, const Placement &p, fcm_error *e) {
             return fcm_compose_momentum(c, kClients, kN, kD, 0.5, p.floats(0), p.stride[0], p.floats(1), p.stride[1],
                                         p.floats(2), p.stride[2], e);
         }},
        {"fcm_storm",
         {read("g_new", kN), read("g_old", kN), write("h", kN), doubles("norms", kClients, true),
          doubles("workspace", sums, true)},
         [](fcm_context *c, const Placement &p, fcm_error *e) {
             return fcm_storm(c, kClients, kN, 0.5, p.floats(0), p.stride[0], p.floats(1), p.stride[1], p.floats(2),
                              p.stride[2], p.numbers(3), p.at[4], sums * 8, e);
         }},
        {"fcm_project_compose_momentum",
         {write("h", kN * kD), read("v", kD), write("m", kN), doubles("norms", kClients, false)},
         [](fcm_context *c, const Placement &p, fcm_error *e) {
             return fcm_project_compose_momentum(c, kClients, kN, kD, 1e-3, p.numbers(3), 0.5, p.floats(0), p.stride[0],
                                                 p.floats(1), p.stride[1], p.floats(2), p.stride[2], e);
         }},
        {"fcm_project", {write("x", kN), doubles("norms", kClients, false)},
         [](fcm_context *c, const Placement &p, fcm_error *e) {
             // two floats of the arena make a double of 1e-7 at least
             return fcm_project(c, kClients, kN, 1e-9, p.numbers(1), p.floats(0), p.stride[0], e);
         }},
        {"fcm_norm", {read("x", kN), doubles("norms", kClients, true), doubles("workspace", sums, true)},
         [](fcm_context *c, const Placement &p, fcm_error *e) {
             return fcm_norm(c, kClients, kN, p.floats(0), p.stride[0], p.numbers(1), p.at[2], sums * 8, e);
         }},
        {"fcm_vector_step", {read("m", kN), write("w", kN)}, [](fcm_context *c, const Placement &p, fcm_error *e) {
             return fcm_vector_step(c, kClients, kN, FCM_STEP_PLAIN, 0.5, p.floats(0), p.stride[0], p.floats(1),
                                    p.stride[1], nullptr, 0, e);
         }},
        {"fcm_vector_step", {read("m", kN), write("w", kN), doubles("workspace", sums, true)},
         [](fcm_context *c, const Placement &p, fcm_error *e) {
             return fcm_vector_step(c, kClients, kN, FCM_STEP_NORMALIZED, 0.5, p.floats(0), p.stride[0], p.floats(1),
                                    p.stride[1], p.at[2], sums * 8, e);
         }},
        {"fcm_adaptive_step", {read("delta", kN), write("m", kN), write("v", kN), write("w", kN)},
         [](fcm_context *c, const Placement &p, fcm_error *e) {
             return fcm_adaptive_step(c, kClients, kN, FCM_YOGI, 0.9, 0.99, 1e-3, 0.5, p.floats(0), p.stride[0],
                                      p.floats(1), p.stride[1], p.floats(2), p.stride[2], p.floats(3), p.stride[3], e);
         }},
        {"fcm_top_k", {read("x", kN), write("y", kN)},
         [](fcm_context *c, const Placement &p, fcm_error *e) {
             return fcm_top_k(c, kClients, kN, kN / 2, p.floats(0), p.stride[0], p.floats(1), p.stride[1], e);
         },
         1, 0},
        {"fcm_average", {write("x", kN), on_the_host("weights", kClients)},
         [](fcm_context *c, const Placement &p, fcm_error *e) {
             return fcm_average(c, kClients, kN, p.numbers(1), p.floats(0), p.stride[0], e);
         }},
        {"fcm_newton_schulz_small",
         {read("m", kN), write("o", kN), write("w", kN), doubles("workspace", schulz / 8, true)},
         [schulz](fcm_context *c, const Placement &p, fcm_error *e) {
             return fcm_newton_schulz_small(c, kClients, kBlocks, 2, kCoefficients, 1, 1.0, 0.5, p.floats(0),
                                            p.stride[0], p.floats(1), p.stride[1], p.floats(2), p.stride[2], p.at[3],
                                            schulz, e);
         },
         1, 0},
        {"fcm_triad", {{"b", kN, false, false, 4}, {"c", kN, false, false, 4}, {"a", kN, true, false, 4}},
         [](fcm_context *c, const Placement &p, fcm_error *e) {
             return fcm_triad(c, kN, 0.5f, p.floats(0), p.floats(1), p.floats(2), 0, e);
         }},
    };
}

// Memory full of numbers in (0, 1) that are sound both as floats and, two together, as doubles.
class Arena {
   public:
    Arena() : bytes_(1 << 17) {
        Random random(1);
        for (size_t i = 0; i < bytes_.size(); i += sizeof(float)) {
            const auto value = static_cast<float>(0.6 + 0.3 * random.uniform());
            std::memcpy(bytes_.data() + i, &value, sizeof value);
        }
        before_.assign(bytes_.begin(), bytes_.end());
        // vectors of char promise no alignment
        base_ = bytes_.data() + (-reinterpret_cast<uintptr_t>(bytes_.data()) & 63);
    }
    char *at(int64_t offset) { return base_ + offset; }
    bool untouched() const { return std::equal(bytes_.begin(), bytes_.end(), before_.begin(), before_.end()); }
    void restore() { std::copy(before_.begin(), before_.end(), bytes_.begin()); }

   private:
    Vector<char> bytes_;
    std::vector<char> before_;
    char *base_ = nullptr;
};

// All operands packed and far from each other.
Placement apart(const Operation &operation, Arena &arena) {
    Placement p;
    for (size_t i = 0; i < operation.operands.size(); ++i) {
        p.at[i] = arena.at(static_cast<int64_t>(i + 1) * 16384);
        p.stride[i] = operation.operands[i].length;
    }
    return p;
}

std::vector<char> results(const Operation &operation, const Placement &p) {
    std::vector<char> all;
    for (size_t i = 0; i < operation.operands.size(); ++i) {
        const Operand &o = operation.operands[i];
        // what a workspace holds is nobody's business
        if (!o.written || std::strcmp(o.name, "workspace") == 0) continue;
        for (int64_t k = 0; k < o.clients(); ++k) {
            const char *piece = p.at[i] + k * p.stride[i] * o.element;
            all.insert(all.end(), piece, piece + o.length * o.element);
        }
    }
    return all;
}

}  // namespace

// Every operand that is written against every other one: the same place, and an overlap of one element at either end.
// Inputs may share memory; so may neighbours that only touch.
TEST(overlapping_operands_are_refused) {
    Device device(2);
    for (const Operation &operation : operations(device)) {
        Arena arena;
        const auto &operands = operation.operands;
        const Placement packed = apart(operation, arena);
        fcm_error error{};
        CHECK(operation.call(device, packed, &error) == FCM_OK, "%s: %s", operation.function, error.message);
        CHECK(!arena.untouched(), "%s did nothing", operation.function);
        arena.restore();
        for (size_t i = 0; i < operands.size(); ++i) {
            for (size_t j = 0; j < operands.size(); ++j) {
                if (i == j) continue;
                const int64_t element = std::max(operands[i].element, operands[j].element);
                const struct {
                    const char *what;
                    char *at;
                    bool overlaps;
                } placings[] = {
                    {"at the same place", packed.at[i], true},
                    {"on the last element", packed.at[i] + operands[i].bytes() - element, true},
                    {"on the first element", packed.at[i] - operands[j].bytes() + element, true},
                    {"right behind", packed.at[i] + operands[i].bytes(), false},
                    {"right before", packed.at[i] - operands[j].bytes(), false},
                };
                for (const auto &placing : placings) {
                    Placement p = packed;
                    p.at[j] = placing.at;
                    char words[96];
                    std::snprintf(words, sizeof words, "%s %s of %s", operands[j].name, placing.what, operands[i].name);
                    const bool in_place = placing.at == packed.at[i] && operation.in_place_output >= 0 &&
                                          std::min(i, j) == size_t(operation.in_place_input) &&
                                          std::max(i, j) == size_t(operation.in_place_output);
                    const bool elsewhere = kOnDevice && operands[i].host != operands[j].host;
                    if (placing.overlaps && (operands[i].written || operands[j].written) && !in_place && !elsewhere) {
                        refused(FCM_INVALID_ARGUMENT, operation.function, words,
                                [&](fcm_error *e) { return operation.call(device, p, e); });
                        CHECK(arena.untouched(), "%s, %s: something was written", operation.function, words);
                    } else {
                        CHECK(operation.call(device, p, &error) == FCM_OK, "%s, %s: %s", operation.function, words,
                              error.message);
                    }
                    arena.restore();
                }
            }
        }
    }
}

// A client's operands side by side, then the next client's: the hulls overlap, the pieces do not. With a period one
// element too short, the last operand of a client runs into the first of the next.
TEST(interleaved_operands_are_told_apart) {
    Device device(2);
    for (const Operation &operation : operations(device)) {
        Arena arena;
        const auto &operands = operation.operands;
        const Placement packed = apart(operation, arena);
        std::vector<size_t> batches;
        for (size_t i = 0; i < operands.size(); ++i) {
            if (operands[i].strided) batches.push_back(i);
        }
        if (batches.size() < 2) continue;
        CHECK(operation.call(device, packed, nullptr) == FCM_OK, "%s", operation.function);
        const auto expected = results(operation, packed);
        arena.restore();
        for (size_t turn = 0; turn < batches.size(); ++turn) {
            std::rotate(batches.begin(), batches.begin() + 1, batches.end());
            int64_t period = 0;
            Placement p = packed;
            for (const size_t i : batches) {
                p.at[i] = arena.at(8192 + period * 4);
                period += operands[i].length;
            }
            for (const size_t i : batches) {
                p.stride[i] = period;
                for (int64_t k = 0; k < kClients; ++k) {
                    std::memcpy(p.at[i] + k * period * 4, packed.at[i] + k * packed.stride[i] * 4,
                                size_t(operands[i].length) * 4);
                }
            }
            fcm_error error{};
            CHECK(operation.call(device, p, &error) == FCM_OK, "%s, turn %zu: %s", operation.function, turn,
                  error.message);
            CHECK(results(operation, p) == expected, "%s, turn %zu: another result", operation.function, turn);
            arena.restore();

            for (const size_t i : batches) p.stride[i] = period - 1;
            if (operands[batches.front()].written || operands[batches.back()].written) {
                refused(FCM_INVALID_ARGUMENT, operation.function, "a period one too short",
                        [&](fcm_error *e) { return operation.call(device, p, e); });
                CHECK(arena.untouched(), "%s: something was written", operation.function);
            }
            arena.restore();
        }
    }
}

TEST(different_strides_collide_or_not) {
    Device device;
    Vector<float> memory(64, 1.0f);
    const auto ema = [&](int64_t x, int64_t x_stride, int64_t y, int64_t y_stride, fcm_error *e) {
        return fcm_ema(device, 3, 2, 0.5, memory.data() + x, x_stride, memory.data() + y, y_stride, e);
    };
    // x: 0 1, 6 7, 12 13
    CHECK(ema(0, 6, 2, 7, nullptr) == FCM_OK, "y: 2 3, 9 10, 16 17");
    CHECK(ema(0, 6, 2, 12, nullptr) == FCM_OK, "y: 2 3, 14 15, 26 27");
    CHECK(ema(0, 6, 2, 2, nullptr) == FCM_INVALID_ARGUMENT, "y: 2 3, 4 5, 6 7");
    CHECK(ema(0, 6, 2, 4, nullptr) == FCM_INVALID_ARGUMENT, "y: 2 3, 6 7, 10 11");
    CHECK(ema(0, 6, 3, 5, nullptr) == FCM_INVALID_ARGUMENT, "y: 3 4, 8 9, 13 14");
    CHECK(ema(8, 6, 0, 7, nullptr) == FCM_INVALID_ARGUMENT, "x: 8 9, 14 15, 20 21; y: 0 1, 7 8, 14 15");
    CHECK(ema(2, 8, 0, 7, nullptr) == FCM_OK, "x: 2 3, 10 11, 18 19; y: 0 1, 7 8, 14 15");
    // x is one pair for all
    CHECK(ema(4, 0, 0, 6, nullptr) == FCM_OK, "y: 0 1, 6 7, 12 13 around 4 5");
    CHECK(ema(5, 0, 0, 6, nullptr) == FCM_INVALID_ARGUMENT, "y: 0 1, 6 7, 12 13 and 5 6");
    CHECK(ema(13, 0, 0, 6, nullptr) == FCM_INVALID_ARGUMENT, "y: 0 1, 6 7, 12 13 and 13 14");
}

// The stride of a single client means nothing, so it must neither hide an overlap nor overflow.
TEST(the_stride_of_one_client_does_not_matter) {
    Device device;
    Vector<float> memory(32, 1.0f);
    for (const int64_t stride : {int64_t{0}, int64_t{1}, int64_t{3}, int64_t{10}, INT64_MAX / 4, INT64_MAX}) {
        const auto ema = [&](int64_t x, int64_t y, int64_t y_stride, fcm_error *e) {
            return fcm_ema(device, 1, 10, 0.5, memory.data() + x, stride, memory.data() + y, y_stride, e);
        };
        for (const int64_t y_stride : {int64_t{10}, stride}) {
            for (const int64_t shift : {1, 5, 9}) {
                char words[80];
                std::snprintf(words, sizeof words, "strides %ld and %ld, %ld apart", long(stride), long(y_stride),
                              long(shift));
                refused(FCM_INVALID_ARGUMENT, "fcm_ema", words,
                        [&](fcm_error *e) { return ema(0, shift, y_stride, e); });
                refused(FCM_INVALID_ARGUMENT, "fcm_ema", words,
                        [&](fcm_error *e) { return ema(shift, 0, y_stride, e); });
            }
        }
        CHECK(ema(0, 10, 10, nullptr) == FCM_OK, "stride %ld", long(stride));
        CHECK(ema(10, 0, 10, nullptr) == FCM_OK, "stride %ld", long(stride));
    }
}

TEST(newton_schulz_blocks_must_not_collide) {
    Device device;
    Vector<float> m(64, 1.0f), o(64, 2.0f), w(64, 3.0f);
    const auto o_before = o;
    const auto w_before = w;
    Vector<double> workspace(1 << 12);
    const auto run = [&](const std::vector<fcm_matrix_block> &blocks, float *out, int64_t out_stride, float *weights,
                         fcm_error *e) {
        return fcm_newton_schulz_small(device, 2, blocks.data(), int64_t(blocks.size()), kCoefficients, 1, 1.0, 0.5,
                                       m.data(), 16, out, out_stride, weights, 16, workspace.data(),
                                       int64_t(workspace.size() * 8), e);
    };
    const auto refuse = [&](const char *what, const std::vector<fcm_matrix_block> &blocks, float *out,
                            int64_t out_stride, float *weights) {
        refused(FCM_INVALID_ARGUMENT, "fcm_newton_schulz_small", what,
                [&](fcm_error *e) { return run(blocks, out, out_stride, weights, e); });
        CHECK(o == o_before && w == w_before && m == Vector<float>(64, 1.0f), "%s: something was written", what);
    };
    const std::vector<fcm_matrix_block> good = {{2, 3, 0, 0, 0, 1.0}, {2, 2, 6, 6, 6, 1.0}};
    auto blocks = good;
    blocks[1].o_offset = 5;
    refuse("blocks that share an element of o", blocks, o.data(), 16, nullptr);
    CHECK(run(blocks, nullptr, 0, w.data(), nullptr) == FCM_OK, "offsets in o are not read without o");
    w = w_before;
    blocks = good;
    blocks[1].w_offset = 5;
    refuse("blocks that share an element of w", blocks, o.data(), 16, w.data());
    CHECK(run(blocks, o.data(), 16, nullptr, nullptr) == FCM_OK, "offsets in w are not read without w");
    o = o_before;
    blocks = good;
    blocks[1].m_offset = blocks[1].o_offset = 5;
    refuse("blocks that share an element in place", blocks, m.data(), 16, nullptr);
    blocks = good;
    blocks[0].o_offset = 10;
    refuse("in place with another offset", blocks, m.data(), 16, nullptr);
    refuse("in place with another stride", good, m.data(), 17, nullptr);
    refuse("a stride shorter than the blocks reach", {{2, 3, 0, 11, 0, 1.0}}, o.data(), 16, nullptr);
    refuse("neither o nor w", good, nullptr, 0, nullptr);
    for (const int64_t offset : {int64_t{-1}, INT64_MIN, INT64_MAX, INT64_MAX - 5}) {
        blocks = good;
        blocks[0].m_offset = offset;
        refuse("a bad offset in m", blocks, o.data(), 16, nullptr);
        blocks = good;
        blocks[1].o_offset = offset;
        refuse("a bad offset in o", blocks, o.data(), 16, nullptr);
        blocks = good;
        blocks[1].w_offset = offset;
        refuse("a bad offset in w", blocks, nullptr, 0, w.data());
    }
    blocks = good;
    blocks[0].scale = double{kNaN};
    refuse("a scale of NaN", blocks, o.data(), 16, w.data());
    const std::pair<int64_t, int64_t> shapes[] = {{-1, 3}, {3, -1}, {129, 129}, {129, 1000}, {1000, 129}};
    for (const auto &[rows, cols] : shapes) {
        refuse("a bad shape", {{rows, cols, 0, 0, 0, 1.0}}, o.data(), 16, nullptr);
    }
}

TEST(bad_numbers_are_refused) {
    Device device;
    Vector<float> x(32, 1.0f), y(32, 1.0f), z(32, 1.0f);
    Vector<double> norms(4, 1.0), workspace(4096);
    const auto y_before = y;
    const auto refuse = [&](const char *function, const char *what, auto call) {
        refused(FCM_INVALID_ARGUMENT, function, what, call);
        CHECK(y == y_before && z == y_before, "%s, %s: something was written", function, what);
    };
    const double nan = double{kNaN};
    const double inf = double{kInf};
    for (const double a : {-0.1, 1.1, nan, inf, -inf}) {
        char words[32];
        std::snprintf(words, sizeof words, "factor %g", a);
        refuse("fcm_ema", words, [&](fcm_error *e) { return fcm_ema(device, 2, 8, a, x.data(), 8, y.data(), 8, e); });
        refuse("fcm_compose_momentum", words, [&](fcm_error *e) {
            return fcm_compose_momentum(device, 2, 8, 1, a, x.data(), 8, x.data(), 8, y.data(), 8, e);
        });
        refuse("fcm_storm", words, [&](fcm_error *e) {
            return fcm_storm(device, 2, 8, a, x.data(), 8, x.data(), 8, y.data(), 8, norms.data(), workspace.data(),
                             16, e);
        });
        refuse("fcm_project_compose_momentum", words, [&](fcm_error *e) {
            return fcm_project_compose_momentum(device, 2, 8, 1, 1.0, norms.data(), a, z.data(), 8, x.data(), 8,
                                                y.data(), 8, e);
        });
    }
    for (const double radius : {0.0, -1.0, nan, -inf}) {
        refuse("fcm_project_compose_momentum", "a bad radius", [&](fcm_error *e) {
            return fcm_project_compose_momentum(device, 2, 8, 1, radius, norms.data(), 0.5, z.data(), 8, x.data(), 8,
                                                y.data(), 8, e);
        });
    }
    for (const double radius : {0.0, -1.0, nan, -inf}) {
        refuse("fcm_project", "a bad radius",
               [&](fcm_error *e) { return fcm_project(device, 2, 8, radius, norms.data(), y.data(), 8, e); });
    }
    const auto adaptive = [&](int32_t rule, double beta1, double beta2, double epsilon, double eta) {
        return [=, &device, &x, &y, &z](fcm_error *e) {
            return fcm_adaptive_step(device, 2, 4, rule, beta1, beta2, epsilon, eta, x.data(), 8, y.data(), 4, z.data(), 4,
                                     z.data() + 16, 4, e);
        };
    };
    for (const int32_t rule : {-1, 2}) refuse("fcm_adaptive_step", "a bad rule", adaptive(rule, 0.9, 0.99, 1e-3, 0.5));
    for (const double beta : {-0.1, 1.0, 1.1, nan, inf, -inf}) {
        refuse("fcm_adaptive_step", "a bad beta1", adaptive(FCM_ADAM, beta, 0.99, 1e-3, 0.5));
        refuse("fcm_adaptive_step", "a bad beta2", adaptive(FCM_YOGI, 0.9, beta, 1e-3, 0.5));
    }
    for (const double epsilon : {0.0, -1e-3, nan, inf, -inf}) {
        refuse("fcm_adaptive_step", "a bad epsilon", adaptive(FCM_ADAM, 0.9, 0.99, epsilon, 0.5));
    }
    for (const double eta : {nan, inf, -inf}) {
        refuse("fcm_adaptive_step", "a bad eta", adaptive(FCM_YOGI, 0.9, 0.99, 1e-3, eta));
    }
    for (const int64_t k : {int64_t{-1}, int64_t{9}, INT64_MAX, INT64_MIN}) {
        refuse("fcm_top_k", "a bad k",
               [&](fcm_error *e) { return fcm_top_k(device, 2, 8, k, x.data(), 8, y.data(), 8, e); });
    }
    refuse("fcm_top_k", "in place with another stride",
           [&](fcm_error *e) { return fcm_top_k(device, 2, 8, 3, y.data(), 8, y.data(), 9, e); });
    refuse("fcm_top_k", "in place with no stride",
           [&](fcm_error *e) { return fcm_top_k(device, 2, 8, 3, y.data(), 0, y.data(), 0, e); });
    for (const int64_t d : {int64_t{0}, int64_t{-1}, INT64_MIN}) {
        refuse("fcm_compose_momentum", "a bad d", [&](fcm_error *e) {
            return fcm_compose_momentum(device, 2, 8, d, 0.5, x.data(), 8, x.data(), 8, y.data(), 8, e);
        });
        refuse("fcm_project_compose_momentum", "a bad d", [&](fcm_error *e) {
            return fcm_project_compose_momentum(device, 2, 8, d, 1.0, norms.data(), 0.5, z.data(), 8, x.data(), 8,
                                                y.data(), 8, e);
        });
    }
    for (const int32_t rule : {-1, 2}) {
        refuse("fcm_vector_step", "a bad rule", [&](fcm_error *e) {
            return fcm_vector_step(device, 2, 8, rule, 0.5, x.data(), 8, y.data(), 8, workspace.data(), 16, e);
        });
    }
    for (const double eta : {nan, inf, -inf}) {
        refuse("fcm_vector_step", "a bad eta", [&](fcm_error *e) {
            return fcm_vector_step(device, 2, 8, FCM_STEP_PLAIN, eta, x.data(), 8, y.data(), 8, nullptr, 0, e);
        });
    }
    for (const auto &bad : {std::vector<double>{1.0, -1.0}, {0.0, 0.0}, {1.0, nan}, {inf, 1.0}, {1.7e308, 1.7e308}}) {
        refuse("fcm_average", "bad weights",
               [&](fcm_error *e) { return fcm_average(device, 2, 8, bad.data(), y.data(), 8, e); });
    }
    const fcm_matrix_block block{2, 4, 0, 0, 0, 1.0};
    const auto schulz = [&](const double *coefficients, int64_t steps, double divisor, double eta) {
        return [=, &device, &x, &y, &workspace](fcm_error *e) {
            return fcm_newton_schulz_small(device, 2, &block, 1, coefficients, steps, divisor, eta, x.data(), 8,
                                           y.data(), 8, nullptr, 0, workspace.data(), int64_t(workspace.size() * 8), e);
        };
    };
    const double bad_coefficients[3] = {1.0, nan, 0.0};
    refuse("fcm_newton_schulz_small", "a coefficient of NaN", schulz(bad_coefficients, 1, 1.0, 0.5));
    refuse("fcm_newton_schulz_small", "no coefficients", schulz(nullptr, 1, 1.0, 0.5));
    refuse("fcm_newton_schulz_small", "-1 step", schulz(kCoefficients, -1, 1.0, 0.5));
    refuse("fcm_newton_schulz_small", "INT64_MAX steps", schulz(kCoefficients, INT64_MAX, 1.0, 0.5));
    for (const double divisor : {0.0, -1.0, nan, inf}) {
        refuse("fcm_newton_schulz_small", "a bad divisor", schulz(kCoefficients, 1, divisor, 0.5));
    }
    refuse("fcm_newton_schulz_small", "an eta of NaN", schulz(kCoefficients, 1, 1.0, nan));
    CHECK(schulz(kCoefficients, 1, 1.0, 0.5)(nullptr) == FCM_OK, "the call that the refusals vary");
    CHECK(adaptive(FCM_YOGI, 0.0, 0.0, 1e-300, 0.0)(nullptr) == FCM_OK, "the bounds themselves");
}

// Every pointer of every operation in turn: null, and off its type's alignment.
TEST(null_and_misaligned_operands_are_refused) {
    Device device(2);
    for (const Operation &operation : operations(device)) {
        Arena arena;
        const Placement packed = apart(operation, arena);
        refused(FCM_INVALID_ARGUMENT, operation.function, "null context",
                [&](fcm_error *e) { return operation.call(nullptr, packed, e); });
        for (size_t i = 0; i < operation.operands.size(); ++i) {
            const Operand &operand = operation.operands[i];
            // uniform weights, and o or w of Newton-Schulz, may be null
            const bool optional = std::strcmp(operand.name, "weights") == 0 ||
                                  (std::strcmp(operation.function, "fcm_newton_schulz_small") == 0 &&
                                   operand.written && operand.strided);
            Placement p = packed;
            if (!optional) {
                p.at[i] = nullptr;
                refused(FCM_INVALID_ARGUMENT, operation.function, operand.name,
                        [&](fcm_error *e) { return operation.call(device, p, e); });
            }
            p.at[i] = packed.at[i] + operand.element / 2;
            refused(FCM_INVALID_ARGUMENT, operation.function, operand.name,
                    [&](fcm_error *e) { return operation.call(device, p, e); });
            if (operand.strided) {
                p = packed;
                for (const int64_t stride : {operand.length - 1, int64_t{1}, int64_t{-1}, -operand.length, INT64_MIN}) {
                    if (operand.length == 1 && stride >= 0) continue;
                    p.stride[i] = stride;
                    refused(FCM_INVALID_ARGUMENT, operation.function, operand.name,
                            [&](fcm_error *e) { return operation.call(device, p, e); });
                }
                p.stride[i] = 0;
                if (operand.written) {
                    refused(FCM_INVALID_ARGUMENT, operation.function, operand.name,
                            [&](fcm_error *e) { return operation.call(device, p, e); });
                }
            }
            CHECK(arena.untouched(), "%s, %s: something was written", operation.function, operand.name);
        }
    }
    float x = 1.0f;
    int64_t place = 0;
    for (const auto &[client, index] : {std::pair<int64_t *, int64_t *>{nullptr, &place}, {&place, nullptr}}) {
        refused(FCM_INVALID_ARGUMENT, "fcm_all_finite", "null answer",
                [&, c = client, i = index](fcm_error *e) { return fcm_all_finite(device, 1, 1, &x, 1, c, i, e); });
    }
    refused(FCM_INVALID_ARGUMENT, "fcm_all_finite", "null x",
            [&](fcm_error *e) { return fcm_all_finite(device, 1, 1, nullptr, 1, &place, &place, e); });
    refused(FCM_INVALID_ARGUMENT, "fcm_all_finite", "null context",
            [&](fcm_error *e) { return fcm_all_finite(nullptr, 1, 1, &x, 1, &place, &place, e); });
    refused(FCM_INVALID_ARGUMENT, "fcm_sum_workspace", "null answer",
            [&](fcm_error *e) { return fcm_sum_workspace(device, 1, 1, nullptr, e); });
    refused(FCM_INVALID_ARGUMENT, "fcm_sum_workspace", "null context",
            [&](fcm_error *e) { return fcm_sum_workspace(nullptr, 1, 1, &place, e); });
    refused(FCM_INVALID_ARGUMENT, "fcm_newton_schulz_small_workspace", "null answer",
            [&](fcm_error *e) { return fcm_newton_schulz_small_workspace(device, 1, kBlocks, 2, nullptr, e); });
    refused(FCM_INVALID_ARGUMENT, "fcm_newton_schulz_small_workspace", "null table",
            [&](fcm_error *e) { return fcm_newton_schulz_small_workspace(device, 1, nullptr, 2, &place, e); });
    refused(FCM_INVALID_ARGUMENT, "fcm_newton_schulz_small_workspace", "null context",
            [&](fcm_error *e) { return fcm_newton_schulz_small_workspace(nullptr, 1, kBlocks, 2, &place, e); });
}

// ---- Sizes ----------------------------------------------------------------------------------------------------

// Operands are a few floats: a size that is believed instead of refused would run off their end.
TEST(sizes_beyond_the_address_space_are_refused) {
    Device device(2);
    alignas(64) float x[16] = {};
    alignas(64) float y[16] = {};
    alignas(64) float z[16] = {};
    alignas(64) float u[16] = {};
    alignas(64) double norms[16] = {};
    alignas(64) double workspace[16] = {};
    struct Size {
        int64_t clients;
        int64_t n;
        int64_t stride;
    };
    constexpr int64_t k32 = int64_t{1} << 32;
    constexpr int64_t k61 = int64_t{1} << 61;
    constexpr int64_t k62 = int64_t{1} << 62;
    const Size sizes[] = {
        {3, k62, k62},                          // 3 n overflows
        {3, 4, k61},                            // 2 strides of bytes overflow
        {2, INT64_MAX, INT64_MAX},
        {1, INT64_MAX, INT64_MAX},
        {1, k62, k62},                          // n fits, its bytes do not
        {1, k61, k61},                          // its bytes are 2^63, one too many
        {INT64_MAX, 1, 1},
        {INT64_MAX, INT64_MAX, INT64_MAX},
        {k32, 1, k32 / 2},                      // as int32 there are no clients
        {2, k32 + 1, 1},                        // as int32 there is one element, and the stride suffices
        {2, k32 + 1, k32},
        {2, 4, k32 + 4 - k32 * 2},              // as int32 the stride is 4
        {-1, 4, 4},
        {2, -1, 4},
        {INT64_MIN, 4, 4},
        {2, INT64_MIN, 4},
    };
    for (const auto &[clients, n, stride] : sizes) {
        char words[96];
        std::snprintf(words, sizeof words, "clients %ld, n %ld, stride %ld", long(clients), long(n), long(stride));
        const int64_t c = clients;
        const int64_t l = n;
        const int64_t s = stride;
        refused(FCM_INVALID_ARGUMENT, "fcm_ema", words,
                [&](fcm_error *e) { return fcm_ema(device, c, l, 0.5, x, s, y, s, e); });
        refused(FCM_INVALID_ARGUMENT, "fcm_compose_momentum", words,
                [&](fcm_error *e) { return fcm_compose_momentum(device, c, l, 1, 0.5, x, s, z, 0, y, s, e); });
        refused(FCM_INVALID_ARGUMENT, "fcm_storm", words, [&](fcm_error *e) {
            return fcm_storm(device, c, l, 0.5, x, s, z, s, y, s, norms, workspace, INT64_MAX, e);
        });
        refused(FCM_INVALID_ARGUMENT, "fcm_project_compose_momentum", words, [&](fcm_error *e) {
            return fcm_project_compose_momentum(device, c, l, 1, 1.0, norms, 0.5, x, s, z, 0, y, s, e);
        });
        refused(FCM_INVALID_ARGUMENT, "fcm_norm", words,
                [&](fcm_error *e) { return fcm_norm(device, c, l, x, s, norms, workspace, INT64_MAX, e); });
        refused(FCM_INVALID_ARGUMENT, "fcm_project", words,
                [&](fcm_error *e) { return fcm_project(device, c, l, 1.0, norms, x, s, e); });
        refused(FCM_INVALID_ARGUMENT, "fcm_adaptive_step", words, [&](fcm_error *e) {
            return fcm_adaptive_step(device, c, l, FCM_ADAM, 0.9, 0.99, 1e-3, 0.5, z, s, x, s, y, s, u, s, e);
        });
        for (const int64_t k : {int64_t{0}, l}) {
            refused(FCM_INVALID_ARGUMENT, "fcm_top_k", words,
                    [&](fcm_error *e) { return fcm_top_k(device, c, l, k, x, s, y, s, e); });
        }
        for (const int32_t rule : {FCM_STEP_PLAIN, FCM_STEP_NORMALIZED}) {
            refused(FCM_INVALID_ARGUMENT, "fcm_vector_step", words, [&](fcm_error *e) {
                return fcm_vector_step(device, c, l, rule, 0.5, x, s, y, s, workspace, INT64_MAX, e);
            });
        }
        refused(FCM_INVALID_ARGUMENT, "fcm_average", words,
                [&](fcm_error *e) { return fcm_average(device, c, l, nullptr, x, s, e); });
        int64_t client = 0;
        int64_t index = 0;
        refused(FCM_INVALID_ARGUMENT, "fcm_all_finite", words,
                [&](fcm_error *e) { return fcm_all_finite(device, c, l, x, s, &client, &index, e); });
    }
    for (const int64_t n : {k61, k62, INT64_MAX, int64_t{-1}}) {
        refused(FCM_INVALID_ARGUMENT, "fcm_triad", "n",
                [&](fcm_error *e) { return fcm_triad(device, n, 0.5f, x, z, y, 0, e); });
    }
    const std::pair<int64_t, int64_t> products[] = {{k62, 4}, {4, k62}, {k32, k32}, {INT64_MAX, 2}, {2, INT64_MAX}};
    for (const auto &[n, d] : products) {
        char words[64];
        std::snprintf(words, sizeof words, "n %ld, d %ld", long(n), long(d));
        const int64_t l = n;
        const int64_t factors = d;
        refused(FCM_INVALID_ARGUMENT, "fcm_compose_momentum", words,
                [&](fcm_error *e) { return fcm_compose_momentum(device, 1, l, factors, 0.5, x, 0, z, 0, y, l, e); });
        refused(FCM_INVALID_ARGUMENT, "fcm_project_compose_momentum", words, [&](fcm_error *e) {
            return fcm_project_compose_momentum(device, 1, l, factors, 1.0, norms, 0.5, x, l, z, 0, y, l, e);
        });
    }
    for (int i = 0; i < 16; ++i) {
        CHECK(x[i] == 0.0f && y[i] == 0.0f && z[i] == 0.0f && u[i] == 0.0f && norms[i] == 0.0,
              "element %d was written", i);
    }
}

// One vector for all clients spans little memory, however many clients there are; clients times n still has to fit.
TEST(a_broadcast_of_too_many_clients_is_refused) {
    Device device(2);
    const float x[4] = {1.0f, 1.0f, 1.0f, 1.0f};
    int64_t client = -7;
    int64_t index = -7;
    refused(FCM_INVALID_ARGUMENT, "fcm_all_finite", "2^62 clients of 4",
            [&](fcm_error *e) { return fcm_all_finite(device, int64_t{1} << 62, 4, x, 0, &client, &index, e); });
    CHECK(client == -7 && index == -7, "the answer was written");
}

TEST(workspace_queries) {
    Device device(2);
    int64_t bytes = -7;
    const auto sums = [&](int64_t clients, int64_t n) {
        return fcm_sum_workspace(device, clients, n, &bytes, nullptr) == FCM_OK ? bytes : -1;
    };
    // one double a piece, also where int32 would not do
    CHECK(sums(1, 1) == 8 && sums(3, kPiece) == 24 && sums(3, kPiece + 1) == 48, "small");
    CHECK(sums(int64_t{1} << 32, 1) == int64_t{8} << 32, "2^32 clients: %ld", long(bytes));
    CHECK(sums(1, int64_t{1} << 50) == (int64_t{8} << 50) / kPiece, "2^50 elements: %ld", long(bytes));
    CHECK(sums(1, INT64_MAX) == 8 * (INT64_MAX / kPiece + 1), "INT64_MAX elements: %ld", long(bytes));
    const std::pair<int64_t, int64_t> bad[] = {{INT64_MAX, INT64_MAX}, {int64_t{1} << 60, 1}, {-1, 1}, {1, -1},
                                               {int64_t{1} << 32, int64_t{1} << 62}, {INT64_MIN, INT64_MIN}};
    bytes = -7;
    for (const auto &[clients, n] : bad) {
        refused(FCM_INVALID_ARGUMENT, "fcm_sum_workspace", "a bad size",
                [&, c = clients, l = n](fcm_error *e) { return fcm_sum_workspace(device, c, l, &bytes, e); });
    }
    const auto refuse = [&](const char *what, int64_t clients, const fcm_matrix_block &block) {
        refused(FCM_INVALID_ARGUMENT, "fcm_newton_schulz_small_workspace", what,
                [&](fcm_error *e) { return fcm_newton_schulz_small_workspace(device, clients, &block, 1, &bytes, e); });
        float m[4] = {};
        float o[4] = {};
        double workspace[4] = {};
        refused(FCM_INVALID_ARGUMENT, "fcm_newton_schulz_small", what, [&](fcm_error *e) {
            return fcm_newton_schulz_small(device, clients, &block, 1, kCoefficients, 1, 1.0, 0.5, m, INT64_MAX, o,
                                           INT64_MAX, nullptr, 0, workspace, INT64_MAX, e);
        });
    };
    constexpr int64_t k62 = int64_t{1} << 62;
    refuse("rows x cols overflows", 1, {4, k62, 0, 0, 0, 1.0});
    refuse("rows x cols overflows", 1, {INT64_MAX, 2, 0, 0, 0, 1.0});
    refuse("the long side is too long", 1, {1, k62, 0, 0, 0, 1.0});
    refuse("the long side is too long", 1, {INT64_MAX, 1, 0, 0, 0, 1.0});
    refuse("as int32, 0 x 0", 1, {int64_t{1} << 32, int64_t{1} << 32, 0, 0, 0, 1.0});
    refuse("too many clients", INT64_MAX, {2, 2, 0, 0, 0, 1.0});
    refuse("-1 client", -1, {2, 2, 0, 0, 0, 1.0});
    refuse("a long side of 129 on the short one", 1, {129, 129, 0, 0, 0, 1.0});
    refused(FCM_INVALID_ARGUMENT, "fcm_newton_schulz_small_workspace", "-1 block",
            [&](fcm_error *e) { return fcm_newton_schulz_small_workspace(device, 1, kBlocks, -1, &bytes, e); });
    CHECK(bytes == -7, "a refused query wrote %ld", long(bytes));
}

TEST(a_workspace_one_byte_too_small_is_refused) {
    Device device(2);
    constexpr int64_t kLong = 20000;
    Floats x(2, kLong), y(2, kLong), z(2, kLong);
    const auto before = y.fill(1.0f).values();
    x.fill(1.0f);
    z.fill(1.0f);
    Doubles norms(1, 2);
    const auto norms_before = norms.fill(7.0).values();
    int64_t bytes = 0;
    CHECK(fcm_sum_workspace(device, 2, kLong, &bytes, nullptr) == FCM_OK && bytes == 16 * (kLong / kPiece + 1), "%ld bytes",
          long(bytes));
    Vector<double> workspace(static_cast<size_t>(bytes / 8));
    for (const int64_t given : {bytes - 1, int64_t{0}, int64_t{-1}, INT64_MIN}) {
        refused(FCM_INVALID_ARGUMENT, "fcm_storm", "workspace", [&](fcm_error *e) {
            return fcm_storm(device, 2, kLong, 0.5, x.data(), kLong, z.data(), kLong, y.data(), kLong, norms.data(),
                             workspace.data(), given, e);
        });
        refused(FCM_INVALID_ARGUMENT, "fcm_norm", "workspace", [&](fcm_error *e) {
            return fcm_norm(device, 2, kLong, x.data(), kLong, norms.data(), workspace.data(), given, e);
        });
        refused(FCM_INVALID_ARGUMENT, "fcm_vector_step", "workspace", [&](fcm_error *e) {
            return fcm_vector_step(device, 2, kLong, FCM_STEP_NORMALIZED, 0.5, x.data(), kLong, y.data(), kLong,
                                   workspace.data(), given, e);
        });
    }
    // a table whose blocks differ, so that the room for the largest is what counts
    const fcm_matrix_block blocks[] = {{2, 3, 0, 0, 0, 1.0}, {100, 120, 6, 6, 6, 1.0},
                                       {5, 1, 12006, 12006, 12006, 1.0}};
    CHECK(fcm_newton_schulz_small_workspace(device, 2, blocks, 3, &bytes, nullptr) == FCM_OK, "query");
    Vector<double> room(static_cast<size_t>(bytes / 8));
    refused(FCM_INVALID_ARGUMENT, "fcm_newton_schulz_small", "workspace", [&](fcm_error *e) {
        return fcm_newton_schulz_small(device, 2, blocks, 3, kCoefficients, 1, 1.0, 0.5, x.data(), kLong, y.data(),
                                       kLong, nullptr, 0, room.data(), bytes - 1, e);
    });
    CHECK(y.is(before) && norms.is(norms_before), "something was written");
    CHECK(fcm_newton_schulz_small(device, 2, blocks, 3, kCoefficients, 1, 1.0, 0.5, x.data(), kLong, y.data(), kLong,
                                  nullptr, 0, room.data(), bytes, nullptr) == FCM_OK,
          "exactly enough");
}
