/*
 * The few CBLAS, LAPACKE and OpenBLAS declarations that FedCoMuon calls, written for jextract. Integers are 32 bits
 * wide, as in every ordinary build of OpenBLAS; enumerations are ints of the standard's values.
 */
#ifndef FEDCOMUON_VENDOR_OPENBLAS_H
#define FEDCOMUON_VENDOR_OPENBLAS_H

enum { CblasRowMajor = 101, CblasColMajor = 102 };
enum { CblasNoTrans = 111, CblasTrans = 112 };
enum { CblasUpper = 121, CblasLower = 122 };
enum { CblasLeft = 141, CblasRight = 142 };
enum { LAPACK_ROW_MAJOR = 101, LAPACK_COL_MAJOR = 102 };

/* C = alpha op(A) op(B) + beta C */
void cblas_sgemm(int order, int trans_a, int trans_b, int m, int n, int k, float alpha, const float *a, int lda,
                 const float *b, int ldb, float beta, float *c, int ldc);
void cblas_dgemm(int order, int trans_a, int trans_b, int m, int n, int k, double alpha, const double *a, int lda,
                 const double *b, int ldb, double beta, double *c, int ldc);

/* C = alpha A A^T + beta C (or A^T A), one triangle */
void cblas_ssyrk(int order, int uplo, int trans, int n, int k, float alpha, const float *a, int lda, float beta, float *c,
                 int ldc);
void cblas_dsyrk(int order, int uplo, int trans, int n, int k, double alpha, const double *a, int lda, double beta,
                 double *c, int ldc);

/* C = alpha A B + beta C (or B A), A symmetric, one triangle read */
void cblas_ssymm(int order, int side, int uplo, int m, int n, float alpha, const float *a, int lda, const float *b, int ldb,
                 float beta, float *c, int ldc);
void cblas_dsymm(int order, int side, int uplo, int m, int n, double alpha, const double *a, int lda, const double *b,
                 int ldb, double beta, double *c, int ldc);

/* A = U diag(s) V^T by divide and conquer, with the caller's workspace */
int LAPACKE_sgesdd_work(int order, char jobz, int m, int n, float *a, int lda, float *s, float *u, int ldu, float *vt,
                        int ldvt, float *work, int lwork, int *iwork);
int LAPACKE_dgesdd_work(int order, char jobz, int m, int n, double *a, int lda, double *s, double *u, int ldu, double *vt,
                        int ldvt, double *work, int lwork, int *iwork);

/* Eigenvalues, ascending, and eigenvectors of a symmetric matrix by divide and conquer, with the caller's workspace */
int LAPACKE_dsyevd_work(int order, char jobz, char uplo, int n, double *a, int lda, double *w, double *work, int lwork,
                        int *iwork, int liwork);

void openblas_set_num_threads(int threads);
int openblas_get_num_threads(void);
char *openblas_get_config(void);
char *openblas_get_corename(void);

#endif
