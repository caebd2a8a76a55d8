// Arguments that single operations must refuse beyond the table, with nothing written; similar valid ones are accepted.
#include "support.h"

namespace {

constexpr int64_t kPiece = kOnDevice ? 4096 : 16384;  // elements per double of a workspace for sums
const fcm_matrix_block kBlocks[2] = {{2, 3, 0, 0, 0, 1.0, 0}, {1, 2, 6, 6, 6, 1.0, 0}};
const double kCoefficients[3] = {1.5, -0.5, 0.0};

}  // namespace

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
    // x is one pair for all clients
    CHECK(ema(4, 0, 0, 6, nullptr) == FCM_OK, "y: 0 1, 6 7, 12 13 around 4 5");
    CHECK(ema(5, 0, 0, 6, nullptr) == FCM_INVALID_ARGUMENT, "y: 0 1, 6 7, 12 13 and 5 6");
    CHECK(ema(13, 0, 0, 6, nullptr) == FCM_INVALID_ARGUMENT, "y: 0 1, 6 7, 12 13 and 13 14");
}

// The stride of a single client has no meaning, so it must neither hide an overlap nor overflow.
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
        return fcm_newton_schulz(device, 2, blocks.data(), int64_t(blocks.size()), Iteration(kCoefficients, 1, 1.0), 0.5,
                                 m.data(), 16, out, out_stride, weights, 16, workspace.data(), int64_t(workspace.size() * 8),
                                     e);
    };
    const auto refuse = [&](const char *what, const std::vector<fcm_matrix_block> &blocks, float *out,
                            int64_t out_stride, float *weights) {
        refused(FCM_INVALID_ARGUMENT, "fcm_newton_schulz", what,
                [&](fcm_error *e) { return run(blocks, out, out_stride, weights, e); });
        CHECK(o == o_before && w == w_before && m == Vector<float>(64, 1.0f), "%s: something was written", what);
    };
    const std::vector<fcm_matrix_block> good = {{2, 3, 0, 0, 0, 1.0, 0}, {2, 2, 6, 6, 6, 1.0, 0}};
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
    refuse("a stride shorter than the blocks reach", {{2, 3, 0, 11, 0, 1.0, 0}}, o.data(), 16, nullptr);
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
        refuse("a bad shape", {{rows, cols, 0, 0, 0, 1.0, 0}}, o.data(), 16, nullptr);
    }
}

