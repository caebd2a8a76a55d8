// Entry points of the operations. Their arguments are checked here, once for all devices.
#include <algorithm>
#include <cinttypes>
#include <cmath>

#include "entry.h"
#include "schulz_program.h"

namespace fcm {
namespace {

constexpr int64_t kFloat = sizeof(float);
constexpr int64_t kDouble = sizeof(double);
constexpr const char *kNoPlace = "the place for the answer is null";

// ---- Sums ----

// The workspace holds one sum per piece.
int64_t sum_bytes(Arguments &arguments, int64_t clients, int64_t n) {
    if (!arguments.ok()) return 0;
    const int64_t pieces = n / device::sum_piece + (n % device::sum_piece != 0 ? 1 : 0);
    int64_t bytes = 0;
    arguments.require(product(clients, pieces, &bytes) && product(bytes, kDouble, &bytes), "the workspace does not fit int64");
    return arguments.ok() ? bytes : 0;
}

// One norm for each client that has elements.
Arguments &norms_of(Arguments &arguments, int64_t clients, int64_t n, const double *norms, bool written) {
    const int64_t used = n > 0 ? clients : 0;
    return arguments.batch("norms", norms, 1, used, used, kDouble, written);
}

Arguments &projection(Arguments &arguments, int64_t clients, int64_t n, double radius, const double *norms) {
    arguments.require(radius > 0.0, "radius = %g is not positive", radius);
    return norms_of(arguments, clients, n, norms, false);
}

// The contraction reads d * n elements of H per client.
int64_t jacobian_length(Arguments &arguments, int64_t n, int64_t d) {
    int64_t length = 0;
    arguments.require(d >= 1, "d = %" PRId64 " is less than 1", d);
    if (arguments.ok()) {
        arguments.require(product(n, d, &length), "n * d = %" PRId64 " * %" PRId64 " does not fit int64", n, d);
    }
    return length;
}

// ---- Means ----

// Weights of the terms that a mean has here; at least one is positive where the mean is finished.
void check_weights(Arguments &arguments, int64_t clients, const double *weights) {
    for (int64_t k = 0; arguments.ok() && weights != nullptr && k < clients; ++k) {
        arguments.require(weights[k] >= 0.0 && weights[k] <= 1.0, "weight %" PRId64 " is %g, which is outside [0, 1]", k,
                          weights[k]);
    }
}

int64_t positive_weights(int64_t clients, const double *weights) {
    if (weights == nullptr) return clients;
    return clients - std::count(weights, weights + clients, 0.0);
}

// `here` is how many of the terms are on this device.
void check_terms(Arguments &arguments, int64_t terms, int64_t here) {
    arguments.require(terms >= 1 && terms <= FCM_MOST_TERMS, "terms = %" PRId64 " is outside [1, %" PRId64 "]", terms,
                      FCM_MOST_TERMS)
        .require(here <= terms, "there are %" PRId64 " positive weights, but terms = %" PRId64, here, terms);
}

// What a mean that is finished here is made of.
void check_mean(Arguments &arguments, int64_t clients, const double *weights, int64_t terms) {
    check_weights(arguments, clients, weights);
    if (!arguments.ok()) return;
    const int64_t here = positive_weights(clients, weights);
    arguments.require(here > 0, "no weight is positive");
    check_terms(arguments, terms, here);
}

// n elements at an address of a table.
template <class Element>
void check_row(Arguments &arguments, const char *name, int64_t number, const Element *row, int64_t n) {
    constexpr int64_t kElement = sizeof(Element);
    const auto address = reinterpret_cast<uintptr_t>(row);
    int64_t bytes = 0;
    int64_t end = 0;
    arguments.require(row != nullptr, "%s %" PRId64 " is null", name, number)
        .require(address % kElement == 0, "%s %" PRId64 " is not aligned to its elements of %" PRId64 " bytes", name, number,
                 kElement)
        .require(product(n, kElement, &bytes) && sum(static_cast<int64_t>(address), bytes, &end),
                 "%s %" PRId64 " with %" PRId64 " elements does not fit the address space", name, number, n);
}

bool meet(const void *a, int64_t a_bytes, const void *b, int64_t b_bytes) {
    const auto first = reinterpret_cast<uintptr_t>(a);
    const auto second = reinterpret_cast<uintptr_t>(b);
    return first < second + static_cast<uintptr_t>(b_bytes) && second < first + static_cast<uintptr_t>(a_bytes);
}

// Every target has a place of its own. meets_operand(target) returns whether it overlaps what is not a target.
template <class MeetsOperand>
void check_targets(Arguments &arguments, int64_t count, float *const *targets, int64_t n, MeetsOperand &&meets_operand) {
    for (int64_t t = 0; arguments.ok() && t < count; ++t) {
        check_row(arguments, "target", t, targets[t], n);
        if (!arguments.ok()) return;
        const int64_t bytes = n * kFloat;
        const char *operand = meets_operand(targets[t], bytes);
        arguments.require(operand == nullptr, "target %" PRId64 " overlaps %s", t, operand == nullptr ? "" : operand);
        for (int64_t other = 0; arguments.ok() && other < t; ++other) {
            arguments.require(!meet(targets[t], bytes, targets[other], bytes), "target %" PRId64 " overlaps target %" PRId64, t,
                              other);
        }
    }
}

// ---- Blocks of a client ----

inline int64_t size_of(const fcm_matrix_block &block) { return block.rows * block.cols; }
inline int64_t size_of(const fcm_vector_block &block) { return block.n; }

template <class Block>
struct Blocks {
    int64_t clients;
    const Block *at;
    int64_t count;

