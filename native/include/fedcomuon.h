/*
 * FedCoMuon: the C interface of the native library.
 *
 * Rules that hold for every function:
 *  - Nothing throws, aborts or exits across this boundary. Every function that can fail returns an
 *    fcm_status and, when it fails, writes the reason into the caller's fcm_error (which may be NULL).
 *  - fcm_abi_version() is called before anything else; a caller built for another version stops there.
 *  - Sizes, offsets and strides are int64_t and count elements, unless the name says bytes.
 *  - Operations are batched over clients: client k's operand starts at base + k * stride. An output has
 *    stride >= its length; an input may also have stride 0, which gives every client the same values.
 *    An empty batch (no clients or no elements) is valid and does nothing.
 *  - An operand that is written must not overlap any other operand, except where the function says so.
 *    Overlap is found and refused, also between interleaved batches.
 *  - Nothing is allocated inside an operation. Those that need room say how much by a query, and take it
 *    as (workspace, workspace_bytes); its contents need not survive between calls.
 *  - Results do not depend on the number of threads: sums run in a fixed order, or are exact.
 *  - Operands, norms and workspaces among them, are memory of the context. Tables of blocks, coefficients, weights, seeds
 *    and places for answers are host memory, and the caller's again when the call returns.
 *  - A context serves one thread at a time. Allocating and freeing buffers may happen on any thread, and any thread may
 *    copy from its buffers to a context of its own by fcm_copy.
 *  - When an argument is refused, nothing has been written.
 *  - An operation that finds NaN or Inf where its description says so writes nothing (FCM_NOT_FINITE). The CPU returns it.
 *    A GPU does not wait for it: the operation returns FCM_OK, and whatever the context is given next does nothing, until a
 *    call that waits (fcm_synchronize, fcm_copy_in, fcm_copy_out, fcm_all_finite) returns FCM_NOT_FINITE with what was
 *    found first. The context is as new then. Fills and copies are not held back.
 */
#ifndef FEDCOMUON_H
#define FEDCOMUON_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(FCM_BUILDING)
#define FCM_API __attribute__((visibility("default")))
#else
#define FCM_API
#endif

/* Raised whenever a signature, a struct or a meaning below changes. */
#define FCM_ABI_VERSION 7

typedef int32_t fcm_status;
enum {
    FCM_OK = 0,
    FCM_INVALID_ARGUMENT = 1, /* the caller's mistake: a size, a stride, a null, an overlap */
    FCM_OUT_OF_MEMORY = 2,
    FCM_DEVICE_ERROR = 3, /* the device or the operating system refused */
    FCM_UNSUPPORTED = 4,  /* valid, but not on this device or in this build */
    FCM_NOT_FINITE = 5,   /* NaN or Inf where a number is needed; client, block and index say where */
    FCM_INTERNAL = 6      /* a fault of this library */
};

/*
 * The caller owns it. client, block and index are -1 where they do not apply: the index counts elements of the block, or of
 * the client where there are no blocks. When a workspace is too small, bytes says how large it has to be; otherwise it is 0.
 */
typedef struct fcm_error {
    int32_t status;
    int32_t reserved;
    int64_t client;
    int64_t block;
    int64_t index;
    int64_t bytes;
    uint64_t address; /* FCM_NOT_FINITE: of that element, or of the first of its block; otherwise 0 */
    int64_t mark;     /* of the operation that found it, if it was another than the one called; otherwise -1 */
    char message[456];
} fcm_error;

/* ---- The library and its devices -------------------------------------------------------------- */

FCM_API int32_t fcm_abi_version(void);

/* One line about this build: version and compiler. Static storage. */
FCM_API const char *fcm_build_info(void);

/* FCM_CUDASIM executes the CUDA kernels on the CPU, for tests: the same source, no speed. */
enum { FCM_CPU = 0, FCM_CUDA = 1, FCM_CUDASIM = 2 };

/*
 * Loads another library with this same interface, whose devices join those of this one: contexts of *kind are its own
 * from then on, and every function forwards to it. It stays loaded. Loading the same file again is fine; another file
 * for a kind that is loaded is refused. A version other than ours is FCM_UNSUPPORTED, with both versions.
 */
FCM_API fcm_status fcm_backend_load(const char *path, int32_t *kind, fcm_error *error);

