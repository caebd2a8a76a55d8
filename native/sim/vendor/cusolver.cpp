// cuSOLVER on simulated devices: the functions of vendor/cusolver.h. The matrix that a decomposition destroys is filled with
// NaN, and the workspace is written to its end, so that callers that rely on the former or provide too little of the latter
// are found.
#include "vendor/cusolver.h"

#include <memory>
#include <string>

#include "cudasim/control.h"
#include "dense.h"
#include "handles.h"
#include "site.h"

using namespace vendor;

namespace {

struct Handle {
    explicit Handle(int on) : device(on) {}
    int device;
    void *stream = nullptr;
};

struct JacobiParameters {
    double tolerance = 0;
    int sweeps = 100;
};

struct Parameters {};

template <typename T>
Handles<T> &all() {
    static Handles<T> handles;
    return handles;
}

int found(const char *function, void *address, std::shared_ptr<Handle> &handle) {
    handle = all<Handle>().find(address);
    if (!handle) return CUSOLVER_STATUS_NOT_INITIALIZED;
    return is_current(function, handle->device) ? CUSOLVER_STATUS_SUCCESS : CUSOLVER_STATUS_EXECUTION_FAILED;
}

// For functions that run on the device; faults are never injected into queries.
int ready(const char *function, void *address, std::shared_ptr<Handle> &handle) {
    const int status = found(function, address, handle);
    if (status == CUSOLVER_STATUS_SUCCESS && cudasim::injected("cusolver", handle->device)) {
        complain(function, "fails as injected");
        return CUSOLVER_STATUS_INTERNAL_ERROR;
    }
    return status;
}

int run(const char *function, const Handle &handle, std::function<void()> work) {
    return enqueue(function, handle.stream, std::move(work), {handle.device}) ? CUSOLVER_STATUS_SUCCESS
                                                                             : CUSOLVER_STATUS_EXECUTION_FAILED;
}

bool require(const char *function, bool holds, const char *what) {
    if (!holds) complain(function, "%s", what);
    return holds;
}

template <typename T>
void spoil(T *a, std::int64_t ld, std::int64_t rows, std::int64_t cols) {
    for (std::int64_t j = 0; j < cols; ++j) {
        std::fill(a + j * ld, a + j * ld + rows, std::numeric_limits<T>::quiet_NaN());
    }
}

// One decomposition, for every method.
template <typename T>
struct Task {
    std::int64_t m, n;
    bool vectors;
    bool full;        // square U and V
    bool transposed;  // V^T is requested, not V
    T *a;
    std::int64_t lda;
    T *s;
    T *u;
    std::int64_t ldu;
    T *v;
    std::int64_t ldv;
    int *info;

    std::int64_t rank() const { return std::min(m, n); }

    bool fits(const char *function, int device) const {
        const std::int64_t u_cols = full ? m : rank();
        const std::int64_t v_rows = transposed ? (full ? n : rank()) : n;
        const std::int64_t v_cols = transposed ? n : (full ? n : rank());
        return on_device(function, "A", a, span(m, n, lda, sizeof(T)), device) &&
               on_device(function, "S", s, rank() * static_cast<std::int64_t>(sizeof(T)), device) &&
               on_device(function, "info", info, sizeof(int), device) &&
               (!vectors || (on_device(function, "U", u, span(m, u_cols, ldu, sizeof(T)), device) &&
                             on_device(function, "V", v, span(v_rows, v_cols, ldv, sizeof(T)), device)));
    }

    bool leading(const char *function) const {
        const std::int64_t v_rows = transposed && !full ? rank() : n;
        return require(function, m >= 0 && n >= 0, "a negative size") &&
               require(function, lda >= std::max<std::int64_t>(1, m), "the leading dimension of A is too small") &&
               (!vectors ||
                (require(function, ldu >= std::max<std::int64_t>(1, m), "the leading dimension of U is too small") &&
                 require(function, ldv >= std::max<std::int64_t>(1, v_rows), "the leading dimension of V is too small")));
    }