TEST(bad_tables_of_rows_are_refused) {
    Device device;
    constexpr int64_t n = 8;
    Vector<float> memory(64, 1.0f);
    const auto before = memory;
    const auto refuse = [&](const char *what, auto call) {
        refused(FCM_INVALID_ARGUMENT, "fcm_average_rows", what, call);
        CHECK(memory == before, "%s: something was written", what);
    };
    float *const x = memory.data();
    const std::vector<const float *> rows{x, x + n};
    const std::vector<float *> targets{x + 2 * n, x};
    const auto call = [&](int64_t clients, int64_t length, const double *weights, const std::vector<const float *> &from,
                          int64_t count, const std::vector<float *> &to, int64_t terms = 2) {
        return [=, &device](fcm_error *e) {
            return fcm_average_rows(device, clients, length, weights, terms, from.empty() ? nullptr : from.data(), count,
                                    to.empty() ? nullptr : to.data(), e);
        };
    };
    refuse("no context", [&](fcm_error *e) { return fcm_average_rows(nullptr, 2, n, nullptr, 2, rows.data(), 2,
                                                                     targets.data(), e); });
    refuse("no rows", call(2, n, nullptr, {}, 2, targets));
    refuse("no targets", call(2, n, nullptr, rows, 2, {}));
    refuse("a null row", call(2, n, nullptr, {x, nullptr}, 2, targets));
    refuse("a null target", call(2, n, nullptr, rows, 2, {x, nullptr}));
    refuse("a row between elements", call(2, n, nullptr, {x, reinterpret_cast<float *>(reinterpret_cast<char *>(x + n) + 2)},
                                          1, targets));
    refuse("a target that overlaps a row", call(2, n, nullptr, rows, 1, {x + 1}));
    refuse("targets that overlap", call(2, n, nullptr, rows, 2, {x + 2 * n, x + 3 * n - 1}));
    refuse("a target twice", call(2, n, nullptr, rows, 2, {x, x}));
    refuse("clients < 0", call(-1, n, nullptr, rows, 2, targets));
    refuse("targets < 0", call(2, n, nullptr, rows, -1, targets));
    refuse("n < 0", call(2, -1, nullptr, rows, 2, targets));
    refuse("too many elements", call(2, INT64_MAX / 3, nullptr, rows, 1, targets));
    for (const auto &bad : {std::vector<double>{1.0, -1.0}, {0.0, 0.0}, {1.0, double{kNaN}}, {double{kInf}, 1.0}, {1.5, 1.0}}) {
        refuse("bad weights", call(2, n, bad.data(), rows, 2, targets));
    }
    for (const int64_t terms : {int64_t{1}, int64_t{0}, int64_t{-1}, FCM_MOST_TERMS + 1}) {
        refuse("bad terms", call(2, n, nullptr, rows, 2, targets, terms));
    }
    for (const auto &empty : {call(0, n, nullptr, {}, 2, {}), call(2, n, nullptr, {}, 0, {}), call(2, 0, nullptr, {}, 2, {})}) {
        CHECK(empty(nullptr) == FCM_OK && memory == before, "an empty call");
    }
#if !defined(FCM_TEST_KIND)  // where these addresses, which nothing has followed so far, are those of the device
    CHECK(call(2, n, nullptr, rows, 2, targets)(nullptr) == FCM_OK, "a good one");
#endif
}

