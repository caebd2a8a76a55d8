// The kernels of products and of Newton-Schulz in tf32 and bf16, for each instruction set, against chains of scalar operations
// whose order is that of the interface. With fused multiply-add, every bit has to be the same.
#include <algorithm>
#include <cfloat>
#include <functional>

#if defined(FCM_X86_64)
#include <immintrin.h>
#endif

#include "kernels.h"
#include "support.h"

namespace {

const fcm::Kernels &kernels_of(int32_t isa) {
#if defined(FCM_X86_64)
    if (isa == FCM_ISA_AVX2) return fcm::kernels_avx2();
    if (isa == FCM_ISA_AVX512) return fcm::kernels_avx512();
    if (isa == FCM_ISA_AVX512_BF16) return fcm::kernels_avx512_bf16();
#endif
    CHECK(isa == FCM_ISA_BASELINE, "isa %d", isa);
    return fcm::kernels_baseline();
}

uint32_t bits_of(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}
float float_of(uint32_t bits) {
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

// In terms of double arithmetic rather than of bits, unlike the kernels.
float to_bf16(float value) {
    if (!std::isfinite(value)) return value;
    if (std::fabs(value) < FLT_MIN) return std::copysign(0.0f, value);
    int exponent = 0;
    const double mantissa = std::frexp(double{value}, &exponent);
    const double rounded = std::ldexp(std::nearbyint(mantissa * 0x1p8), exponent - 8);  // ties to even
    return std::fabs(rounded) > double{FLT_MAX} ? std::copysign(kInf, value) : static_cast<float>(rounded);
}
float to_tf32(float value) {
    if (!std::isfinite(value) || value == 0.0f) return value;
    const int exponent = std::max(std::ilogb(value), -126);
    const double rounded = std::ldexp(std::round(std::ldexp(double{value}, 10 - exponent)), exponent - 10);  // ties away
    return std::fabs(rounded) > double{FLT_MAX} ? std::copysign(kInf, value) : static_cast<float>(rounded);
}

// The arithmetic of a bf16 product treats numbers below the normal range as zero.
class Flush {
#if defined(FCM_X86_64)
   public:
    explicit Flush(bool on) : saved_(_mm_getcsr()) {
        if (on) _mm_setcsr(saved_ | 0x8040u);
    }
    ~Flush() { _mm_setcsr(saved_); }
    Flush(const Flush &) = delete;
    Flush &operator=(const Flush &) = delete;

   private:
    unsigned saved_;
#else
   public:
    explicit Flush(bool) {}
#endif
};

// By way of pointers, so that the compiler moves no arithmetic out of the scope of a Flush.
float (*volatile fused)(float, float, float) = [](float a, float b, float c) { return std::fma(a, b, c); };
float (*volatile times)(float, float) = [](float a, float b) { return a * b; };

using At = std::function<float(int64_t)>;

// base_factor base + product_factor sum_k left(k) right(k), as the interface defines it.
float element(int32_t precision, int64_t depth, const At &left, const At &right, const float *base, float base_factor,
              float product_factor) {
    const Flush flush(precision == FCM_BF16);
    const auto round = precision == FCM_BF16 ? to_bf16 : to_tf32;
    float sum = 0.0f;
    if (precision == FCM_TF32) {
        for (int64_t k = 0; k < depth; ++k) sum = fused(round(left(k)), round(right(k)), sum);
    } else {
        for (int64_t k = 0; k < depth; k += 2) {
            sum = k + 1 < depth ? fused(round(left(k + 1)), round(right(k + 1)), sum) : fused(0.0f, 0.0f, sum);
            sum = fused(round(left(k)), round(right(k)), sum);
        }
    }
    if (base == nullptr && product_factor == 1.0f) return precision == FCM_BF16 ? round(sum) : sum;
    sum = times(product_factor, sum);
    if (base != nullptr) sum = fused(base_factor, precision == FCM_BF16 ? round(*base) : *base, sum);
    return precision == FCM_BF16 ? round(sum) : sum;
}

void multiply(const fcm::Kernels &kernels, const fcm::Product &p) {
    using fcm::kProductDepth, fcm::kProductPanel, fcm::kProductRows;
    const int64_t panels = (p.cols + kProductPanel - 1) / kProductPanel;
    Floats right(1, panels * kProductPanel * std::min(p.depth, kProductDepth));
    Floats left(1, kProductRows * std::min(p.depth, kProductDepth));
    for (int64_t k = 0; k < p.depth; k += kProductDepth) {
        const int64_t depth = std::min(kProductDepth, p.depth - k);
        for (int64_t i = 0; i < panels; ++i) {
            kernels.product_pack_right(p, i * kProductPanel, k, depth, right.data() + i * kProductPanel * depth);
        }
        for (int64_t row = 0; row < p.rows; row += kProductRows) {
            const int64_t rows = std::min(kProductRows, p.rows - row);
            kernels.product_pack_left(p, row, rows, k, depth, left.data());
            kernels.product_rows(p, row, rows, k, depth, left.data(), right.data());
        }
    }
    for (int64_t row = 0; p.symmetric && row < p.rows; row += kProductRows) {
        kernels.product_mirror(p, row, std::min(kProductRows, p.rows - row));
    }
    CHECK(right.guards_intact() && left.guards_intact(), "packing left its room");
}

// One result of every instruction set against one element by element; without fused multiply-add, a result is at most a unit
// of the last place of `digits` away from it where it is not tiny.
struct Difference {
    int64_t wrong = 0;
    double worst = 0.0;

    void add(float got, float wanted) {
        wrong += bits_of(got) != bits_of(wanted) ? 1 : 0;
        worst = std::max(worst, std::fabs(double{got} - double{wanted}));
    }
};

const char *name_of(int32_t precision) { return precision == FCM_BF16 ? "bf16" : "tf32"; }

// A matrix during the iteration, with everything that its kernels need.
struct Small {
    fcm::SmallSchulz w{};
    Floats room;

    static int64_t round_up(int64_t value) { return (value + fcm::kSchulzPad - 1) / fcm::kSchulzPad * fcm::kSchulzPad; }
    static int64_t pitch_of(int64_t width) { return (width / fcm::kSchulzPad | 1) * fcm::kSchulzPad; }
    static int64_t floats(int64_t side, int64_t length) {
        const int64_t width = round_up(side);
        return width * (length + 2 * pitch_of(width) + fcm::kSchulzPanel) + fcm::kSchulzPairs;
    }

    Small(int64_t side, int64_t length, int32_t precision) : room(1, floats(side, length)) {
        room.fill(kNaN);  // nothing may be read before it is written
        w.side = side;
        w.width = round_up(side);
        w.length = length;
        w.pitch = pitch_of(w.width);
        w.y = room.data();
        w.gram = w.y + w.length * w.width;
        w.poly = w.gram + w.width * w.pitch;
        w.panel = w.poly + w.width * w.pitch;
        w.pairs = w.panel + w.width * fcm::kSchulzPanel;
        w.precision = precision;
    }
};

const std::vector<std::vector<float>> kSteps = {
    {8.28721f, -23.59589f, 17.30039f}, {4.10706f, -2.94785f, 0.54484f}, {1.5f, -0.5f, 0.0f}};

// The iteration on Y = X^T, length x side.
std::vector<float> iterate(int32_t precision, int64_t side, int64_t length, std::vector<float> y) {
    const auto index = [](int64_t i) { return static_cast<size_t>(i); };
    if (precision == FCM_BF16) {
        for (auto &value : y) value = to_bf16(value);
    }
    for (const auto &c : kSteps) {
        std::vector<float> gram(index(side * side)), poly(index(side * side)), next(y.size());
        for (int64_t i = 0; i < side; ++i) {
            for (int64_t j = 0; j < side; ++j) {
                gram[index(i * side + j)] = element(
                    precision, length, [&](int64_t k) { return y[index(k * side + i)]; },
                    [&](int64_t k) { return y[index(k * side + j)]; }, nullptr, 0.0f, 1.0f);
            }
        }
        for (int64_t i = 0; i < side; ++i) {
            for (int64_t j = 0; j < side; ++j) {
                poly[index(i * side + j)] = element(
                    precision, side, [&](int64_t k) { return gram[index(k * side + i)]; },
                    [&](int64_t k) { return gram[index(k * side + j)]; }, &gram[index(i * side + j)], c[1], c[2]);
            }
        }
        for (int64_t r = 0; r < length; ++r) {
            for (int64_t j = 0; j < side; ++j) {
                next[index(r * side + j)] = element(
                    precision, side, [&](int64_t k) { return y[index(r * side + k)]; },
                    [&](int64_t k) { return poly[index(k * side + j)]; }, &y[index(r * side + j)], c[0], 1.0f);
            }
        }
        y = next;
    }
    return y;
}

}  // namespace

// Every kind of float goes through packing, multiplied by 1: what comes out is how it was rounded.
TEST(numbers_are_rounded_to_the_nearest) {
    std::vector<float> numbers;
    for (const uint32_t high : {0x0000u, 0x0001u, 0x007fu, 0x0080u, 0x3f80u, 0x3f81u, 0x3fffu, 0x7f7eu, 0x7f7fu, 0x7f80u}) {
        for (const uint32_t low : {0x0000u, 0x0001u, 0x0fffu, 0x1000u, 0x1001u, 0x2fffu, 0x3000u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu}) {
            if (high == 0x7f80u && low != 0) continue;  // NaN, below
            numbers.push_back(float_of(high << 16 | low));
            numbers.push_back(float_of(0x80000000u | high << 16 | low));
        }
    }
    Random random(1);
    while (numbers.size() < 2000) {
        const float number = float_of(static_cast<uint32_t>(random.bits()));
        if (!std::isnan(number)) numbers.push_back(number);
    }
    const auto n = static_cast<int64_t>(numbers.size());
    const float one = 1.0f;
    for (const int32_t isa : isas()) {
        for (const int32_t precision : {FCM_TF32, FCM_BF16}) {
            std::vector<float> out(numbers.size(), kNaN);
            multiply(kernels_of(isa), fcm::Product{1, n, 1, false, &one, 1, 1, numbers.data(), n, 1, nullptr, out.data(), 0.0f, 1.0f,
                                                   precision});
            int64_t wrong = 0;
            for (size_t i = 0; i < numbers.size(); ++i) {
                const float rounded = precision == FCM_BF16 ? to_bf16(numbers[i]) : to_tf32(numbers[i]);
                const float wanted = rounded == 0.0f ? 0.0f : rounded;  // 0 + -0
                if (bits_of(out[i]) == bits_of(wanted)) continue;
                ++wrong;
                std::printf("%a -> %a, wanted %a\n", double{numbers[i]}, double{out[i]}, double{wanted});
            }
            CHECK(wrong == 0, "isa %d, %s: %ld wrong", isa, name_of(precision), long(wrong));
            for (const uint32_t bits : {0x7f800001u, 0x7fffffffu, 0xff800001u, 0xffffffffu}) {
                const float number = float_of(bits);
                float result = 0.0f;
                multiply(kernels_of(isa),
                         fcm::Product{1, 1, 1, false, &one, 1, 1, &number, 1, 1, nullptr, &result, 0.0f, 1.0f, precision});
                CHECK(std::isnan(result), "isa %d, %s: %08x became %g", isa, name_of(precision), bits, double{result});
            }
        }
    }
}

TEST(products_are_chains_in_their_order) {
    struct Sides {
        int64_t rows, cols, depth;
    };
    for (const int32_t precision : {FCM_TF32, FCM_BF16}) {
        int variant = 0;
        for (const auto &[rows, cols, depth] : std::vector<Sides>{{1, 1, 1}, {8, 48, 2}, {9, 49, 3}, {7, 97, 64}, {25, 50, 255},
                                                                  {24, 48, 256}, {31, 61, 257}, {49, 24, 515}, {48, 96, 31}}) {
            Random random(static_cast<uint64_t>(2 + variant));
            const bool turned = variant % 2 == 1;
            const bool with_base = variant % 3 != 0;
            const float factor = variant % 2 == 0 ? 1.0f : -1.3f;
            ++variant;
            std::vector<float> a(static_cast<size_t>(rows * depth)), b(static_cast<size_t>(depth * cols)),
                base(static_cast<size_t>(rows * cols)), wanted(base.size());
            for (auto *operand : {&a, &b, &base}) random.fill(*operand);
            const auto left = [&](int64_t i, int64_t k) { return a[static_cast<size_t>(turned ? k * rows + i : i * depth + k)]; };
            const auto right = [&](int64_t k, int64_t j) { return b[static_cast<size_t>(turned ? j * depth + k : k * cols + j)]; };
            for (int64_t i = 0; i < rows; ++i) {
                for (int64_t j = 0; j < cols; ++j) {
                    const auto at = static_cast<size_t>(i * cols + j);
                    wanted[at] = element(
                        precision, depth, [&](int64_t k) { return left(i, k); }, [&](int64_t k) { return right(k, j); },
                        with_base ? &base[at] : nullptr, 0.7f, factor);
                }
            }
            for (const int32_t isa : isas()) {
                Floats out(1, rows * cols, 1);
                multiply(kernels_of(isa),
                         fcm::Product{rows, cols, depth, false, a.data(), turned ? 1 : depth, turned ? rows : 1, b.data(),
                                      turned ? 1 : cols, turned ? depth : 1, with_base ? base.data() : nullptr, out.data(), 0.7f,
                                      factor, precision});
                Difference difference;
                for (int64_t i = 0; i < rows * cols; ++i) difference.add(out.data()[i], wanted[static_cast<size_t>(i)]);
                // Without a base there is nothing that the baseline has to fuse: the products of the sum are exact.
                const bool same = isa != FCM_ISA_BASELINE || !with_base;
                CHECK(same ? difference.wrong == 0 : difference.worst <= 1.0, "isa %d, %s, %ld x %ld x %ld: %ld differ, by %g", isa,
                      name_of(precision), long(rows), long(cols), long(depth), long(difference.wrong), difference.worst);
                CHECK(out.guards_intact(), "guards");
            }
        }
    }
}

TEST(symmetric_products_in_every_precision) {
    for (const int32_t isa : isas()) {
        for (const int32_t precision : {FCM_TF32, FCM_BF16}) {
            for (const int64_t n : {1, 9, 48, 50, 131}) {
                constexpr int64_t depth = 301;
                Random random(5);
                std::vector<float> x(static_cast<size_t>(n * depth)), half(static_cast<size_t>(n * n)), whole(half.size());
                random.fill(x);
                fcm::Product p{n, n, depth, true, x.data(), depth, 1, x.data(), 1, depth, nullptr, half.data(), 0.0f, 1.0f, precision};
                multiply(kernels_of(isa), p);
                p.symmetric = false;
                p.out = whole.data();
                multiply(kernels_of(isa), p);
                CHECK(std::memcmp(half.data(), whole.data(), half.size() * sizeof(float)) == 0, "isa %d, n %ld", isa, long(n));
            }
        }
    }
}

// Numbers whose products lie around the end of the normal range, where an instruction for pairs treats them as zero.
TEST(numbers_below_the_normal_range_are_zero_in_bf16) {
    constexpr int64_t rows = 11, cols = 53, depth = 37;
    Random random(6);
    std::vector<float> a(rows * depth), b(depth * cols), base(rows * cols), wanted(rows * cols);
    const auto tiny = [&](double size) { return static_cast<float>(random.uniform() * std::ldexp(size, -int(random.bits() >> 60))); };
    for (auto &value : a) value = tiny(0x1p-60);
    for (auto &value : b) value = tiny(0x1p-59);
    for (auto &value : base) value = tiny(0x1p-120);
    int64_t zeros = 0;
    for (size_t at = 0; at < wanted.size(); ++at) {
        const auto i = static_cast<int64_t>(at) / cols, j = static_cast<int64_t>(at) % cols;
        wanted[at] = element(
            FCM_BF16, depth, [&](int64_t k) { return a[static_cast<size_t>(i * depth + k)]; },
            [&](int64_t k) { return b[static_cast<size_t>(k * cols + j)]; }, at % 2 == 0 ? &base[at] : nullptr, 0.01f, 1.0f);
        zeros += wanted[at] == 0.0f ? 1 : 0;
    }
    CHECK(zeros > 20 && zeros < rows * cols - 20, "%ld zeros", long(zeros));
    for (const int32_t isa : isas()) {
        if (isa == FCM_ISA_BASELINE) continue;  // its products lose what is below the range before they are added
        std::vector<float> with(wanted.size()), without(wanted.size());
        fcm::Product p{rows, cols, depth, false, a.data(), depth, 1, b.data(), cols, 1, base.data(), with.data(), 0.01f, 1.0f, FCM_BF16};
        multiply(kernels_of(isa), p);
        p.base = nullptr;
        p.out = without.data();
        multiply(kernels_of(isa), p);
        Difference difference;
        for (size_t at = 0; at < wanted.size(); ++at) difference.add(at % 2 == 0 ? with[at] : without[at], wanted[at]);
        CHECK(difference.wrong == 0, "isa %d: %ld differ", isa, long(difference.wrong));
    }
}

TEST(small_matrices_are_chains_in_their_order) {
    struct Shape {
        int64_t rows, cols;
    };
    for (const int32_t precision : {FCM_TF32, FCM_BF16}) {
        for (const auto &[rows, cols] :
             std::vector<Shape>{{1, 1}, {1, 7}, {7, 1}, {6, 25}, {25, 6}, {16, 150}, {17, 17}, {33, 31}, {64, 65}, {128, 131}, {90, 300}}) {
            Random random(7);
            const int64_t side = std::min(rows, cols), length = std::max(rows, cols);
            std::vector<float> x(static_cast<size_t>(rows * cols)), y(x.size());
            for (auto &value : x) value = static_cast<float>(random.uniform());
            const double factor = 1.0 / reference::norm(rows * cols, x.data());
            for (int64_t i = 0; i < rows; ++i) {
                for (int64_t j = 0; j < cols; ++j) {
                    const int64_t at = rows > cols ? i * cols + j : j * rows + i;
                    y[static_cast<size_t>(at)] = static_cast<float>(double{x[static_cast<size_t>(i * cols + j)]} * factor);
                }
            }
            const std::vector<float> wanted = iterate(precision, side, length, y);
            for (const int32_t isa : isas()) {
                const fcm::Kernels &kernels = kernels_of(isa);
                Small small(side, length, precision);
                kernels.schulz_load(small.w, x.data(), rows, cols, factor);
                for (const auto &c : kSteps) kernels.schulz_step(small.w, c[0], c[1], c[2]);
                std::vector<float> o(x.size());
                kernels.schulz_store(small.w, rows, cols, o.data(), nullptr, 0.0f);
                Difference difference;
                for (int64_t i = 0; i < rows; ++i) {
                    for (int64_t j = 0; j < cols; ++j) {
                        const int64_t at = rows > cols ? i * cols + j : j * rows + i;
                        difference.add(o[static_cast<size_t>(i * cols + j)], wanted[static_cast<size_t>(at)]);
                    }
                }
                CHECK(isa == FCM_ISA_BASELINE ? difference.worst <= 0.05 : difference.wrong == 0,
                      "isa %d, %s, %ld x %ld: %ld of %ld differ, by %g", isa, name_of(precision), long(rows), long(cols),
                      long(difference.wrong), long(rows * cols), difference.worst);
                CHECK(small.room.guards_intact(), "guards, %ld x %ld", long(rows), long(cols));
            }
        }
    }
}

#if defined(FCM_X86_64)
TEST(the_state_of_the_thread_is_left_as_it_was) {
    const std::vector<float> x(100, 0.1f);
    for (const int32_t isa : isas()) {
        const unsigned before = _mm_getcsr();
        Small small(10, 10, FCM_BF16);
        kernels_of(isa).schulz_load(small.w, x.data(), 10, 10, 1.0);
        kernels_of(isa).schulz_step(small.w, 1.5f, -0.5f, 0.0f);
        std::vector<float> out(100);
        multiply(kernels_of(isa),
                 fcm::Product{10, 10, 10, false, x.data(), 10, 1, x.data(), 10, 1, nullptr, out.data(), 0.0f, 1.0f, FCM_BF16});
        constexpr unsigned kControl = 0xffc0u;  // the other bits say what has happened
        CHECK((_mm_getcsr() & kControl) == (before & kControl), "isa %d: %x, was %x", isa, _mm_getcsr(), before);
    }
}
#endif

namespace {

// The operation on small and large matrices, wide and tall, plain and in Gram form.
struct Schulz {
    static constexpr int64_t kClients = 3;
    std::vector<fcm_matrix_block> blocks;
    std::vector<double> coefficients;
    std::vector<int64_t> restarts;
    int64_t length = 0;
    std::vector<float> m, o, w;