    void decompose(double tolerance, int sweeps, int failure) const {
        const Svd svd = vendor::decompose(read(a, lda, m, n, false), tolerance, sweeps);
        spoil(a, lda, m, n);
        for (std::int64_t i = 0; i < rank(); ++i) store(s[i], svd.s[static_cast<std::size_t>(i)]);
        if (vectors) {
            write(full ? widened(svd.u) : svd.u, u, ldu);
            const Dense right = full ? widened(svd.v) : svd.v;
            write(transposed ? right.transposed() : right, v, ldv);
        }
        *info = svd.converged ? 0 : failure;
    }
};

std::int64_t work_elements(std::int64_t m, std::int64_t n) { return 5 * std::min(m, n) + std::max(m, n) + 32; }

template <typename T>
bool enough(const char *function, const T *work, int lwork, std::int64_t needed, int device) {
    if (lwork < needed) {
        complain(function, "lwork is %d, but the query answered %lld", lwork, static_cast<long long>(needed));
        return false;
    }
    return on_device(function, "the workspace", work, lwork * static_cast<std::int64_t>(sizeof(T)), device);
}

template <typename T>
int gesvd_size(const char *function, void *address, int m, int n, int *lwork) {
    std::shared_ptr<Handle> handle;
    const int status = found(function, address, handle);
    if (status != CUSOLVER_STATUS_SUCCESS) return status;
    if (!require(function, m >= n && n >= 0, "m >= n is needed") || !on_host(function, "lwork", lwork)) {
        return CUSOLVER_STATUS_INVALID_VALUE;
    }
    *lwork = static_cast<int>(work_elements(m, n));
    return CUSOLVER_STATUS_SUCCESS;
}

template <typename T>
int gesvd(const char *function, void *address, signed char job_u, signed char job_vt, const Task<T> &task, T *work,
          int lwork) {
    std::shared_ptr<Handle> handle;
    const int status = ready(function, address, handle);
    if (status != CUSOLVER_STATUS_SUCCESS) return status;
    if (!require(function, task.m >= task.n, "m >= n is needed") ||
        !require(function, job_u == job_vt && (job_u == 'S' || job_u == 'N' || job_u == 'A'), "jobs are S, A or N, alike") ||
        !task.leading(function) || !enough(function, work, lwork, work_elements(task.m, task.n), handle->device) ||
        !task.fits(function, handle->device)) {
        return CUSOLVER_STATUS_INVALID_VALUE;
    }
    return run(function, *handle, [task, work, lwork] {
        spoil(work, lwork, lwork, 1);
        task.decompose(0, 100, 1);
    });
}

template <typename T>
int gesvdj_size(const char *function, void *address, int m, int n, int *lwork, void *parameters) {
    std::shared_ptr<Handle> handle;
    const int status = found(function, address, handle);
    if (status != CUSOLVER_STATUS_SUCCESS) return status;
    if (!require(function, all<JacobiParameters>().find(parameters) != nullptr, "no parameters of gesvdj") ||
        !require(function, m >= 0 && n >= 0, "a negative size") || !on_host(function, "lwork", lwork)) {
        return CUSOLVER_STATUS_INVALID_VALUE;
    }
    *lwork = static_cast<int>(work_elements(m, n));
    return CUSOLVER_STATUS_SUCCESS;
}

// `tasks` are the matrices of a batch, or a single one.
template <typename T>
int gesvdj(const char *function, void *address, int job, std::vector<Task<T>> tasks, T *work, int lwork, void *parameters) {
    std::shared_ptr<Handle> handle;
    const int status = ready(function, address, handle);
    if (status != CUSOLVER_STATUS_SUCCESS) return status;
    const auto jacobi = all<JacobiParameters>().find(parameters);
    if (!require(function, jacobi != nullptr, "no parameters of gesvdj") ||
        !require(function, job == CUSOLVER_EIG_MODE_VECTOR || job == CUSOLVER_EIG_MODE_NOVECTOR, "no such job")) {
        return CUSOLVER_STATUS_INVALID_VALUE;
    }
    std::int64_t needed = 0;
    for (const Task<T> &task : tasks) {
        needed += work_elements(task.m, task.n);
        if (!task.leading(function) || !task.fits(function, handle->device)) return CUSOLVER_STATUS_INVALID_VALUE;
    }
    if (!enough(function, work, lwork, needed, handle->device)) return CUSOLVER_STATUS_INVALID_VALUE;
    return run(function, *handle, [tasks, work, lwork, tolerance = jacobi->tolerance, sweeps = jacobi->sweeps] {
        spoil(work, lwork, lwork, 1);
        for (const Task<T> &task : tasks) task.decompose(tolerance, sweeps, static_cast<int>(task.rank()) + 1);
    });
}

bool one_type(const char *function, std::initializer_list<int> types) {
    for (int type : types) {
        if ((type != CUSOLVER_R_32F && type != CUSOLVER_R_64F) || type != *types.begin()) {
            complain(function, "type %d beside type %d", type, *types.begin());
            return false;
        }
    }
    return true;
}

unsigned long device_bytes_for(std::int64_t m, std::int64_t n, int type) {
    const std::int64_t element = type == CUSOLVER_R_64F ? sizeof(double) : sizeof(float);
    return static_cast<unsigned long>((m * n + work_elements(m, n)) * element);
}

constexpr unsigned long kHostBytes = 64;

// The 64-bit functions have a workspace on the host and one on the device; both are written to the end.
bool both_rooms(const char *function, void *device_work, unsigned long device_bytes, void *host_work,
                unsigned long host_bytes, std::int64_t m, std::int64_t n, int type, int device) {
    if (device_bytes < device_bytes_for(m, n, type) || host_bytes < kHostBytes) {
        complain(function, "workspaces of %lu and %lu bytes, but the query answered %lu and %lu", device_bytes, host_bytes,
                 device_bytes_for(m, n, type), kHostBytes);
        return false;
    }
    if (!on_device(function, "the workspace", device_work, static_cast<std::int64_t>(device_bytes), device) ||
        !on_host(function, "the host's workspace", host_work)) {
        return false;
    }
    std::memset(host_work, 0xff, host_bytes);
    return true;
}

int room_query(const char *function, void *address, std::int64_t m, std::int64_t n, std::initializer_list<int> types,
               unsigned long *device_bytes, unsigned long *host_bytes) {
    std::shared_ptr<Handle> handle;
    const int status = found(function, address, handle);
    if (status != CUSOLVER_STATUS_SUCCESS) return status;
    if (!require(function, m >= 0 && n >= 0, "a negative size") || !one_type(function, types) ||
        !on_host(function, "the device's bytes", device_bytes) || !on_host(function, "the host's bytes", host_bytes)) {
        return CUSOLVER_STATUS_INVALID_VALUE;
    }
    *device_bytes = device_bytes_for(m, n, *types.begin());
    *host_bytes = kHostBytes;
    return CUSOLVER_STATUS_SUCCESS;
}

template <typename T>
int gesvdp(const char *function, const Handle &handle, const Task<T> &task, void *work, unsigned long bytes) {
    if (!task.leading(function) || !task.fits(function, handle.device)) return CUSOLVER_STATUS_INVALID_VALUE;
    return run(function, handle, [task, work, bytes] {
        std::memset(work, 0xff, bytes);
        task.decompose(0, 100, 1);
    });
}

#if CUSOLVER_STAND_IN_EIGENVECTORS
// One triangle of a symmetric matrix; the other one is not looked at.
template <typename T>
Dense symmetric(const T *a, std::int64_t lda, std::int64_t n, bool upper) {
    Dense result(n, n);
    for (std::int64_t j = 0; j < n; ++j) {
        for (std::int64_t i = 0; i < n; ++i) {
            const bool there = upper ? i <= j : i >= j;
            result(i, j) = load(there ? a[i + j * lda] : a[j + i * lda]);
        }
    }
    return result;
}

template <typename T>
int eigenvectors(const char *function, const Handle &handle, bool vectors, bool upper, std::int64_t n, T *a, std::int64_t lda,
                 T *w, void *work, unsigned long bytes, int *info, std::int64_t batch) {
    const auto element = static_cast<std::int64_t>(sizeof(T));
    if (!require(function, lda >= std::max<std::int64_t>(1, n), "the leading dimension of A is too small") ||
        !on_device(function, "A", a, span(n, n + (batch - 1) * n, lda, sizeof(T)), handle.device) ||
        !on_device(function, "W", w, batch * n * element, handle.device) ||
        !on_device(function, "info", info, batch * static_cast<std::int64_t>(sizeof(int)), handle.device)) {
        return CUSOLVER_STATUS_INVALID_VALUE;
    }
    const std::string what = std::string(function) + ", " + std::to_string(batch) + " of " + std::to_string(n) + " x " +
                             std::to_string(n);
    return run(what.c_str(), handle, [=, device = handle.device] {
        std::memset(work, 0xff, bytes);
        for (std::int64_t k = 0; k < batch; ++k) {
            T *const own = a + k * lda * n;
            const Eigen eigen = diagonalize(symmetric(own, lda, n, upper), 100);
            spoil(own, lda, n, n);
            if (vectors) write(eigen.v, own, lda);
            for (std::int64_t i = 0; i < n; ++i) store(w[k * n + i], eigen.w[static_cast<std::size_t>(i)]);
            info[k] = eigen.converged && !cudasim::injected("cusolver-unconverged", device) ? 0 : 1;
        }
    });
}
#endif

#if CUSOLVER_STAND_IN_POLAR
template <typename T>
int polar(const char *function, const Handle &handle, std::int64_t m, std::int64_t n, T *a, std::int64_t lda, T *h,
          std::int64_t ldh, void *work, unsigned long bytes, int *info) {
    const bool wants_h = h != nullptr;
    if (!require(function, lda >= std::max<std::int64_t>(1, m), "the leading dimension of A is too small") ||
        !require(function, !wants_h || ldh >= std::max<std::int64_t>(1, n), "the leading dimension of H is too small") ||
        !on_device(function, "A", a, span(m, n, lda, sizeof(T)), handle.device) ||
        (wants_h && !on_device(function, "H", h, span(n, n, ldh, sizeof(T)), handle.device)) ||
        !on_device(function, "info", info, sizeof(int), handle.device)) {
        return CUSOLVER_STATUS_INVALID_VALUE;
    }
    return run(function, handle, [=] {
        std::memset(work, 0xff, bytes);
        const Svd svd = decompose(read(a, lda, m, n, false), 0, 100);
        write(product(svd.u, svd.v.transposed()), a, lda);
        if (wants_h) {
            Dense scaled = svd.v;
            for (std::int64_t j = 0; j < scaled.cols(); ++j) {
                for (std::int64_t i = 0; i < scaled.rows(); ++i) scaled(i, j) *= svd.s[static_cast<std::size_t>(j)];
            }
            write(product(scaled, svd.v.transposed()), h, ldh);
        }
        *info = svd.converged ? 0 : 1;
    });
}
#endif

}  // namespace

