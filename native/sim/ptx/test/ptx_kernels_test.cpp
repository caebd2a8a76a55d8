// The PTX of fixtures/kernels.cu against the same computations in C++, in every order.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>

#include "bits.h"
#include "fixtures.h"
#include "support.h"

using namespace ptxtest;

namespace {

void everywhere(const std::function<void(Program &, const Order &, const std::string &)> &test) {
    for (const std::string &file : fixture_files("kernels")) {
        Program program;
        program.load_file(file);
        for (const Order &order : orders()) test(program, order, file + ", " + order_name(order));
    }
}

std::vector<float> normals(size_t count, unsigned seed) {
    std::mt19937 generator(seed);
    std::normal_distribution<float> normal;
    std::vector<float> v(count);
    for (float &x : v) x = normal(generator);
    return v;
}

template <class T>
T *put(Run &run, const std::vector<T> &values) {
    T *at = run.memory.make<T>(values.size());
    std::copy(values.begin(), values.end(), at);
    return at;
}

struct Piece {
    const float *from;
    float *to;
    long long count;
    int rows, columns;
    float scale;
};
struct Pieces {
    Piece piece[3];
    int count;
};

}  // namespace

TEST(square_sums_with_shuffles) {
    const std::vector<float> x = normals(5000, 1);
    // The kernel's order of summation, in C++.
    const unsigned blocks = 3, threads = 96;
    std::vector<double> right;
    for (unsigned b = 0; b < blocks; ++b) {
        std::vector<double> mine(threads);
        for (unsigned t = 0; t < threads; ++t) {
            for (size_t i = b * threads + t; i < x.size(); i += blocks * threads) {
                mine[t] += static_cast<double>(x[i]) * x[i];
            }
        }
        std::vector<double> warp(32, 0.0);
        for (unsigned w = 0; w < threads / 32; ++w) {
            std::vector<double> v(mine.begin() + w * 32, mine.begin() + w * 32 + 32);
            for (unsigned o = 16; o > 0; o /= 2) {
                const std::vector<double> before = v;
                for (unsigned k = 0; k < 32; ++k) v[k] = before[k] + (k + o < 32 ? before[k + o] : before[k]);
            }
            warp[w] = v[0];
        }
        for (unsigned o = 16; o > 0; o /= 2) {
            const std::vector<double> before = warp;
            for (unsigned k = 0; k < 32; ++k) warp[k] = before[k] + before[k ^ o];
        }
        right.push_back(warp[0]);
    }
    everywhere([&](Program &program, const Order &order, const std::string &where) {
        Run run(program, "square_sum");
        run.launch.order = order;
        run.launch.grid.x = blocks;
        run.launch.block.x = threads;
        double *sums = run.memory.make<double>(blocks);
        run.with(put(run, x)).with(sums).with(static_cast<long long>(x.size())).go();
        for (unsigned b = 0; b < blocks; ++b) {
            CHECK(sums[b] == right[b], "%s: %a, not %a", where.c_str(), sums[b], right[b]);
        }
    });
}

TEST(the_last_block_sums_up) {
    const std::vector<float> x = normals(3000, 2);
    everywhere([&](Program &program, const Order &order, const std::string &where) {
        Run run(program, "square_sum_once");
        run.launch.order = order;
        run.launch.grid.x = 5;
        run.launch.block.x = 64;
        double *parts = run.memory.make<double>(5), *sum = run.memory.make<double>(1);
        unsigned *ticket = run.memory.make<unsigned>(1);
        const std::string fault = run.with(put(run,
            x)).with(parts).with(ticket).with(sum).with(static_cast<long long>(x.size())).fault();
        CHECK(fault.empty(), "%s: %s", where.c_str(), fault.c_str());
        double all = 0;
        for (int i = 0; i < 5; ++i) all += parts[i];
        double right = 0;
        for (const float v : x) right += static_cast<double>(v) * v;
        CHECK(*sum == std::sqrt(all) && std::fabs(all - right) < 1e-9 * right && *ticket == 0, "%s: %g",
            where.c_str(), *sum);
    });
}

TEST(products_of_tiles) {
    const int n = 64;
    const std::vector<float> a = normals(n * n, 3), b = normals(n * n, 4);
    everywhere([&](Program &program, const Order &order, const std::string &where) {
        Run run(program, "product");
        run.launch.order = order;
        run.launch.grid = {2, 2, 1};
        run.launch.block.x = 256;
        run.launch.shared_bytes = 256 * 16;
        float *c = run.memory.make<float>(n * n);
        const std::string fault = run.with(put(run, a)).with(put(run, b)).with(c).with(n).fault();
        CHECK(fault.empty(), "%s: %s", where.c_str(), fault.c_str());
        for (int i = 0; i < n; ++i) {
            for (int j = 0; j < n; ++j) {
                float sum = 0;
                for (int k = 0; k < n; ++k) sum = std::fma(a[i * n + k], b[k * n + j], sum);
                CHECK(raw(sum) == raw(c[i * n + j]), "%s (%d, %d): %a, not %a", where.c_str(), i, j,
                    static_cast<double>(c[i * n + j]), static_cast<double>(sum));
            }
        }
    });
}

