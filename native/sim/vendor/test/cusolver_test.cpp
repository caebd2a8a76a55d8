// The simulated cuSOLVER: the product of the factors is the matrix, and the calls that it refuses.
#include "vendor/cusolver.h"

#include <cmath>
#include <functional>
#include <string>

#include "devices.h"

namespace {

class Handle {
  public:
    Handle() {
        CHECK(cusolverDnCreate(&handle_) == CUSOLVER_STATUS_SUCCESS, "no handle");
        CHECK(cusolverDnCreateGesvdjInfo(&jacobi_) == CUSOLVER_STATUS_SUCCESS, "no parameters");
    }
    ~Handle() {
        cusolverDnDestroyGesvdjInfo(jacobi_);
        cusolverDnDestroy(handle_);
    }
    Handle(const Handle &) = delete;
    Handle &operator=(const Handle &) = delete;
    void *get() const { return handle_; }
    void *jacobi() const { return jacobi_; }

  private:
    void *handle_ = nullptr;
    void *jacobi_ = nullptr;
};

// The names only differ in a letter; these overloads allow a test to be written once.
int gesvd_size(const Handle &h, int m, int n, int *lwork, float) { return cusolverDnSgesvd_bufferSize(h.get(), m, n, lwork); }
int gesvd_size(const Handle &h, int m, int n, int *lwork, double) { return cusolverDnDgesvd_bufferSize(h.get(), m, n, lwork); }
int gesvd(const Handle &h, char job, int m, int n, float *a, int lda, float *s, float *u, int ldu, float *vt, int ldvt,
          float *work, int lwork, int *info) {
    return cusolverDnSgesvd(h.get(), job, job, m, n, a, lda, s, u, ldu, vt, ldvt, work, lwork, nullptr, info);
}
int gesvd(const Handle &h, char job, int m, int n, double *a, int lda, double *s, double *u, int ldu, double *vt, int ldvt,
          double *work, int lwork, int *info) {
    return cusolverDnDgesvd(h.get(), job, job, m, n, a, lda, s, u, ldu, vt, ldvt, work, lwork, nullptr, info);
}
int gesvdj_size(const Handle &h, int economy, int m, int n, int *lwork, float) {
    return cusolverDnSgesvdj_bufferSize(h.get(), CUSOLVER_EIG_MODE_VECTOR, economy, m, n, nullptr, m, nullptr, nullptr, m,
                                        nullptr, n, lwork, h.jacobi());
}
int gesvdj_size(const Handle &h, int economy, int m, int n, int *lwork, double) {
    return cusolverDnDgesvdj_bufferSize(h.get(), CUSOLVER_EIG_MODE_VECTOR, economy, m, n, nullptr, m, nullptr, nullptr, m,
                                        nullptr, n, lwork, h.jacobi());
}
int gesvdj(const Handle &h, int economy, int m, int n, float *a, int lda, float *s, float *u, int ldu, float *v, int ldv,
           float *work, int lwork, int *info) {
    return cusolverDnSgesvdj(h.get(), CUSOLVER_EIG_MODE_VECTOR, economy, m, n, a, lda, s, u, ldu, v, ldv, work, lwork, info,
                             h.jacobi());
}
int gesvdj(const Handle &h, int economy, int m, int n, double *a, int lda, double *s, double *u, int ldu, double *v, int ldv,
           double *work, int lwork, int *info) {
    return cusolverDnDgesvdj(h.get(), CUSOLVER_EIG_MODE_VECTOR, economy, m, n, a, lda, s, u, ldu, v, ldv, work, lwork, info,
                             h.jacobi());
}

// The result of a decomposition, with V not transposed.
template <typename T>
struct Parts {
    std::vector<T> u, s, v;
    int ldu, ldv;
};

template <typename T>
double orthonormal(const std::vector<T> &q, int ld, int rows, int cols) {
    double worst = 0;
    for (int i = 0; i < cols; ++i) {
        for (int j = 0; j < cols; ++j) {
            double sum = 0;
            for (int l = 0; l < rows; ++l) {
                sum += static_cast<double>(q[static_cast<std::size_t>(l + i * ld)]) *
                       static_cast<double>(q[static_cast<std::size_t>(l + j * ld)]);
            }
            worst = std::max(worst, std::abs(sum - (i == j ? 1 : 0)));
        }
    }
    return worst;
}

template <typename T>
void check_parts(const char *method, const std::vector<T> &a, int lda, int m, int n, const Parts<T> &parts, int u_cols,
                 int v_cols) {
    const double tolerance = sizeof(T) == 4 ? 2e-5 : 1e-12;
    const int rank = std::min(m, n);
    double worst = 0;
    for (int i = 0; i < m; ++i) {
        for (int j = 0; j < n; ++j) {
            double sum = 0;
            for (int l = 0; l < rank; ++l) {
                sum += static_cast<double>(parts.u[static_cast<std::size_t>(i + l * parts.ldu)]) *
                       static_cast<double>(parts.s[static_cast<std::size_t>(l)]) *
                       static_cast<double>(parts.v[static_cast<std::size_t>(j + l * parts.ldv)]);
            }
            worst = std::max(worst, std::abs(sum - static_cast<double>(a[static_cast<std::size_t>(i + j * lda)])));
        }
    }
    CHECK(worst < tolerance, "%s of %d x %d is off by %g", method, m, n, worst);
    CHECK(orthonormal(parts.u, parts.ldu, m, u_cols) < tolerance, "%s of %d x %d: U", method, m, n);
    CHECK(orthonormal(parts.v, parts.ldv, n, v_cols) < tolerance, "%s of %d x %d: V", method, m, n);
    for (int i = 1; i < rank; ++i) {
        CHECK(parts.s[static_cast<std::size_t>(i)] <= parts.s[static_cast<std::size_t>(i - 1)], "%s: order", method);
    }
}

template <typename T>
void qr_iteration() {
    const Handle handle;
    for (const auto &[m, n] : std::vector<std::pair<int, int>>{{9, 5}, {6, 6}, {7, 1}, {40, 31}}) {
        const int lda = m + 2;
        const auto a = normal<T>(static_cast<std::size_t>(lda * n), 1);
        int lwork = 0;
        CHECK(gesvd_size(handle, m, n, &lwork, T()) == 0, "query");
        const OnDevice<T> on_a(a), s(static_cast<std::size_t>(n)), u(static_cast<std::size_t>(m * n)),
            vt(static_cast<std::size_t>(n * n)), work(static_cast<std::size_t>(lwork));
        const OnDevice<int> info(1);
        CHECK(gesvd(handle, 'S', m, n, on_a.at(), lda, s.at(), u.at(), m, vt.at(), n, work.at(), lwork, info.at()) == 0, "gesvd");
        CHECK(info.values()[0] == 0, "info %d", info.values()[0]);
        Parts<T> parts{u.values(), s.values(), std::vector<T>(static_cast<std::size_t>(n * n)), m, n};
        const auto right = vt.values();
        for (int i = 0; i < n; ++i) {
            for (int j = 0; j < n; ++j) parts.v[static_cast<std::size_t>(j + i * n)] = right[static_cast<std::size_t>(i + j * n)];
        }
        check_parts("gesvd", a, lda, m, n, parts, n, n);
        CHECK(std::isnan(static_cast<double>(on_a.values()[0])), "A is destroyed");

        const OnDevice<T> again(a), alone(static_cast<std::size_t>(n));
        CHECK(gesvd(handle, 'N', m, n, again.at(), lda, alone.at(), static_cast<T *>(nullptr), m, static_cast<T *>(nullptr), n,
                    work.at(), lwork, info.at()) == 0,
              "values only");
        CHECK(alone.values() == parts.s, "values with and without vectors");
    }
}

template <typename T>
void jacobi() {
    const Handle handle;
    for (int economy : {0, 1}) {
        for (const auto &[m, n] : std::vector<std::pair<int, int>>{{9, 5}, {5, 9}, {6, 6}, {1, 7}}) {
            const int rank = std::min(m, n), u_cols = economy ? rank : m, v_cols = economy ? rank : n;
            const auto a = normal<T>(static_cast<std::size_t>(m * n), 2);
            int lwork = 0;
            CHECK(gesvdj_size(handle, economy, m, n, &lwork, T()) == 0, "query");
            const OnDevice<T> on_a(a), s(static_cast<std::size_t>(rank)), u(static_cast<std::size_t>(m * u_cols)),
                v(static_cast<std::size_t>(n * v_cols)), work(static_cast<std::size_t>(lwork));
            const OnDevice<int> info(1);
            CHECK(gesvdj(handle, economy, m, n, on_a.at(), m, s.at(), u.at(), m, v.at(), n, work.at(), lwork, info.at()) == 0,
                  "gesvdj");
            CHECK(info.values()[0] == 0, "info");
            check_parts<T>("gesvdj", a, m, m, n, {u.values(), s.values(), v.values(), m, n}, u_cols, v_cols);
        }
    }
}

template <typename T>
void polar_based(int type) {
    const Handle handle;
    void *parameters = nullptr;
    CHECK(cusolverDnCreateParams(&parameters) == 0, "parameters");
    for (const auto &[m, n] : std::vector<std::pair<int, int>>{{9, 5}, {5, 9}}) {
        const int rank = std::min(m, n);
        const auto a = normal<T>(static_cast<std::size_t>(m * n), 3);
        const OnDevice<T> on_a(a), s(static_cast<std::size_t>(rank)), u(static_cast<std::size_t>(m * rank)),
            v(static_cast<std::size_t>(n * rank));
        const OnDevice<int> info(1);
        unsigned long device_bytes = 0, host_bytes = 0;
        CHECK(cusolverDnXgesvdp_bufferSize(handle.get(), parameters, CUSOLVER_EIG_MODE_VECTOR, 1, m, n, type, on_a.at(), m, type,
                                           s.at(), type, u.at(), m, type, v.at(), n, type, &device_bytes, &host_bytes) == 0,
              "query");
        const OnDevice<char> room(device_bytes);
        std::vector<char> host(host_bytes);
        double sigma = -1;
        const auto run = [&](unsigned long on_device, unsigned long on_host) {
            return cusolverDnXgesvdp(handle.get(), parameters, CUSOLVER_EIG_MODE_VECTOR, 1, m, n, type, on_a.at(), m, type,
                                     s.at(), type, u.at(), m, type, v.at(), n, type, room.at(), on_device, host.data(), on_host,
                                     info.at(), &sigma);
        };
        CHECK(run(device_bytes - 1, host_bytes) == CUSOLVER_STATUS_INVALID_VALUE, "too little room on the device");
        CHECK(run(device_bytes, host_bytes - 1) == CUSOLVER_STATUS_INVALID_VALUE, "too little room on the host");
        CHECK(run(device_bytes, host_bytes) == 0 && sigma == 0, "gesvdp");
        CHECK(info.values()[0] == 0, "info");
        check_parts<T>("gesvdp", a, m, m, n, {u.values(), s.values(), v.values(), m, n}, rank, rank);
    }
    {
        const int m = 8, n = 5;
        const auto a = normal<T>(static_cast<std::size_t>(m * n), 4);
        const OnDevice<T> on_a(a), h(static_cast<std::size_t>(n * n));
        const OnDevice<int> info(1);
        unsigned long device_bytes = 0, host_bytes = 0;
        CHECK(cusolverDnXpolar_bufferSize(handle.get(), parameters, CUSOLVER_FILL_FULL, m, n, type, on_a.at(), m, type, h.at(),
                                          n, type, &device_bytes, &host_bytes) == 0,
              "query");
        const OnDevice<char> room(device_bytes);
        std::vector<char> host(host_bytes);
        CHECK(cusolverDnXpolar(handle.get(), parameters, CUSOLVER_FILL_FULL, m, n, type, on_a.at(), m, type, h.at(), n, type,
                               room.at(), device_bytes, host.data(), host_bytes, nullptr, nullptr, nullptr, info.at()) == 0,
              "polar");
        const auto u = on_a.values(), symmetric = h.values();
        CHECK(orthonormal(u, m, m, n) < 2e-5, "the polar factor");
        for (int i = 0; i < m; ++i) {
            for (int j = 0; j < n; ++j) {
                double sum = 0;
                for (int l = 0; l < n; ++l) {
                    sum += static_cast<double>(u[static_cast<std::size_t>(i + l * m)]) *
                           static_cast<double>(symmetric[static_cast<std::size_t>(l + j * n)]);
                }
                CHECK(std::abs(sum - static_cast<double>(a[static_cast<std::size_t>(i + j * m)])) < 2e-5, "U H (%d, %d)", i, j);
            }
        }
        CHECK(cusolverDnXpolar_bufferSize(handle.get(), parameters, CUSOLVER_FILL_FULL, n, m, type, on_a.at(), m, type, h.at(),
                                          n, type, &device_bytes, &host_bytes) == CUSOLVER_STATUS_INVALID_VALUE,
              "m < n");
    }
    CHECK(cusolverDnDestroyParams(parameters) == 0, "destroy");
}

// V diag(w) V^T of each matrix of a batch, from one triangle: the other one holds NaN.
template <typename T>
void eigenvectors(int type) {
    const Handle handle;
    void *parameters = nullptr;
    CHECK(cusolverDnCreateParams(&parameters) == 0, "parameters");
    constexpr int batch = 3;
    const double tolerance = sizeof(T) == 4 ? 2e-5 : 1e-12;
    for (const int n : {1, 2, 7, 40}) {
        const int lda = n + 1;
        for (const int triangle : {CUSOLVER_FILL_LOWER, CUSOLVER_FILL_UPPER}) {
            auto a = normal<T>(static_cast<std::size_t>(lda * n * batch), 8);
            const auto at = [&](int k, int i, int j) -> T & { return a[static_cast<std::size_t>((k * n + j) * lda + i)]; };
            for (int k = 0; k < batch; ++k) {
                for (int j = 0; j < n; ++j) {
                    for (int i = 0; i < n; ++i) {
                        const bool there = triangle == CUSOLVER_FILL_LOWER ? i >= j : i <= j;
                        if (!there) at(k, i, j) = static_cast<T>(std::nanf(""));
                        if (k == 1 && there) at(k, i, j) = 1;  // of rank 1
                    }
                }
            }
            const OnDevice<T> on_a(a), w(static_cast<std::size_t>(n * batch));
            const OnDevice<int> info(batch);
            unsigned long device_bytes = 0, host_bytes = 0;
            CHECK(cusolverDnXsyevBatched_bufferSize(handle.get(), parameters, CUSOLVER_EIG_MODE_VECTOR, triangle, n, type,
                                                    on_a.at(), lda, type, w.at(), type, &device_bytes, &host_bytes, batch) == 0,
                  "query");
            const OnDevice<char> room(device_bytes);
            std::vector<char> host(host_bytes);
            const auto run = [&](unsigned long on_device, long long count) {
                return cusolverDnXsyevBatched(handle.get(), parameters, CUSOLVER_EIG_MODE_VECTOR, triangle, n, type, on_a.at(),
                                              lda, type, w.at(), type, room.at(), on_device, host.data(), host_bytes,
                                              info.at(), count);
            };
            CHECK(run(device_bytes - 1, batch) == CUSOLVER_STATUS_INVALID_VALUE, "too little room on the device");
            CHECK(run(device_bytes, 0) == CUSOLVER_STATUS_INVALID_VALUE, "no matrices");
            CHECK(run(device_bytes, batch) == 0, "syevBatched");
            const auto v = on_a.values(), values = w.values();
            for (int k = 0; k < batch; ++k) {
                CHECK(info.values()[static_cast<std::size_t>(k)] == 0, "info %d", k);
                const auto vector = [&](int i, int l) {
                    return static_cast<double>(v[static_cast<std::size_t>((k * n + l) * lda + i)]);
                };
                const auto value = [&](int l) { return static_cast<double>(values[static_cast<std::size_t>(k * n + l)]); };
                for (int i = 0; i < n; ++i) {
                    CHECK(i == 0 || value(i) >= value(i - 1), "order");
                    for (int j = 0; j < n; ++j) {
                        double sum = 0, inner = 0;
                        for (int l = 0; l < n; ++l) {
                            sum += vector(i, l) * value(l) * vector(j, l);
                            inner += vector(l, i) * vector(l, j);
                        }
                        const bool there = triangle == CUSOLVER_FILL_LOWER ? i >= j : i <= j;
                        const double wanted = static_cast<double>(there ? at(k, i, j) : at(k, j, i));
                        CHECK(std::abs(sum - wanted) < tolerance, "n %d, matrix %d, (%d, %d): %g", n, k, i, j, sum - wanted);
                        CHECK(std::abs(inner - (i == j ? 1 : 0)) < tolerance, "V is not orthonormal by %g", inner);
                    }
                }
            }
            CHECK(cusolverDnXsyevBatched_bufferSize(handle.get(), nullptr, CUSOLVER_EIG_MODE_VECTOR, triangle, n, type,
                                                    on_a.at(), lda, type, w.at(), type, &device_bytes, &host_bytes,
                                                    batch) == CUSOLVER_STATUS_INVALID_VALUE,
                  "no parameters");
        }
    }
    CHECK(cusolverDnDestroyParams(parameters) == 0, "destroy");
}

}  // namespace