// Distinguishes a simulated library from a real one, which would dereference simulated pointers.
VENDOR_API int cudasim_stand_in(void) { return 1; }

VENDOR_API int cusolverGetVersion(int *version) {
    if (version == nullptr) return CUSOLVER_STATUS_INVALID_VALUE;
    *version = CUSOLVER_STAND_IN_VERSION;
    return CUSOLVER_STATUS_SUCCESS;
}

VENDOR_API int cusolverDnCreate(void **handle) {
    if (handle == nullptr) return CUSOLVER_STATUS_INVALID_VALUE;
    const int device = current_device();
    if (device < 0) return CUSOLVER_STATUS_NOT_INITIALIZED;
    if (cudasim::injected("cusolver", device)) return CUSOLVER_STATUS_ALLOC_FAILED;
    *handle = all<Handle>().make(device);
    return CUSOLVER_STATUS_SUCCESS;
}

VENDOR_API int cusolverDnDestroy(void *handle) {
    return all<Handle>().destroy(handle) ? CUSOLVER_STATUS_SUCCESS : CUSOLVER_STATUS_NOT_INITIALIZED;
}

VENDOR_API int cusolverDnSetStream(void *address, void *stream) {
    std::shared_ptr<Handle> handle;
    const int status = found(__func__, address, handle);
    if (status != CUSOLVER_STATUS_SUCCESS) return status;
    if (!belongs(__func__, stream, handle->device)) return CUSOLVER_STATUS_INVALID_VALUE;
    handle->stream = stream;
    return CUSOLVER_STATUS_SUCCESS;
}