/* Which vector instructions the CPU kernels use. Element-wise operations and sums give the same bits
 * with each; Newton-Schulz gives the same bits with AVX2 and both kinds of AVX-512, which have fused
 * multiply-add, and slightly different ones with the baseline, which has not. FCM_ISA_AVX512_BF16 is
 * faster in FCM_BF16 only, and computes what the others emulate. */
enum { FCM_ISA_AUTO = 0, FCM_ISA_BASELINE = 1, FCM_ISA_AVX2 = 2, FCM_ISA_AVX512 = 3, FCM_ISA_AVX512_BF16 = 4 };

typedef struct fcm_device_info {
    int32_t kind;         /* FCM_CPU, FCM_CUDA or FCM_CUDASIM */
    int32_t ordinal;      /* the device's number within its kind; -1 when the kind is missing as a whole */
    int32_t available;    /* 1 or 0 */
    int32_t isa;          /* CPU: the best FCM_ISA_* it can run; otherwise 0 */
    int64_t memory_bytes; /* 0 when not known */
    char name[128];
    char reason[256]; /* why it is not available; empty when it is */
} fcm_device_info;

/* How many entries fcm_device_describe has: devices that are there, and one for each kind that is not. */
FCM_API fcm_status fcm_device_count(int32_t *count, fcm_error *error);
FCM_API fcm_status fcm_device_describe(int32_t position, fcm_device_info *info, fcm_error *error);

/* ---- Contexts --------------------------------------------------------------------------------- */

typedef struct fcm_context fcm_context;

/* threads >= 1 counts the calling thread; a GPU has its own and ignores it. On the CPU every ordinal >= 0 is valid:
 * contexts are virtual devices that share the cores. */
FCM_API fcm_status fcm_context_create(int32_t kind, int32_t ordinal, int32_t threads, int32_t isa, fcm_context **context,
                                      fcm_error *error);

/* Stops the threads and frees every buffer that is still allocated. NULL is fine. */
FCM_API void fcm_context_destroy(fcm_context *context);

/* The instruction set in use, as FCM_ISA_*; FCM_ISA_AUTO on a GPU. */
FCM_API fcm_status fcm_context_isa(const fcm_context *context, int32_t *isa, fcm_error *error);

/*
 * On a GPU a context has one stream, and operations run on it in the order of the calls. They may return before they are
 * done; this waits for all of them. A fault of the device found later is reported by the next call on that context. On the
 * CPU everything is done when it returns.
 */
FCM_API fcm_status fcm_synchronize(fcm_context *context, fcm_error *error);

/* Marks the operations that the context is given from now on, such as by the number of a step: a GPU reports what one of
 * them has found to a later call, which tells the mark in fcm_error. It is 0 at first. */
FCM_API fcm_status fcm_context_mark(fcm_context *context, int64_t mark, fcm_error *error);

/* Whether everything that the context has been given is done: *done = 1 or 0, without waiting. */
FCM_API fcm_status fcm_query(fcm_context *context, int32_t *done, fcm_error *error);

/* The cudaStream_t of a GPU's context, for libraries that take one, and its device made the calling thread's current one,
 * which those libraries need; NULL on the CPU. */
FCM_API fcm_status fcm_context_stream(const fcm_context *context, void **stream, fcm_error *error);

/* Whether operations of `context` can read and write the memory of `other`: *reaches = 1 or 0. A GPU is given access to
 * that of another by the first call, where the machine allows it. */
FCM_API fcm_status fcm_context_reaches(fcm_context *context, fcm_context *other, int32_t *reaches, fcm_error *error);

/* A point in the work of a context that another context can wait for, without the host waiting. */
typedef struct fcm_event fcm_event;
FCM_API fcm_status fcm_event_create(fcm_context *context, fcm_event **event, fcm_error *error);
/* Destroy it before its context. NULL is fine. */
FCM_API void fcm_event_destroy(fcm_event *event);
/* Marks the end of the work its context has been given so far. */
FCM_API fcm_status fcm_event_record(fcm_event *event, fcm_error *error);
/* What `context` is given from now on runs after the mark; an event never recorded holds nothing up. */
FCM_API fcm_status fcm_event_wait(fcm_context *context, fcm_event *event, fcm_error *error);

/* ---- Buffers ---------------------------------------------------------------------------------- */

/* Zeroed, aligned to at least 64 bytes. bytes = 0 is valid and gives a distinct address. */
FCM_API fcm_status fcm_buffer_allocate(fcm_context *context, int64_t bytes, void **address, fcm_error *error);

