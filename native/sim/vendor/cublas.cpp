// cuBLAS on simulated devices: the functions of vendor/cublas.h, with argument checks that the real library does not make.
//
// In the default math mode the environment may decide what single precision means: CUBLAS_EMULATE_SINGLE_PRECISION=1 makes it
// an emulation by bfloat16. NVIDIA_TF32_OVERRIDE=1 is taken here to mean TF32, although only its value 0 is known to be
// documented. Both are modelled by factors rounded to TF32, which differ more than an emulation would. CUBLAS_PEDANTIC_MATH is
// taken to exclude both. See cublasMath_t and floating-point emulation in the documentation of cuBLAS; that pedantic mode takes
// precedence over the environment has not been seen on a GPU. A trace has the mode of each call after its name.
#include "vendor/cublas.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>

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
    std::atomic<int> mode{CUBLAS_DEFAULT_MATH};
};

bool switched_on(const char *variable) {
    const char *value = std::getenv(variable);
    return value != nullptr && std::strcmp(value, "1") == 0;
}

// The bits of the factors of a product in single precision.
int single_bits(const Handle &handle) {
    const int mode = handle.mode;
    const bool overridden = switched_on("CUBLAS_EMULATE_SINGLE_PRECISION") || switched_on("NVIDIA_TF32_OVERRIDE");
    return mode == CUBLAS_TF32_TENSOR_OP_MATH || (mode == CUBLAS_DEFAULT_MATH && overridden) ? 10 : 23;
}

const char *name_of_mode(int mode) {
    return mode == CUBLAS_PEDANTIC_MATH ? "pedantic" : mode == CUBLAS_DEFAULT_MATH ? "default" : "tf32";
}

Handles<Handle> &handles() {
    static Handles<Handle> all;
    return all;
}

bool valid_op(int op) { return op == CUBLAS_OP_N || op == CUBLAS_OP_T; }

// Whether the handle can be used: alive, of the current device, and no fault is injected.
int ready(const char *function, void *address, std::shared_ptr<Handle> &handle) {
    handle = handles().find(address);
    if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
    if (!is_current(function, handle->device)) return CUBLAS_STATUS_EXECUTION_FAILED;
    if (cudasim::injected("cublas", handle->device)) {
        complain(function, "fails as injected");
        return CUBLAS_STATUS_EXECUTION_FAILED;
    }
    return CUBLAS_STATUS_SUCCESS;
}

int run(const char *function, const Handle &handle, std::function<void()> work) {
    const std::string name = std::string(function) + ", " + name_of_mode(handle.mode) + " math";
    return enqueue(name.c_str(), handle.stream, std::move(work), {handle.device}) ? CUBLAS_STATUS_SUCCESS
                                                                             : CUBLAS_STATUS_EXECUTION_FAILED;
}

// One operand of a batch, as stored.
struct Operand {
    const char *name;
    const void *at;
    std::int64_t rows, cols, ld, stride;
    std::size_t element;

    bool fits(const char *function, int count, int device) const {
        const std::int64_t all = span(rows, cols, ld, element) +
                                 (count - 1) * stride * static_cast<std::int64_t>(element);
        return on_device(function, name, at, all, device);
    }
};

bool leading(const char *function, const char *operand, std::int64_t ld, std::int64_t rows) {
    if (ld >= std::max<std::int64_t>(1, rows)) return true;
    complain(function, "the leading dimension of %s is %lld, less than its %lld rows", operand, static_cast<long long>(ld),
             static_cast<long long>(rows));
    return false;
}

struct Shape {
    int op_a, op_b, m, n, k;
};

