// The simulated cuBLAS against plain loops, and the calls that it refuses.
#include "vendor/cublas.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "dense.h"
#include "devices.h"

namespace {

class Handle {
  public:
    Handle() { CHECK(cublasCreate_v2(&handle_) == CUBLAS_STATUS_SUCCESS, "no handle"); }
    ~Handle() { cublasDestroy_v2(handle_); }
    Handle(const Handle &) = delete;
    Handle &operator=(const Handle &) = delete;
    void *get() const { return handle_; }

  private:
    void *handle_ = nullptr;
};

int gemm(void *handle, int op_a, int op_b, int m, int n, int k, float alpha, const float *a, int lda, const float *b, int ldb,
         float beta, float *c, int ldc) {
    return cublasSgemm_v2(handle, op_a, op_b, m, n, k, &alpha, a, lda, b, ldb, &beta, c, ldc);
}
int gemm(void *handle, int op_a, int op_b, int m, int n, int k, double alpha, const double *a, int lda, const double *b,
         int ldb, double beta, double *c, int ldc) {
    return cublasDgemm_v2(handle, op_a, op_b, m, n, k, &alpha, a, lda, b, ldb, &beta, c, ldc);
}

template <typename T>
double element(const std::vector<T> &values, int ld, int op, int i, int j) {
    return static_cast<double>(op == CUBLAS_OP_N ? values[static_cast<std::size_t>(i + j * ld)]
                                                 : values[static_cast<std::size_t>(j + i * ld)]);
}

template <typename T>
void every_orientation(double tolerance) {
    const Handle handle;
    const OnStream stream;
    CHECK(cublasSetStream_v2(handle.get(), stream.get()) == CUBLAS_STATUS_SUCCESS, "stream");
    const int m = 5, n = 4, k = 7;
    for (int op_a : {CUBLAS_OP_N, CUBLAS_OP_T}) {
        for (int op_b : {CUBLAS_OP_N, CUBLAS_OP_T}) {
            const int lda = 9, ldb = 8, ldc = 6;
            const auto a = normal<T>(lda * 7, 1), b = normal<T>(ldb * 7, 2), c = normal<T>(ldc * n, 3);
            const OnDevice<T> on_a(a), on_b(b), on_c(c);
            MUST(cudasim::cudaStreamSynchronize(nullptr));
            CHECK(gemm(handle.get(), op_a, op_b, m, n, k, T(1.5), on_a.at(), lda, on_b.at(), ldb, T(-0.5), on_c.at(), ldc) ==
                      CUBLAS_STATUS_SUCCESS,
                  "gemm");
            MUST(cudasim::cudaStreamSynchronize(stream.get()));
            const auto result = on_c.values();
            for (int j = 0; j < n; ++j) {
                for (int i = 0; i < ldc; ++i) {
                    const auto at = static_cast<std::size_t>(i + j * ldc);
                    double expected = static_cast<double>(c[at]);
                    if (i < m) {
                        expected *= -0.5;
                        for (int l = 0; l < k; ++l) {
                            expected += 1.5 * element(a, lda, op_a, i, l) * element(b, ldb, op_b, l, j);
                        }
                    }
                    CHECK(std::abs(static_cast<double>(result[at]) - expected) <= tolerance, "ops %d %d, (%d, %d): %g, not %g",
                          op_a, op_b, i, j, static_cast<double>(result[at]), expected);
                }
            }
        }
    }
}

double worst(const std::vector<float> &one, const std::vector<double> &other) {
    double result = 0;
    for (std::size_t i = 0; i < other.size(); ++i) result = std::max(result, std::abs(static_cast<double>(one[i]) - other[i]));
    return result;
}

}  // namespace

TEST(gemm_in_every_orientation) {
    every_orientation<float>(1e-5);
    every_orientation<double>(1e-13);
}

TEST(what_beta_zero_finds_is_not_read) {
    const Handle handle;
    const OnDevice<float> a(std::vector<float>{2}), c(std::vector<float>{std::numeric_limits<float>::quiet_NaN()});
    CHECK(gemm(handle.get(), CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, 1.0f, a.at(), 1, a.at(), 1, 0.0f, c.at(), 1) == 0, "gemm");
    CHECK(c.values()[0] == 4, "%g", static_cast<double>(c.values()[0]));
}

