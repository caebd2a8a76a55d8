// The functions of tensor_cores.h, as the source simulator executes them and as the interpreter executes what nvcc makes of
// them, against plain loops and against each other.
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "support.h"
#include "tensor_cores.cu"

namespace {

uint32_t bits_of(float x) {
    uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    return bits;
}
float float_of(uint32_t bits) {
    float x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}

float truncated(float x, unsigned bits) { return float_of(bits_of(x) >> bits << bits); }

std::vector<float> numbers(size_t count, unsigned seed) {
    std::mt19937 generator(seed);
    std::normal_distribution<float> normal;
    std::vector<float> all(count);
    for (float &x : all) x = normal(generator);
    return all;
}

std::vector<uint16_t> brains(const std::vector<float> &from) {
    std::vector<uint16_t> all;
    for (const float x : from) all.push_back(static_cast<uint16_t>(bits_of(x) >> 16));
    return all;
}

float brain(uint16_t bits) { return float_of(static_cast<uint32_t>(bits) << 16); }

// Both simulations, each in several orders.
template <class Body>
void everywhere(Body body) {
    for (const std::string &order : orders()) {
        {
            const Simulated machine({{"ORDER", order}});
            body("source " + order);
        }
        const Simulated machine({{"ORDER", order}, {"ENGINE", "ptx"}, {"PTX", FCM_FIXTURES "/tensor_cores.ptx"}});
        body("ptx " + order);
    }
}

// c + the sum over k of a(i, k) b(k, j), rounded once.
template <class A, class B>
std::vector<float> product(const std::vector<float> &c, int depth, A a, B b) {
    std::vector<float> result(c);
    for (int i = 0; i < 16; ++i) {
        for (int j = 0; j < 8; ++j) {
            double sum = static_cast<double>(c[static_cast<size_t>(i * 8 + j)]);
            for (int k = 0; k < depth; ++k) sum += static_cast<double>(a(i, k)) * static_cast<double>(b(k, j));
            result[static_cast<size_t>(i * 8 + j)] = static_cast<float>(sum);
        }
    }
    return result;
}

void same(const std::vector<float> &found, const std::vector<float> &expected, const std::string &where) {
    for (size_t e = 0; e < expected.size(); ++e) {
        CHECK(bits_of(found[e]) == bits_of(expected[e]), "%s, %zu: %g instead of %g", where.c_str(), e,
              static_cast<double>(found[e]), static_cast<double>(expected[e]));
    }
}

size_t at(int i) { return static_cast<size_t>(i); }

}  // namespace

TEST(products_of_bf16) {
    const std::vector<uint16_t> a = brains(numbers(256, 1)), b = brains(numbers(128, 2));
    const std::vector<float> c = numbers(128, 3);
    const std::vector<float> straight = product(
        c, 16, [&](int i, int k) { return brain(a[at(i * 16 + k)]); }, [&](int k, int j) { return brain(b[at(j * 16 + k)]); });
    const std::vector<float> turned = product(
        c, 16, [&](int i, int k) { return brain(a[at(k * 16 + i)]); }, [&](int k, int j) { return brain(b[at(k * 8 + j)]); });
    everywhere([&](const std::string &where) {
        const Array<uint16_t> da(a), db(b);
        const Array<float> dc(c), de(c);
        LAUNCH(tc_bf16, dim3(1), dim3(32), 0, nullptr, da.data(), db.data(), dc.data());
        LAUNCH(tc_bf16_trans, dim3(1), dim3(32), 0, nullptr, da.data(), db.data(), de.data());
        same(dc.values(), straight, where);
        same(de.values(), turned, where + ", transposed");
    });
}

TEST(products_of_tf32) {
    const std::vector<float> a = numbers(128, 4), b = numbers(64, 5), c = numbers(128, 6);
    const auto rounded = [](float x) { return float_of((bits_of(x) + 0x1000) & ~0x1fffu); };
    const std::vector<float> cut = product(
        c, 8, [&](int i, int k) { return truncated(a[at(i * 8 + k)], 13); },
        [&](int k, int j) { return truncated(b[at(j * 8 + k)], 13); });
    const std::vector<float> nearest = product(
        c, 8, [&](int i, int k) { return rounded(a[at(i * 8 + k)]); }, [&](int k, int j) { return rounded(b[at(j * 8 + k)]); });
    everywhere([&](const std::string &where) {
        const Array<float> da(a), db(b), dc(c), de(c);
        LAUNCH(tc_tf32, dim3(1), dim3(32), 0, nullptr, da.data(), db.data(), dc.data(), 0);
        LAUNCH(tc_tf32, dim3(1), dim3(32), 0, nullptr, da.data(), db.data(), de.data(), 1);
        same(dc.values(), cut, where);
        same(de.values(), nearest, where + ", rounded");
    });
}