    int64_t size(int64_t i) const { return size_of(at[i]); }
};

void check_block(Arguments &arguments, int64_t i, const fcm_matrix_block &b) {
    int64_t size = 0;
    arguments.require(b.rows >= 0 && b.cols >= 0, "block %" PRId64 " is %" PRId64 " x %" PRId64, i, b.rows, b.cols)
        .require(product(b.rows, b.cols, &size), "block %" PRId64 " does not fit int64", i)
        .require(b.gram == 0 || b.gram == 1, "block %" PRId64 " has gram = %" PRId64, i, b.gram);
}
void check_block(Arguments &arguments, int64_t i, const fcm_vector_block &b) {
    arguments.require(b.n >= 0, "block %" PRId64 " has %" PRId64 " elements", i, b.n);
}

template <class Block>
void check_blocks(Arguments &arguments, const Blocks<Block> &blocks) {
    arguments.require(blocks.clients >= 0, "clients = %" PRId64 " is negative", blocks.clients)
        .require(blocks.count >= 0, "block_count = %" PRId64 " is negative", blocks.count)
        .require(blocks.count == 0 || blocks.at != nullptr, "the table of blocks is null");
    for (int64_t i = 0; arguments.ok() && i < blocks.count; ++i) check_block(arguments, i, blocks.at[i]);
}

template <class Block>
void check_scales(Arguments &arguments, const Blocks<Block> &blocks) {
    for (int64_t i = 0; arguments.ok() && i < blocks.count; ++i) {
        arguments.require(std::isfinite(blocks.at[i].scale), "the scale of block %" PRId64 " is %g", i, blocks.at[i].scale);
    }
}

// The range that the blocks of one client span from its base; the whole range is treated as one operand of the batch.
template <class Block>
void check_operand(Arguments &arguments, const Blocks<Block> &blocks, const char *name, const float *base, int64_t stride,
                   int64_t Block::*offset, bool written) {
    int64_t reach = 0;
    for (int64_t i = 0; arguments.ok() && i < blocks.count; ++i) {
        const int64_t start = blocks.at[i].*offset;
        int64_t end = 0;
        arguments.require(start >= 0 && sum(start, blocks.size(i), &end),
                          "the offset of block %" PRId64 " in %s is %" PRId64, i, name, start);
        reach = std::max(reach, end);
    }
    arguments.batch(name, base, blocks.clients, reach, stride, kFloat, written);
    if (!written) return;
    for (int64_t i = 0; arguments.ok() && i < blocks.count; ++i) {
        for (int64_t j = i + 1; arguments.ok() && j < blocks.count; ++j) {
            const int64_t a = blocks.at[i].*offset;
            const int64_t b = blocks.at[j].*offset;
            arguments.require(a + blocks.size(i) <= b || b + blocks.size(j) <= a,
                              "blocks %" PRId64 " and %" PRId64 " overlap in %s", i, j, name);
        }
    }
}

// Limits the sizes so that a device can compute the size of its workspace: below these no product overflows, because a
// workspace has less than 64 bytes per element of a block and of the square of its short side.
constexpr int64_t kMost = int64_t{1} << 40;
// The side of a matrix that is a factor of a product.
constexpr int64_t kMostSide = int64_t{1} << 31;
int64_t length_of(const fcm_matrix_block &block) { return std::max(block.rows, block.cols); }
int64_t most_length(const fcm_matrix_block &block) { return is_small(block) ? kMost : kMostSide; }
int64_t most_length(const fcm_vector_block &) { return kMost; }
int64_t length_of(const fcm_vector_block &block) { return block.n; }
double room_of(const fcm_matrix_block &block) {
    const auto side = static_cast<double>(std::min(block.rows, block.cols));
    return static_cast<double>(size_of(block)) + side * side;
}
double room_of(const fcm_vector_block &) { return 0.0; }

template <class Block>
void check_room(Arguments &arguments, const Blocks<Block> &blocks) {
    for (int64_t i = 0; arguments.ok() && i < blocks.count; ++i) {
        arguments.require(length_of(blocks.at[i]) < most_length(blocks.at[i]), "block %" PRId64 " is too long", i);
    }
    int64_t matrices = 0;
    if (!arguments.ok()) return;
    arguments.require(product(blocks.clients, blocks.count, &matrices) && matrices < kMost && blocks.count < kMost,
                      "%" PRId64 " clients of %" PRId64 " blocks are too many", blocks.clients, blocks.count);
    double room = 0.0;
    for (int64_t i = 0; arguments.ok() && i < blocks.count; ++i) room += static_cast<double>(blocks.clients) * room_of(blocks.at[i]);
    arguments.require(room < 0x1p56, "the workspace does not fit int64");
}

// The workspace of an operation on blocks, of which the device computes how much it needs: needed() is called if all is well.
template <class Block, class Needed>
Arguments &block_workspace(Arguments &arguments, const Blocks<Block> &blocks, const void *workspace, int64_t bytes,
                           Needed &&needed) {
    check_room(arguments, blocks);
    return arguments.workspace(workspace, bytes, arguments.ok() ? needed() : 0);
}

int64_t steps_room(const fcm_context *context, const Blocks<fcm_vector_block> &blocks, fcm_error *error) {
    int64_t bytes = 0;
    device::vector_steps_workspace(context, blocks.clients, blocks.at, blocks.count, &bytes, error);
    return bytes;
}

// ---- Newton-Schulz ----

void check_schulz(Arguments &arguments, const fcm_schulz *schulz) {
    arguments.require(schulz != nullptr, "the iteration is null");
    if (!arguments.ok()) return;
    const fcm_schulz &s = *schulz;
    arguments.require(s.steps >= 0 && s.steps <= 1000, "steps = %" PRId64 " is outside [0, 1000]", s.steps)
        .require(s.steps == 0 || s.coefficients != nullptr, "the coefficients are null")
        .require(s.divisor > 0.0 && std::isfinite(s.divisor), "divisor = %g is not a positive number", s.divisor)
        .require(s.restart_count >= 0 && s.restart_count <= s.steps, "restart_count = %" PRId64 " is outside [0, steps]",
                 s.restart_count)
        .require(s.restart_count == 0 || s.restarts != nullptr, "the restarts are null")
        .require(s.precision == FCM_FP32 || s.precision == FCM_TF32 || s.precision == FCM_BF16, "there is no precision %d",
                 s.precision);
    for (int64_t i = 0; arguments.ok() && i < 3 * s.steps; ++i) {
        arguments.require(std::isfinite(s.coefficients[i]), "coefficient %" PRId64 " is %g", i, s.coefficients[i]);
    }
    for (int64_t i = 0; arguments.ok() && i < s.restart_count; ++i) {
        arguments.require(s.restarts[i] > (i == 0 ? 0 : s.restarts[i - 1]) && s.restarts[i] < s.steps,
                          "restart %" PRId64 " is after step %" PRId64, i, s.restarts[i]);
    }
}

int64_t schulz_room(const fcm_context *context, const Blocks<fcm_matrix_block> &blocks, const fcm_schulz *schulz,
                    fcm_error *error) {
    int64_t bytes = 0;
    device::newton_schulz_workspace(context, blocks.clients, blocks.at, blocks.count, schulz, &bytes, error);
    return bytes;
}

// ---- Products ----

Arguments &sides(Arguments &arguments, int64_t rows, int64_t cols, int64_t depth) {
    return arguments.require(rows < kMostSide && cols < kMostSide && depth < kMostSide, "a side is over 2^31");
}

}  // namespace
}  // namespace fcm

