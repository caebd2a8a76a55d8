// Products of any size, division by the norm, and rearranged layouts, against plain loops.
#include "support.h"

namespace {

// One product of a batch. The operands have the given strides; elements in between are NaN, so that reading one is detected.
struct Case {
    int64_t clients;
    int64_t rows;
    int64_t cols;
    int64_t depth;
    bool a_transposed;
    bool b_transposed;
    bool with_base;
    double factor;
};

struct Operands {
    Case c;
    Floats a;
    Floats b;
    Floats base;
    Floats out;
    std::unique_ptr<Doubles> workspace;

    Operands(const Case &which, fcm_context *context, Random &random)
        : c(which),
          a(c.clients, c.rows * c.depth, 1, 3),
          b(c.clients, c.depth * c.cols, 2, 1),
          base(c.clients, c.rows * c.cols, 3, 2),
          out(c.clients, c.rows * c.cols, 1, 5) {
        for (Floats *operand : {&a, &b, &base}) operand->randomize(random);
        out.fill(kNaN);
        int64_t bytes = -1;
        CHECK(fcm_multiply_workspace(context, c.clients, c.rows, c.cols, c.depth, &bytes, nullptr) == FCM_OK, "query");
        workspace = std::make_unique<Doubles>(1, (bytes + 7) / 8, 1);
        workspace->fill(std::numeric_limits<double>::quiet_NaN());
    }

    fcm_status run(fcm_context *context, fcm_error *error = nullptr) {
        return fcm_multiply(context, c.clients, c.rows, c.cols, c.depth, 0, c.factor, a.data(), a.stride(),
                            c.a_transposed ? 1 : c.depth, c.a_transposed ? c.rows : 1, b.data(), b.stride(),
                            c.b_transposed ? 1 : c.cols, c.b_transposed ? c.depth : 1, 0.75,
                            c.with_base ? base.data() : nullptr, base.stride(), out.data(), out.stride(),
                            workspace->data(), workspace->bytes(), error);
    }

    double left(int64_t k, int64_t i, int64_t d) const { return a[k][c.a_transposed ? d * c.rows + i : i * c.depth + d]; }
    double right(int64_t k, int64_t d, int64_t j) const { return b[k][c.b_transposed ? j * c.depth + d : d * c.cols + j]; }
};

// Sides around the tiles (8 x 48, 4 x 24, 4 x 8) and around multiples of the blocks of 24 rows.
const int64_t kSides[] = {1, 7, 8, 47, 48, 49, 95, 97, 130};

}  // namespace

TEST(products_match_the_reference) {
    Accuracy accuracy("multiply");
    for (const int32_t isa : isas()) {
        Device device(2, isa);
        Random random(7);
        int variant = 0;
        for (const int64_t rows : kSides) {
            for (const int64_t cols : kSides) {
                const int64_t depth = std::vector<int64_t>{1, 5, 64, 255, 256, 257, 513}[static_cast<size_t>(variant % 7)];
                const Case c{1 + variant % 3,   rows, cols, depth, variant % 2 == 1, variant / 2 % 2 == 1,
                             variant % 5 < 3, variant % 4 == 0 ? 1.0 : -1.5};
                ++variant;
                Operands o(c, device, random);
                fcm_error error{};
                CHECK(o.run(device, &error) == FCM_OK, "%s", error.message);
                for (int64_t k = 0; k < c.clients; ++k) {
                    for (int64_t i = 0; i < rows; ++i) {
                        for (int64_t j = 0; j < cols; ++j) {
                            reference::Number wanted{0.0, 0.0};
                            for (int64_t d = 0; d < depth; ++d) {
                                const double term = c.factor * o.left(k, i, d) * o.right(k, d, j);
                                wanted.value += term;
                                wanted.size += std::fabs(term);
                            }
                            if (c.with_base) {
                                const double term = 0.75 * double{o.base[k][i * cols + j]};
                                wanted.value += term;
                                wanted.size += std::fabs(term);
                            }
                            // a chain of depth roundings (two each without fusing), the factor and the base
                            accuracy.expect(o.out[k][i * cols + j], wanted, 2.0 * static_cast<double>(depth) + 3.0, [&] {
                                return "isa " + std::to_string(isa) + ", " + std::to_string(rows) + " x " +
                                       std::to_string(cols) + " x " + std::to_string(depth);
                            });
                        }
                    }
                }
                CHECK(o.out.guards_intact() && o.workspace->guards_intact(), "guards, %ld x %ld", long(rows), long(cols));
            }
        }
    }
}

