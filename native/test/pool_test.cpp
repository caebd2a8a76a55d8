// The thread pool: results stay correct over thousands of short loops, and sums keep their order. The main test for
// ThreadSanitizer.
#include <thread>

#include "support.h"

namespace {

// Small integers and a = 1/2 are exact in float, so correct results are equal.
float start_of(int64_t i) { return static_cast<float>(i % 64); }
float fresh_of(int64_t i) { return static_cast<float>(i % 48 - 20); }

// Loops of 2 to 12 pieces, long enough to wake the pool, with one NaN to find; returns false if anything is wrong.
bool rounds(fcm_context *context, int64_t count, int64_t seed) {
    constexpr int64_t kMost = 4 * 36000;
    std::vector<float> x(kMost), y(kMost);
    std::vector<double> workspace(64);
    for (int64_t round = 0; round < count; ++round) {
        const int64_t clients = 1 + (round + seed) % 4;
        const int64_t n = 32768 / clients + 1 + round * 37 % 3000;
        const int64_t size = clients * n;
        for (int64_t i = 0; i < size; ++i) x[static_cast<size_t>(i)] = fresh_of(i);
        for (int64_t i = 0; i < size; ++i) y[static_cast<size_t>(i)] = start_of(i);
        if (fcm_ema(context, clients, n, 0.5, x.data(), n, y.data(), n, nullptr) != FCM_OK) return false;
        for (int64_t i = 0; i < size; ++i) {
            if (y[static_cast<size_t>(i)] != 0.5f * fresh_of(i) + 0.5f * start_of(i)) return false;
        }
        double norms[4] = {-1.0, -1.0, -1.0, -1.0};
        if (fcm_norm(context, clients, n, x.data(), n, norms, workspace.data(), 512, nullptr) != FCM_OK) return false;
        for (int64_t k = 0; k < clients; ++k) {
            double sum = 0.0;
            for (int64_t j = 0; j < n; ++j) {
                const auto value = double{x[static_cast<size_t>(k * n + j)]};
                sum += value * value;
            }
            if (norms[k] != std::sqrt(sum)) return false;
        }
        const int64_t planted = round * 7919 % size;
        y[static_cast<size_t>(planted)] = kNaN;
        y[static_cast<size_t>(size - 1)] = kInf;
        int64_t client = -1;
        int64_t index = -1;
        if (fcm_all_finite(context, clients, n, y.data(), n, &client, &index, nullptr) != FCM_OK) return false;
        if (client != planted / n || index != planted % n) return false;
    }
    return true;
}

}  // namespace

// Three loops per iteration.
TEST(two_thousand_loops_are_right) {
    Device device(4);
    CHECK(rounds(device, 700, 0), "a result was wrong");
}

TEST(more_threads_than_work) {
    Device device(16);
    CHECK(rounds(device, 40, 1), "a result was wrong");
}

// Contexts are virtual devices and must not share any state.
TEST(two_contexts_work_at_once) {
    Device one(2);
    Device two(3);
    bool right[2] = {false, false};
    std::thread first([&] { right[0] = rounds(one, 60, 2); });
    std::thread second([&] { right[1] = rounds(two, 60, 3); });
    first.join();
    second.join();
    CHECK(right[0] && right[1], "a result was wrong");
}

// One thread at a time, but not always the same one.
TEST(a_context_moves_between_threads) {
    Device device(2);
    for (int i = 0; i < 10; ++i) {
        bool right = false;
        std::thread([&] { right = rounds(device, 3, i); }).join();
        CHECK(right, "a result was wrong");
    }
}

// A thread that is stopped before it has started to wait must not sleep forever.
TEST(contexts_come_and_go) {
    for (int32_t i = 0; i < 200; ++i) {
        Device device(1 + i % 5);
        if (i % 20 == 0) CHECK(rounds(device, 1, i), "a result was wrong");
    }
}

// The order of a norm's sums, which no number of threads and no instruction set may change: sixteen lanes of doubles for each
// piece of 16384 elements, their halves added up, then the pieces.
TEST(norms_are_summed_in_their_order) {
    constexpr int64_t kPiece = 16384;
    constexpr int64_t kLanes = 16;
    constexpr int64_t kClients = 2;
    for (const int64_t n : {4 * kPiece - 1, 4 * kPiece, 9 * kPiece + 21}) {
        Floats x(kClients, n);
        Random random(3);
        for (int64_t k = 0; k < kClients; ++k) {
            for (int64_t j = 0; j < n; ++j) x[k][j] = random.value();
        }
        for (const int32_t isa : isas()) {
            Device device(3, isa);
            const auto workspace = sum_workspace(device, kClients, n);
            double norms[kClients];
            fcm_error error{};
            CHECK(fcm_norm(device, kClients, n, x.data(), x.stride(), norms, workspace->data(), workspace->bytes(), &error) ==
                      FCM_OK,
                  "%s", error.message);
            for (int64_t k = 0; k < kClients; ++k) {
                double total = 0.0;
                for (int64_t piece = 0; piece < n; piece += kPiece) {
                    double lane[kLanes] = {};
                    for (int64_t j = piece; j < std::min(n, piece + kPiece); ++j) {
                        lane[(j - piece) % kLanes] += double{x[k][j]} * double{x[k][j]};
                    }
                    for (int64_t half = kLanes / 2; half > 0; half /= 2) {
                        for (int64_t i = 0; i < half; ++i) lane[i] += lane[i + half];
                    }
                    total += lane[0];
                }
                CHECK(norms[k] == std::sqrt(total), "%ld elements, isa %d, client %ld: %.17g, not %.17g", long(n), isa,
                      long(k), norms[k], std::sqrt(total));
            }
        }
    }
}