VENDOR_API int cusolverDnSgesvd_bufferSize(void *handle, int m, int n, int *lwork) {
    return gesvd_size<float>(__func__, handle, m, n, lwork);
}

VENDOR_API int cusolverDnDgesvd_bufferSize(void *handle, int m, int n, int *lwork) {
    return gesvd_size<double>(__func__, handle, m, n, lwork);
}

VENDOR_API int cusolverDnSgesvd(void *handle, signed char job_u, signed char job_vt, int m, int n, float *a, int lda,
                                float *s, float *u, int ldu, float *vt, int ldvt, float *work, int lwork, float *,
                                int *info) {
    const Task<float> task{m, n, job_u != 'N', job_u == 'A', true, a, lda, s, u, ldu, vt, ldvt, info};
    return gesvd(__func__, handle, job_u, job_vt, task, work, lwork);
}

VENDOR_API int cusolverDnDgesvd(void *handle, signed char job_u, signed char job_vt, int m, int n, double *a, int lda,
                                double *s, double *u, int ldu, double *vt, int ldvt, double *work, int lwork, double *,
                                int *info) {
    const Task<double> task{m, n, job_u != 'N', job_u == 'A', true, a, lda, s, u, ldu, vt, ldvt, info};
    return gesvd(__func__, handle, job_u, job_vt, task, work, lwork);
}