/* Only what fcm_buffer_allocate gave, once: anything else is refused. */
FCM_API fcm_status fcm_buffer_free(fcm_context *context, void *address, fcm_error *error);

/* Bytes asked for and not yet freed. */
FCM_API fcm_status fcm_live_bytes(const fcm_context *context, int64_t *bytes, fcm_error *error);

/* Host memory that a device copies from and to on its own (pinned on a GPU). Not counted as live bytes. */
FCM_API fcm_status fcm_host_allocate(fcm_context *context, int64_t bytes, void **address, fcm_error *error);
FCM_API fcm_status fcm_host_free(fcm_context *context, void *address, fcm_error *error);

FCM_API fcm_status fcm_zero(fcm_context *context, void *address, int64_t bytes, fcm_error *error);
/* These return when they are done, whatever host memory it is. */
FCM_API fcm_status fcm_copy_in(fcm_context *context, void *device_to, const void *host_from, int64_t bytes,
                               fcm_error *error);
FCM_API fcm_status fcm_copy_out(fcm_context *context, void *host_to, const void *device_from, int64_t bytes,
                                fcm_error *error);
/* As above with memory of fcm_host_allocate, without waiting: leave it alone until fcm_synchronize. */
FCM_API fcm_status fcm_copy_in_async(fcm_context *context, void *device_to, const void *host_from, int64_t bytes,
                                     fcm_error *error);
FCM_API fcm_status fcm_copy_out_async(fcm_context *context, void *host_to, const void *device_from, int64_t bytes,
                                      fcm_error *error);
/* From one context's memory to another's of the same kind, within one context, or between a GPU and the CPU. Runs after
 * what both contexts have been given so far, and what either is given next runs after it. */
FCM_API fcm_status fcm_copy(fcm_context *to_context, void *to, fcm_context *from_context, const void *from, int64_t bytes,
                            fcm_error *error);

/* ---- Operations ------------------------------------------------------------------------------- */

/* y = a x + (1-a) y, n elements a client. With a = 1, y is not read. */
FCM_API fcm_status fcm_ema(fcm_context *context, int64_t clients, int64_t n, double a, const float *x, int64_t x_stride,
                           float *y, int64_t y_stride, fcm_error *error);

/*
 * M = (1-b) M + b H (v kron I): H is [H_1 | ... | H_d] with each block of n elements contiguous (the
 * paper's m x dn matrix in column-major order), so the product is sum_i v_i H_i and is never formed.
 * With b = 1, M is not read. d >= 1.
 */
FCM_API fcm_status fcm_compose_momentum(fcm_context *context, int64_t clients, int64_t n, int64_t d, double b,
                                        const float *h, int64_t h_stride, const float *v, int64_t v_stride, float *m,
                                        int64_t m_stride, fcm_error *error);

/* Room for the sums of fcm_storm, fcm_norm and fcm_normalize over n elements a client. */
FCM_API fcm_status fcm_sum_workspace(const fcm_context *context, int64_t clients, int64_t n, int64_t *bytes,
                                     fcm_error *error);

/* H = Gnew + (1-g)(H - Gold), and norms[k] = ||H_k||_F of the result, summed in double. */
FCM_API fcm_status fcm_storm(fcm_context *context, int64_t clients, int64_t n, double g, const float *g_new,
                             int64_t g_new_stride, const float *g_old, int64_t g_old_stride, float *h, int64_t h_stride,
                             double *norms, void *workspace, int64_t workspace_bytes, fcm_error *error);

/*
 * H = min(1, C/norms[k]) H, then M = (1-b) M + b H (v kron I), in one pass over H; a client inside the
 * ball is not written. radius = C > 0, infinity for no projection. norms as fcm_storm left them; one
 * that is not finite is FCM_NOT_FINITE with its client.
 */
FCM_API fcm_status fcm_project_compose_momentum(fcm_context *context, int64_t clients, int64_t n, int64_t d,
                                                double radius, const double *norms, double b, float *h,
                                                int64_t h_stride, const float *v, int64_t v_stride, float *m,
                                                int64_t m_stride, fcm_error *error);

/*
 * x_k = min(1, radius/norms[k]) x_k; a client inside the ball is not written. radius > 0, infinity for no projection.
 * norms as fcm_norm or fcm_storm left them; one that is not finite is FCM_NOT_FINITE with its client, and nothing is
 * written.
 */
