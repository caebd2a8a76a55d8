/*
 * The few cuSOLVER declarations that FedCoMuon calls, written from its documentation for jextract and for the simulated
 * library. They hold for CUDA 12 (libcusolver.so.11) and 13 (libcusolver.so.12). Enumerations are ints, handles and
 * streams untyped pointers. Matrices are column-major and on the device, as is info: 0 done, below 0 the number of a
 * wrong argument, above 0 not converged.
 */
#ifndef FEDCOMUON_VENDOR_CUSOLVER_H
#define FEDCOMUON_VENDOR_CUSOLVER_H

#ifdef __cplusplus
extern "C" {
#endif

enum {
    CUSOLVER_STATUS_SUCCESS = 0,
    CUSOLVER_STATUS_NOT_INITIALIZED = 1,
    CUSOLVER_STATUS_ALLOC_FAILED = 2,
    CUSOLVER_STATUS_INVALID_VALUE = 3,
    CUSOLVER_STATUS_ARCH_MISMATCH = 4,
    CUSOLVER_STATUS_MAPPING_ERROR = 5,
    CUSOLVER_STATUS_EXECUTION_FAILED = 6,
    CUSOLVER_STATUS_INTERNAL_ERROR = 7,
    CUSOLVER_STATUS_MATRIX_TYPE_NOT_SUPPORTED = 8,
    CUSOLVER_STATUS_NOT_SUPPORTED = 9
};
enum { CUSOLVER_EIG_MODE_NOVECTOR = 0, CUSOLVER_EIG_MODE_VECTOR = 1 };
enum { CUSOLVER_R_32F = 0, CUSOLVER_R_64F = 1 };                     /* cudaDataType */
enum { CUSOLVER_FILL_LOWER = 0, CUSOLVER_FILL_UPPER = 1, CUSOLVER_FILL_FULL = 2 }; /* cublasFillMode_t */

/* 1000 major + 100 minor + patch, without a handle and without a GPU. */
int cusolverGetVersion(int *version);

/* A handle belongs to the device that is current when it is made; work runs on the stream it was last given. */
int cusolverDnCreate(void **handle);
int cusolverDnDestroy(void *handle);
int cusolverDnSetStream(void *handle, void *stream);

/*
 * A = U diag(s) VT by QR iteration, m >= n only. 'S' gives the first n columns of U and rows of VT, 'N' none. A is
 * destroyed. lwork counts elements; rwork may be NULL.
 */
int cusolverDnSgesvd_bufferSize(void *handle, int m, int n, int *lwork);
int cusolverDnDgesvd_bufferSize(void *handle, int m, int n, int *lwork);
int cusolverDnSgesvd(void *handle, signed char job_u, signed char job_vt, int m, int n, float *a, int lda, float *s,
                     float *u, int ldu, float *vt, int ldvt, float *work, int lwork, float *rwork, int *info);
int cusolverDnDgesvd(void *handle, signed char job_u, signed char job_vt, int m, int n, double *a, int lda, double *s,
                     double *u, int ldu, double *vt, int ldvt, double *work, int lwork, double *rwork, int *info);

/* How long the Jacobi methods go on. */
int cusolverDnCreateGesvdjInfo(void **parameters);
int cusolverDnDestroyGesvdjInfo(void *parameters);
int cusolverDnXgesvdjSetTolerance(void *parameters, double tolerance);

/* A = U diag(s) V^T by Jacobi rotations, any shape; V, not V^T, is given. economy = 1: min(m, n) columns of each. */
int cusolverDnSgesvdj_bufferSize(void *handle, int job, int economy, int m, int n, const float *a, int lda,
                                 const float *s, const float *u, int ldu, const float *v, int ldv, int *lwork,
                                 void *parameters);
int cusolverDnDgesvdj_bufferSize(void *handle, int job, int economy, int m, int n, const double *a, int lda,
                                 const double *s, const double *u, int ldu, const double *v, int ldv, int *lwork,
                                 void *parameters);
int cusolverDnSgesvdj(void *handle, int job, int economy, int m, int n, float *a, int lda, float *s, float *u, int ldu,
                      float *v, int ldv, float *work, int lwork, int *info, void *parameters);
int cusolverDnDgesvdj(void *handle, int job, int economy, int m, int n, double *a, int lda, double *s, double *u,
                      int ldu, double *v, int ldv, double *work, int lwork, int *info, void *parameters);

/*
 * The same for batch matrices without gaps between them, m and n up to 32. U is m x m and V n x n, with no economy; a
 * matrix has min(m, n) singular values and an info of its own.
 */
int cusolverDnSgesvdjBatched_bufferSize(void *handle, int job, int m, int n, const float *a, int lda, const float *s,
                                        const float *u, int ldu, const float *v, int ldv, int *lwork, void *parameters,
                                        int batch);
int cusolverDnSgesvdjBatched(void *handle, int job, int m, int n, float *a, int lda, float *s, float *u, int ldu,
                             float *v, int ldv, float *work, int lwork, int *info, void *parameters, int batch);

int cusolverDnCreateParams(void **parameters);
int cusolverDnDestroyParams(void *parameters);

/*
 * A = U diag(s) V^T by polar decomposition, any shape; V is given. The fastest for large matrices. A matrix that is
 * near singular is perturbed by *sigma_error, on the host. Workspaces count bytes, one on the device and one on the host.
 */
int cusolverDnXgesvdp_bufferSize(void *handle, void *parameters, int job, int economy, long long m, long long n,
                                 int type_a, const void *a, long long lda, int type_s, const void *s, int type_u,
                                 const void *u, long long ldu, int type_v, const void *v, long long ldv,
                                 int compute_type, unsigned long *device_bytes, unsigned long *host_bytes);
int cusolverDnXgesvdp(void *handle, void *parameters, int job, int economy, long long m, long long n, int type_a, void *a,
                      long long lda, int type_s, void *s, int type_u, void *u, long long ldu, int type_v, void *v,
                      long long ldv, int compute_type, void *device_work, unsigned long device_bytes, void *host_work,
                      unsigned long host_bytes, int *info, double *sigma_error);

/*
 * A = V diag(w) V^T of batch symmetric matrices without gaps between them, of which one triangle is read. w ascends, V
 * replaces A, and a matrix has an info of its own. From CUDA 12.6 on: look it up before it is called. Workspaces as above.
 */
int cusolverDnXsyevBatched_bufferSize(void *handle, void *parameters, int job, int triangle, long long n, int type_a,
                                      const void *a, long long lda, int type_w, const void *w, int compute_type,
                                      unsigned long *device_bytes, unsigned long *host_bytes, long long batch);
int cusolverDnXsyevBatched(void *handle, void *parameters, int job, int triangle, long long n, int type_a, void *a,
                           long long lda, int type_w, void *w, int compute_type, void *device_work,
                           unsigned long device_bytes, void *host_work, unsigned long host_bytes, int *info,
                           long long batch);

/*
 * A = U H, U with orthonormal columns in place of A, H positive semidefinite; m >= n only. From CUDA 13.2 on: look it up
 * before it is called. The three norms are on the device and may be NULL.
 */
int cusolverDnXpolar_bufferSize(void *handle, void *parameters, int triangle, long long m, long long n, int type_a,
                                const void *a, long long lda, int type_h, const void *h, long long ldh, int compute_type,
                                unsigned long *device_bytes, unsigned long *host_bytes);
int cusolverDnXpolar(void *handle, void *parameters, int triangle, long long m, long long n, int type_a, void *a,
                     long long lda, int type_h, void *h, long long ldh, int compute_type, void *device_work,
                     unsigned long device_bytes, void *host_work, unsigned long host_bytes, double *residual_norm,
                     double *a_norm, double *reciprocal_condition, int *info);

#ifdef __cplusplus
}
#endif

#endif