// Half of the result is computed and mirrored; the full result, computed without the flag, must be bit-identical.
TEST(symmetric_products_are_the_same_to_the_bit) {
    for (const int32_t isa : isas()) {
        Device device(2, isa);
        Random random(8);
        for (const int64_t n : {1, 7, 8, 9, 48, 50, 96, 100, 131, 200}) {
            for (const int64_t depth : {3, 300}) {
                Floats x(1, n * depth, 1);
                Floats base(1, n * n, 2);
                x.randomize(random);
                for (int64_t i = 0; i < n; ++i) {
                    for (int64_t j = 0; j <= i; ++j) base[0][i * n + j] = base[0][j * n + i] = random.value();
                }
                int64_t bytes = 0;
                CHECK(fcm_multiply_workspace(device, 1, n, n, depth, &bytes, nullptr) == FCM_OK, "query");
                Doubles workspace(1, (bytes + 7) / 8);
                Floats half(1, n * n, 3);
                Floats whole(1, n * n, 1);
                half.fill(kNaN);
                for (const int symmetric : {1, 0}) {
                    Floats &out = symmetric == 1 ? half : whole;
                    CHECK(fcm_multiply(device, 1, n, n, depth, symmetric, 1.25, x.data(), 0, depth, 1, x.data(), 0, 1, depth,
                                       -0.5, base.data(), 0, out.data(), n * n, workspace.data(), workspace.bytes(),
                                       nullptr) == FCM_OK,
                          "n %ld", long(n));
                    CHECK(out.guards_intact(), "guards, n %ld", long(n));
                }
                CHECK(half.is(whole.values()), "isa %d, n %ld, depth %ld", isa, long(n), long(depth));
            }
        }
    }
}

TEST(products_give_the_same_bits_with_any_threads_and_isa) {
    for (const int64_t clients : {1, 5}) {  // threads share one client, or take one each
        std::vector<std::vector<float>> with_fma;
        for (const int32_t isa : isas()) {
            std::vector<std::vector<float>> results;
            for (const int32_t threads : {1, 2, 4}) {
                Device device(threads, isa);
                Random random(9);
                Operands o({clients, 131, 203, 301, false, true, true, 1.0}, device, random);
                CHECK(o.run(device) == FCM_OK, "run");
                results.push_back(o.out.values());
            }
            for (const auto &result : results) CHECK(result == results[0], "isa %d: threads matter", isa);
            if (isa != FCM_ISA_BASELINE) with_fma.push_back(results[0]);
        }
        for (const auto &result : with_fma) CHECK(result == with_fma[0], "AVX2 and AVX-512 differ");
    }
}

// The result must not depend on whether the threads share one client's product or take one client each.
TEST(a_batch_is_its_products) {
    Device device(3);
    Random random(10);
    Operands batch({4, 100, 61, 270, true, false, true, -2.0}, device, random);
    CHECK(batch.run(device) == FCM_OK, "run");
    for (int64_t k = 0; k < 4; ++k) {
        Vector<float> alone(100 * 61);
        CHECK(fcm_multiply(device, 1, 100, 61, 270, 0, -2.0, batch.a[k], 0, 1, 100, batch.b[k], 0, 61, 1, 0.75, batch.base[k],
                           0, alone.data(), 0, batch.workspace->data(), batch.workspace->bytes(), nullptr) == FCM_OK,
              "client %ld", long(k));
        CHECK(std::memcmp(alone.data(), batch.out[k], alone.size() * sizeof(float)) == 0, "client %ld", long(k));
    }
}

