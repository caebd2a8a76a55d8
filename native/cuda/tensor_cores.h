// Tensor cores: matrices that the lanes of a warp hold together, and their products. All 32 lanes must call these functions,
// at the same place. From sm_80 on; a kernel that uses them puts its body into
//
//   #if FCM_TENSOR_CORES
//   ...
//   #endif
//
// because the functions do not exist in the PTX for older GPUs; the host does not launch it there.
//
//   ldmatrix_x4(r, row), ldmatrix_x2(r, row)   one or more 8 x 8 matrices of 16-bit elements from shared memory; also of 8 x 4
//                                              32-bit elements, because a pair of 16-bit elements stays together
//   ldmatrix_x4_trans, ldmatrix_x2_trans       the same, each matrix transposed; of 16-bit elements only
//   mma_bf16(c, a, b)                          c += a b, 16 x 8 x 16, bf16 factors, fp32 sums
//   mma_tf32(c, a, b)                          c += a b, 16 x 8 x 8, tf32 factors, fp32 sums
//   to_bf16x2(low, high)                       two floats rounded to bf16, ties to even, in one register
//   from_bf16(bits), from_bf16x2(pair, low, high)
//   to_tf32(x)                                 x rounded to tf32, ties away from zero. mma_tf32 ignores the low 13 bits, which
//                                              truncates what was not rounded before
//
// What a lane holds, with g = lane / 4 and t = lane % 4 (PTX ISA, "Matrix Fragments for mma"). A pair {x, y} has x in the low
// half of the register.
//
//   ldmatrix      lane 8 m + i gives the address of row i of matrix m, 16 bytes aligned to 16; the lanes beyond the last matrix
//                 give any address. r[m] = {M_m(g, 2t), M_m(g, 2t + 1)}, with _trans {M_m(2t, g), M_m(2t + 1, g)}
//
//   mma_bf16      A is 16 x 16:  a[0] = {A(g, 2t), A(g, 2t + 1)}           a[1] = {A(g + 8, 2t), A(g + 8, 2t + 1)}
//                                a[2] = {A(g, 2t + 8), A(g, 2t + 9)}       a[3] = {A(g + 8, 2t + 8), A(g + 8, 2t + 9)}
//                 B is 16 x 8:   b[0] = {B(2t, g), B(2t + 1, g)}           b[1] = {B(2t + 8, g), B(2t + 9, g)}
//                 C is 16 x 8:   c[0], c[1] = C(g, 2t), C(g, 2t + 1)       c[2], c[3] = C(g + 8, 2t), C(g + 8, 2t + 1)
//
//   mma_tf32      A is 16 x 8:   a[0] = A(g, t)    a[1] = A(g + 8, t)      a[2] = A(g, t + 4)    a[3] = A(g + 8, t + 4)
//                 B is 8 x 8:    b[0] = B(t, g)    b[1] = B(t + 4, g)
//                 C as above
//
// So, with matrices of bf16 in shared memory:
//   A stored by rows (A(i, k) at a + i * lda + k): ldmatrix_x4 with the row a + (lane % 16) * lda + lane / 16 * 8 gives a[0..3].
//   B stored by columns (B(k, j) at b + j * ldb + k): ldmatrix_x2 with b + lane % 8 * ldb + lane / 8 % 2 * 8 gives b[0..1].
//   B stored by rows (B(k, j) at b + k * ldb + j): ldmatrix_x2_trans with b + lane % 16 * ldb gives b[0..1].
//   A stored by columns (A(i, k) at a + k * lda + i): ldmatrix_x4_trans with
//   a + (lane % 8 + lane / 16 * 8) * lda + lane / 8 % 2 * 8 gives a[0..3].
//
// The products are exact. In which order a GPU adds them, and how it rounds in between, is not specified; the simulations add c
// and the products in double, in the order of k, and round once. Results are therefore compared with a tolerance.
#pragma once

#include <cstdint>

#include "portable.h"

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#define FCM_TENSOR_CORES 0
#else
#define FCM_TENSOR_CORES 1
#endif

namespace fcm {

__device__ __forceinline__ float from_bf16(uint16_t bits) { return __uint_as_float(static_cast<unsigned>(bits) << 16); }
__device__ __forceinline__ void from_bf16x2(uint32_t pair, float &low, float &high) {
    low = __uint_as_float(pair << 16);
    high = __uint_as_float(pair & 0xffff0000u);
}

#if !defined(FCM_CUDASIM)
#if FCM_TENSOR_CORES

namespace tensor_cores {

__device__ __forceinline__ unsigned shared_address(const void *row) { return static_cast<unsigned>(__cvta_generic_to_shared(row)); }

}  // namespace tensor_cores

__device__ __forceinline__ void ldmatrix_x4(uint32_t (&r)[4], const void *row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(tensor_cores::shared_address(row))
                 : "memory");
}
__device__ __forceinline__ void ldmatrix_x4_trans(uint32_t (&r)[4], const void *row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(tensor_cores::shared_address(row))
                 : "memory");
}
__device__ __forceinline__ void ldmatrix_x2(uint32_t (&r)[2], const void *row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                 : "=r"(r[0]), "=r"(r[1])
                 : "r"(tensor_cores::shared_address(row))
                 : "memory");
}
__device__ __forceinline__ void ldmatrix_x2_trans(uint32_t (&r)[2], const void *row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                 : "=r"(r[0]), "=r"(r[1])
                 : "r"(tensor_cores::shared_address(row))
                 : "memory");
}