// C = alpha op(A) op(B) + beta C. As in the real library, C is not read if beta is 0, so NaN in fresh memory has no effect.
template <typename In, typename Out>
void multiply(const Shape &shape, double alpha, const In *a, int lda, const In *b, int ldb, double beta, Out *c, int ldc,
              int bits) {
    const bool turn_a = shape.op_a == CUBLAS_OP_T, turn_b = shape.op_b == CUBLAS_OP_T;
    const Dense left = read(a, lda, turn_a ? shape.k : shape.m, turn_a ? shape.m : shape.k, turn_a, bits);
    const Dense right = read(b, ldb, turn_b ? shape.n : shape.k, turn_b ? shape.k : shape.n, turn_b, bits);
    const Dense result = product(left, right);
    for (std::int64_t j = 0; j < shape.n; ++j) {
        for (std::int64_t i = 0; i < shape.m; ++i) {
            Out &to = c[i + j * ldc];
            store(to, alpha * result(i, j) + (beta == 0 ? 0 : beta * load(to)));
        }
    }
}

struct Batch {
    const void *a, *b;
    void *c;
    int lda, ldb, ldc;
    std::int64_t stride_a, stride_b, stride_c;
    int count;
};

template <typename In, typename Out>
int gemm(const char *function, void *address, const Shape &s, double alpha, double beta, const Batch &batch, int asked) {
    std::shared_ptr<Handle> handle;
    const int status = ready(function, address, handle);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    const int bits = std::is_same_v<In, float> ? std::min(asked, single_bits(*handle)) : asked;
    if (s.m < 0 || s.n < 0 || s.k < 0 || batch.count < 0 || !valid_op(s.op_a) || !valid_op(s.op_b)) {
        complain(function, "%d x %d x %d, %d times, ops %d and %d", s.m, s.n, s.k, batch.count, s.op_a, s.op_b);
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    const bool plain_a = s.op_a == CUBLAS_OP_N, plain_b = s.op_b == CUBLAS_OP_N;
    const Operand a{"A", batch.a, plain_a ? s.m : s.k, plain_a ? s.k : s.m, batch.lda, batch.stride_a, sizeof(In)};
    const Operand b{"B", batch.b, plain_b ? s.k : s.n, plain_b ? s.n : s.k, batch.ldb, batch.stride_b, sizeof(In)};
    const Operand c{"C", batch.c, s.m, s.n, batch.ldc, batch.stride_c, sizeof(Out)};
    for (const Operand *operand : {&a, &b, &c}) {
        if (!leading(function, operand->name, operand->ld, operand->rows)) return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (batch.count > 1 && batch.stride_c < span(s.m, s.n, batch.ldc, 1)) {
        complain(function, "the results of a batch overlap: %lld apart", static_cast<long long>(batch.stride_c));
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (s.m == 0 || s.n == 0 || batch.count == 0) return CUBLAS_STATUS_SUCCESS;
    for (const Operand *operand : {&a, &b, &c}) {
        if (!operand->fits(function, batch.count, handle->device)) return CUBLAS_STATUS_MAPPING_ERROR;
    }
    return run(function, *handle, [s, alpha, beta, batch, bits] {
        for (std::int64_t i = 0; i < batch.count; ++i) {
            multiply(s, alpha, static_cast<const In *>(batch.a) + i * batch.stride_a, batch.lda,
                     static_cast<const In *>(batch.b) + i * batch.stride_b, batch.ldb, beta,
                     static_cast<Out *>(batch.c) + i * batch.stride_c, batch.ldc, bits);
        }
    });
}

int gemm_ex(const char *function, void *address, const Shape &shape, const void *alpha, const void *beta, int type_a,
            int type_b, int type_c, const Batch &batch, int compute_type) {
    if (!on_host(function, "alpha", alpha) || !on_host(function, "beta", beta)) return CUBLAS_STATUS_INVALID_VALUE;
    if (compute_type == CUBLAS_COMPUTE_64F && type_a == CUDA_R_64F && type_b == CUDA_R_64F && type_c == CUDA_R_64F) {
        return gemm<double, double>(function, address, shape, *static_cast<const double *>(alpha),
                                    *static_cast<const double *>(beta), batch, 23);
    }
    int bits = 23;
    if (compute_type == CUBLAS_COMPUTE_32F_FAST_TF32) bits = 10;
    if (compute_type == CUBLAS_COMPUTE_32F_FAST_16BF) bits = 7;
    const bool single = compute_type == CUBLAS_COMPUTE_32F || bits < 23;
    if (single && type_a == type_b && handles().find(address)) {
        const double scale = static_cast<double>(*static_cast<const float *>(alpha));
        const double keep = static_cast<double>(*static_cast<const float *>(beta));
        if (type_a == CUDA_R_32F && type_c == CUDA_R_32F) {
            return gemm<float, float>(function, address, shape, scale, keep, batch, bits);
        }
        // Inputs that are already 16 bits wide have one compute type.
        if (type_a == CUDA_R_16BF && compute_type == CUBLAS_COMPUTE_32F && type_c == CUDA_R_32F) {
            return gemm<Bfloat16, float>(function, address, shape, scale, keep, batch, bits);
        }
        if (type_a == CUDA_R_16BF && compute_type == CUBLAS_COMPUTE_32F && type_c == CUDA_R_16BF) {
            return gemm<Bfloat16, Bfloat16>(function, address, shape, scale, keep, batch, bits);
        }
    }
    if (!handles().find(address)) return CUBLAS_STATUS_NOT_INITIALIZED;
    complain(function, "types %d, %d and %d in compute type %d", type_a, type_b, type_c, compute_type);
    return CUBLAS_STATUS_NOT_SUPPORTED;
}

bool valid_triangle(const char *function, int triangle) {
    if (triangle == CUBLAS_FILL_MODE_LOWER || triangle == CUBLAS_FILL_MODE_UPPER) return true;
    complain(function, "triangle %d", triangle);
    return false;
}

bool in_triangle(int triangle, std::int64_t i, std::int64_t j) {
    return triangle == CUBLAS_FILL_MODE_LOWER ? i >= j : i <= j;
}

template <typename T>
int syrk(const char *function, void *address, int triangle, int op, int n, int k, const T *alpha, const T *a, int lda,
         const T *beta, T *c, int ldc) {
    std::shared_ptr<Handle> handle;
    const int status = ready(function, address, handle);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    const bool plain = op == CUBLAS_OP_N;
    if (n < 0 || k < 0 || !valid_op(op) || !valid_triangle(function, triangle) ||
        !leading(function, "A", lda, plain ? n : k) || !leading(function, "C", ldc, n) ||
        !on_host(function, "alpha", alpha) || !on_host(function, "beta", beta)) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (!on_device(function, "A", a, span(plain ? n : k, plain ? k : n, lda, sizeof(T)), handle->device) ||
        !on_device(function, "C", c, span(n, n, ldc, sizeof(T)), handle->device)) {
        return CUBLAS_STATUS_MAPPING_ERROR;
    }
    const double scale = load(*alpha), keep = load(*beta);
    const int bits = std::is_same_v<T, float> ? single_bits(*handle) : 23;
    return run(function, *handle, [=] {
        const Dense left = read(a, lda, plain ? n : k, plain ? k : n, !plain, bits);
        const Dense result = product(left, left.transposed());
        for (std::int64_t j = 0; j < n; ++j) {
            for (std::int64_t i = 0; i < n; ++i) {
                if (!in_triangle(triangle, i, j)) continue;
                T &to = c[i + j * ldc];
                store(to, scale * result(i, j) + (keep == 0 ? 0 : keep * load(to)));
            }
        }
    });
}

template <typename T>
int symm(const char *function, void *address, int side, int triangle, int m, int n, const T *alpha, const T *a, int lda,
         const T *b, int ldb, const T *beta, T *c, int ldc) {
    std::shared_ptr<Handle> handle;
    const int status = ready(function, address, handle);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    const bool left = side == CUBLAS_SIDE_LEFT;
    const int order = left ? m : n;
    if (m < 0 || n < 0 || !(left || side == CUBLAS_SIDE_RIGHT) || !valid_triangle(function, triangle) ||
        !leading(function, "A", lda, order) || !leading(function, "B", ldb, m) || !leading(function, "C", ldc, m) ||
        !on_host(function, "alpha", alpha) || !on_host(function, "beta", beta)) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (!on_device(function, "A", a, span(order, order, lda, sizeof(T)), handle->device) ||
        !on_device(function, "B", b, span(m, n, ldb, sizeof(T)), handle->device) ||
        !on_device(function, "C", c, span(m, n, ldc, sizeof(T)), handle->device)) {
        return CUBLAS_STATUS_MAPPING_ERROR;
    }
    const double scale = load(*alpha), keep = load(*beta);
    return run(function, *handle, [=] {
        Dense whole(order, order);
        for (std::int64_t j = 0; j < order; ++j) {
            for (std::int64_t i = 0; i < order; ++i) {
                if (in_triangle(triangle, i, j)) whole(i, j) = whole(j, i) = load(a[i + j * lda]);
            }
        }
        const Dense other = read(b, ldb, m, n, false);
        const Dense result = left ? product(whole, other) : product(other, whole);
        for (std::int64_t j = 0; j < n; ++j) {
            for (std::int64_t i = 0; i < m; ++i) {
                T &to = c[i + j * ldc];
                store(to, scale * result(i, j) + (keep == 0 ? 0 : keep * load(to)));
            }
        }
    });
}

template <typename T>
int typed_gemm(const char *function, void *address, const Shape &shape, const T *alpha, const T *beta, const Batch &batch) {
    if (!handles().find(address)) return CUBLAS_STATUS_NOT_INITIALIZED;
    if (!on_host(function, "alpha", alpha) || !on_host(function, "beta", beta)) return CUBLAS_STATUS_INVALID_VALUE;
    return gemm<T, T>(function, address, shape, load(*alpha), load(*beta), batch, 23);
}

}  // namespace

// Distinguishes a simulated library from a real one, which would dereference simulated pointers.
VENDOR_API int cudasim_stand_in(void) { return 1; }

VENDOR_API int cublasGetProperty(int type, int *value) {
    if (value == nullptr || type < MAJOR_VERSION || type > PATCH_LEVEL) return CUBLAS_STATUS_INVALID_VALUE;
    *value = type == MAJOR_VERSION ? CUBLAS_STAND_IN_MAJOR : 0;
    return CUBLAS_STATUS_SUCCESS;
}

VENDOR_API const char *cublasGetStatusString(int status) {
    switch (status) {
        case CUBLAS_STATUS_SUCCESS:
            return "success";
        case CUBLAS_STATUS_NOT_INITIALIZED:
            return "the library was not initialized";
        case CUBLAS_STATUS_ALLOC_FAILED:
            return "the resource allocation failed";
        case CUBLAS_STATUS_INVALID_VALUE:
            return "an invalid value was used as a parameter";
        case CUBLAS_STATUS_ARCH_MISMATCH:
            return "an absent device architectural feature is required";
        case CUBLAS_STATUS_MAPPING_ERROR:
            return "an access to GPU memory space failed";
        case CUBLAS_STATUS_EXECUTION_FAILED:
            return "the function failed to launch on the GPU";
        case CUBLAS_STATUS_INTERNAL_ERROR:
            return "an internal operation failed";
        case CUBLAS_STATUS_NOT_SUPPORTED:
            return "the functionality is not supported";
        default:
            return "unknown status";
    }
}

VENDOR_API int cublasCreate_v2(void **handle) {
    if (handle == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
    const int device = current_device();
    if (device < 0) return CUBLAS_STATUS_NOT_INITIALIZED;
    if (cudasim::injected("cublas", device)) return CUBLAS_STATUS_ALLOC_FAILED;
    *handle = handles().make(device);
    return CUBLAS_STATUS_SUCCESS;
}

VENDOR_API int cublasDestroy_v2(void *handle) {
    return handles().destroy(handle) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}

VENDOR_API int cublasGetVersion_v2(void *handle, int *version) {
    if (!handles().find(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
    if (version == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
    *version = CUBLAS_STAND_IN_MAJOR * 10000;
    return CUBLAS_STATUS_SUCCESS;
}

VENDOR_API int cublasSetStream_v2(void *address, void *stream) {
    const auto handle = handles().find(address);
    if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
    if (!is_current(__func__, handle->device) || !belongs(__func__, stream, handle->device)) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    handle->stream = stream;
    return CUBLAS_STATUS_SUCCESS;
}

VENDOR_API int cublasSetMathMode(void *address, int mode) {
    const auto handle = handles().find(address);
    if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
    if (mode != CUBLAS_DEFAULT_MATH && mode != CUBLAS_PEDANTIC_MATH && mode != CUBLAS_TF32_TENSOR_OP_MATH) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    handle->mode = mode;
    return CUBLAS_STATUS_SUCCESS;
}

VENDOR_API int cublasSetWorkspace_v2(void *address, void *workspace, unsigned long bytes) {
    const auto handle = handles().find(address);
    if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
    if (reinterpret_cast<std::uintptr_t>(workspace) % 256 != 0) {
        complain(__func__, "the workspace at %p is not aligned to 256 bytes", workspace);
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    return on_device(__func__, "the workspace", workspace, static_cast<std::int64_t>(bytes), handle->device)
               ? CUBLAS_STATUS_SUCCESS
               : CUBLAS_STATUS_INVALID_VALUE;
}

VENDOR_API int cublasSgemm_v2(void *handle, int op_a, int op_b, int m, int n, int k, const float *alpha, const float *a,
                              int lda, const float *b, int ldb, const float *beta, float *c, int ldc) {
    return typed_gemm<float>(__func__, handle, {op_a, op_b, m, n, k}, alpha, beta, {a, b, c, lda, ldb, ldc, 0, 0, 0, 1});
}

VENDOR_API int cublasDgemm_v2(void *handle, int op_a, int op_b, int m, int n, int k, const double *alpha, const double *a,
                              int lda, const double *b, int ldb, const double *beta, double *c, int ldc) {
    return typed_gemm<double>(__func__, handle, {op_a, op_b, m, n, k}, alpha, beta, {a, b, c, lda, ldb, ldc, 0, 0, 0, 1});
}

VENDOR_API int cublasGemmEx(void *handle, int op_a, int op_b, int m, int n, int k, const void *alpha, const void *a,
                            int type_a, int lda, const void *b, int type_b, int ldb, const void *beta, void *c, int type_c,
                            int ldc, int compute_type, int) {
    return gemm_ex(__func__, handle, {op_a, op_b, m, n, k}, alpha, beta, type_a, type_b, type_c,
                   {a, b, c, lda, ldb, ldc, 0, 0, 0, 1}, compute_type);
}

VENDOR_API int cublasGemmStridedBatchedEx(void *handle, int op_a, int op_b, int m, int n, int k, const void *alpha,
                                          const void *a, int type_a, int lda, long long stride_a, const void *b, int type_b,
                                          int ldb, long long stride_b, const void *beta, void *c, int type_c, int ldc,
                                          long long stride_c, int count, int compute_type, int) {
    return gemm_ex(__func__, handle, {op_a, op_b, m, n, k}, alpha, beta, type_a, type_b, type_c,
                   {a, b, c, lda, ldb, ldc, stride_a, stride_b, stride_c, count}, compute_type);
}

VENDOR_API int cublasSsyrk_v2(void *handle, int triangle, int op, int n, int k, const float *alpha, const float *a, int lda,
                              const float *beta, float *c, int ldc) {
    return syrk(__func__, handle, triangle, op, n, k, alpha, a, lda, beta, c, ldc);
}

VENDOR_API int cublasDsyrk_v2(void *handle, int triangle, int op, int n, int k, const double *alpha, const double *a,
                              int lda, const double *beta, double *c, int ldc) {
    return syrk(__func__, handle, triangle, op, n, k, alpha, a, lda, beta, c, ldc);
}

VENDOR_API int cublasSsymm_v2(void *handle, int side, int triangle, int m, int n, const float *alpha, const float *a,
                              int lda, const float *b, int ldb, const float *beta, float *c, int ldc) {
    return symm(__func__, handle, side, triangle, m, n, alpha, a, lda, b, ldb, beta, c, ldc);
}

VENDOR_API int cublasDsymm_v2(void *handle, int side, int triangle, int m, int n, const double *alpha, const double *a,
                              int lda, const double *b, int ldb, const double *beta, double *c, int ldc) {
    return symm(__func__, handle, side, triangle, m, n, alpha, a, lda, b, ldb, beta, c, ldc);
}