TEST(bad_tables_of_means_are_refused) {
    Device device;
    constexpr int64_t n = 8;
    Vector<uint8_t> bytes(64, 3);
    Vector<int64_t> longs(64, 5);
    Vector<float> floats(64, 1.0f);
    const auto bytes_before = bytes;
    const auto floats_before = floats;
    const auto refuse = [&](const char *function, const char *what, auto call) {
        refused(FCM_INVALID_ARGUMENT, function, what, call);
        CHECK(bytes == bytes_before && floats == floats_before, "%s, %s: something was written", function, what);
    };
    uint8_t *const b = bytes.data();
    const std::vector<const uint8_t *> parts{b, b + n};
    const auto combine = [&](int64_t count, int64_t length, const std::vector<const uint8_t *> &from, uint8_t *to) {
        return [=, &device](fcm_error *e) {
            return fcm_mean_combine(device, count, length, from.empty() ? nullptr : from.data(), to, e);
        };
    };
    const char *function = "fcm_mean_combine";
    refuse(function, "no context",
           [&](fcm_error *e) { return fcm_mean_combine(nullptr, 2, n, parts.data(), b + 2 * n, e); });
    refuse(function, "no table", combine(2, n, {}, b + 2 * n));
    refuse(function, "a null part", combine(2, n, {b, nullptr}, b + 2 * n));
    refuse(function, "null", combine(2, n, parts, nullptr));
    refuse(function, "an overlap", combine(2, n, parts, b + 1));
    refuse(function, "an overlap at the end", combine(2, n, parts, b + 2 * n - 1));
    refuse(function, "no parts", combine(0, n, parts, b + 2 * n));
    refuse(function, "parts < 0", combine(-1, n, parts, b + 2 * n));
    refuse(function, "n < 0", combine(2, -1, parts, b + 2 * n));
    refuse(function, "too many elements", combine(2, INT64_MAX, parts, b + 2 * n));
    CHECK(combine(2, 0, {}, nullptr)(nullptr) == FCM_OK && bytes == bytes_before, "an empty call");
    CHECK(combine(2, n, parts, b + n)(nullptr) == FCM_OK, "in place");

    function = "fcm_mean_finish";
    int64_t *const s = longs.data();
    float *const x = floats.data();
    const std::vector<const int64_t *> sums{s, s + n};
    const std::vector<float *> targets{x, x + n};
    const auto finish = [&](int64_t count, int64_t length, int64_t terms, double total,
                            const std::vector<const int64_t *> &from, const uint8_t *exponents, int64_t target_count,
                            const std::vector<float *> &to) {
        return [=, &device](fcm_error *e) {
            return fcm_mean_finish(device, count, length, terms, total, from.empty() ? nullptr : from.data(), exponents,
                                   target_count, to.empty() ? nullptr : to.data(), e);
        };
    };
    refuse(function, "no context", [&](fcm_error *e) {
        return fcm_mean_finish(nullptr, 2, n, 2, 2.0, sums.data(), b, 2, targets.data(), e);
    });
    refuse(function, "no sums", finish(2, n, 2, 2.0, {}, b, 2, targets));
    refuse(function, "null sums", finish(2, n, 2, 2.0, {s, nullptr}, b, 2, targets));
    refuse(function, "sums between elements",
           finish(2, n, 2, 2.0, {s, reinterpret_cast<int64_t *>(reinterpret_cast<char *>(s) + 4)}, b, 2, targets));
    refuse(function, "no exponents", finish(2, n, 2, 2.0, sums, nullptr, 2, targets));
    refuse(function, "no targets", finish(2, n, 2, 2.0, sums, b, 2, {}));
    refuse(function, "a null target", finish(2, n, 2, 2.0, sums, b, 2, {x, nullptr}));
    refuse(function, "targets that overlap", finish(2, n, 2, 2.0, sums, b, 2, {x, x + n - 1}));
    refuse(function, "a target on sums", finish(2, n, 2, 2.0, sums, b, 1, {reinterpret_cast<float *>(s + n)}));
    refuse(function, "a target on exponents", finish(2, n, 2, 2.0, sums, b, 1, {reinterpret_cast<float *>(b)}));
    refuse(function, "no parts", finish(0, n, 2, 2.0, sums, b, 2, targets));
    refuse(function, "parts < 0", finish(-1, n, 2, 2.0, sums, b, 2, targets));
    refuse(function, "targets < 0", finish(2, n, 2, 2.0, sums, b, -1, targets));
    refuse(function, "n < 0", finish(2, -1, 2, 2.0, sums, b, 2, targets));
    refuse(function, "too many elements", finish(2, INT64_MAX / 3, 2, 2.0, sums, b, 2, targets));
    for (const int64_t terms : {int64_t{0}, int64_t{-1}, FCM_MOST_TERMS + 1}) {
        refuse(function, "bad terms", finish(2, n, terms, 2.0, sums, b, 2, targets));
    }
    for (const double total : {0.0, -1.0, double{kNaN}, double{kInf}}) {
        refuse(function, "a bad total", finish(2, n, 2, total, sums, b, 2, targets));
    }
    for (const auto &empty : {finish(2, 0, 2, 2.0, {}, nullptr, 2, {}), finish(2, n, 2, 2.0, {}, nullptr, 0, {})}) {
        CHECK(empty(nullptr) == FCM_OK && floats == floats_before, "an empty call");
    }
    CHECK(finish(2, n, 2, 2.0, sums, b, 2, targets)(nullptr) == FCM_OK, "a good one");
}