TEST(structs_calls_and_atomics) {
    const float coefficients[] = {3.4445f, -4.7750f, 2.0315f};
    everywhere([&](Program &program, const Order &order, const std::string &where) {
        Run run(program, "pieces");
        run.launch.order = order;
        run.launch.grid.x = 3;
        run.launch.block.x = 64;
        Pieces all{};
        all.count = 3;
        std::vector<std::vector<float>> from;
        for (int p = 0; p < 3; ++p) {
            from.push_back(normals(100 + p * 50, 10 + p));
            from.back()[7] = p == 1 ? INFINITY : 2.0f;
            for (int i = 0; i < 5; ++i) from.back()[i] = std::fabs(from.back()[i]);
            all.piece[p] = {put(run, from[p]), run.memory.make<float>(from[p].size()),
                static_cast<long long>(from[p].size()), p + 2, p * 3, 0.5f + static_cast<float>(p)};
        }
        int *flags = run.memory.make<int>(3);
        flags[2] = 1 << 30;
        unsigned long long *total = run.memory.make<unsigned long long>(1);
        const std::string fault = run.with(all).with(flags).with(total).fault();
        CHECK(fault.empty(), "%s: %s", where.c_str(), fault.c_str());
        unsigned long long right = 0;
        int right_flags = 0;
        for (int p = 0; p < 3; ++p) {
            const Piece &piece = all.piece[p];
            for (int t = 0; t < 64; ++t) {
                int last[8];
                for (int i = 0; i < 8; ++i) last[i] = i * piece.rows;
                for (long long i = t; i < piece.count; i += 64) {
                    float s = from[p][i];
                    for (int k = 0; k < piece.rows; ++k) {
                        const float square = s * s;
                        s = std::sqrt(square + from[p][k]) / (1.0f + s);
                    }
                    if (!std::isfinite(s)) right_flags |= 1 << (i & 31);
                    else right += static_cast<unsigned long long>(std::fabs(s) * 8);
                    last[i & 7] += piece.columns;
                    const float scaled = piece.scale * s;
                    const float sum = scaled + coefficients[i % 3] + static_cast<float>(last[(i + 3) & 7]);
                    const float got = piece.to[i];
                    CHECK(sum != sum ? got != got : raw(sum) == raw(got), "%s %d %lld: %a, not %a", where.c_str(), p,
                        i, static_cast<double>(got), static_cast<double>(sum));
                }
            }
        }
        CHECK(*total == right && flags[0] == right_flags && right_flags != 0, "%s: %llu, not %llu", where.c_str(),
            *total, right);
        CHECK(flags[1] == 16 + 2 + 0 && flags[2] == 3210, "%s: %d %d", where.c_str(), flags[1], flags[2]);
    });
}

TEST(cases_and_conversions) {
    const int n = 200;
    std::vector<int> x(n);
    std::vector<double> y(n);
    for (int i = 0; i < n; ++i) {
        x[i] = i % 12 - 1;
        y[i] = (i - 90) * 1.37 + 0.5;
    }
    y[50] = NAN;
    y[51] = INFINITY;
    const float f = -2.75f;
    const unsigned short h = 0xbeef;
    const signed char b = -9;
    everywhere([&](Program &program, const Order &order, const std::string &where) {
        Run run(program, "cases");
        run.launch.order = order;
        run.launch.grid.x = 4;
        run.launch.block.x = 64;
        long long *out = run.memory.make<long long>(n);
        const std::string fault = run.with(put(run, x)).with(put(run,
            y)).with(out).with(n).with(f).with(h).with(b).fault();
        CHECK(fault.empty(), "%s: %s", where.c_str(), fault.c_str());
        for (int i = 0; i < n; ++i) {
            long long r = -1;
            switch (x[i]) {
                case 0: r = 3; break;
                case 1: r = x[0] + 7ll * i; break;
                case 2: r = i / 7 + static_cast<long long>(i) % n; break;
                case 3: r = -i % (n + 1); break;
                case 4: r = static_cast<long long>(f); break;
                case 5: r = std::isfinite(y[i]) ? static_cast<unsigned char>(static_cast<int>(y[i])) : 0; break;
                case 6: r = static_cast<long long>(raw(y[i])) >> (i & 63); break;
                case 7: r = h >> (i & 15); break;
                case 8: r = b; break;
                case 9: r = static_cast<long long>(raw(static_cast<float>(y[i]))); break;
                default: break;
            }
            if (std::isfinite(y[i])) {
                const double d = std::fmin(std::fmax(y[i], static_cast<double>(r)), 1e6) +
                    std::floor(y[i]) - std::ceil(f) + std::rint(f * 3) + std::trunc(y[i] * 0.5);
                r = static_cast<long long>(static_cast<unsigned long long>(r) * 31u) + static_cast<long long>(d);
                r ^= static_cast<long long>(std::rint(y[i])) * 128;
                r += __builtin_popcountll(r) + (r == 0 ? 64 : __builtin_clzll(r)) + __builtin_ffs(i) +
                    static_cast<int>(value<float>(0x42280000u + i)) + static_cast<short>(i * 1000) + r / (i + 1);
            } else {
                r = std::isnan(y[i]) ? 5 : 6;
            }
            CHECK(out[i] == r, "%s %d: %lld, not %lld", where.c_str(), i, out[i], r);
        }
    });
}

TEST(two_threads_to_a_word) {
    std::vector<float> x = normals(300, 6);
    x[3] = NAN;
    everywhere([&](Program &program, const Order &order, const std::string &where) {
        Run run(program, "to_brain");
        run.launch.order = order;
        run.launch.grid.x = 5;
        run.launch.block.x = 64;
        uint16_t *out = run.memory.make<uint16_t>(x.size());
        const std::string fault = run.with(put(run, x)).with(out).with(static_cast<int>(x.size())).fault();
        CHECK(fault.empty(), "%s: %s", where.c_str(), fault.c_str());
        for (size_t i = 0; i < x.size(); ++i) {
            const float back = value<float>(static_cast<uint64_t>(out[i]) << 16);
            CHECK(i == 3 ? out[i] == 0x7fff : std::fabs(back - x[i]) <= std::fabs(x[i]) / 256, "%s %zu",
                where.c_str(), i);
        }
    });
}