TEST(products_are_refused) {
    Device device(2);
    Random random(11);
    Operands o({2, 9, 10, 11, false, false, true, 1.0}, device, random);
    const std::vector<float> before = o.out.values();
    const char *f = "fcm_multiply";
    const auto call = [&](int64_t clients, int64_t rows, int64_t cols, int64_t depth, int32_t symmetric, double factor,
                          int64_t a_row, const float *base, float *out, int64_t bytes, fcm_error *e) {
        return fcm_multiply(device, clients, rows, cols, depth, symmetric, factor, o.a.data(), o.a.stride(), a_row, 1,
                            o.b.data(), o.b.stride(), 10, 1, 1.0, base, o.base.stride(), out, o.out.stride(),
                            o.workspace->data(), bytes, e);
    };
    const int64_t room = o.workspace->bytes();
    const auto refuse = [&](const char *what, auto &&run) { refused(FCM_INVALID_ARGUMENT, f, what, run); };
    refuse("depth 0", [&](fcm_error *e) { return call(2, 9, 10, 0, 0, 1, 11, o.base.data(), o.out.data(), room, e); });
    refuse("negative", [&](fcm_error *e) { return call(-2, 9, 10, 11, 0, 1, 11, o.base.data(), o.out.data(), room, e); });
    refuse("symmetric", [&](fcm_error *e) { return call(2, 9, 10, 11, 1, 1, 11, o.base.data(), o.out.data(), room, e); });
    refuse("NaN", [&](fcm_error *e) { return call(2, 9, 10, 11, 0, NAN, 11, o.base.data(), o.out.data(), room, e); });
    refuse("stride 0", [&](fcm_error *e) { return call(2, 9, 10, 11, 0, 1, 0, o.base.data(), o.out.data(), room, e); });
    refuse("too far", [&](fcm_error *e) { return call(2, 9, 10, 11, 0, 1, INT64_MAX / 2, nullptr, o.out.data(), room, e); });
    refuse("2^31 rows",
           [&](fcm_error *e) { return call(1, int64_t{1} << 31, 10, 11, 0, 1, 11, nullptr, o.out.data(), room, e); });
    refuse("null", [&](fcm_error *e) { return call(2, 9, 10, 11, 0, 1, 11, o.base.data(), nullptr, room, e); });
    refuse("out is base", [&](fcm_error *e) { return call(2, 9, 10, 11, 0, 1, 11, o.base.data(), o.base.data(), room, e); });
    refuse("out is a", [&](fcm_error *e) { return call(2, 9, 10, 11, 0, 1, 11, o.base.data(), o.a.data(), room, e); });
    refuse("little room", [&](fcm_error *e) { return call(2, 9, 10, 11, 0, 1, 11, o.base.data(), o.out.data(), room - 9, e); });
    CHECK(o.out.is(before), "a refused call has written");
    CHECK(call(0, 9, 10, 11, 0, 1, 11, nullptr, nullptr, 0, nullptr) == FCM_OK, "no clients");
    CHECK(call(2, 0, 10, 11, 0, 1, 11, nullptr, nullptr, 0, nullptr) == FCM_OK, "no rows");
    CHECK(o.out.is(before), "an empty product has written");
}

TEST(normalize_divides_by_the_norm) {
    for (const int32_t isa : isas()) {
        Device device(2, isa);
        Random random(12);
        for (const int64_t n : {1, 7, 65, 16384, 40001}) {
            for (const double size : {1.0, 1e-30, 1e30, 1e-42}) {
                Floats x(3, n, 1, 2);
                Floats y(3, n, 2, 1);
                x.randomize(random);
                for (int64_t k = 0; k < 3; ++k) {
                    for (int64_t j = 0; j < n; ++j) x[k][j] = k == 1 ? 0.0f : static_cast<float>(double{x[k][j]} * size);
                }
                const auto workspace = sum_workspace(device, 3, n);
                CHECK(fcm_normalize(device, 3, n, 1.02, x.data(), x.stride(), y.data(), y.stride(), workspace->data(),
                                    workspace->bytes(), nullptr) == FCM_OK,
                      "n %ld", long(n));
                for (int64_t k = 0; k < 3; ++k) {
                    double sum = 0.0;
                    for (int64_t j = 0; j < n; ++j) sum += double{x[k][j]} * double{x[k][j]};
                    for (int64_t j = 0; j < n; ++j) {
                        const double wanted = sum == 0.0 ? 0.0 : double{x[k][j]} / (std::sqrt(sum) * 1.02);
                        CHECK(std::fabs(double{y[k][j]} - wanted) <= 1.01 * 0x1p-24 * std::fabs(wanted) + 0x1p-149,
                              "n %ld, size %g, client %ld: %g, wanted %g", long(n), size, long(k), double{y[k][j]}, wanted);
                    }
                }
                const std::vector<float> apart = y.values();
                CHECK(fcm_normalize(device, 3, n, 1.02, x.data(), x.stride(), x.data(), x.stride(), workspace->data(),
                                    workspace->bytes(), nullptr) == FCM_OK,
                      "in place");
                CHECK(x.is(apart), "in place differs");
                CHECK(x.guards_intact() && y.guards_intact() && workspace->guards_intact(), "guards");
            }
        }
    }
}

TEST(normalize_refuses_what_is_not_finite) {
    Device device(2);
    Floats x(3, 20000, 1, 2);
    Floats y(3, 20000, 2, 1);
    x.fill(1.0f);
    y.fill(2.0f);
    x[1][17001] = kInf;
    x[2][3] = kNaN;
    const auto workspace = sum_workspace(device, 3, 20000);
    fcm_error error{};
    CHECK(fcm_normalize(device, 3, 20000, 1.0, x.data(), x.stride(), y.data(), y.stride(), workspace->data(),
                        workspace->bytes(), &error) == FCM_NOT_FINITE,
          "status");
    CHECK(error.client == 1 && error.index == 17001, "client %ld, index %ld", long(error.client), long(error.index));
    CHECK(y.is(std::vector<float>(60000, 2.0f)), "y was written");
    refused(FCM_INVALID_ARGUMENT, "fcm_normalize", "overlap by one", [&](fcm_error *e) {
        return fcm_normalize(device, 1, 100, 1.0, x.data(), 100, x.data() + 99, 100, workspace->data(), workspace->bytes(), e);
    });
    refused(FCM_INVALID_ARGUMENT, "fcm_normalize", "divisor", [&](fcm_error *e) {
        return fcm_normalize(device, 1, 100, 0.0, x.data(), 100, y.data(), 100, workspace->data(), workspace->bytes(), e);
    });
}