FCM_API fcm_status fcm_project(fcm_context *context, int64_t clients, int64_t n, double radius, const double *norms,
                               float *x, int64_t x_stride, fcm_error *error);

/* norms[k] = ||x_k||, summed in double in a fixed order, so neither 1e-30 nor 1e30 is lost. */
FCM_API fcm_status fcm_norm(fcm_context *context, int64_t clients, int64_t n, const float *x, int64_t x_stride,
                            double *norms, void *workspace, int64_t workspace_bytes, fcm_error *error);

/* w -= eta m. */
FCM_API fcm_status fcm_vector_step(fcm_context *context, int64_t clients, int64_t n, double eta, const float *m,
                                   int64_t m_stride, float *w, int64_t w_stride, fcm_error *error);

enum { FCM_STEP_PLAIN = 0, FCM_STEP_NORMALIZED = 1 };

/* One vector of every client. Offsets are from the client's base. */
typedef struct fcm_vector_block {
    int64_t n;
    int64_t m_offset;
    int64_t w_offset;
    double scale; /* the block's learning-rate scale; 1 for none */
} fcm_vector_block;

FCM_API fcm_status fcm_vector_steps_workspace(const fcm_context *context, int64_t clients, const fcm_vector_block *blocks,
                                              int64_t block_count, int64_t *bytes, fcm_error *error);

/*
 * Prepares a workspace for fcm_vector_steps with these blocks and up to so many clients: once, before a loop of steps. The
 * workspace serves nothing else from then on, and is prepared until it is freed or prepared again. Not an operation: it
 * allocates host memory and waits.
 */
FCM_API fcm_status fcm_vector_steps_prepare(fcm_context *context, int64_t clients, const fcm_vector_block *blocks,
                                            int64_t block_count, void *workspace, int64_t workspace_bytes,
                                            fcm_error *error);

/*
 * The step of all parameters that are not matrices, in one call: w -= eta scale m, or w -= eta scale m / ||m|| with the norm
 * of the block (zero m: no step). Normalised, an m with NaN or Inf is FCM_NOT_FINITE with client, block and index, and
 * nothing is stepped. The workspace is prepared for these blocks.
 */
FCM_API fcm_status fcm_vector_steps(fcm_context *context, int64_t clients, const fcm_vector_block *blocks,
                                    int64_t block_count, int32_t rule, double eta, const float *m, int64_t m_stride,
                                    float *w, int64_t w_stride, void *workspace, int64_t workspace_bytes,
                                    fcm_error *error);

enum { FCM_ADAM = 0, FCM_YOGI = 1 };

/*
 * The server's step of FedAdam and FedYogi, in one pass; delta points where w is to go, so it is added:
 *   m = beta1 m + (1-beta1) delta
 *   v = beta2 v + (1-beta2) delta^2 (Adam),  or  v - (1-beta2) delta^2 sign(v - delta^2) (Yogi)
 *   w += eta m / (sqrt(v) + epsilon)
 * In double; m, v and w are each rounded once, w from the m and v before rounding. beta1 and beta2 in [0, 1),
 * epsilon > 0. What is not finite is carried on, not looked for.
 */
FCM_API fcm_status fcm_adaptive_step(fcm_context *context, int64_t clients, int64_t n, int32_t rule, double beta1,
                                     double beta2, double epsilon, double eta, const float *delta, int64_t delta_stride,
                                     float *m, int64_t m_stride, float *v, int64_t v_stride, float *w, int64_t w_stride,
                                     fcm_error *error);

/*
 * y = the k elements of x of largest magnitude, zeros elsewhere, for every client; among equal magnitudes the lower
 * index wins. 0 <= k <= n. y may be x, with the same stride. NaN or Inf is FCM_NOT_FINITE with client and index, and
 * nothing is written.
 */
FCM_API fcm_status fcm_top_k(fcm_context *context, int64_t clients, int64_t n, int64_t k, const float *x,
                             int64_t x_stride, float *y, int64_t y_stride, fcm_error *error);

