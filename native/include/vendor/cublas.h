/*
 * The few cuBLAS declarations that FedCoMuon calls, written from its documentation for jextract and for the simulated
 * library. They hold for CUDA 12 (libcublas.so.12) and 13 (libcublas.so.13). Enumerations are ints, handles and streams
 * untyped pointers. Matrices are column-major; alpha and beta are in host memory, everything else on the device.
 */
#ifndef FEDCOMUON_VENDOR_CUBLAS_H
#define FEDCOMUON_VENDOR_CUBLAS_H

#ifdef __cplusplus
extern "C" {
#endif

enum {
    CUBLAS_STATUS_SUCCESS = 0,
    CUBLAS_STATUS_NOT_INITIALIZED = 1,
    CUBLAS_STATUS_ALLOC_FAILED = 3,
    CUBLAS_STATUS_INVALID_VALUE = 7,
    CUBLAS_STATUS_ARCH_MISMATCH = 8,
    CUBLAS_STATUS_MAPPING_ERROR = 11,
    CUBLAS_STATUS_EXECUTION_FAILED = 13,
    CUBLAS_STATUS_INTERNAL_ERROR = 14,
    CUBLAS_STATUS_NOT_SUPPORTED = 15
};
enum { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1 };
enum { CUBLAS_FILL_MODE_LOWER = 0, CUBLAS_FILL_MODE_UPPER = 1 };
enum { CUBLAS_SIDE_LEFT = 0, CUBLAS_SIDE_RIGHT = 1 };

/* PEDANTIC keeps every step in the named type; DEFAULT may not use TF32 either, but may reorder and split sums. */
enum { CUBLAS_DEFAULT_MATH = 0, CUBLAS_PEDANTIC_MATH = 2, CUBLAS_TF32_TENSOR_OP_MATH = 3 };
enum { CUBLAS_COMPUTE_32F = 68, CUBLAS_COMPUTE_64F = 70, CUBLAS_COMPUTE_32F_FAST_16BF = 75, CUBLAS_COMPUTE_32F_FAST_TF32 = 77 };
enum { CUBLAS_GEMM_DEFAULT = -1 };
enum { CUDA_R_32F = 0, CUDA_R_64F = 1, CUDA_R_16BF = 14 };

/* What cublasGetProperty answers, without a handle and without a GPU. */
enum { MAJOR_VERSION = 0, MINOR_VERSION = 1, PATCH_LEVEL = 2 };
int cublasGetProperty(int type, int *value);
const char *cublasGetStatusString(int status);

/* A handle belongs to the device that is current when it is made; work runs on the stream it was last given. */
int cublasCreate_v2(void **handle);
int cublasDestroy_v2(void *handle);
int cublasGetVersion_v2(void *handle, int *version);
int cublasSetStream_v2(void *handle, void *stream);
int cublasSetMathMode(void *handle, int mode);
/* Setting a stream takes the workspace away again, so this comes after it. */
int cublasSetWorkspace_v2(void *handle, void *workspace, unsigned long bytes);

/* C = alpha op(A) op(B) + beta C */
int cublasSgemm_v2(void *handle, int op_a, int op_b, int m, int n, int k, const float *alpha, const float *a, int lda,
                   const float *b, int ldb, const float *beta, float *c, int ldc);
int cublasDgemm_v2(void *handle, int op_a, int op_b, int m, int n, int k, const double *alpha, const double *a, int lda,
                   const double *b, int ldb, const double *beta, double *c, int ldc);
/* The same with the type of each matrix, and the type to compute in; alpha and beta are floats for every COMPUTE_32F. */
int cublasGemmEx(void *handle, int op_a, int op_b, int m, int n, int k, const void *alpha, const void *a, int type_a,
                 int lda, const void *b, int type_b, int ldb, const void *beta, void *c, int type_c, int ldc,
                 int compute_type, int algorithm);
/* The same for count matrices, each stride elements after the one before; a stride of 0 repeats an input. */
int cublasGemmStridedBatchedEx(void *handle, int op_a, int op_b, int m, int n, int k, const void *alpha, const void *a,
                               int type_a, int lda, long long stride_a, const void *b, int type_b, int ldb,
                               long long stride_b, const void *beta, void *c, int type_c, int ldc, long long stride_c,
                               int count, int compute_type, int algorithm);

/* One triangle of C = alpha A A^T + beta C (or A^T A) */
int cublasSsyrk_v2(void *handle, int triangle, int op, int n, int k, const float *alpha, const float *a, int lda,
                   const float *beta, float *c, int ldc);
int cublasDsyrk_v2(void *handle, int triangle, int op, int n, int k, const double *alpha, const double *a, int lda,
                   const double *beta, double *c, int ldc);

/* C = alpha A B + beta C (or B A), A symmetric, one triangle read */
int cublasSsymm_v2(void *handle, int side, int triangle, int m, int n, const float *alpha, const float *a, int lda,
                   const float *b, int ldb, const float *beta, float *c, int ldc);
int cublasDsymm_v2(void *handle, int side, int triangle, int m, int n, const double *alpha, const double *a, int lda,
                   const double *b, int ldb, const double *beta, double *c, int ldc);

#ifdef __cplusplus
}
#endif

#endif