TEST(rearranging_moves_every_element) {
    Device device(2);
    Random random(13);
    struct Layout {
        int64_t row;
        int64_t col;
    };
    for (const auto &[rows, cols] : std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {1, 9}, {9, 1}, {33, 65}, {100, 31}}) {
        // row-major, column-major, padded rows, every third element
        const std::vector<Layout> layouts{{cols, 1}, {1, rows}, {cols + 3, 1}, {3 * cols, 3}};
        for (const Layout &x : layouts) {
            for (const Layout &y : layouts) {
                const int64_t x_size = (rows - 1) * x.row + (cols - 1) * x.col + 1;
                const int64_t y_size = (rows - 1) * y.row + (cols - 1) * y.col + 1;
                Floats from(2, x_size, 1, 2);
                Floats to(2, y_size, 2, 1);
                from.randomize(random);
                to.fill(-1.0f);
                fcm_error error{};
                CHECK(fcm_rearrange(device, 2, rows, cols, 4, from.data(), from.stride(), x.row, x.col, to.data(), to.stride(),
                                    y.row, y.col, &error) == FCM_OK,
                      "%s", error.message);
                for (int64_t k = 0; k < 2; ++k) {
                    std::vector<float> wanted(static_cast<size_t>(y_size), -1.0f);
                    for (int64_t i = 0; i < rows; ++i) {
                        for (int64_t j = 0; j < cols; ++j) {
                            wanted[static_cast<size_t>(i * y.row + j * y.col)] = from[k][i * x.row + j * x.col];
                        }
                    }
                    CHECK(std::memcmp(wanted.data(), to[k], wanted.size() * sizeof(float)) == 0, "%ld x %ld", long(rows),
                          long(cols));
                }
                CHECK(to.guards_intact(), "guards");
            }
        }
    }
    Doubles wide(1, 12);
    Doubles turned(1, 12, 1);
    for (int64_t i = 0; i < 12; ++i) wide[0][i] = static_cast<double>(i);
    CHECK(fcm_rearrange(device, 1, 3, 4, 8, wide.data(), 0, 4, 1, turned.data(), 12, 1, 3, nullptr) == FCM_OK, "doubles");
    for (int64_t i = 0; i < 12; ++i) CHECK(turned[0][i % 4 * 3 + i / 4] == static_cast<double>(i), "element %ld", long(i));
}

TEST(rearrangements_are_refused) {
    Device device(2);
    Vector<float> x(100), y(100, 5.0f);
    const auto refuse = [&](const char *what, int64_t rows, int64_t cols, int32_t bytes, int64_t x_row, float *to, int64_t y_row,
                            int64_t y_col) {
        refused(FCM_INVALID_ARGUMENT, "fcm_rearrange", what, [&](fcm_error *e) {
            return fcm_rearrange(device, 1, rows, cols, bytes, x.data(), 0, x_row, 1, to, 0, y_row, y_col, e);
        });
    };
    refuse("negative", -1, 4, 4, 4, y.data(), 4, 1);
    refuse("3 bytes", 4, 4, 3, 4, y.data(), 4, 1);
    refuse("stride 0", 4, 4, 4, 0, y.data(), 4, 1);
    refuse("y on y", 4, 4, 4, 4, y.data(), 3, 1);
    refuse("y on y, turned", 4, 4, 4, 4, y.data(), 1, 3);
    refuse("y on x", 4, 4, 4, 4, x.data() + 15, 4, 1);
    refuse("too far", 4, 4, 4, INT64_MAX / 2, y.data(), 4, 1);
    refuse("too many", INT64_MAX / 2, 4, 4, 4, y.data(), 4, 1);
    refuse("null", 4, 4, 4, 4, nullptr, 4, 1);
    CHECK(y == Vector<float>(100, 5.0f), "a refused call has written");
    CHECK(fcm_rearrange(device, 0, 4, 4, 4, nullptr, 0, 4, 1, nullptr, 0, 4, 1, nullptr) == FCM_OK, "no clients");
}