// volatile: the compiler must not move them to where some lanes do not come.
__device__ __forceinline__ void mma_bf16(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
__device__ __forceinline__ void mma_tf32(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__device__ __forceinline__ uint32_t to_bf16x2(float low, float high) {
    uint32_t pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}
__device__ __forceinline__ uint32_t to_tf32(float x) {
    uint32_t bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
    return bits;
}

#endif  // FCM_TENSOR_CORES
#else

namespace tensor_cores {

constexpr uint32_t kNotANumber = 0x7fffffff;  // the one that the instructions give

inline uint32_t bf16_bits(float x) {
    if (x != x) return kNotANumber >> 16;
    const uint32_t bits = __float_as_uint(x);
    // Adds less than half, and the last bit that is kept, so that a tie goes to the even one. Infinity stays.
    return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

inline float rounded(double sum) { return sum == sum ? static_cast<float>(sum) : __uint_as_float(kNotANumber); }

inline int lane() { return static_cast<int>((threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % 32); }

// Each lane reads the row whose address it gives, then takes its elements from the rows of all.
template <int Count, bool Transposed>
void load_matrices(uint32_t (&r)[Count], const void *row, const char *file, int line) {
    uint32_t words[4] = {};
    const int me = lane();
    if (me < 8 * Count) {
        // On a GPU this ends the kernel; memcpy would not care.
        if (reinterpret_cast<uintptr_t>(row) % 16 != 0) ::cudasim::detail::not_aligned("ldmatrix", row, 16, line);
        std::memcpy(words, row, sizeof words);
    }
    const ::cudasim::detail::Gathered *rows = ::cudasim::detail::gather(words, file, line);
    const int g = me / 4, t = me % 4;
    for (int m = 0; m < Count; ++m) {
        if (!Transposed) {
            r[m] = rows[8 * m + g][t];
            continue;
        }
        // Element g of the rows 2t and 2t + 1.
        const uint32_t low = rows[8 * m + 2 * t][g / 2] >> g % 2 * 16, high = rows[8 * m + 2 * t + 1][g / 2] >> g % 2 * 16;
        r[m] = (low & 0xffff) | high << 16;
    }
}

// c(i, j) += the sum over k of a(i, k) b(k, j), where `at(lanes, row, k)` finds an element among the registers of all lanes.
template <int Depth, class A, class B>
void multiply(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], const char *file, int line, A a_at, B b_at) {
    const uint32_t words[6] = {a[0], a[1], a[2], a[3], b[0], b[1]};
    const ::cudasim::detail::Gathered *lanes = ::cudasim::detail::gather(words, file, line);
    const int g = lane() / 4, t = lane() % 4;
    for (int e = 0; e < 4; ++e) {
        const int i = g + e / 2 * 8, j = 2 * t + e % 2;
        double sum = static_cast<double>(c[e]);
        for (int k = 0; k < Depth; ++k) sum += static_cast<double>(a_at(lanes, i, k)) * static_cast<double>(b_at(lanes, k, j));
        c[e] = rounded(sum);
    }
}

}  // namespace tensor_cores

inline void ldmatrix_x4(uint32_t (&r)[4], const void *row, CUDASIM_SITE) { tensor_cores::load_matrices<4, false>(r, row, file, line); }
inline void ldmatrix_x4_trans(uint32_t (&r)[4], const void *row, CUDASIM_SITE) {
    tensor_cores::load_matrices<4, true>(r, row, file, line);
}
inline void ldmatrix_x2(uint32_t (&r)[2], const void *row, CUDASIM_SITE) { tensor_cores::load_matrices<2, false>(r, row, file, line); }
inline void ldmatrix_x2_trans(uint32_t (&r)[2], const void *row, CUDASIM_SITE) {
    tensor_cores::load_matrices<2, true>(r, row, file, line);
}

inline void mma_bf16(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], CUDASIM_SITE) {
    using Lanes = const ::cudasim::detail::Gathered *;
    const auto half = [](uint32_t pair, int k) { return __uint_as_float(pair >> k % 2 * 16 << 16); };
    tensor_cores::multiply<16>(
        c, a, b, file, line,
        [half](Lanes lanes, int i, int k) { return half(lanes[i % 8 * 4 + k % 8 / 2][i / 8 + k / 8 * 2], k); },
        [half](Lanes lanes, int k, int j) { return half(lanes[j * 4 + k % 8 / 2][4 + k / 8], k); });
}

inline void mma_tf32(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], CUDASIM_SITE) {
    using Lanes = const ::cudasim::detail::Gathered *;
    const auto cut = [](uint32_t bits) { return __uint_as_float(bits & ~0x1fffu); };
    tensor_cores::multiply<8>(
        c, a, b, file, line,
        [cut](Lanes lanes, int i, int k) { return cut(lanes[i % 8 * 4 + k % 4][i / 8 + k / 4 * 2]); },
        [cut](Lanes lanes, int k, int j) { return cut(lanes[j * 4 + k % 4][4 + k / 4]); });
}

inline uint32_t to_bf16x2(float low, float high) { return tensor_cores::bf16_bits(low) | tensor_cores::bf16_bits(high) << 16; }

inline uint32_t to_tf32(float x) {
    if (x != x) return tensor_cores::kNotANumber;
    const uint32_t bits = __float_as_uint(x);
    if ((bits & 0x7fffffffu) == 0x7f800000u) return bits;
    return (bits + 0x1000) & ~0x1fffu;
}

#endif  // FCM_CUDASIM

}  // namespace fcm