TEST(precision_is_what_was_asked_for) {
    const Handle handle;
    const int n = 24;
    const auto a = normal<float>(n * n, 4), b = normal<float>(n * n, 5);
    std::vector<double> exact(n * n);
    for (int j = 0; j < n; ++j) {
        for (int i = 0; i < n; ++i) {
            for (int l = 0; l < n; ++l) {
                exact[static_cast<std::size_t>(i + j * n)] += element(a, n, CUBLAS_OP_N, i, l) * element(b, n, CUBLAS_OP_N, l, j);
            }
        }
    }
    const OnDevice<float> on_a(a), on_b(b), on_c(static_cast<std::size_t>(n * n));
    const float one = 1, zero = 0;
    const auto error = [&](int compute) {
        CHECK(cublasGemmEx(handle.get(), CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, on_a.at(), CUDA_R_32F, n, on_b.at(), CUDA_R_32F,
                           n, &zero, on_c.at(), CUDA_R_32F, n, compute, CUBLAS_GEMM_DEFAULT) == 0,
              "compute type %d", compute);
        return worst(on_c.values(), exact);
    };
    const double full = error(CUBLAS_COMPUTE_32F), tf32 = error(CUBLAS_COMPUTE_32F_FAST_TF32),
                 bf16 = error(CUBLAS_COMPUTE_32F_FAST_16BF);
    CHECK(full < 1e-5 && tf32 > 10 * full && tf32 < 0.02 && bf16 > 3 * tf32 && bf16 < 0.2, "%g, %g, %g", full, tf32, bf16);

    // Numbers that are already 16 bits wide lose no precision.
    std::vector<std::uint16_t> narrow(a.size());
    std::vector<float> widened(a.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
        widened[i] = vendor::rounded(a[i], 7);
        std::uint32_t word;
        std::memcpy(&word, &widened[i], sizeof word);
        narrow[i] = static_cast<std::uint16_t>(word >> 16);
    }
    const OnDevice<std::uint16_t> on_narrow(narrow);
    const OnDevice<float> on_widened(widened);
    CHECK(cublasGemmEx(handle.get(), CUBLAS_OP_N, CUBLAS_OP_T, n, n, n, &one, on_narrow.at(), CUDA_R_16BF, n, on_narrow.at(),
                       CUDA_R_16BF, n, &zero, on_c.at(), CUDA_R_32F, n, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT) == 0,
          "bf16");
    const auto narrow_result = on_c.values();
    CHECK(gemm(handle.get(), CUBLAS_OP_N, CUBLAS_OP_T, n, n, n, 1.0f, on_widened.at(), n, on_widened.at(), n, 0.0f, on_c.at(),
               n) == 0,
          "sgemm");
    CHECK(on_c.values() == narrow_result, "bf16 and float inputs of the same value");
    CHECK(cublasGemmEx(handle.get(), CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, on_a.at(), CUDA_R_32F, n, on_narrow.at(),
                       CUDA_R_16BF, n, &zero, on_c.at(), CUDA_R_32F, n, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT) ==
              CUBLAS_STATUS_NOT_SUPPORTED,
          "mixed inputs");
}

TEST(a_batch_is_its_matrices) {
    const Handle handle;
    const int m = 3, n = 2, k = 4, count = 5;
    const auto a = normal<float>(m * k, 6), b = normal<float>(count * 11, 7), c = normal<float>(count * 7, 8);
    const OnDevice<float> on_a(a), on_b(b), on_c(c), on_single(c);
    const float alpha = 2, beta = 1;
    CHECK(cublasGemmStridedBatchedEx(handle.get(), CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, &alpha, on_a.at(), CUDA_R_32F, m, 0,
                                     on_b.at(), CUDA_R_32F, k, 11, &beta, on_c.at(), CUDA_R_32F, m, 7, count,
                                     CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT) == 0,
          "batch");
    for (int i = 0; i < count; ++i) {
        CHECK(gemm(handle.get(), CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, alpha, on_a.at(), m, on_b.at() + i * 11, k, beta,
                   on_single.at() + i * 7, m) == 0,
              "matrix %d", i);
    }
    CHECK(on_c.values() == on_single.values(), "the batch differs from its matrices");
}

