// Products of any number of shapes in one launch, and what they are launched with. Host side, and the table of the kernel.
#pragma once

#include <cstdint>
#include <vector>

#include "status.h"

struct fcm_context;

namespace fcm {

// out = base_factor base + product_factor A B for every client; `also` receives out + diagonal I. Offsets are from a client's
// part of the operand; A(i, k) is at a + i a_row + k a_col, B alike.
struct ProductEntry {
    int64_t rows;
    int64_t cols;
    int64_t depth;
    int64_t a;
    int64_t a_row;
    int64_t a_col;
    int64_t b;
    int64_t b_row;
    int64_t b_col;
    int64_t pitch;  // of the rows of base, out and also
    int64_t base;   // -1 for none
    int64_t out;
    int64_t also;    // -1 for none
    int64_t matrix;  // whose flag is set if the result is not finite; -1 if nobody asks
    int64_t first_tile;  // among the tiles of a client
    int64_t tiles;
    float product_factor;
    float base_factor;
    float diagonal;
    int32_t symmetric;  // the upper triangle is computed, and mirrored
};

struct Products {
    int64_t clients;
    const ProductEntry *listed;  // on the device; null: there is one product, `single`
    ProductEntry single;
    int64_t count;
    int64_t tiles;  // of a client
    const void *a;     // of floats, or of Bf16 with FCM_BF16
    int64_t a_stride;  // in elements, from one client to the next
    const void *b;
    int64_t b_stride;
    const void *base;
    int64_t base_stride;
    void *out;
    int64_t out_stride;
    unsigned *flags;  // flag_stride for each client
    int64_t flag_stride;
    unsigned long long stop_from;  // nothing is done if an operation up to this ticket has found something
    const Status *status;
};

// Sorts entries, which do not depend on each other, and numbers their tiles; returns the tiles of a client.
int64_t number_tiles(std::vector<ProductEntry> &entries);

// products.cu. One chain of fused multiply-adds for each element, with the bits of a CPU.
void launch_products(const fcm_context *context, const Products &products);

// products_mma.cu. On tensor cores, with FCM_TF32 or FCM_BF16. Of each factor, one of the strides of rows and columns is 1 and
// the other a multiple of 16 bytes, and so are offsets and the strides of clients. If the first factor is stored
// by its columns, the second is stored by its rows.
void launch_products_mma(const fcm_context *context, const Products &products, int32_t precision);

}  // namespace fcm