using fcm::Arguments;
using fcm::enter;
using fcm::enter_with;
namespace entry = fcm::entry;

fcm_status fcm_ema(fcm_context *context, int64_t clients, int64_t n, double a, const float *x, int64_t x_stride, float *y,
                   int64_t y_stride, fcm_error *error) {
    const auto check = [&](Arguments &arguments) {
        arguments.sizes(clients, n).fraction("a", a);
        arguments.read("x", x, clients, n, x_stride).write("y", y, clients, n, y_stride).disjoint();
        return clients > 0 && n > 0;
    };
    return enter<entry::ema>(context, error, check, clients, n, a, x, x_stride, y, y_stride);
}

fcm_status fcm_compose_momentum(fcm_context *context, int64_t clients, int64_t n, int64_t d, double b, const float *h,
                                int64_t h_stride, const float *v, int64_t v_stride, float *m, int64_t m_stride,
                                fcm_error *error) {
    const auto check = [&](Arguments &arguments) {
        arguments.sizes(clients, n).fraction("b", b);
        const int64_t length = fcm::jacobian_length(arguments, n, d);
        arguments.read("h", h, clients, length, h_stride)
            .read("v", v, n > 0 ? clients : 0, d, v_stride)
            .write("m", m, clients, n, m_stride)
            .disjoint();
        return clients > 0 && n > 0;
    };
    return enter<entry::compose_momentum>(context, error, check, clients, n, d, b, h, h_stride, v, v_stride, m, m_stride);
}

fcm_status fcm_sum_workspace(const fcm_context *context, int64_t clients, int64_t n, int64_t *bytes, fcm_error *error) {
    const auto body = [&](Arguments &arguments) {
        arguments.sizes(clients, n).require(bytes != nullptr, fcm::kNoPlace);
        const int64_t needed = fcm::sum_bytes(arguments, clients, n);
        if (arguments.ok()) *bytes = needed;
        return arguments.status();
    };
    return enter_with<entry::sum_workspace>(context, error, body, clients, n, bytes);
}

fcm_status fcm_storm(fcm_context *context, int64_t clients, int64_t n, double g, const float *g_new, int64_t g_new_stride,
                     const float *g_old, int64_t g_old_stride, float *h, int64_t h_stride, double *norms, void *workspace,
                     int64_t workspace_bytes, fcm_error *error) {
    const auto check = [&](Arguments &arguments) {
        arguments.sizes(clients, n).fraction("g", g);
        arguments.read("g_new", g_new, clients, n, g_new_stride)
            .read("g_old", g_old, clients, n, g_old_stride)
            .write("h", h, clients, n, h_stride);
        fcm::norms_of(arguments, clients, n, norms, true);
        arguments.workspace(workspace, workspace_bytes, fcm::sum_bytes(arguments, clients, n)).disjoint();
        return clients > 0 && n > 0;
    };
    return enter<entry::storm>(context, error, check, clients, n, g, g_new, g_new_stride, g_old, g_old_stride, h, h_stride,
                               norms, workspace, workspace_bytes);
}

