#include "cases.h"

#include <cstring>
#include <memory>
#include <stdexcept>

#include "iteration.h"
#include "operation_table.h"

namespace fcm::profile {

namespace {

using Started = std::function<void()>;

void need(fcm_status status, const fcm_error &error) {
    if (status != FCM_OK) throw std::runtime_error(error.message);
}

// Memory of the device, in the order of a deterministic allocator, so that addresses have the same alignment in every run.
class Buffer {
public:
    Buffer(fcm_context *context, int64_t bytes) : context_(context) {
        fcm_error error{};
        need(fcm_buffer_allocate(context, bytes > 0 ? bytes : 1, &address_, &error), error);
    }
    Buffer(fcm_context *context, const void *values, int64_t bytes) : Buffer(context, bytes) {
        fcm_error error{};
        if (bytes > 0) need(fcm_copy_in(context_, address_, values, bytes, &error), error);
    }
    ~Buffer() { (void)fcm_buffer_free(context_, address_, nullptr); }
    Buffer(const Buffer &) = delete;
    Buffer &operator=(const Buffer &) = delete;

    void *address() const { return address_; }
    float *floats() const { return static_cast<float *>(address_); }

private:
    fcm_context *context_;
    void *address_ = nullptr;
};

std::vector<float> numbers(int64_t count, uint64_t seed) {
    std::vector<float> values(static_cast<size_t>(count));
    uint64_t state = seed;
    for (float &value : values) {
        value = static_cast<float>(static_cast<double>(static_cast<int64_t>(table::Data::split_mix(state))) * 0x1p-63);
    }
    return values;
}

std::unique_ptr<Buffer> matrix(fcm_context *context, int64_t count, uint64_t seed) {
    return std::make_unique<Buffer>(context, numbers(count, seed).data(), count * 4);
}

// An operation of the table of tests, with the first of its settings.
Case of_table(const table::Operation &operation, const table::Size &size, const std::string &variant) {
    Case c;
    c.title = std::string(operation.name) + ", " + std::to_string(size.clients) + " x " + std::to_string(size.n);
    if (!variant.empty()) c.title += ", " + variant;
    c.run = [operation, size](fcm_context *context, const Started &started) {
        const table::Parameters settings = operation.settings(size).front();
        table::Data data = table::data_of(operation, context, size, settings, 1);
        table::Placement placement;
        std::vector<std::unique_ptr<Buffer>> buffers;
        for (size_t i = 0; i < data.operands().size(); ++i) {
            const table::Operand &operand = data.operands()[i];
            placement.stride[i] = operand.length;
            if (operand.use == table::Use::kRoom) placement.room_bytes = operand.length * operand.element;
            if (operand.host) {
                placement.at[i] = data.bytes(i).data();
                continue;
            }
            buffers.push_back(
                std::make_unique<Buffer>(context, data.bytes(i).data(), static_cast<int64_t>(data.bytes(i).size())));
            placement.at[i] = buffers.back()->address();
        }
        if (operation.ready) operation.ready(context, size, settings, placement);
        started();
        fcm_error error{};
        need(operation.call(context, size, settings, placement, &error), error);
        need(fcm_synchronize(context, &error), error);
    };
    return c;
}

Case average_rows(int64_t clients, int64_t n) {
    Case c;
    c.title = "average_rows, " + std::to_string(clients) + " x " + std::to_string(n);
    c.run = [clients, n](fcm_context *context, const Started &started) {
        std::vector<std::unique_ptr<Buffer>> buffers;
        std::vector<const float *> rows;
        std::vector<float *> targets;
        for (int64_t k = 0; k < clients; ++k) {
            buffers.push_back(matrix(context, n, static_cast<uint64_t>(k + 1)));
            rows.push_back(buffers.back()->floats());
            targets.push_back(buffers.back()->floats());
        }
        started();
        fcm_error error{};
        need(fcm_average_rows(context, clients, n, nullptr, clients, rows.data(), clients, targets.data(), &error), error);
        need(fcm_synchronize(context, &error), error);
    };
    return c;
}

Case parts_of_a_mean(int64_t parts, int64_t n) {
    Case c;
    c.title = "parts of a mean, " + std::to_string(parts) + " x " + std::to_string(n);
    c.run = [parts, n](fcm_context *context, const Started &started) {
        std::vector<std::unique_ptr<Buffer>> buffers;
        std::vector<const uint8_t *> exponents;
        std::vector<const int64_t *> sums;
        std::vector<float *> targets;
        for (int64_t p = 0; p < parts; ++p) {
            const std::vector<uint8_t> bytes(static_cast<size_t>(n), static_cast<uint8_t>(120 + p));
            const std::vector<int64_t> longs(static_cast<size_t>(n), int64_t{1} << (50 + p));
            buffers.push_back(std::make_unique<Buffer>(context, bytes.data(), n));
            exponents.push_back(static_cast<const uint8_t *>(buffers.back()->address()));
            buffers.push_back(std::make_unique<Buffer>(context, longs.data(), n * 8));
            sums.push_back(static_cast<const int64_t *>(buffers.back()->address()));
            buffers.push_back(std::make_unique<Buffer>(context, n * 4));
            targets.push_back(buffers.back()->floats());
        }
        const Buffer largest(context, n);
        auto *to = static_cast<uint8_t *>(largest.address());
        started();
        fcm_error error{};
        need(fcm_mean_combine(context, parts, n, exponents.data(), to, &error), error);
        need(fcm_mean_finish(context, parts, n, 10, 10.0, sums.data(), to, parts, targets.data(), &error), error);
        need(fcm_synchronize(context, &error), error);
    };
    return c;
}

// Eigenvectors of which a quarter is left out, and a nearly diagonal matrix.
Case directions(int64_t clients, int64_t n) {
    Case c;
    c.title = "directions, " + std::to_string(clients) + " x " + std::to_string(n) + " x " + std::to_string(n);
    c.run = [clients, n](fcm_context *context, const Started &started) {
        const std::vector<int32_t> converged(static_cast<size_t>(clients), 0);
        std::vector<double> values(static_cast<size_t>(clients * n)), matrices(static_cast<size_t>(clients * n * n), 1e-3);
        for (int64_t i = 0; i < clients * n; ++i) {
            values[static_cast<size_t>(i)] = i % n < n / 4 ? 0.0 : static_cast<double>(i % n);
            matrices[static_cast<size_t>(i * n + i % n)] = 1.0;
        }
        const Buffer info(context, converged.data(), clients * 4), ascending(context, values.data(), clients * n * 8),
            vectors(context, matrices.data(), clients * n * n * 8), gram(context, matrices.data(), clients * n * n * 8),
            kept(context, clients * 8);
        started();
        fcm_error error{};
        need(fcm_keep_directions(context, clients, n, 1e-7, static_cast<const int32_t *>(info.address()),
                                 static_cast<const double *>(ascending.address()), static_cast<double *>(vectors.address()),
                                 static_cast<int64_t *>(kept.address()), &error),
             error);
        need(fcm_inverse_roots(context, clients, n, static_cast<double *>(gram.address()), &error), error);
        need(fcm_synchronize(context, &error), error);
    };
    return c;
}

Case rearrange_8(int64_t rows, int64_t cols) {
    Case c;
    c.title = "rearrange of 8 bytes, " + std::to_string(rows) + " x " + std::to_string(cols) + " transposed";
    c.run = [rows, cols](fcm_context *context, const Started &started) {
        const auto x = matrix(context, 2 * rows * cols, 1), y = matrix(context, 2 * rows * cols, 2);
        started();
        fcm_error error{};
        need(fcm_rearrange(context, 1, rows, cols, 8, x->address(), rows * cols, cols, 1, y->address(), rows * cols, 1, rows,
                           &error),
             error);
        need(fcm_synchronize(context, &error), error);
    };
    return c;
}

std::string shape(int64_t rows, int64_t cols) { return std::to_string(rows) + " x " + std::to_string(cols); }

Case newton_schulz(int64_t rows, int64_t cols, int64_t steps, int32_t precision = FCM_FP32) {
    Case c;
    c.title = "Newton-Schulz, " + shape(rows, cols);
    if (precision != FCM_FP32) c.title += precision == FCM_TF32 ? " in tf32" : " in bf16";
    c.run = [rows, cols, steps, precision](fcm_context *context, const Started &started) {
        const fcm_matrix_block block{rows, cols, 0, 0, 0, 1.0, 0};
        const Iteration iteration(table::schulz_coefficients().data(), steps, 1.0, precision);
        const int64_t count = rows * cols;
        const auto m = matrix(context, count, 1), w = matrix(context, count, 2);
        fcm_error error{};
        int64_t bytes = 0;
        need(fcm_newton_schulz_workspace(context, 1, &block, 1, iteration, &bytes, &error), error);
        const Buffer room(context, bytes);
        const fcm_status ready = fcm_newton_schulz_prepare(context, 1, &block, 1, iteration, room.address(), bytes, &error);
        // A kernel that is there, but that no case launches, is an error anyway.
        if (ready == FCM_UNSUPPORTED) return;
        need(ready, error);
        started();
        need(fcm_newton_schulz(context, 1, &block, 1, iteration, 0.02, m->floats(), count, nullptr, 0, w->floats(), count,
                               room.address(), bytes, &error),
             error);
        need(fcm_synchronize(context, &error), error);
    };
    return c;
}

}  // namespace

std::vector<Case> all_cases() {
    std::vector<Case> all;
    const table::Size size{2, 16384};
    for (const table::Operation &operation : table::operations()) {
        const std::string name = operation.name;
        // These have sizes of their own below.
        if (name == "newton_schulz" || name == "multiply") continue;
        // Some have several entries.
        const auto before = std::count_if(all.begin(), all.end(), [&](const Case &c) { return c.title.rfind(name + ",", 0) == 0; });
        all.push_back(of_table(operation, size, before == 0 ? "" : std::to_string(before + 1)));
    }
    all.push_back(average_rows(size.clients, size.n));
    all.push_back(average_rows(10, size.n));  // the paper's clients
    all.push_back(average_rows(20, size.n));  // more than are kept in registers
    all.push_back(parts_of_a_mean(2, size.n));
    all.push_back(rearrange_8(128, 128));
    all.push_back(directions(2, 120));
    // Small ones, all steps in one launch; and large ones, a launch for each product, of which one step shows all.
    for (const int64_t side : {64, 96, 120, 128}) all.push_back(newton_schulz(side, side, 5));
    all.push_back(newton_schulz(120, 256, 5));
    all.push_back(newton_schulz(128, 512, 5));
    all.push_back(newton_schulz(192, 192, 1));
    all.push_back(newton_schulz(768, 768, 1));
    // On tensor cores, where the device has them.
    for (const int32_t precision : {FCM_TF32, FCM_BF16}) {
        for (const int64_t side : {64, 96, 120, 128}) all.push_back(newton_schulz(side, side, 5, precision));
        all.push_back(newton_schulz(120, 256, 5, precision));
        all.push_back(newton_schulz(128, 512, 5, precision));
        all.push_back(newton_schulz(192, 192, 1, precision));
        all.push_back(newton_schulz(768, 768, 1, precision));
    }
    return all;
}

}  // namespace fcm::profile