TEST(bad_numbers_are_refused) {
    Device device;
    Vector<float> x(32, 1.0f), y(32, 1.0f);
    Vector<double> workspace(4096);
    const auto y_before = y;
    const auto refuse = [&](const char *function, const char *what, auto call) {
        refused(FCM_INVALID_ARGUMENT, function, what, call);
        CHECK(y == y_before, "%s, %s: something was written", function, what);
    };
    const double nan = double{kNaN};
    const double inf = double{kInf};
    refuse("fcm_top_k", "in place with another stride",
           [&](fcm_error *e) { return fcm_top_k(device, 2, 8, 3, y.data(), 8, y.data(), 9, e); });
    refuse("fcm_top_k", "in place with no stride",
           [&](fcm_error *e) { return fcm_top_k(device, 2, 8, 3, y.data(), 0, y.data(), 0, e); });
    Vector<uint8_t> exponents(8);
    Vector<int64_t> sums(8);
    for (const auto &bad : {std::vector<double>{1.0, -1.0}, {0.0, 0.0}, {1.0, nan}, {inf, 1.0}, {1.0, 1.0 + 0x1p-52}}) {
        refuse("fcm_average", "bad weights",
               [&](fcm_error *e) { return fcm_average(device, 2, 8, bad.data(), 2, y.data(), 8, e); });
        if (bad[0] == 0.0) continue;  // they may be 0 where others have the terms
        refuse("fcm_mean_exponents", "bad weights", [&](fcm_error *e) {
            return fcm_mean_exponents(device, 2, 8, bad.data(), x.data(), 8, exponents.data(), e);
        });
        refuse("fcm_mean_sums", "bad weights", [&](fcm_error *e) {
            return fcm_mean_sums(device, 2, 8, bad.data(), 2, x.data(), 8, exponents.data(), sums.data(), e);
        });
    }
    for (const int64_t few : {1, 0}) {
        refuse("fcm_average", "fewer terms than clients",
               [&](fcm_error *e) { return fcm_average(device, 2, 8, nullptr, few, y.data(), 8, e); });
        refuse("fcm_mean_sums", "fewer terms than clients", [&](fcm_error *e) {
            return fcm_mean_sums(device, 2, 8, nullptr, few, x.data(), 8, exponents.data(), sums.data(), e);
        });
    }
    const std::vector<double> one{1.0, 0.0};
    Vector<float> z(32, 1.0f);
    CHECK(fcm_average(device, 2, 8, one.data(), 1, z.data(), 8, nullptr) == FCM_OK, "a weight of 0 is no term");
    const fcm_matrix_block block{2, 4, 0, 0, 0, 1.0, 0};
    const auto schulz = [&](const double *coefficients) {
        return [=, &device, &x, &y, &workspace](fcm_error *e) {
            return fcm_newton_schulz(device, 2, &block, 1, Iteration(coefficients, 1, 1.0), 0.5, x.data(), 8, y.data(), 8,
                                     nullptr, 0, workspace.data(), int64_t(workspace.size() * 8), e);
        };
    };
    const double bad_coefficients[3] = {1.0, nan, 0.0};
    refuse("fcm_newton_schulz", "a coefficient of NaN", schulz(bad_coefficients));
    refuse("fcm_newton_schulz", "no coefficients", schulz(nullptr));
    CHECK(schulz(kCoefficients)(nullptr) == FCM_OK, "the call that the refusals vary");
}

TEST(null_answers_are_refused) {
    Device device(2);
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
    refused(FCM_INVALID_ARGUMENT, "fcm_newton_schulz_workspace", "null answer",
            [&](fcm_error *e) { return fcm_newton_schulz_workspace(device, 1, kBlocks, 2, Iteration(), nullptr, e); });
    refused(FCM_INVALID_ARGUMENT, "fcm_newton_schulz_workspace", "null table",
            [&](fcm_error *e) { return fcm_newton_schulz_workspace(device, 1, nullptr, 2, Iteration(), &place, e); });
    refused(FCM_INVALID_ARGUMENT, "fcm_newton_schulz_workspace", "null context",
            [&](fcm_error *e) { return fcm_newton_schulz_workspace(nullptr, 1, kBlocks, 2, Iteration(), &place, e); });
}

// ---- Sizes ----------------------------------------------------------------------------------------------------

// Operands are a few floats: if a size were accepted instead of refused, the operation would run past their end.
TEST(contractions_beyond_the_address_space_are_refused) {
    Device device(2);
    alignas(64) float x[16] = {};
    alignas(64) float y[16] = {};
    alignas(64) float z[16] = {};
    alignas(64) double norms[16] = {};
    constexpr int64_t k32 = int64_t{1} << 32;
    constexpr int64_t k62 = int64_t{1} << 62;
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
        CHECK(x[i] == 0.0f && y[i] == 0.0f && z[i] == 0.0f && norms[i] == 0.0, "element %d was written", i);
    }
}