fcm_status fcm_project_compose_momentum(fcm_context *context, int64_t clients, int64_t n, int64_t d, double radius,
                                        const double *norms, double b, float *h, int64_t h_stride, const float *v,
                                        int64_t v_stride, float *m, int64_t m_stride, fcm_error *error) {
    const auto check = [&](Arguments &arguments) {
        arguments.sizes(clients, n).fraction("b", b);
        const int64_t length = fcm::jacobian_length(arguments, n, d);
        arguments.write("h", h, clients, length, h_stride)
            .read("v", v, n > 0 ? clients : 0, d, v_stride)
            .write("m", m, clients, n, m_stride);
        fcm::projection(arguments, clients, n, radius, norms).disjoint();
        return clients > 0 && n > 0;
    };
    return enter<entry::project_compose_momentum>(context, error, check, clients, n, d, radius, norms, b, h, h_stride, v,
                                                  v_stride, m, m_stride);
}

fcm_status fcm_project(fcm_context *context, int64_t clients, int64_t n, double radius, const double *norms, float *x,
                       int64_t x_stride, fcm_error *error) {
    const auto check = [&](Arguments &arguments) {
        arguments.sizes(clients, n).write("x", x, clients, n, x_stride);
        fcm::projection(arguments, clients, n, radius, norms).disjoint();
        return clients > 0 && n > 0;
    };
    return enter<entry::project>(context, error, check, clients, n, radius, norms, x, x_stride);
}

fcm_status fcm_norm(fcm_context *context, int64_t clients, int64_t n, const float *x, int64_t x_stride, double *norms,
                    void *workspace, int64_t workspace_bytes, fcm_error *error) {
    const auto check = [&](Arguments &arguments) {
        arguments.sizes(clients, n).read("x", x, clients, n, x_stride);
        fcm::norms_of(arguments, clients, n, norms, true);
        arguments.workspace(workspace, workspace_bytes, fcm::sum_bytes(arguments, clients, n)).disjoint();
        return clients > 0 && n > 0;
    };
    return enter<entry::norm>(context, error, check, clients, n, x, x_stride, norms, workspace, workspace_bytes);
}

fcm_status fcm_vector_step(fcm_context *context, int64_t clients, int64_t n, double eta, const float *m, int64_t m_stride,
                           float *w, int64_t w_stride, fcm_error *error) {
    const auto check = [&](Arguments &arguments) {
        arguments.sizes(clients, n)
            .require(std::isfinite(eta), "eta = %g is not finite", eta)
            .read("m", m, clients, n, m_stride)
            .write("w", w, clients, n, w_stride)
            .disjoint();
        return clients > 0 && n > 0;
    };
    return enter<entry::vector_step>(context, error, check, clients, n, eta, m, m_stride, w, w_stride);
}

fcm_status fcm_vector_steps_workspace(const fcm_context *context, int64_t clients, const fcm_vector_block *blocks,
                                      int64_t block_count, int64_t *bytes, fcm_error *error) {
    const auto check = [&](Arguments &arguments) {
        arguments.require(bytes != nullptr, fcm::kNoPlace);
        const fcm::Blocks<fcm_vector_block> all{clients, blocks, block_count};
        fcm::check_blocks(arguments, all);
        fcm::check_room(arguments, all);
        return true;
    };
    return enter<entry::vector_steps_workspace>(context, error, check, clients, blocks, block_count, bytes);
}

fcm_status fcm_vector_steps_prepare(fcm_context *context, int64_t clients, const fcm_vector_block *blocks, int64_t block_count,
                                    void *workspace, int64_t workspace_bytes, fcm_error *error) {
    const auto check = [&](Arguments &arguments) {
        const fcm::Blocks<fcm_vector_block> all{clients, blocks, block_count};
        fcm::check_blocks(arguments, all);
        fcm::check_scales(arguments, all);
        fcm::block_workspace(arguments, all, workspace, workspace_bytes,
                             [&] { return fcm::steps_room(context, all, error); });
        return clients > 0 && block_count > 0;
    };
    return enter<entry::vector_steps_prepare>(context, error, check, clients, blocks, block_count, workspace,
                                              workspace_bytes);
}

fcm_status fcm_vector_steps(fcm_context *context, int64_t clients, const fcm_vector_block *blocks, int64_t block_count,
                            int32_t rule, double eta, const float *m, int64_t m_stride, float *w, int64_t w_stride,
                            void *workspace, int64_t workspace_bytes, fcm_error *error) {
    const auto check = [&](Arguments &arguments) {
        const fcm::Blocks<fcm_vector_block> all{clients, blocks, block_count};
        arguments.require(rule == FCM_STEP_PLAIN || rule == FCM_STEP_NORMALIZED, "there is no step rule %d", rule)
            .require(std::isfinite(eta), "eta = %g is not finite", eta);
        fcm::check_blocks(arguments, all);
        fcm::check_scales(arguments, all);
        fcm::check_operand(arguments, all, "m", m, m_stride, &fcm_vector_block::m_offset, false);
        fcm::check_operand(arguments, all, "w", w, w_stride, &fcm_vector_block::w_offset, true);
        fcm::block_workspace(arguments, all, workspace, workspace_bytes,
                             [&] { return fcm::steps_room(context, all, error); })
            .disjoint();
        return clients > 0 && block_count > 0;
    };
    return enter<entry::vector_steps>(context, error, check, clients, blocks, block_count, rule, eta, m, m_stride, w,
                                      w_stride, workspace, workspace_bytes);
}