    explicit Schulz(int64_t steps, double size = 1.0) {
        struct Shape {
            int64_t rows, cols, gram;
        };
        for (const auto &[rows, cols, gram] :
             std::vector<Shape>{{6, 25, 0}, {120, 65, 0}, {129, 150, 0}, {161, 133, 0}, {40, 101, 1}, {300, 131, 1}}) {
            blocks.push_back({rows, cols, length, length, length, 0.5, gram});
            length += rows * cols;
        }
        for (int64_t i = 0; i < steps; ++i) coefficients.insert(coefficients.end(), {3.4445, -4.7750, 2.0315});
        if (steps > 2) restarts.push_back(2);
        m.resize(static_cast<size_t>(kClients * length));
        o.resize(m.size());
        w.resize(m.size());
        Random random(8);
        for (auto &value : m) value = static_cast<float>(random.uniform() * size);
        random.fill(w);
    }

    void run(int32_t precision, int32_t threads, int32_t isa) {
        Device device(threads, isa);
        const Iteration iteration =
            Iteration(coefficients.data(), static_cast<int64_t>(coefficients.size() / 3), 1.0, precision)
                .restarting(restarts.data(), static_cast<int64_t>(restarts.size()));
        const auto count = static_cast<int64_t>(blocks.size());
        int64_t bytes = 0;
        fcm_error error{};
        CHECK(fcm_newton_schulz_workspace(device, kClients, blocks.data(), count, iteration, &bytes, &error) == FCM_OK, "%s",
              error.message);
        Doubles workspace(1, (bytes + 7) / 8, 1);
        workspace.fill(std::numeric_limits<double>::quiet_NaN());
        CHECK(fcm_newton_schulz(device, kClients, blocks.data(), count, iteration, 0.25, m.data(), length, o.data(), length,
                                w.data(), length, workspace.data(), workspace.bytes(), &error) == FCM_OK,
              "%s", error.message);
        CHECK(workspace.guards_intact(), "the workspace was left");
    }
};

}  // namespace

TEST(the_operation_gives_the_same_bits_in_every_precision) {
    for (const int32_t precision : {FCM_TF32, FCM_BF16}) {
        Schulz first(5);
        const std::vector<float> before = first.w;
        first.run(precision, 1, isas().back());
        for (size_t i = 0; i < before.size(); ++i) {
            const float step = 0.125f * first.o[i];
            CHECK(first.w[i] == before[i] - step, "w moves by eta scale o, rounded to fp32");
            if (precision == FCM_BF16) CHECK(bits_of(first.o[i]) << 16 == 0, "%a is no bf16", double{first.o[i]});
        }
        for (const int32_t isa : isas()) {
            for (const int32_t threads : {1, 2, 4}) {
                Schulz other(5);
                other.run(precision, threads, isa);
                CHECK(isa == FCM_ISA_BASELINE || (other.o == first.o && other.w == first.w), "isa %d, %d threads, %s", isa, threads,
                      name_of(precision));
            }
        }
    }
}

// Five steps multiply an error by up to 485. A rounding to tf32 is an error of up to 2^-11, one to bf16 of 2^-8, of single
// elements; few singular directions of random matrices get all of that. Each bound is twice the largest error measured.
TEST(the_operation_is_near_a_reference_in_double) {
    std::vector<double> wanted;  // of one call, with the results of all
    {
        const Schulz call(5);
        wanted.resize(call.m.size());
        for (int64_t k = 0; k < Schulz::kClients; ++k) {
            for (const fcm_matrix_block &block : call.blocks) {
                const auto at = static_cast<size_t>(k * call.length + block.m_offset);
                const reference::Matrix result =
                    reference::newton_schulz(block.rows, block.cols, call.m.data() + at, call.coefficients, 1.0);
                std::copy(result.values.begin(), result.values.end(), wanted.begin() + static_cast<std::ptrdiff_t>(at));
            }
        }
    }
    for (const auto &[precision, bound] : std::vector<std::pair<int32_t, double>>{{FCM_TF32, 0.005}, {FCM_BF16, 0.025}}) {
        for (const int32_t isa : isas()) {
            Schulz call(5);
            call.run(precision, 2, isa);
            double worst = 0.0;
            for (int64_t k = 0; k < Schulz::kClients; ++k) {
                for (const fcm_matrix_block &block : call.blocks) {
                    const auto at = static_cast<size_t>(k * call.length + block.m_offset);
                    for (size_t i = at; i < at + static_cast<size_t>(block.rows * block.cols); ++i) {
                        worst = std::max(worst, std::fabs(double{call.o[i]} - wanted[i]));
                    }
                }
            }
            std::printf("isa %d, %s: worst error of O %.3g, allowed %g\n", isa, name_of(precision), worst, bound);
            CHECK(worst <= bound, "isa %d, %s: %g", isa, name_of(precision), worst);
        }
    }
}

// The norm and the division by it are in double, whatever the precision.
TEST(scale_does_not_matter_in_any_precision) {
    for (const int32_t precision : {FCM_TF32, FCM_BF16}) {
        Schulz usual(3);
        usual.run(precision, 2, FCM_ISA_AUTO);
        for (const double size : {0x1p-140, 0x1p120}) {
            Schulz scaled(3);
            for (size_t i = 0; i < scaled.m.size(); ++i) {
                // few digits, so that they are the same numbers below the normal range
                usual.m[i] = static_cast<float>(std::round(double{usual.m[i]} * 256.0) / 256.0);
                scaled.m[i] = static_cast<float>(double{usual.m[i]} * size);
            }
            usual.run(precision, 2, FCM_ISA_AUTO);
            scaled.run(precision, 2, FCM_ISA_AUTO);
            CHECK(usual.o == scaled.o, "%s, %g", name_of(precision), size);
        }
    }
}

TEST(no_steps_round_to_bf16) {
    for (const int32_t isa : isas()) {
        Schulz call(0);
        call.run(FCM_BF16, 2, isa);
        for (int64_t k = 0; k < Schulz::kClients; ++k) {
            for (const fcm_matrix_block &block : call.blocks) {
                const auto at = static_cast<size_t>(k * call.length + block.m_offset);
                const double norm = reference::norm(block.rows * block.cols, call.m.data() + at);
                int64_t wrong = 0;
                for (size_t i = at; i < at + static_cast<size_t>(block.rows * block.cols); ++i) {
                    const double wanted = double{call.m[i]} / norm;
                    wrong += std::fabs(double{call.o[i]} - wanted) > 0x1.01p-8 * std::fabs(wanted) || bits_of(call.o[i]) << 16 != 0;
                }
                CHECK(wrong == 0, "isa %d, %ld x %ld: %ld", isa, long(block.rows), long(block.cols), long(wrong));
            }
        }
    }
}