TEST(eigenvectors_multiply_back) {
    eigenvectors<float>(CUSOLVER_R_32F);
    eigenvectors<double>(CUSOLVER_R_64F);
}

TEST(gesvd_multiplies_back) {
    qr_iteration<float>();
    qr_iteration<double>();
}

TEST(gesvdj_multiplies_back) {
    jacobi<float>();
    jacobi<double>();
}

TEST(gesvdp_and_polar_multiply_back) {
    polar_based<float>(CUSOLVER_R_32F);
    polar_based<double>(CUSOLVER_R_64F);
}

TEST(a_batch_of_small_ones) {
    const Handle handle;
    const int m = 6, n = 4, batch = 3;
    const auto a = normal<float>(m * n * batch, 5);
    int lwork = 0;
    CHECK(cusolverDnSgesvdjBatched_bufferSize(handle.get(), CUSOLVER_EIG_MODE_VECTOR, m, n, nullptr, m, nullptr, nullptr, m,
                                              nullptr, n, &lwork, handle.jacobi(), batch) == 0,
          "query");
    const OnDevice<float> on_a(a), s(n * batch), u(m * m * batch), v(n * n * batch), work(static_cast<std::size_t>(lwork));
    const OnDevice<int> info(batch);
    CHECK(cusolverDnSgesvdjBatched(handle.get(), CUSOLVER_EIG_MODE_VECTOR, m, n, on_a.at(), m, s.at(), u.at(), m, v.at(), n,
                                   work.at(), lwork, info.at(), handle.jacobi(), batch) == 0,
          "batched");
    const auto all_u = u.values(), all_s = s.values(), all_v = v.values();
    for (int i = 0; i < batch; ++i) {
        CHECK(info.values()[static_cast<std::size_t>(i)] == 0, "info %d", i);
        const auto part = [i](const std::vector<float> &all, int size) {
            return std::vector<float>(all.begin() + i * size, all.begin() + (i + 1) * size);
        };
        check_parts<float>("batched", part(a, m * n), m, m, n, {part(all_u, m * m), part(all_s, n), part(all_v, n * n), m, n}, m,
                           n);
    }
    CHECK(cusolverDnSgesvdjBatched(handle.get(), CUSOLVER_EIG_MODE_VECTOR, 33, n, on_a.at(), 33, s.at(), u.at(), 33, v.at(), n,
                                   work.at(), lwork, info.at(), handle.jacobi(), 1) == CUSOLVER_STATUS_INVALID_VALUE,
          "33 rows");
}