fcm_status fcm_adaptive_step(fcm_context *context, int64_t clients, int64_t n, int32_t rule, double beta1, double beta2,
                             double epsilon, double eta, const float *delta, int64_t delta_stride, float *m, int64_t m_stride,
                             float *v, int64_t v_stride, float *w, int64_t w_stride, fcm_error *error) {
    const auto check = [&](Arguments &arguments) {
        arguments.sizes(clients, n)
            .require(rule == FCM_ADAM || rule == FCM_YOGI, "there is no adaptive rule %d", rule)
            .decay("beta1", beta1)
            .decay("beta2", beta2)
            .require(epsilon > 0.0 && std::isfinite(epsilon), "epsilon = %g is not a positive number", epsilon)
            .require(std::isfinite(eta), "eta = %g is not finite", eta)
            .read("delta", delta, clients, n, delta_stride)
            .write("m", m, clients, n, m_stride)
            .write("v", v, clients, n, v_stride)
            .write("w", w, clients, n, w_stride)
            .disjoint();
        return clients > 0 && n > 0;
    };
    return enter<entry::adaptive_step>(context, error, check, clients, n, rule, beta1, beta2, epsilon, eta, delta,
                                       delta_stride, m, m_stride, v, v_stride, w, w_stride);
}

fcm_status fcm_top_k(fcm_context *context, int64_t clients, int64_t n, int64_t k, const float *x, int64_t x_stride, float *y,
                     int64_t y_stride, fcm_error *error) {
    const auto check = [&](Arguments &arguments) {
        arguments.sizes(clients, n)
            .require(k >= 0 && k <= n, "k = %" PRId64 " is outside [0, %" PRId64 "]", k, n)
            .mapped("x", x, x_stride, "y", y, y_stride, clients, n)
            .disjoint();
        return clients > 0 && n > 0;
    };
    return enter<entry::top_k>(context, error, check, clients, n, k, x, x_stride, y, y_stride);
}

fcm_status fcm_average(fcm_context *context, int64_t clients, int64_t n, const double *weights, int64_t terms, float *x,
                       int64_t x_stride, fcm_error *error) {
    const auto check = [&](Arguments &arguments) {
        arguments.sizes(clients, n).write("x", x, clients, n, x_stride);
        if (weights != nullptr) arguments.batch("weights", weights, 1, clients, clients, fcm::kDouble, false);
        arguments.disjoint();
        if (!arguments.ok() || clients == 0 || n == 0) return false;
        fcm::check_mean(arguments, clients, weights, terms);
        return true;
    };
    return enter<entry::average>(context, error, check, clients, n, weights, terms, x, x_stride);
}

fcm_status fcm_average_rows(fcm_context *context, int64_t clients, int64_t n, const double *weights, int64_t terms,
                            const float *const *rows, int64_t target_count, float *const *targets, fcm_error *error) {
    const auto check = [&](Arguments &arguments) {
        arguments.sizes(clients, n).require(target_count >= 0, "target_count = %" PRId64 " is negative", target_count);
        if (!arguments.ok() || clients == 0 || target_count == 0 || n == 0) return false;
        arguments.require(rows != nullptr, "the table of rows is null").require(targets != nullptr, "the table of targets is null");
        if (weights != nullptr) arguments.batch("weights", weights, 1, clients, clients, fcm::kDouble, false);
        for (int64_t k = 0; arguments.ok() && k < clients; ++k) fcm::check_row(arguments, "row", k, rows[k], n);
        fcm::check_targets(arguments, target_count, targets, n, [&](const float *target, int64_t bytes) -> const char * {
            const bool meets_row = std::any_of(rows, rows + clients, [&](const float *row) {
                return target != row && fcm::meet(target, bytes, row, bytes);
            });
            if (meets_row) return "a row";
            return weights != nullptr && fcm::meet(target, bytes, weights, clients * fcm::kDouble) ? "weights" : nullptr;
        });
        if (arguments.ok()) fcm::check_mean(arguments, clients, weights, terms);
        return true;
    };
    return enter<entry::average_rows>(context, error, check, clients, n, weights, terms, rows, target_count, targets);
}

fcm_status fcm_mean_exponents(fcm_context *context, int64_t clients, int64_t n, const double *weights, const float *x,
                              int64_t x_stride, uint8_t *exponents, fcm_error *error) {
    const auto check = [&](Arguments &arguments) {
        arguments.sizes(clients, n).read("x", x, clients, n, x_stride);
        if (weights != nullptr) arguments.batch("weights", weights, 1, clients, clients, fcm::kDouble, false);
        arguments.batch("exponents", exponents, clients > 0 ? 1 : 0, n, n, 1, true).disjoint();
        if (!arguments.ok() || clients == 0 || n == 0) return false;
        fcm::check_weights(arguments, clients, weights);
        return true;
    };
    return enter<entry::mean_exponents>(context, error, check, clients, n, weights, x, x_stride, exponents);
}

fcm_status fcm_mean_sums(fcm_context *context, int64_t clients, int64_t n, const double *weights, int64_t terms,
                         const float *x, int64_t x_stride, const uint8_t *exponents, int64_t *sums, fcm_error *error) {
    const auto check = [&](Arguments &arguments) {
        const int64_t used = clients > 0 ? 1 : 0;
        arguments.sizes(clients, n).read("x", x, clients, n, x_stride);
        if (weights != nullptr) arguments.batch("weights", weights, 1, clients, clients, fcm::kDouble, false);
        arguments.batch("exponents", exponents, used, n, n, 1, false)
            .batch("sums", sums, used, n, n, sizeof(int64_t), true)
            .disjoint();
        if (!arguments.ok() || clients == 0 || n == 0) return false;
        fcm::check_weights(arguments, clients, weights);
        if (arguments.ok()) fcm::check_terms(arguments, terms, fcm::positive_weights(clients, weights));
        return true;
    };
    return enter<entry::mean_sums>(context, error, check, clients, n, weights, terms, x, x_stride, exponents, sums);
}