VENDOR_API int cusolverDnCreateGesvdjInfo(void **parameters) {
    if (parameters == nullptr) return CUSOLVER_STATUS_INVALID_VALUE;
    *parameters = all<JacobiParameters>().make();
    return CUSOLVER_STATUS_SUCCESS;
}

VENDOR_API int cusolverDnDestroyGesvdjInfo(void *parameters) {
    return all<JacobiParameters>().destroy(parameters) ? CUSOLVER_STATUS_SUCCESS : CUSOLVER_STATUS_INVALID_VALUE;
}

VENDOR_API int cusolverDnXgesvdjSetTolerance(void *parameters, double tolerance) {
    const auto jacobi = all<JacobiParameters>().find(parameters);
    if (!jacobi) return CUSOLVER_STATUS_INVALID_VALUE;
    jacobi->tolerance = tolerance;
    return CUSOLVER_STATUS_SUCCESS;
}

VENDOR_API int cusolverDnSgesvdj_bufferSize(void *handle, int, int, int m, int n, const float *, int, const float *,
                                            const float *, int, const float *, int, int *lwork, void *parameters) {
    return gesvdj_size<float>(__func__, handle, m, n, lwork, parameters);
}

VENDOR_API int cusolverDnDgesvdj_bufferSize(void *handle, int, int, int m, int n, const double *, int, const double *,
                                            const double *, int, const double *, int, int *lwork, void *parameters) {
    return gesvdj_size<double>(__func__, handle, m, n, lwork, parameters);
}

VENDOR_API int cusolverDnSgesvdj(void *handle, int job, int economy, int m, int n, float *a, int lda, float *s, float *u,
                                 int ldu, float *v, int ldv, float *work, int lwork, int *info, void *parameters) {
    const bool vectors = job == CUSOLVER_EIG_MODE_VECTOR;
    return gesvdj<float>(__func__, handle, job, {{m, n, vectors, economy == 0, false, a, lda, s, u, ldu, v, ldv, info}}, work,
                         lwork, parameters);
}

VENDOR_API int cusolverDnDgesvdj(void *handle, int job, int economy, int m, int n, double *a, int lda, double *s, double *u,
                                 int ldu, double *v, int ldv, double *work, int lwork, int *info, void *parameters) {
    const bool vectors = job == CUSOLVER_EIG_MODE_VECTOR;
    return gesvdj<double>(__func__, handle, job, {{m, n, vectors, economy == 0, false, a, lda, s, u, ldu, v, ldv, info}},
                          work, lwork, parameters);
}

VENDOR_API int cusolverDnSgesvdjBatched_bufferSize(void *handle, int, int m, int n, const float *, int, const float *,
                                                   const float *, int, const float *, int, int *lwork, void *parameters,
                                                   int batch) {
    const int status = gesvdj_size<float>(__func__, handle, m, n, lwork, parameters);
    if (status == CUSOLVER_STATUS_SUCCESS) *lwork *= batch;
    return status;
}

