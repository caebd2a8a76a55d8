// The products of a table on the CPU, one after the other: each of them occupies all threads.
#include <algorithm>

#include "context.h"
#include "device_functions.h"
#include "pieces.h"

namespace fcm {
namespace {

bool empty(const fcm_product &p) { return p.rows == 0 || p.cols == 0; }

}  // namespace

fcm_status device::products_workspace(const fcm_context *context, int64_t clients, const fcm_product *products, int64_t count,
                                      int64_t *bytes, fcm_error *error) {
    *bytes = 0;
    for (int64_t i = 0; i < count; ++i) {
        int64_t needed = 0;
        device::multiply_workspace(context, clients, products[i].rows, products[i].cols, products[i].depth, &needed, error);
        *bytes = std::max(*bytes, needed);
    }
    return FCM_OK;
}

fcm_status device::products_prepare(fcm_context *, int64_t, const fcm_product *, int64_t, void *, int64_t, fcm_error *) {
    return FCM_OK;
}

fcm_status device::products(fcm_context *context, int64_t clients, const fcm_product *products, int64_t count, float *room,
                            int64_t, const float *of, int64_t of_stride, void *workspace, int64_t workspace_bytes,
                            fcm_error *error) {
    for (int64_t i = 0; i < count; ++i) {
        const fcm_product &p = products[i];
        if (empty(p)) continue;
        device::multiply(context, clients, p.rows, p.cols, p.depth, static_cast<int32_t>(p.symmetric), p.product_factor,
                         room + p.a_offset, p.a_stride, p.a_row, p.a_col, room + p.b_offset, p.b_stride, p.b_row, p.b_col,
                         p.base_factor, p.base_offset < 0 ? nullptr : room + p.base_offset, p.base_stride,
                         room + p.out_offset, p.out_stride, workspace, workspace_bytes, error);
    }
    // All products are computed first: what is named does not depend on the order of the table's other products. As on a
    // GPU, the lowest address in `of` is named.
    Place bad{};
    for (int64_t i = 0; i < count; ++i) {
        const fcm_product &p = products[i];
        if (empty(p) || p.of_offset < 0) continue;
        const Place place = first_not_finite(context, clients, p.rows * p.cols, room + p.out_offset, p.out_stride);
        if (place.client < 0) continue;
        const float *at = of + place.client * of_stride + p.of_offset;
        if (bad.address == nullptr || at < static_cast<const float *>(bad.address)) bad = {place.client, i, -1, at};
    }
    return bad.address == nullptr ? fcm_status{FCM_OK} : fail_out_of_range("fcm_products", bad, error);
}

}  // namespace fcm