fcm_status fcm_mean_combine(fcm_context *context, int64_t parts, int64_t n, const uint8_t *const *exponents, uint8_t *to,
                            fcm_error *error) {
    const auto check = [&](Arguments &arguments) {
        arguments.require(parts >= 1, "parts = %" PRId64 " is less than 1", parts).sizes(parts, n);
        if (!arguments.ok() || n == 0) return false;
        arguments.require(exponents != nullptr, "the table of exponents is null");
        for (int64_t p = 0; arguments.ok() && p < parts; ++p) fcm::check_row(arguments, "exponents", p, exponents[p], n);
        if (arguments.ok()) arguments.batch("to", to, 1, n, n, 1, true);
        for (int64_t p = 0; arguments.ok() && p < parts; ++p) {
            arguments.require(to == exponents[p] || !fcm::meet(to, n, exponents[p], n), "to overlaps exponents %" PRId64, p);
        }
        return true;
    };
    return enter<entry::mean_combine>(context, error, check, parts, n, exponents, to);
}

fcm_status fcm_mean_finish(fcm_context *context, int64_t parts, int64_t n, int64_t terms, double total,
                           const int64_t *const *sums, const uint8_t *exponents, int64_t target_count, float *const *targets,
                           fcm_error *error) {
    const auto check = [&](Arguments &arguments) {
        constexpr int64_t kSum = sizeof(int64_t);
        arguments.require(parts >= 1, "parts = %" PRId64 " is less than 1", parts)
            .sizes(parts, n)
            .require(target_count >= 0, "target_count = %" PRId64 " is negative", target_count);
        fcm::check_terms(arguments, terms, 0);
        arguments.require(total > 0.0 && std::isfinite(total), "the weights sum to %g", total);
        if (!arguments.ok() || n == 0 || target_count == 0) return false;
        arguments.require(sums != nullptr, "the table of sums is null")
            .require(targets != nullptr, "the table of targets is null")
            .batch("exponents", exponents, 1, n, n, 1, false);
        for (int64_t p = 0; arguments.ok() && p < parts; ++p) fcm::check_row(arguments, "sums", p, sums[p], n);
        fcm::check_targets(arguments, target_count, targets, n, [&](const float *target, int64_t bytes) -> const char * {
            const bool meets_sums = std::any_of(sums, sums + parts, [&](const int64_t *part) {
                return fcm::meet(target, bytes, part, n * kSum);
            });
            return meets_sums ? "sums" : fcm::meet(target, bytes, exponents, n) ? "exponents" : nullptr;
        });
        return true;
    };
    return enter<entry::mean_finish>(context, error, check, parts, n, terms, total, sums, exponents, target_count, targets);
}

fcm_status fcm_all_finite(fcm_context *context, int64_t clients, int64_t n, const float *x, int64_t x_stride, int64_t *client,
                          int64_t *index, fcm_error *error) {
    const auto check = [&](Arguments &arguments) {
        arguments.sizes(clients, n).require(client != nullptr && index != nullptr, fcm::kNoPlace);
        arguments.read("x", x, clients, n, x_stride);
        const bool empty = clients == 0 || n == 0;
        if (arguments.ok() && empty) *client = *index = -1;
        return !empty;
    };
    return enter<entry::all_finite>(context, error, check, clients, n, x, x_stride, client, index);
}

fcm_status fcm_require_finite(fcm_context *context, int64_t clients, int64_t n, const float *x, int64_t x_stride,
                              const float *of, int64_t of_stride, fcm_error *error) {
    const auto check = [&](Arguments &arguments) {
        arguments.sizes(clients, n).read("x", x, clients, n, x_stride);
        if (of != nullptr) arguments.read("of", of, clients, 1, of_stride);
        return clients > 0 && n > 0;
    };
    return enter<entry::require_finite>(context, error, check, clients, n, x, x_stride, of, of_stride);
}

fcm_status fcm_newton_schulz_workspace(const fcm_context *context, int64_t clients, const fcm_matrix_block *blocks,
                                       int64_t block_count, const fcm_schulz *schulz, int64_t *bytes, fcm_error *error) {
    const auto check = [&](Arguments &arguments) {
        arguments.require(bytes != nullptr, fcm::kNoPlace);
        const fcm::Blocks<fcm_matrix_block> all{clients, blocks, block_count};
        fcm::check_schulz(arguments, schulz);
        fcm::check_blocks(arguments, all);
        fcm::check_room(arguments, all);
        return true;
    };
    return enter<entry::newton_schulz_workspace>(context, error, check, clients, blocks, block_count, schulz, bytes);
}

fcm_status fcm_newton_schulz_prepare(fcm_context *context, int64_t clients, const fcm_matrix_block *blocks,
                                     int64_t block_count, const fcm_schulz *schulz, void *workspace, int64_t workspace_bytes,
                                     fcm_error *error) {
    const auto check = [&](Arguments &arguments) {
        const fcm::Blocks<fcm_matrix_block> all{clients, blocks, block_count};
        fcm::check_schulz(arguments, schulz);
        fcm::check_blocks(arguments, all);
        fcm::block_workspace(arguments, all, workspace, workspace_bytes,
                             [&] { return fcm::schulz_room(context, all, schulz, error); });
        return clients > 0 && block_count > 0;
    };
    return enter<entry::newton_schulz_prepare>(context, error, check, clients, blocks, block_count, schulz, workspace,
                                               workspace_bytes);
}