TEST(a_matrix_without_full_rank) {
    const Handle handle;
    const int m = 6, n = 4;
    std::vector<double> a(m * n, 1.0);  // rank 1
    int lwork = 0;
    CHECK(gesvd_size(handle, m, n, &lwork, 0.0) == 0, "query");
    const OnDevice<double> on_a(a), s(n), u(m * n), vt(n * n), work(static_cast<std::size_t>(lwork));
    const OnDevice<int> info(1);
    CHECK(gesvd(handle, 'S', m, n, on_a.at(), m, s.at(), u.at(), m, vt.at(), n, work.at(), lwork, info.at()) == 0, "gesvd");
    const auto values = s.values();
    CHECK(std::abs(values[0] - std::sqrt(24.0)) < 1e-12 && values[1] < 1e-12, "%g, %g", values[0], values[1]);
    CHECK(orthonormal(u.values(), m, m, n) < 1e-12, "U is orthonormal all the same");
}

TEST(what_gesvd_refuses) {
    const Handle handle;
    const int m = 5, n = 3;
    int lwork = 0;
    CHECK(cusolverDnSgesvd_bufferSize(handle.get(), n, m, &lwork) == CUSOLVER_STATUS_INVALID_VALUE, "a query with m < n");
    CHECK(cusolverDnSgesvd_bufferSize(nullptr, m, n, &lwork) == CUSOLVER_STATUS_NOT_INITIALIZED, "no handle");
    CHECK(cusolverDnSgesvd_bufferSize(handle.get(), m, n, &lwork) == CUSOLVER_STATUS_SUCCESS, "query");
    const OnDevice<float> a(normal<float>(m * m, 6)), s(m), u(m * m), vt(m * m), work(static_cast<std::size_t>(lwork));
    const OnDevice<int> info(1);
    int host_info = 0;
    std::vector<float> host(25);
    CHECK(gesvd(handle, 'S', n, m, a.at(), m, s.at(), u.at(), m, vt.at(), m, work.at(), lwork, info.at()) ==
              CUSOLVER_STATUS_INVALID_VALUE,
          "m < n");
    CHECK(gesvd(handle, 'S', m, n, a.at(), m, s.at(), u.at(), m, vt.at(), n, work.at(), lwork - 1, info.at()) ==
              CUSOLVER_STATUS_INVALID_VALUE,
          "workspace");
    CHECK(gesvd(handle, 'S', m, n, a.at(), m, s.at(), u.at(), m, vt.at(), n, work.at(), lwork, &host_info) ==
              CUSOLVER_STATUS_INVALID_VALUE,
          "info on the host");
    CHECK(gesvd(handle, 'S', m, n, host.data(), m, s.at(), u.at(), m, vt.at(), n, work.at(), lwork, info.at()) ==
              CUSOLVER_STATUS_INVALID_VALUE,
          "A on the host");
    CHECK(gesvd(handle, 'X', m, n, a.at(), m, s.at(), u.at(), m, vt.at(), n, work.at(), lwork, info.at()) ==
              CUSOLVER_STATUS_INVALID_VALUE,
          "job");
    CHECK(cudasim_inject("cusolver", 0, 1) == 0, "inject");
    CHECK(gesvd(handle, 'S', m, n, a.at(), m, s.at(), u.at(), m, vt.at(), n, work.at(), lwork, info.at()) ==
              CUSOLVER_STATUS_INTERNAL_ERROR,
          "injected");
    CHECK(gesvd(handle, 'S', m, n, a.at(), m, s.at(), u.at(), m, vt.at(), n, work.at(), lwork, info.at()) == 0, "once only");
    CHECK(info.values()[0] == 0, "info");
}

TEST(nan_does_not_converge) {
    const Handle handle;
    std::vector<float> values = normal<float>(9, 7);
    values[4] = std::nanf("");
    int lwork = 0;
    CHECK(gesvdj_size(handle, 1, 3, 3, &lwork, 0.0f) == 0, "query");
    const OnDevice<float> a(values), s(3), u(9), v(9), work(static_cast<std::size_t>(lwork));
    const OnDevice<int> info(1);
    CHECK(gesvdj(handle, 1, 3, 3, a.at(), 3, s.at(), u.at(), 3, v.at(), 3, work.at(), lwork, info.at()) == 0, "gesvdj");
    CHECK(info.values()[0] == 4, "info %d", info.values()[0]);
}