// One vector for all clients spans little memory for any number of clients; clients times n still has to fit.
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
    // one double per piece, also where int32 would overflow
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
        refused(FCM_INVALID_ARGUMENT, "fcm_newton_schulz_workspace", what,
                [&](fcm_error *e) { return fcm_newton_schulz_workspace(device, clients, &block, 1, Iteration(), &bytes, e); });
        float m[4] = {};
        float o[4] = {};
        double workspace[4] = {};
        refused(FCM_INVALID_ARGUMENT, "fcm_newton_schulz", what, [&](fcm_error *e) {
            return fcm_newton_schulz(device, clients, &block, 1, Iteration(kCoefficients, 1, 1.0), 0.5, m, INT64_MAX, o,
                                     INT64_MAX, nullptr, 0, workspace, INT64_MAX, e);
        });
    };
    constexpr int64_t k62 = int64_t{1} << 62;
    refuse("rows x cols overflows", 1, {4, k62, 0, 0, 0, 1.0, 0});
    refuse("rows x cols overflows", 1, {INT64_MAX, 2, 0, 0, 0, 1.0, 0});
    refuse("the long side is too long", 1, {1, k62, 0, 0, 0, 1.0, 0});
    refuse("the long side is too long", 1, {INT64_MAX, 1, 0, 0, 0, 1.0, 0});
    refuse("as int32, 0 x 0", 1, {int64_t{1} << 32, int64_t{1} << 32, 0, 0, 0, 1.0, 0});
    refuse("too many clients", INT64_MAX, {2, 2, 0, 0, 0, 1.0, 0});
    refuse("-1 client", -1, {2, 2, 0, 0, 0, 1.0, 0});
    refuse("another form than the two", 1, {129, 129, 0, 0, 0, 1.0, 2});
    refuse("a workspace beyond int64", 1000, {int64_t{1} << 30, int64_t{1} << 24, 0, 0, 0, 1.0, 0});
    refused(FCM_INVALID_ARGUMENT, "fcm_newton_schulz_workspace", "-1 block",
            [&](fcm_error *e) { return fcm_newton_schulz_workspace(device, 1, kBlocks, -1, Iteration(), &bytes, e); });
    CHECK(bytes == -7, "a refused query wrote %ld", long(bytes));
}

// A table whose blocks differ, so that the largest one determines the workspace.
TEST(a_workspace_one_byte_too_small_for_the_largest_is_refused) {
    Device device(2);
    constexpr int64_t kLong = 20000;
    Floats x(2, kLong), y(2, kLong);
    const auto before = y.fill(1.0f).values();
    x.fill(1.0f);
    const fcm_matrix_block blocks[] = {{2, 3, 0, 0, 0, 1.0, 0}, {100, 120, 6, 6, 6, 1.0, 0},
                                       {5, 1, 12006, 12006, 12006, 1.0, 0}};
    int64_t bytes = 0;
    CHECK(fcm_newton_schulz_workspace(device, 2, blocks, 3, Iteration(), &bytes, nullptr) == FCM_OK, "query");
    Vector<double> room(static_cast<size_t>(bytes / 8));
    refused(FCM_INVALID_ARGUMENT, "fcm_newton_schulz", "workspace", [&](fcm_error *e) {
        return fcm_newton_schulz(device, 2, blocks, 3, Iteration(kCoefficients, 1, 1.0), 0.5, x.data(), kLong, y.data(), kLong,
                                 nullptr, 0, room.data(), bytes - 1, e);
    });
    CHECK(y.is(before), "something was written");
    CHECK(fcm_newton_schulz(device, 2, blocks, 3, Iteration(kCoefficients, 1, 1.0), 0.5, x.data(), kLong, y.data(), kLong,
                            nullptr, 0, room.data(), bytes, nullptr) == FCM_OK,
          "exactly enough");
}