fcm_status fcm_newton_schulz(fcm_context *context, int64_t clients, const fcm_matrix_block *blocks, int64_t block_count,
                             const fcm_schulz *schulz, double eta, const float *m, int64_t m_stride, float *o,
                             int64_t o_stride, float *w, int64_t w_stride, void *workspace, int64_t workspace_bytes,
                             fcm_error *error) {
    const auto check = [&](Arguments &arguments) {
        const fcm::Blocks<fcm_matrix_block> all{clients, blocks, block_count};
        fcm::check_schulz(arguments, schulz);
        arguments.require(std::isfinite(eta), "eta = %g is not finite", eta)
            .require(o != nullptr || w != nullptr, "neither o nor w is given");
        fcm::check_blocks(arguments, all);
        const bool in_place = o == m;
        fcm::check_operand(arguments, all, "m", m, m_stride, &fcm_matrix_block::m_offset, in_place);
        if (o != nullptr && in_place) {
            arguments.require(o_stride == m_stride, "o is m but has another stride");
            for (int64_t i = 0; arguments.ok() && i < block_count; ++i) {
                arguments.require(blocks[i].m_offset == blocks[i].o_offset,
                                  "o is m but block %" PRId64 " has another offset", i);
            }
        } else if (o != nullptr) {
            fcm::check_operand(arguments, all, "o", o, o_stride, &fcm_matrix_block::o_offset, true);
        }
        if (w != nullptr) {
            fcm::check_scales(arguments, all);
            fcm::check_operand(arguments, all, "w", w, w_stride, &fcm_matrix_block::w_offset, true);
        }
        fcm::block_workspace(arguments, all, workspace, workspace_bytes,
                             [&] { return fcm::schulz_room(context, all, schulz, error); })
            .disjoint();
        return clients > 0 && block_count > 0;
    };
    return enter<entry::newton_schulz>(context, error, check, clients, blocks, block_count, schulz, eta, m, m_stride, o,
                                       o_stride, w, w_stride, workspace, workspace_bytes);
}

fcm_status fcm_normalize(fcm_context *context, int64_t clients, int64_t n, double divisor, const float *x, int64_t x_stride,
                         float *y, int64_t y_stride, void *workspace, int64_t workspace_bytes, fcm_error *error) {
    const auto check = [&](Arguments &arguments) {
        arguments.sizes(clients, n)
            .require(divisor > 0.0 && std::isfinite(divisor), "divisor = %g is not a positive number", divisor)
            .mapped("x", x, x_stride, "y", y, y_stride, clients, n);
        arguments.workspace(workspace, workspace_bytes, fcm::sum_bytes(arguments, clients, n)).disjoint();
        return clients > 0 && n > 0;
    };
    return enter<entry::normalize>(context, error, check, clients, n, divisor, x, x_stride, y, y_stride, workspace,
                                   workspace_bytes);
}

fcm_status fcm_rearrange(fcm_context *context, int64_t clients, int64_t rows, int64_t cols, int32_t element_bytes,
                         const void *x, int64_t x_stride, int64_t x_row, int64_t x_col, void *y, int64_t y_stride,
                         int64_t y_row, int64_t y_col, fcm_error *error) {
    const auto check = [&](Arguments &arguments) {
        int64_t all = 0;
        arguments.require(clients >= 0 && rows >= 0 && cols >= 0, "a size is negative")
            .require(element_bytes == 4 || element_bytes == 8, "elements of %d bytes; 4 and 8 are possible", element_bytes);
        arguments.require(!arguments.ok() || (fcm::product(rows, cols, &all) && fcm::product(all, clients, &all)),
                          "%" PRId64 " matrices of %" PRId64 " x %" PRId64 " do not fit int64", clients, rows, cols);
        if (!arguments.ok() || clients == 0 || rows == 0 || cols == 0) return false;
        arguments.view("x", x, clients, x_stride, rows, cols, x_row, x_col, element_bytes, false)
            .view("y", y, clients, y_stride, rows, cols, y_row, y_col, element_bytes, true);
        if (!arguments.ok()) return false;
        // (cols - 1) * y_col < y_row, or the same with rows and columns exchanged, without a product that might overflow
        const bool apart = (y_row - 1) / y_col >= cols - 1 || (y_col - 1) / y_row >= rows - 1;
        arguments.require(apart, "elements of y share a place: strides %" PRId64 " and %" PRId64, y_row, y_col).disjoint();
        return true;
    };
    return enter<entry::rearrange>(context, error, check, clients, rows, cols, element_bytes, x, x_stride, x_row, x_col, y,
                                   y_stride, y_row, y_col);
}

fcm_status fcm_dropout_mask(fcm_context *context, int64_t clients, int64_t n, int32_t left, const uint64_t *seeds,
                            uint8_t *mask, int64_t mask_stride, fcm_error *error) {
    const auto check = [&](Arguments &arguments) {
        const int64_t used = n > 0 ? clients : 0;
        arguments.sizes(clients, n)
            .require(left >= 0 && left <= 65536, "left = %d is outside [0, 65536]", left)
            .batch("seeds", seeds, 1, used, used, sizeof(uint64_t), false)
            .batch("mask", mask, clients, n, mask_stride, sizeof(uint8_t), true)
            .disjoint();
        return clients > 0 && n > 0;
    };
    return enter<entry::dropout_mask>(context, error, check, clients, n, left, seeds, mask, mask_stride);
}