VENDOR_API int cusolverDnSgesvdjBatched(void *handle, int job, int m, int n, float *a, int lda, float *s, float *u, int ldu,
                                        float *v, int ldv, float *work, int lwork, int *info, void *parameters, int batch) {
    if (!all<Handle>().find(handle)) return CUSOLVER_STATUS_NOT_INITIALIZED;
    if (!require(__func__, m <= 32 && n <= 32, "at most 32 x 32")) return CUSOLVER_STATUS_INVALID_VALUE;
    std::vector<Task<float>> tasks;
    for (std::int64_t i = 0; i < batch; ++i) {
        tasks.push_back({m, n, job == CUSOLVER_EIG_MODE_VECTOR, true, false, a + i * lda * n, lda, s + i * std::min(m, n),
                         u + i * ldu * m, ldu, v + i * ldv * n, ldv, info + i});
    }
    return gesvdj(__func__, handle, job, std::move(tasks), work, lwork, parameters);
}

VENDOR_API int cusolverDnCreateParams(void **parameters) {
    if (parameters == nullptr) return CUSOLVER_STATUS_INVALID_VALUE;
    *parameters = all<Parameters>().make();
    return CUSOLVER_STATUS_SUCCESS;
}

VENDOR_API int cusolverDnDestroyParams(void *parameters) {
    return all<Parameters>().destroy(parameters) ? CUSOLVER_STATUS_SUCCESS : CUSOLVER_STATUS_INVALID_VALUE;
}

VENDOR_API int cusolverDnXgesvdp_bufferSize(void *handle, void *, int, int, long long m, long long n, int type_a,
                                            const void *, long long, int type_s, const void *, int type_u, const void *,
                                            long long, int type_v, const void *, long long, int compute_type,
                                            unsigned long *device_bytes, unsigned long *host_bytes) {
    return room_query(__func__, handle, m, n, {type_a, type_s, type_u, type_v, compute_type}, device_bytes, host_bytes);
}

VENDOR_API int cusolverDnXgesvdp(void *address, void *, int job, int economy, long long m, long long n, int type_a, void *a,
                                 long long lda, int type_s, void *s, int type_u, void *u, long long ldu, int type_v, void *v,
                                 long long ldv, int compute_type, void *device_work, unsigned long device_bytes,
                                 void *host_work, unsigned long host_bytes, int *info, double *sigma_error) {
    std::shared_ptr<Handle> handle;
    const int status = ready(__func__, address, handle);
    if (status != CUSOLVER_STATUS_SUCCESS) return status;
    if (!one_type(__func__, {type_a, type_s, type_u, type_v, compute_type}) ||
        !on_host(__func__, "the error of sigma", sigma_error) ||
        !both_rooms(__func__, device_work, device_bytes, host_work, host_bytes, m, n, type_a, handle->device)) {
        return CUSOLVER_STATUS_INVALID_VALUE;
    }
    *sigma_error = 0;
    const bool vectors = job == CUSOLVER_EIG_MODE_VECTOR;
    if (type_a == CUSOLVER_R_64F) {
        const Task<double> task{m,   n,   vectors, economy == 0, false, static_cast<double *>(a), lda, static_cast<double *>(s),
                                static_cast<double *>(u), ldu, static_cast<double *>(v), ldv, info};
        return gesvdp(__func__, *handle, task, device_work, device_bytes);
    }
    const Task<float> task{m,   n,   vectors, economy == 0, false, static_cast<float *>(a), lda, static_cast<float *>(s),
                           static_cast<float *>(u), ldu, static_cast<float *>(v), ldv, info};
    return gesvdp(__func__, *handle, task, device_work, device_bytes);
}

#if CUSOLVER_STAND_IN_EIGENVECTORS
namespace {

bool eigenvectors_fit(const char *function, int job, int triangle, long long batch) {
    return require(function, job == CUSOLVER_EIG_MODE_VECTOR || job == CUSOLVER_EIG_MODE_NOVECTOR, "no such job") &&
           require(function, triangle == CUSOLVER_FILL_LOWER || triangle == CUSOLVER_FILL_UPPER, "no such triangle") &&
           require(function, batch >= 1, "a batch of less than one");
}

}  // namespace