TEST(bad_arguments_of_directions_are_refused) {
    Device device;
    constexpr int64_t n = 4;
    Vector<int32_t> info(16, 0);
    Vector<double> numbers(256, 0.5);
    Vector<int64_t> kept(16, -1);
    const auto numbers_before = numbers;
    const auto kept_before = kept;
    const char *function = "fcm_keep_directions";
    double *const d = numbers.data();
    const auto call = [&](int64_t clients, int64_t side, double tolerance, const int32_t *answers, const double *values,
                          double *vectors, int64_t *counts) {
        return [=, &device](fcm_error *e) {
            return fcm_keep_directions(device, clients, side, tolerance, answers, values, vectors, counts, e);
        };
    };
    const auto refuse = [&](const char *what, auto run) {
        refused(FCM_INVALID_ARGUMENT, function, what, run);
        CHECK(numbers == numbers_before && kept == kept_before, "%s: something was written", what);
    };
    refuse("no context", [&](fcm_error *e) {
        return fcm_keep_directions(nullptr, 2, n, 0.1, info.data(), d, d + 8, kept.data(), e);
    });
    refuse("clients < 0", call(-1, n, 0.1, info.data(), d, d + 8, kept.data()));
    refuse("n < 0", call(2, -1, 0.1, info.data(), d, d + 8, kept.data()));
    for (const int64_t side : {int64_t{1} << 31, int64_t{1} << 32, INT64_MAX}) {
        refuse("n too large", call(1, side, 0.1, info.data(), d, d + 8, kept.data()));
    }
    refuse("too many clients", call(INT64_MAX, n, 0.1, info.data(), d, d + 8, kept.data()));
    for (const double tolerance : {-0.1, 1.0, 1.5, double{kNaN}, double{kInf}}) {
        refuse("a bad tolerance", call(2, n, tolerance, info.data(), d, d + 8, kept.data()));
    }
    refuse("no info", call(2, n, 0.1, nullptr, d, d + 8, kept.data()));
    refuse("no values", call(2, n, 0.1, info.data(), nullptr, d + 8, kept.data()));
    refuse("no vectors", call(2, n, 0.1, info.data(), d, nullptr, kept.data()));
    refuse("no counts", call(2, n, 0.1, info.data(), d, d + 8, nullptr));
    refuse("values on vectors", call(2, n, 0.1, info.data(), d, d + 7, kept.data()));
    refuse("vectors before values", call(2, n, 0.1, info.data(), d + 31, d, kept.data()));
    refuse("counts on vectors", call(2, n, 0.1, info.data(), d, d + 8, reinterpret_cast<int64_t *>(d + 39)));
    refuse("vectors between elements",
           call(2, n, 0.1, info.data(), d, reinterpret_cast<double *>(reinterpret_cast<char *>(d + 8) + 4), kept.data()));
    CHECK(call(2, n, 0.1, info.data(), d, d + 8, kept.data())(nullptr) == FCM_OK && kept != kept_before,
          "the call that the refusals vary");
    const auto kept_after = kept;

    function = "fcm_inverse_roots";
    const auto roots = [&](int64_t clients, int64_t side, double *gram) {
        return [=, &device](fcm_error *e) { return fcm_inverse_roots(device, clients, side, gram, e); };
    };
    const auto refuse_roots = [&](const char *what, auto run) {
        refused(FCM_INVALID_ARGUMENT, function, what, run);
        CHECK(numbers == numbers_before && kept == kept_after, "%s: something was written", what);
    };
    refuse_roots("no context", [&](fcm_error *e) { return fcm_inverse_roots(nullptr, 2, n, d, e); });
    refuse_roots("clients < 0", roots(-1, n, d));
    refuse_roots("n < 0", roots(2, -1, d));
    refuse_roots("n too large", roots(1, int64_t{1} << 31, d));
    refuse_roots("too many clients", roots(INT64_MAX, n, d));
    refuse_roots("no matrix", roots(2, n, nullptr));
    refuse_roots("between elements", roots(2, n, reinterpret_cast<double *>(reinterpret_cast<char *>(d) + 4)));
    CHECK(roots(2, n, d)(nullptr) == FCM_OK && numbers != numbers_before, "the call that the refusals vary");
}