TEST(syrk_writes_and_symm_reads_one_triangle) {
    const Handle handle;
    const int n = 4, k = 6;
    for (int triangle : {CUBLAS_FILL_MODE_LOWER, CUBLAS_FILL_MODE_UPPER}) {
        const auto inside = [&](int i, int j) { return triangle == CUBLAS_FILL_MODE_LOWER ? i >= j : i <= j; };
        for (int op : {CUBLAS_OP_N, CUBLAS_OP_T}) {
            const int lda = op == CUBLAS_OP_N ? n : k;
            const auto a = normal<double>(n * k, 9), c = normal<double>(n * n, 10);
            const OnDevice<double> on_a(a), on_c(c);
            const double alpha = 2, beta = 0.5;
            CHECK(cublasDsyrk_v2(handle.get(), triangle, op, n, k, &alpha, on_a.at(), lda, &beta, on_c.at(), n) == 0, "syrk");
            const auto result = on_c.values();
            for (int j = 0; j < n; ++j) {
                for (int i = 0; i < n; ++i) {
                    const auto at = static_cast<std::size_t>(i + j * n);
                    double expected = c[at];
                    if (inside(i, j)) {
                        expected *= beta;
                        for (int l = 0; l < k; ++l) expected += alpha * element(a, lda, op, i, l) * element(a, lda, op, j, l);
                    }
                    CHECK(std::abs(result[at] - expected) < 1e-12, "(%d, %d)", i, j);
                }
            }
        }
        for (int side : {CUBLAS_SIDE_LEFT, CUBLAS_SIDE_RIGHT}) {
            const int m = 3, order = side == CUBLAS_SIDE_LEFT ? m : n;
            const auto a = normal<float>(order * order, 11), b = normal<float>(m * n, 12);
            const OnDevice<float> on_a(a), on_b(b), on_c(static_cast<std::size_t>(m * n));
            const float alpha = 3, beta = 0;
            CHECK(cublasSsymm_v2(handle.get(), side, triangle, m, n, &alpha, on_a.at(), order, on_b.at(), m, &beta, on_c.at(),
                                 m) == 0,
                  "symm");
            const auto whole = [&](int i, int j) {
                return inside(i, j) ? element(a, order, CUBLAS_OP_N, i, j) : element(a, order, CUBLAS_OP_N, j, i);
            };
            const auto result = on_c.values();
            for (int j = 0; j < n; ++j) {
                for (int i = 0; i < m; ++i) {
                    double expected = 0;
                    for (int l = 0; l < order; ++l) {
                        expected += side == CUBLAS_SIDE_LEFT ? whole(i, l) * element(b, m, CUBLAS_OP_N, l, j)
                                                             : element(b, m, CUBLAS_OP_N, i, l) * whole(l, j);
                    }
                    CHECK(std::abs(static_cast<double>(result[static_cast<std::size_t>(i + j * m)]) - 3 * expected) < 1e-5,
                          "side %d (%d, %d)", side, i, j);
                }
            }
        }
    }
}

TEST(pointers_that_are_not_this_devices_are_refused) {
    const Handle handle;
    const OnDevice<float> a(16), c(16);
    MUST(cudasim::cudaSetDevice(1));
    const OnDevice<float> elsewhere(16);
    MUST(cudasim::cudaSetDevice(0));
    std::vector<float> host(16);
    const auto status = [&](const float *left, float *result, int n) {
        return gemm(handle.get(), CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, 1.0f, left, n, a.at(), n, 0.0f, result, n);
    };
    CHECK(status(a.at(), c.at(), 4) == CUBLAS_STATUS_SUCCESS, "all well");
    CHECK(status(host.data(), c.at(), 4) == CUBLAS_STATUS_MAPPING_ERROR, "A on the host");
    CHECK(status(a.at(), host.data(), 4) == CUBLAS_STATUS_MAPPING_ERROR, "C on the host");
    CHECK(status(elsewhere.at(), c.at(), 4) == CUBLAS_STATUS_MAPPING_ERROR, "A on another device");
    CHECK(status(a.at() + 1, c.at(), 4) == CUBLAS_STATUS_MAPPING_ERROR, "A past the end");
    CHECK(status(nullptr, c.at(), 4) == CUBLAS_STATUS_MAPPING_ERROR, "no A");
    const float one = 1;
    CHECK(cublasSgemm_v2(handle.get(), CUBLAS_OP_N, CUBLAS_OP_N, 4, 4, 4, a.at(), a.at(), 4, a.at(), 4, &one, c.at(), 4) ==
              CUBLAS_STATUS_INVALID_VALUE,
          "alpha on the device");
    CHECK(gemm(handle.get(), CUBLAS_OP_N, CUBLAS_OP_N, 4, 4, 4, 1.0f, a.at(), 3, a.at(), 4, 0.0f, c.at(), 4) ==
              CUBLAS_STATUS_INVALID_VALUE,
          "lda");
    MUST(cudasim::cudaDeviceSynchronize());
}