VENDOR_API int cusolverDnXsyevBatched_bufferSize(void *handle, void *parameters, int job, int triangle, long long n,
                                                 int type_a, const void *, long long, int type_w, const void *,
                                                 int compute_type, unsigned long *device_bytes, unsigned long *host_bytes,
                                                 long long batch) {
    if (!eigenvectors_fit(__func__, job, triangle, batch) ||
        !require(__func__, all<Parameters>().find(parameters) != nullptr, "no parameters")) {
        return CUSOLVER_STATUS_INVALID_VALUE;
    }
    return room_query(__func__, handle, n, n * batch, {type_a, type_w, compute_type}, device_bytes, host_bytes);
}

VENDOR_API int cusolverDnXsyevBatched(void *address, void *parameters, int job, int triangle, long long n, int type_a, void *a,
                                      long long lda, int type_w, void *w, int compute_type, void *device_work,
                                      unsigned long device_bytes, void *host_work, unsigned long host_bytes, int *info,
                                      long long batch) {
    std::shared_ptr<Handle> handle;
    const int status = ready(__func__, address, handle);
    if (status != CUSOLVER_STATUS_SUCCESS) return status;
    if (!eigenvectors_fit(__func__, job, triangle, batch) ||
        !require(__func__, all<Parameters>().find(parameters) != nullptr, "no parameters") ||
        !one_type(__func__, {type_a, type_w, compute_type}) ||
        !both_rooms(__func__, device_work, device_bytes, host_work, host_bytes, n, n * batch, type_a, handle->device)) {
        return CUSOLVER_STATUS_INVALID_VALUE;
    }
    const bool vectors = job == CUSOLVER_EIG_MODE_VECTOR;
    const bool upper = triangle == CUSOLVER_FILL_UPPER;
    return type_a == CUSOLVER_R_64F ? eigenvectors(__func__, *handle, vectors, upper, n, static_cast<double *>(a), lda,
                                                   static_cast<double *>(w), device_work, device_bytes, info, batch)
                                    : eigenvectors(__func__, *handle, vectors, upper, n, static_cast<float *>(a), lda,
                                                   static_cast<float *>(w), device_work, device_bytes, info, batch);
}
#endif

#if CUSOLVER_STAND_IN_POLAR
VENDOR_API int cusolverDnXpolar_bufferSize(void *handle, void *, int, long long m, long long n, int type_a, const void *,
                                           long long, int type_h, const void *, long long, int compute_type,
                                           unsigned long *device_bytes, unsigned long *host_bytes) {
    if (!require(__func__, m >= n, "m >= n is needed")) return CUSOLVER_STATUS_INVALID_VALUE;
    return room_query(__func__, handle, m, n, {type_a, type_h, compute_type}, device_bytes, host_bytes);
}

VENDOR_API int cusolverDnXpolar(void *address, void *, int, long long m, long long n, int type_a, void *a, long long lda,
                                int type_h, void *h, long long ldh, int compute_type, void *device_work,
                                unsigned long device_bytes, void *host_work, unsigned long host_bytes, double *, double *,
                                double *, int *info) {
    std::shared_ptr<Handle> handle;
    const int status = ready(__func__, address, handle);
    if (status != CUSOLVER_STATUS_SUCCESS) return status;
    if (!require(__func__, m >= n, "m >= n is needed") || !one_type(__func__, {type_a, type_h, compute_type}) ||
        !both_rooms(__func__, device_work, device_bytes, host_work, host_bytes, m, n, type_a, handle->device)) {
        return CUSOLVER_STATUS_INVALID_VALUE;
    }
    return type_a == CUSOLVER_R_64F
               ? polar(__func__, *handle, m, n, static_cast<double *>(a), lda, static_cast<double *>(h), ldh, device_work,
                       device_bytes, info)
               : polar(__func__, *handle, m, n, static_cast<float *>(a), lda, static_cast<float *>(h), ldh, device_work,
                       device_bytes, info);
}
#endif