/*
 * Means that do not depend on the order or the grouping in which their terms are added. The terms of element j are
 * t_k = w_k x_k[j], products in double. All of them are rounded to multiples of one power of two, ties to even, and added as
 * integers, so that any engine may add up as it likes:
 *   1. exponent = the largest exponent field, 0 to 255, of (float) t_k: 255 when a term is NaN or Inf, and otherwise
 *      |t_k| <= 2^(exponent - 126)
 *   2. sum = sum_k rint(t_k 2^(b - (exponent - 126))),  b = 62 - ceil(log2 terms),  added modulo 2^64
 *   3. mean = (float) ((double) sum 2^(exponent - 126 - b) / total), and NaN (0x7fc00000) where exponent is 255
 * `terms` says how many terms the mean may have, over all devices and members: from the number of positive weights to
 * FCM_MOST_TERMS. Different values round terms differently, so that all parts of a mean have the same. `total` is the sum of
 * all weights, in double and in client order.
 * Weights are in [0, 1], in host memory, one per client; NULL means that all are 1. A row of weight 0 is not read.
 * NaN and Inf make the mean of their element NaN, and do no more: where the client is to be named, fcm_require_finite
 * looks before.
 */
#define FCM_MOST_TERMS ((int64_t)1 << 20)

/*
 * Every x_k becomes the mean of all: the three steps above, in one pass over memory. At least one weight is positive. A
 * client of weight 0 receives the mean without being read into it.
 */
FCM_API fcm_status fcm_average(fcm_context *context, int64_t clients, int64_t n, const double *weights, int64_t terms,
                               float *x, int64_t x_stride, fcm_error *error);

/*
 * The mean that fcm_average computes, of rows that lie anywhere: element j of every target becomes that of rows[0][j],
 * rows[1][j], ..., n elements each. rows and targets are host memory, with an address per client and per target. What they
 * point to is memory of this context, or of others that it reaches (fcm_context_reaches); the caller orders the call with
 * their work, by events. A target may be one of the rows; otherwise it overlaps no row and no other target.
 */
FCM_API fcm_status fcm_average_rows(fcm_context *context, int64_t clients, int64_t n, const double *weights, int64_t terms,
                                    const float *const *rows, int64_t target_count, float *const *targets,
                                    fcm_error *error);

/*
 * Step 1 for the clients of this device: n exponents, zeros when all weights are 0. Of an empty batch nothing is written, as
 * everywhere.
 */
FCM_API fcm_status fcm_mean_exponents(fcm_context *context, int64_t clients, int64_t n, const double *weights,
                                      const float *x, int64_t x_stride, uint8_t *exponents, fcm_error *error);

/*
 * Step 2 for the clients of this device: n sums, zeros when all weights are 0. The exponents are those of all terms of the
 * mean, wherever they are; with a smaller one than a term has, the sum means nothing. Where the exponent is 255, the sum is 0.
 */
FCM_API fcm_status fcm_mean_sums(fcm_context *context, int64_t clients, int64_t n, const double *weights, int64_t terms,
                                 const float *x, int64_t x_stride, const uint8_t *exponents, int64_t *sums,
                                 fcm_error *error);

/*
 * The exponents of several devices as one: to[j] is the largest of exponents[0][j], exponents[1][j], ..., n elements each.
 * The table is host memory and has `parts` addresses, of memory of this context or of others that it reaches, as in
 * fcm_average_rows. `to` may be one of them; otherwise it overlaps none. parts >= 1.
 */
FCM_API fcm_status fcm_mean_combine(fcm_context *context, int64_t parts, int64_t n, const uint8_t *const *exponents,
                                    uint8_t *to, fcm_error *error);

/*
 * Adds the sums of all parts, modulo 2^64, and takes step 3: every target becomes the mean. sums and targets are tables as
 * above; a target overlaps no sums, no exponents and no other target. parts >= 1, total > 0 and finite.
 */
FCM_API fcm_status fcm_mean_finish(fcm_context *context, int64_t parts, int64_t n, int64_t terms, double total,
                                   const int64_t *const *sums, const uint8_t *exponents, int64_t target_count,
                                   float *const *targets, fcm_error *error);

/* The first NaN or Inf in client order: *client and *index, both -1 when there is none. A question, so it waits. */
FCM_API fcm_status fcm_all_finite(fcm_context *context, int64_t clients, int64_t n, const float *x, int64_t x_stride,
                                  int64_t *client, int64_t *index, fcm_error *error);

/*
 * Requires that there is no NaN or Inf in x; otherwise it is FCM_NOT_FINITE with client and index. `of`, if it is not NULL,
 * is what x was computed from: then client and address are those in `of`, and the index is -1.
 */
FCM_API fcm_status fcm_require_finite(fcm_context *context, int64_t clients, int64_t n, const float *x, int64_t x_stride,
                                      const float *of, int64_t of_stride, fcm_error *error);

