#include "kernels.h"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace gate {
namespace {

constexpr double kClients = 10.0;
constexpr double kTargets = 2.0;  // of a mean over rows: one per GPU
constexpr double kFloat = 4.0;
constexpr double kDouble = 8.0;
// The cost of a division or a square root in double, in other instructions: an approximation and its refinement.
constexpr double kRoot = 10.0;
// The last step of a mean: two conversions, a product and a division.
constexpr double kMeanEnd = 3.0 + kRoot;

// The elements of all clients together. LeNet with ten clients: weights 6 x 25, 16 x 150, 120 x 256, 10 x 120, and biases.
constexpr double kLeNetElements = kClients * (150.0 + 6.0 + 2400.0 + 16.0 + 30720.0 + 120.0 + 1200.0 + 10.0);
constexpr double kLargeElements = 1e8;

double elements(Scale scale) { return scale == Scale::kLeNet ? kLeNetElements : kLargeElements; }
// H is d times as long as M: at the large scale, H has 10^8 elements.
double components(Scale scale) { return scale == Scale::kLeNet ? 1.0 : 8.0; }
double momentum_elements(Scale scale) { return elements(scale) / components(scale); }

// Work that is proportional to the number of elements.
Work each(double count, double bytes, double fp32, double fp64) { return {count * bytes, count * fp32, count * fp64, 0.0, 0.0, 0.0}; }

LaunchShape plain(const DeviceClass &) { return {FCM_THREADS, 0}; }

double sum_pieces(Scale scale) { return elements(scale) / 4096.0; }

Work top_k_table(Scale) { return {kClients * 2048.0 * kDouble, 0.0, 0.0, 0.0, 0.0, 0.0}; }

struct Shape {
    double rows;
    double cols;
};

// Eigenvalues of Gram matrices on the short side.
double side(Scale scale) { return scale == Scale::kLeNet ? 120.0 : 1024.0; }
double eigenvalues(Scale scale) { return (scale == Scale::kLeNet ? kClients : 1.0) * side(scale); }

// One triangle of the Gram matrix that Newton-Schulz starts from.
Work gram(Scale scale) {
    const Shape x = scale == Scale::kLeNet ? Shape{120.0, 256.0} : Shape{1024.0, 4096.0};
    const double clients = scale == Scale::kLeNet ? kClients : 1.0;
    const double triangle = x.rows * (x.rows + 1.0) / 2.0;
    return {clients * kFloat * (x.rows * x.cols + x.rows * x.rows), clients * 2.0 * triangle * x.cols, 0.0, 0.0, 0.0, 0.0};
}
Work gram_bf16(Scale scale) {
    const Work work = gram(scale);
    return {work.bytes / 2.0, 0.0, 0.0, 0.0, work.fp32, 0.0};
}
Work gram_tf32(Scale scale) {
    const Work work = gram(scale);
    return {work.bytes, 0.0, 0.0, 0.0, 0.0, work.fp32};
}

// ---- Newton-Schulz of small matrices ----

constexpr double kSteps = 5.0;
constexpr Shape kLeNetMatrices[] = {{6.0, 25.0}, {16.0, 150.0}, {120.0, 256.0}, {10.0, 120.0}};
constexpr Shape kWidest = {128.0, 1024.0};
constexpr double kWidestCount = kLargeElements / (128.0 * 1024.0);

// Two symmetric products, of which one triangle is computed, and one general product.
double schulz_flops(const Shape &x) {
    const double triangle = x.rows * (x.rows + 1.0) / 2.0;
    return kSteps * (2.0 * triangle * x.cols + 2.0 * triangle * x.rows + 2.0 * x.rows * x.rows * x.cols);
}

double matrix_elements(Scale scale) {
    if (scale == Scale::kLarge) return kLargeElements;
    double sum = 0.0;
    for (const Shape &x : kLeNetMatrices) sum += kClients * x.rows * x.cols;
    return sum;
}

// m is read; w is read and written.
Work newton_schulz(Scale scale) {
    Work work{3.0 * kFloat * matrix_elements(scale), 0.0, 0.0, 0.0, 0.0, 0.0};
    if (scale == Scale::kLarge) {
        work.fp32 = kWidestCount * schulz_flops(kWidest);
        work.longest = schulz_flops(kWidest);
        return work;
    }
    for (const Shape &x : kLeNetMatrices) {
        work.fp32 += kClients * schulz_flops(x);
        work.longest = std::max(work.longest, schulz_flops(x));
    }
    return work;
}

Work newton_schulz_bf16(Scale scale) {
    const Work work = newton_schulz(scale);
    return {work.bytes, 0.0, 0.0, work.longest, work.fp32, 0.0};
}
Work newton_schulz_tf32(Scale scale) {
    const Work work = newton_schulz(scale);
    return {work.bytes, 0.0, 0.0, work.longest, 0.0, work.fp32};
}

// Requests the shared memory that a matrix needs, up to the maximum.
LaunchShape schulz_launch(const DeviceClass &device) { return {FCM_THREADS, device.shared_optin}; }

}  // namespace