TEST(a_product_that_is_not_a_number) {
    std::vector<uint16_t> a(256, 0), b(128, 0);
    a[16 * 3 + 5] = 0x7f80;  // infinity times zero, in row 3 only
    everywhere([&](const std::string &where) {
        const Array<uint16_t> da(a), db(b);
        const Array<float> dc(std::vector<float>(128, 1.0f));
        LAUNCH(tc_bf16, dim3(1), dim3(32), 0, nullptr, da.data(), db.data(), dc.data());
        const std::vector<float> c = dc.values();
        for (size_t e = 0; e < 128; ++e) {
            CHECK(bits_of(c[e]) == (e / 8 == 3 ? 0x7fffffffu : bits_of(1.0f)), "%s, %zu: %x", where.c_str(), e, bits_of(c[e]));
        }
    });
}

TEST(conversions) {
    std::vector<float> x = numbers(64, 7);
    // Ties to even and away from zero, the largest number, zeros, infinities, NaN, the smallest ones.
    const uint32_t special[] = {0x3f808000, 0x3f818000, 0x3f801000, 0xbf801000, 0x7f7fffff, 0xff7fffff, 0x00000000, 0x80000000,
                                0x7f800000, 0xff800000, 0x7fc00000, 0xff812345, 0x00000001, 0x80000001, 0x00007fff, 0x00008001};
    for (size_t i = 0; i < std::size(special); ++i) x[i] = float_of(special[i]);
    const auto to_brain = [](float v) -> uint32_t {
        if (std::isnan(v)) return 0x7fff;
        const uint32_t bits = bits_of(v), lost = bits & 0xffff;
        return (bits >> 16) + (lost > 0x8000 || (lost == 0x8000 && (bits >> 16 & 1)) ? 1 : 0);
    };
    const auto to_tensor = [](float v) -> uint32_t {
        if (std::isnan(v)) return 0x7fffffff;
        return std::isinf(v) ? bits_of(v) : ((bits_of(v) >> 13) + (bits_of(v) >> 12 & 1)) << 13;
    };
    everywhere([&](const std::string &where) {
        const Array<float> in(x);
        const Array<uint32_t> out(160);
        LAUNCH(tc_convert, dim3(1), dim3(32), 0, nullptr, in.data(), out.data());
        const std::vector<uint32_t> found = out.values();
        for (size_t lane = 0; lane < 32; ++lane) {
            const uint32_t low = to_brain(x[2 * lane]), high = to_brain(x[2 * lane + 1]);
            const uint32_t expected[] = {low | high << 16, low << 16, high << 16, to_tensor(x[2 * lane]), to_tensor(x[2 * lane + 1])};
            for (size_t k = 0; k < 5; ++k) {
                CHECK(found[5 * lane + k] == expected[k], "%s, lane %zu, %zu: %x instead of %x", where.c_str(), lane, k,
                      found[5 * lane + k], expected[k]);
            }
        }
    });
}

TEST(a_lane_that_is_missing) {
    everywhere([](const std::string &where) {
        const Array<float> c(32);
        LAUNCH(tc_missing_lane, dim3(1), dim3(32), 0, nullptr, c.data());
        REFUSED(cudaErrorLaunchFailure, cudaDeviceSynchronize());
        const std::string words = cudasim::last_fault();
        CHECK(words.find("lane 7") != std::string::npos, "%s: %s", where.c_str(), words.c_str());
    });
}

TEST(a_row_that_is_not_aligned) {
    everywhere([](const std::string &where) {
        const Array<uint32_t> out(32);
        LAUNCH(tc_misaligned, dim3(1), dim3(32), 0, nullptr, out.data());
        REFUSED(cudaErrorLaunchFailure, cudaDeviceSynchronize());
        const std::string words = cudasim::last_fault();
        CHECK(words.find("8 more than a multiple of 16") != std::string::npos, "%s: %s", where.c_str(), words.c_str());
    });
}

// Host code chooses kernels by the compute capability.
TEST(the_device_fits_the_ptx) {
    const auto capability = [](int expected) {
        cudaDeviceProp properties;
        SUCCEEDS(cudaGetDeviceProperties(&properties, 0));
        CHECK(properties.major * 10 + properties.minor == expected, "%d.%d instead of %d", properties.major, properties.minor,
              expected);
    };
    {
        const Simulated machine({{"ENGINE", "ptx"}, {"PTX", FCM_FIXTURES "/kernels.ptx"}});
        capability(75);
    }
    {
        const Simulated machine({{"ENGINE", "ptx"}, {"PTX", FCM_FIXTURES "/tensor_cores.ptx"}});
        capability(89);
    }
    {
        const Simulated machine({{"ENGINE", "ptx"}, {"PTX", FCM_FIXTURES "/tensor_cores.ptx"}, {"ARCH", "120"}});
        capability(120);
    }
    const Simulated machine({{"ENGINE", "ptx"}, {"PTX", FCM_FIXTURES "/tensor_cores.ptx"}, {"ARCH", "75"}});
    int count = 0;
    REFUSED(cudaErrorInitializationError, cudaGetDeviceCount(&count));
}