fcm_status fcm_widen(fcm_context *context, int64_t clients, int64_t n, const float *x, int64_t x_stride, double *y,
                     fcm_error *error) {
    const auto check = [&](Arguments &arguments) {
        arguments.sizes(clients, n)
            .read("x", x, clients, n, x_stride)
            .batch("y", y, clients, n, n, fcm::kDouble, true)
            .disjoint();
        return clients > 0 && n > 0;
    };
    return enter<entry::widen>(context, error, check, clients, n, x, x_stride, y);
}

fcm_status fcm_narrow(fcm_context *context, int64_t clients, int64_t n, const double *x, float *y, int64_t y_stride,
                      fcm_error *error) {
    const auto check = [&](Arguments &arguments) {
        arguments.sizes(clients, n)
            .batch("x", x, clients, n, n, fcm::kDouble, false)
            .write("y", y, clients, n, y_stride)
            .disjoint();
        return clients > 0 && n > 0;
    };
    return enter<entry::narrow>(context, error, check, clients, n, x, y, y_stride);
}

fcm_status fcm_keep_directions(fcm_context *context, int64_t clients, int64_t n, double tolerance, const int32_t *info,
                               const double *values, double *vectors, int64_t *kept, fcm_error *error) {
    const auto check = [&](Arguments &arguments) {
        arguments.sizes(clients, n).decay("tolerance", tolerance).require(n < fcm::kMostSide, "a side is over 2^31");
        if (!arguments.ok()) return false;
        const int64_t used = n > 0 ? clients : 0;
        arguments.batch("info", info, 1, used, used, sizeof(int32_t), false)
            .batch("values", values, clients, n, n, fcm::kDouble, false)
            .batch("vectors", vectors, clients, n * n, n * n, fcm::kDouble, true)
            .batch("kept", kept, 1, used, used, sizeof(int64_t), true)
            .disjoint();
        return clients > 0 && n > 0;
    };
    return enter<entry::keep_directions>(context, error, check, clients, n, tolerance, info, values, vectors, kept);
}

fcm_status fcm_inverse_roots(fcm_context *context, int64_t clients, int64_t n, double *gram, fcm_error *error) {
    const auto check = [&](Arguments &arguments) {
        arguments.sizes(clients, n).require(n < fcm::kMostSide, "a side is over 2^31");
        if (!arguments.ok()) return false;
        arguments.batch("gram", gram, clients, n * n, n * n, fcm::kDouble, true).disjoint();
        return clients > 0 && n > 0;
    };
    return enter<entry::inverse_roots>(context, error, check, clients, n, gram);
}

fcm_status fcm_multiply_workspace(const fcm_context *context, int64_t clients, int64_t rows, int64_t cols, int64_t depth,
                                  int64_t *bytes, fcm_error *error) {
    const auto check = [&](Arguments &arguments) {
        arguments.require(bytes != nullptr, fcm::kNoPlace)
            .require(clients >= 0 && rows >= 0 && cols >= 0 && depth >= 0, "a size is negative");
        fcm::sides(arguments, rows, cols, depth);
        return true;
    };
    return enter<entry::multiply_workspace>(context, error, check, clients, rows, cols, depth, bytes);
}

fcm_status fcm_multiply(fcm_context *context, int64_t clients, int64_t rows, int64_t cols, int64_t depth, int32_t symmetric,
                        double product_factor, const float *a, int64_t a_stride, int64_t a_row, int64_t a_col, const float *b,
                        int64_t b_stride, int64_t b_row, int64_t b_col, double base_factor, const float *base,
                        int64_t base_stride, float *out, int64_t out_stride, void *workspace, int64_t workspace_bytes,
                        fcm_error *error) {
    const auto check = [&](Arguments &arguments) {
        arguments.require(clients >= 0 && rows >= 0 && cols >= 0, "a size is negative")
            .require(depth >= 1, "depth = %" PRId64 " is less than 1", depth);
        fcm::sides(arguments, rows, cols, depth)
            .require(symmetric == 0 || rows == cols, "a symmetric result is not %" PRId64 " x %" PRId64, rows, cols)
            .require(std::isfinite(product_factor) && std::isfinite(base_factor), "a factor is not finite");
        if (!arguments.ok() || clients == 0 || rows == 0 || cols == 0) return false;
        arguments.view("a", a, clients, a_stride, rows, depth, a_row, a_col, fcm::kFloat, false);
        arguments.view("b", b, clients, b_stride, depth, cols, b_row, b_col, fcm::kFloat, false);
        if (base != nullptr) arguments.read("base", base, clients, rows * cols, base_stride);
        arguments.write("out", out, clients, rows * cols, out_stride);
        int64_t needed = 0;
        fcm::device::multiply_workspace(context, clients, rows, cols, depth, &needed, error);
        arguments.workspace(workspace, workspace_bytes, needed).disjoint();
        return true;
    };
    return enter<entry::multiply>(context, error, check, clients, rows, cols, depth, symmetric, product_factor, a, a_stride,
                                  a_row, a_col, b, b_stride, b_row, b_col, base_factor, base, base_stride, out, out_stride,
                                  workspace, workspace_bytes);
}

fcm_status fcm_triad(fcm_context *context, int64_t n, float s, const float *b, const float *c, float *a, int32_t non_temporal,
                     fcm_error *error) {
    const auto check = [&](Arguments &arguments) {
        arguments.sizes(1, n);
        arguments.read("b", b, 1, n, n).read("c", c, 1, n, n).write("a", a, 1, n, n).disjoint();
        return n > 0;
    };
    return enter<entry::triad>(context, error, check, n, s, b, c, a, non_temporal);
}