const std::vector<Kernel> &kernels() {
    static const std::vector<Kernel> kAll = {
        {"fcm_k_ema", "ema", "12 N", "3 N", "0", [](Scale s) { return each(elements(s), 12, 3, 0); }, plain},
        {"fcm_k_compose", "compose_momentum, project_compose_momentum", "4 N (d + 2); with projection 8 N (d + 1)",
         "2 N (d + 1); with projection 2 N (2 d + 1)", "0",
         [](Scale s) {
             const double d = components(s);
             return each(momentum_elements(s), kFloat * (d + 2), 2 * (d + 1), 0);
         },
         plain},
        {"fcm_k_widen", "widen", "12 N", "0", "N", [](Scale s) { return each(elements(s), 12, 0, 1); }, plain},
        {"fcm_k_narrow", "narrow", "12 N", "0", "N", [](Scale s) { return each(elements(s), 12, 0, 1); }, plain},
        {"fcm_k_check_converged", "keep_directions", "4 K", "0", "0", [](Scale) { return each(kClients, kFloat, 0, 0); },
         plain},
        {"fcm_k_keep_directions", "keep_directions", "8 K n; 8 K n l where l are left out", "0", "K n",
         [](Scale s) { return each(eigenvalues(s), kDouble, 0, 1); }, plain},
        {"fcm_k_inverse_roots", "inverse_roots", "8 K n n", "0", "17 K n n",
         [](Scale s) { return each(eigenvalues(s) * side(s), kDouble, 0, (4 + 3 * kRoot) / 2); }, plain},
        {"fcm_k_inverse_diagonals", "inverse_roots", "16 K n", "0", "20 K n",
         [](Scale s) { return each(eigenvalues(s), 2 * kDouble, 0, 2 * kRoot); }, plain},
        {"fcm_k_check_norms", "project, project_compose_momentum", "8 K", "0", "0",
         [](Scale) { return each(kClients, kDouble, 0, 0); }, plain},
        {"fcm_k_project", "project", "8 N", "0", "3 N", [](Scale s) { return each(elements(s), 8, 0, 3); }, plain},
        {"fcm_k_adaptive_step", "adaptive_step", "28 N", "0", "37 N",
         [](Scale s) { return each(elements(s), 28, 0, 17 + 2 * kRoot); }, plain},
        {"fcm_k_average", "average", "8 N", "0", "13 N / K; with weights N (7 + 13 / K)",
         [](Scale s) { return each(elements(s), 8, 0, kMeanEnd / kClients); }, plain},
        {"fcm_k_average_rows", "average_rows", "4 N (1 + 2 / K), with two GPUs", "0", "13 N / K; with weights N (7 + 13 / K)",
         [](Scale s) { return each(elements(s), 4 + 4 * kTargets / kClients, 0, kMeanEnd / kClients); }, plain},
        {"fcm_k_mean_exponents", "mean_exponents", "N (4 + 1 / K)", "0", "0; with weights 3 N",
         [](Scale s) { return each(elements(s), 4 + 1 / kClients, 0, 0); }, plain},
        {"fcm_k_mean_sums", "mean_sums", "N (4 + 9 / K)", "0", "0; with weights 4 N",
         [](Scale s) { return each(elements(s), 4 + 9 / kClients, 0, 0); }, plain},
        {"fcm_k_mean_combine", "mean_combine", "3 N / K, with two GPUs", "0", "0",
         [](Scale s) { return each(elements(s) / kClients, kTargets + 1, 0, 0); }, plain},
        {"fcm_k_mean_finish", "mean_finish", "25 N / K, with two GPUs", "0", "13 N / K",
         [](Scale s) { return each(elements(s) / kClients, 8 * kTargets + 1 + 4 * kTargets, 0, kMeanEnd); }, plain},
        {"fcm_k_triad", "triad", "12 N", "2 N", "0", [](Scale s) { return each(elements(s), 12, 2, 0); }, plain},
        {"fcm_k_look_for_not_finite", "all_finite, require_finite, top_k", "4 N", "0", "0",
         [](Scale s) { return each(elements(s), 4, 0, 0); }, plain},
        {"fcm_k_squares", "norm", "4 N", "0", "2 N", [](Scale s) { return each(elements(s), 4, 0, 2); }, plain},
        {"fcm_k_checked_squares", "normalize", "4 N", "0", "2 N", [](Scale s) { return each(elements(s), 4, 0, 2); }, plain},
        {"fcm_k_vector_squares", "vector_steps", "4 N", "0", "2 N",
         [](Scale s) { return each(elements(s), 4, 0, 2); }, plain},
        {"fcm_k_vector_norms", "vector_steps", "N / 512", "0", "N / 4096",
         [](Scale s) { return each(sum_pieces(s), kDouble, 0, 1); }, plain},
        {"fcm_k_vector_steps", "vector_steps", "12 N", "N", "3 N",
         [](Scale s) { return each(elements(s), 12, 1, 3); }, plain},
        {"fcm_k_storm", "storm", "16 N", "3 N", "2 N", [](Scale s) { return each(elements(s), 16, 3, 2); }, plain},
        {"fcm_k_norms", "norm, storm, normalize", "N / 512", "0", "N / 4096",
         [](Scale s) { return each(sum_pieces(s), kDouble, 0, 1); }, plain},
        {"fcm_k_step", "vector_step", "12 N", "N", "3 N", [](Scale s) { return each(elements(s), 12, 1, 3); }, plain},
        {"fcm_k_normalize", "normalize", "8 N", "0", "3 N", [](Scale s) { return each(elements(s), 8, 0, 3); }, plain},
        {"fcm_k_top_k_begin", "top_k", "16384 K", "0", "0", top_k_table, plain},
        {"fcm_k_count_magnitudes", "top_k", "4 N", "0", "0", [](Scale s) { return each(elements(s), 4, 0, 0); }, plain},
        {"fcm_k_count_indices", "top_k", "4 N", "0", "0", [](Scale s) { return each(elements(s), 4, 0, 0); }, plain},
        {"fcm_k_pick_digit", "top_k", "32768 K", "0", "0",
         [](Scale s) {
             const Work once = top_k_table(s);
             return Work{2 * once.bytes, 0.0, 0.0, 0.0, 0.0, 0.0};
         },
         plain},
        {"fcm_k_top_k_ties", "top_k", "32 K", "0", "0", [](Scale) { return each(kClients, 32, 0, 0); }, plain},
        {"fcm_k_top_k_end", "top_k", "32 K", "0", "0", [](Scale) { return each(kClients, 32, 0, 0); }, plain},
        {"fcm_k_keep", "top_k", "8 N", "0", "0", [](Scale s) { return each(elements(s), 8, 0, 0); }, plain},
        {"fcm_k_rearrange_4", "rearrange", "8 N", "0", "0", [](Scale s) { return each(elements(s), 8, 0, 0); }, plain},
        {"fcm_k_rearrange_8", "rearrange", "16 N", "0", "0", [](Scale s) { return each(elements(s), 16, 0, 0); }, plain},
        {"fcm_k_dropout_mask", "dropout_mask", "N", "0", "0", [](Scale s) { return each(elements(s), 1, 0, 0); }, plain},
        {"fcm_k_products", "multiply, newton_schulz", "4 K (m l + l n + m n); a Gram matrix 4 K (m l + m m)",
         "2 K m n l; a symmetric result K m (m + 1) l", "0", gram, plain},
        {"fcm_k_products_bf16", "newton_schulz", "2 K (m l + l n + m n); a Gram matrix 2 K (m l + m m)",
         "0; on tensor cores 2 K m n l", "0", gram_bf16, plain},
        {"fcm_k_products_tf32", "newton_schulz", "4 K (m l + l n + m n); a Gram matrix 4 K (m l + m m)",
         "0; on tensor cores 2 K m n l", "0", gram_tf32, plain},
        {"fcm_k_schulz_load", "newton_schulz", "8 N", "0", "2 N", [](Scale s) { return each(elements(s), 8, 0, 2); }, plain},
        {"fcm_k_schulz_load_bf16", "newton_schulz", "6 N", "0", "2 N", [](Scale s) { return each(elements(s), 6, 0, 2); }, plain},
        {"fcm_k_schulz_finish", "newton_schulz", "12 N", "N", "3 N", [](Scale s) { return each(elements(s), 12, 1, 3); }, plain},
        {"fcm_k_schulz_finish_bf16", "newton_schulz", "10 N", "N", "3 N", [](Scale s) { return each(elements(s), 10, 1, 3); },
         plain},
        {"fcm_k_schulz_norms", "newton_schulz", "4 N", "0", "2 N",
         [](Scale s) { return each(matrix_elements(s), 4, 0, 2); }, plain},
        {"fcm_k_newton_schulz", "newton_schulz", "12 N",
         "for each matrix of sides s <= l and each step: s (s + 1) (l + s) + 2 s s l", "0", newton_schulz, schulz_launch},
        {"fcm_k_newton_schulz_bf16", "newton_schulz", "12 N", "0; on tensor cores as fcm_k_newton_schulz", "0",
         newton_schulz_bf16, schulz_launch},
        {"fcm_k_newton_schulz_tf32", "newton_schulz", "12 N", "0; on tensor cores as fcm_k_newton_schulz", "0",
         newton_schulz_tf32, schulz_launch},
    };
    return kAll;
}

const Kernel *find_kernel(const char *name) {
    for (const Kernel &kernel : kernels()) {
        if (std::strcmp(kernel.name, name) == 0) return &kernel;
    }
    return nullptr;
}

Roofline roofline(const DeviceClass &device, const Work &work) {
    const double rate = work.bf16 > 0.0 ? device.bf16 : work.tf32 > 0.0 ? device.tf32 : device.fp32;
    const Roofline all[] = {
        {work.bytes / device.bandwidth, Bound::kMemory},
        {work.fp32 / device.fp32, Bound::kFp32},
        // The peak rate counts a fused multiply-add, which is one instruction, as two operations.
        {work.fp64 / (device.fp64 / 2.0), Bound::kFp64},
        {work.longest == 0.0 ? 0.0 : work.longest / (rate / device.multiprocessors), Bound::kLongest},
        {work.bf16 == 0.0 ? 0.0 : work.bf16 / device.bf16, Bound::kTensor},
        {work.tf32 == 0.0 ? 0.0 : work.tf32 / device.tf32, Bound::kTensor},
    };
    return *std::max_element(std::begin(all), std::end(all),
                             [](const Roofline &a, const Roofline &b) { return a.seconds < b.seconds; });
}

}  // namespace gate
