// Matrix products of any size on the CPU, in any precision.
#pragma once

#include "context.h"

namespace fcm {

// What is from one client to the next.
struct ProductStrides {
    int64_t a;
    int64_t b;
    int64_t base;
    int64_t out;
};

// The product of every client; `first` is that of the first one. The workspace is that of fcm_multiply.
void multiply_all(fcm_context *context, int64_t clients, const Product &first, const ProductStrides &strides, void *workspace);

}  // namespace fcm
