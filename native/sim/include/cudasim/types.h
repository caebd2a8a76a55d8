// The plain types of CUDA: dimensions and short vectors, with CUDA's alignment.
#pragma once

#include <cstddef>
#include <cstdint>

#define CUDASIM_API __attribute__((visibility("default")))

namespace cudasim {

constexpr int warpSize = 32;

struct uint3 {
    unsigned x, y, z;
};

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
    constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
};
using Dim3 = dim3;

#define CUDASIM_VECTORS(scalar, name, aligned2, aligned4)                                               \
    struct alignas(aligned2) name##2 {                                                                  \
        scalar x, y;                                                                                    \
    };                                                                                                  \
    struct name##3 {                                                                                    \
        scalar x, y, z;                                                                                 \
    };                                                                                                  \
    struct alignas(aligned4) name##4 {                                                                  \
        scalar x, y, z, w;                                                                              \
    };                                                                                                  \
    inline constexpr name##2 make_##name##2(scalar x, scalar y) { return {x, y}; }                      \
    inline constexpr name##3 make_##name##3(scalar x, scalar y, scalar z) { return {x, y, z}; }         \
    inline constexpr name##4 make_##name##4(scalar x, scalar y, scalar z, scalar w) { return {x, y, z, w}; }

CUDASIM_VECTORS(float, float, 8, 16)
CUDASIM_VECTORS(int, int, 8, 16)
CUDASIM_VECTORS(double, double, 16, 16)
#undef CUDASIM_VECTORS

struct alignas(2) uchar2 {
    unsigned char x, y;
};
struct alignas(4) uchar4 {
    unsigned char x, y, z, w;
};
struct alignas(8) uint2 {
    unsigned x, y;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
struct alignas(16) longlong2 {
    long long x, y;
};
inline constexpr uchar2 make_uchar2(unsigned char x, unsigned char y) { return {x, y}; }
inline constexpr uchar4 make_uchar4(unsigned char x, unsigned char y, unsigned char z, unsigned char w) { return {x, y, z, w}; }
inline constexpr uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline constexpr uint3 make_uint3(unsigned x, unsigned y, unsigned z) { return {x, y, z}; }
inline constexpr uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline constexpr longlong2 make_longlong2(long long x, long long y) { return {x, y}; }

}  // namespace cudasim