TEST(handles_belong_to_a_device) {
    const OnDevice<float> a(1);
    CHECK(gemm(nullptr, 0, 0, 1, 1, 1, 1.0f, a.at(), 1, a.at(), 1, 0.0f, a.at(), 1) == CUBLAS_STATUS_NOT_INITIALIZED, "null");
    void *handle = nullptr;
    CHECK(cublasCreate_v2(&handle) == CUBLAS_STATUS_SUCCESS, "create");
    MUST(cudasim::cudaSetDevice(1));
    const OnStream other;
    CHECK(gemm(handle, 0, 0, 1, 1, 1, 1.0f, a.at(), 1, a.at(), 1, 0.0f, a.at(), 1) == CUBLAS_STATUS_EXECUTION_FAILED,
          "another device is current");
    MUST(cudasim::cudaSetDevice(0));
    CHECK(cublasSetStream_v2(handle, other.get()) == CUBLAS_STATUS_INVALID_VALUE, "another device's stream");
    const OnDevice<char> room(1024);
    CHECK(cublasSetWorkspace_v2(handle, room.at() + 1, 512) == CUBLAS_STATUS_INVALID_VALUE, "workspace not aligned");
    CHECK(cublasDestroy_v2(handle) == CUBLAS_STATUS_SUCCESS, "destroy");
    CHECK(cublasDestroy_v2(handle) == CUBLAS_STATUS_NOT_INITIALIZED, "twice");
    CHECK(gemm(handle, 0, 0, 1, 1, 1, 1.0f, a.at(), 1, a.at(), 1, 0.0f, a.at(), 1) == CUBLAS_STATUS_NOT_INITIALIZED,
          "destroyed");
}

TEST(a_fault_can_be_injected) {
    const Handle handle;
    const OnDevice<float> a(1), c(1);
    const auto status = [&] { return gemm(handle.get(), 0, 0, 1, 1, 1, 1.0f, a.at(), 1, a.at(), 1, 0.0f, c.at(), 1); };
    CHECK(cudasim_inject("cublas", 0, 2) == 0, "inject");
    CHECK(status() == CUBLAS_STATUS_SUCCESS, "the first");
    CHECK(status() == CUBLAS_STATUS_EXECUTION_FAILED, "the second");
    CHECK(status() == CUBLAS_STATUS_SUCCESS, "once only");
    MUST(cudasim::cudaDeviceSynchronize());
}

TEST(it_says_what_it_is) {
    int major = 0;
    CHECK(cublasGetProperty(MAJOR_VERSION, &major) == 0 && major == 13, "%d", major);
    CHECK(std::strstr(cublasGetStatusString(CUBLAS_STATUS_EXECUTION_FAILED), "launch") != nullptr, "words");
}

// An administrator's switch changes products of the default mode, and none of the pedantic one.
TEST(the_environment_changes_only_the_default_mode) {
    const int n = 8;
    const auto a = normal<float>(n * n, 1), b = normal<float>(n * n, 2);
    const auto product = [&](int mode) {
        const Handle handle;
        CHECK(cublasSetMathMode(handle.get(), mode) == CUBLAS_STATUS_SUCCESS, "mode %d", mode);
        const OnDevice<float> on_a(a), on_b(b), on_c(static_cast<std::size_t>(n * n));
        CHECK(gemm(handle.get(), CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, 1.0f, on_a.at(), n, on_b.at(), n, 0.0f, on_c.at(), n) ==
                  CUBLAS_STATUS_SUCCESS,
              "gemm");
        MUST(cudasim::cudaStreamSynchronize(nullptr));
        return on_c.values();
    };
    const auto expected = product(CUBLAS_DEFAULT_MATH);
    CHECK(product(CUBLAS_PEDANTIC_MATH) == expected, "pedantic");
    for (const char *variable : {"CUBLAS_EMULATE_SINGLE_PRECISION", "NVIDIA_TF32_OVERRIDE"}) {
        setenv(variable, "1", 1);
        CHECK(product(CUBLAS_DEFAULT_MATH) != expected, "%s does nothing", variable);
        CHECK(product(CUBLAS_PEDANTIC_MATH) == expected, "%s changes pedantic products", variable);
        unsetenv(variable);
    }
}