/* The longest short side of the matrices whose whole iteration is one kernel. */
#define FCM_SMALL_SIDE 128

/*
 * In what precision Newton-Schulz multiplies; sums, norms and weights are float32 or better with each.
 * FCM_TF32 rounds the factors of a product to 11 bits, FCM_BF16 keeps X and all that is computed from it in bfloat16. The CPU
 * rounds as GPUs do: to tf32 ties away from zero, to bfloat16 ties to even, and there numbers below the normal range are zero.
 */
enum { FCM_FP32 = 0, FCM_TF32 = 1, FCM_BF16 = 2 };

/* One matrix of every client: rows x cols, row-major, contiguous. Offsets are from the client's base. */
typedef struct fcm_matrix_block {
    int64_t rows;
    int64_t cols;
    int64_t m_offset;
    int64_t o_offset; /* read only when o is given */
    int64_t w_offset; /* read only when w is given */
    double scale;     /* the block's learning-rate scale; 1 for none */
    int64_t gram;     /* 1: iterates on the Gram matrix; 0: on the matrix itself */
} fcm_matrix_block;

/* The iteration. All arrays are in host memory. */
typedef struct fcm_schulz {
    const double *coefficients; /* steps tuples (a, b, c) */
    int64_t steps;              /* 0 to 1000 */
    double divisor;             /* of the input, besides its norm; 1 for none */
    const int64_t *restarts;    /* of blocks in Gram form: after which steps, counted from 1, ascending, below steps */
    int64_t restart_count;
    int32_t precision; /* FCM_FP32, FCM_TF32 or FCM_BF16; not every device has each: FCM_UNSUPPORTED */
} fcm_schulz;

FCM_API fcm_status fcm_newton_schulz_workspace(const fcm_context *context, int64_t clients, const fcm_matrix_block *blocks,
                                               int64_t block_count, const fcm_schulz *schulz, int64_t *bytes,
                                               fcm_error *error);

/* As fcm_vector_steps_prepare, for fcm_newton_schulz with these blocks and this iteration, and at most so many clients. */
FCM_API fcm_status fcm_newton_schulz_prepare(fcm_context *context, int64_t clients, const fcm_matrix_block *blocks,
                                             int64_t block_count, const fcm_schulz *schulz, void *workspace,
                                             int64_t workspace_bytes, fcm_error *error);

/*
 * The whole Newton-Schulz iteration of every block of every client, mixed shapes in one call:
 *   X = M / (||M||_F divisor);  steps times  X = a X + b (X X^T) X + c (X X^T)^2 X;  O = X
 * on the side of the shorter dimension. In Gram form the same polynomials are multiplied up as n x n matrices, n the shorter
 * dimension, and applied to X at each restart and at the end. o or w may be NULL, not both: o receives O (and may be m
 * itself, with the same stride and offsets), w is stepped by w -= eta scale O. A zero matrix gives zero. NaN or Inf in m is
 * FCM_NOT_FINITE with client, block and index, and nothing is written. A matrix that the coefficients drive out of range is
 * FCM_NOT_FINITE too and is left unwritten; the others have been stepped. The workspace is prepared for these blocks, this
 * iteration and as many clients or more.
 */
FCM_API fcm_status fcm_newton_schulz(fcm_context *context, int64_t clients, const fcm_matrix_block *blocks,
                                     int64_t block_count, const fcm_schulz *schulz, double eta, const float *m,
                                     int64_t m_stride, float *o, int64_t o_stride, float *w, int64_t w_stride,
                                     void *workspace, int64_t workspace_bytes, fcm_error *error);

/*
 * y = x / (||x|| divisor), what Newton-Schulz starts from; a zero x gives zero. y may be x, with the same stride. NaN or
 * Inf is FCM_NOT_FINITE with client and index, and nothing is written. Room: fcm_sum_workspace.
 */
FCM_API fcm_status fcm_normalize(fcm_context *context, int64_t clients, int64_t n, double divisor, const float *x,
                                 int64_t x_stride, float *y, int64_t y_stride, void *workspace, int64_t workspace_bytes,
                                 fcm_error *error);

/*
 * y[i, j] = x[i, j] for every client, rows x cols, each side with strides of its own: transposed, padded or cut out of a
 * larger matrix. Elements are 4 or 8 bytes; strides count elements. Each element of y has a place of its own.
 */
FCM_API fcm_status fcm_rearrange(fcm_context *context, int64_t clients, int64_t rows, int64_t cols, int32_t element_bytes,
                                 const void *x, int64_t x_stride, int64_t x_row, int64_t x_col, void *y, int64_t y_stride,
                                 int64_t y_row, int64_t y_col, fcm_error *error);

/*
 * mask[j] = 1 with probability left / 65536, otherwise 0, for every client: which elements dropout leaves out. Element j has
 * 16 bits of its own, bits 16 (j mod 4) and up of draw j / 4 of SplitMix64 from the client's seed, and is 1 where they are a
 * number below left. Draw i is the i-th nextLong() of Java's SplittableRandom(seed), counted from 0, so that every device and
 * a host give the same masks. 0 <= left <= 65536; seeds are in host memory, one per client.
 */
FCM_API fcm_status fcm_dropout_mask(fcm_context *context, int64_t clients, int64_t n, int32_t left, const uint64_t *seeds,
                                    uint8_t *mask, int64_t mask_stride, fcm_error *error);

/* y = x in double, without gaps between the clients. What is not finite is carried on, not looked for. */
FCM_API fcm_status fcm_widen(fcm_context *context, int64_t clients, int64_t n, const float *x, int64_t x_stride, double *y,
                             fcm_error *error);

/* y = x, which is in double and without gaps, rounded to the nearest float, ties to even. */
FCM_API fcm_status fcm_narrow(fcm_context *context, int64_t clients, int64_t n, const double *x, float *y, int64_t y_stride,
                              fcm_error *error);

/*
 * Leaves out eigenvectors of symmetric matrices, n x n, one per client and without gaps: row i of V is the one of values[i],
 * values ascend, and a row becomes zero where values[i] <= tolerance^2 values[n-1]. kept[k] counts the others.
 * 0 <= tolerance < 1. info[k] is what the eigenvalue solver has answered: where it is not 0, V did not converge, which is
 * FCM_NOT_FINITE with the client, and nothing is written.
 */
FCM_API fcm_status fcm_keep_directions(fcm_context *context, int64_t clients, int64_t n, double tolerance,
                                       const int32_t *info, const double *values, double *vectors, int64_t *kept,
                                       fcm_error *error);

/*
 * G = G^-1/2 for symmetric matrices, n x n, one per client and without gaps, that are nearly diagonal: to first order in what
 * is beside the diagonal. With d_i the root of G_ii, that is 1 / d_i on the diagonal and -G_ij / (d_i d_j (d_i + d_j))
 * beside it; a row without a positive G_ii, and its column, become zero. The triangle j >= i is read and written.
 */
FCM_API fcm_status fcm_inverse_roots(fcm_context *context, int64_t clients, int64_t n, double *gram, fcm_error *error);

FCM_API fcm_status fcm_multiply_workspace(const fcm_context *context, int64_t clients, int64_t rows, int64_t cols,
                                          int64_t depth, int64_t *bytes, fcm_error *error);

/*
 * out = base_factor base + product_factor A B for every client: matrix products.
 * A is rows x depth with A[i, k] = a[i * a_row + k * a_col], B is depth x cols alike, so a transposed operand is a matter
 * of strides; base (may be NULL) and out are rows x cols, row-major without gaps. symmetric = 1 says that the result is
 * symmetric (X X^T, or a product of symmetric matrices that commute): only one triangle is computed, half the work.
 */
FCM_API fcm_status fcm_multiply(fcm_context *context, int64_t clients, int64_t rows, int64_t cols, int64_t depth,
                                int32_t symmetric, double product_factor, const float *a, int64_t a_stride, int64_t a_row,
                                int64_t a_col, const float *b, int64_t b_stride, int64_t b_row, int64_t b_col,
                                double base_factor, const float *base, int64_t base_stride, float *out, int64_t out_stride,
                                void *workspace, int64_t workspace_bytes, fcm_error *error);

/* ---- A yardstick ------------------------------------------------------------------------------ */

/* STREAM's triad a = b + s c over n elements: what the memory of this device can do, for benchmarks.
 * non_temporal = 1 writes past the cache, which spares the read of a. */
FCM_API fcm_status fcm_triad(fcm_context *context, int64_t n, float s, const float *b, const float *c, float *a,
                             int32_t non_temporal, fcm_error *error);

#ifdef __cplusplus
}
#endif

#endif
