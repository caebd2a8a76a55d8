// Entry points of the products of a table. A table is checked as a whole when it is prepared; a call checks that the products
// lie in its room.
#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <vector>

#include "entry.h"

namespace fcm {
namespace {

// The floats of the room that an operand of all clients touches, from the first to the last.
struct Reach {
    int64_t first;
    int64_t end;  // past the last; -1 if it does not fit int64
};

Reach reach_of(int64_t clients, int64_t offset, int64_t stride, int64_t rows, int64_t row, int64_t cols, int64_t col) {
    int64_t down = 0;
    int64_t across = 0;
    int64_t along = 0;
    int64_t end = 0;
    const bool fits = product(rows - 1, row, &down) && product(cols - 1, col, &across) && product(clients - 1, stride, &along) &&
                      sum(offset, down, &end) && sum(end, across, &end) && sum(end, along, &end) && sum(end, 1, &end);
    return {offset, fits ? end : -1};
}

struct Reaches {
    Reach a;
    Reach b;
    Reach base;  // empty without a base
    Reach out;
};

Reaches reaches_of(int64_t clients, const fcm_product &p) {
    return {reach_of(clients, p.a_offset, p.a_stride, p.rows, p.a_row, p.depth, p.a_col),
            reach_of(clients, p.b_offset, p.b_stride, p.depth, p.b_row, p.cols, p.b_col),
            p.base_offset < 0 ? Reach{0, 0} : reach_of(clients, p.base_offset, p.base_stride, p.rows, p.cols, p.cols, 1),
            reach_of(clients, p.out_offset, p.out_stride, p.rows, p.cols, p.cols, 1)};
}

bool empty(const fcm_product &p) { return p.rows == 0 || p.cols == 0; }

void check_product(Arguments &arguments, int64_t clients, int64_t i, const fcm_product &p) {
    int64_t size = 0;
    arguments.require(p.rows >= 0 && p.cols >= 0, "product %" PRId64 " is %" PRId64 " x %" PRId64, i, p.rows, p.cols)
        .require(p.depth >= 1, "product %" PRId64 " has depth %" PRId64 ", less than 1", i, p.depth)
        .require(p.symmetric == 0 || p.symmetric == 1, "product %" PRId64 " has symmetric = %" PRId64, i, p.symmetric)
        .require(p.symmetric == 0 || p.rows == p.cols, "product %" PRId64 " is symmetric and %" PRId64 " x %" PRId64, i, p.rows,
                 p.cols)
        .require(std::isfinite(p.product_factor) && std::isfinite(p.base_factor), "product %" PRId64 " has a factor that is not finite",
                 i)
        .require(p.a_row >= 1 && p.a_col >= 1 && p.b_row >= 1 && p.b_col >= 1,
                 "product %" PRId64 " has a stride of rows or columns below 1", i)
        .require(p.a_offset >= 0 && p.b_offset >= 0 && p.out_offset >= 0 && p.base_offset >= -1 && p.of_offset >= -1,
                 "product %" PRId64 " has a negative offset", i)
        .require(product(p.rows, p.cols, &size), "product %" PRId64 " does not fit int64", i);
    if (!arguments.ok() || empty(p) || clients == 0) return;
    arguments.require(p.a_stride >= 0 && p.b_stride >= 0 && p.base_stride >= 0 && (clients == 1 || p.out_stride >= size),
                      "product %" PRId64 " has clients that overlap", i);
    const Reaches reaches = reaches_of(clients, p);
    arguments.require(reaches.a.end >= 0 && reaches.b.end >= 0 && reaches.base.end >= 0 && reaches.out.end >= 0,
                      "product %" PRId64 " does not fit int64", i);
}

void check_table(Arguments &arguments, int64_t clients, const fcm_product *products, int64_t count) {
    arguments.require(clients >= 0, "clients = %" PRId64 " is negative", clients)
        .require(count >= 0, "count = %" PRId64 " is negative", count)
        .require(count == 0 || products != nullptr, "the table of products is null");
    for (int64_t i = 0; arguments.ok() && i < count; ++i) check_product(arguments, clients, i, products[i]);
}

// Sorted by where they begin, a reach can only meet the ones that begin before it ends.
void check_independent(Arguments &arguments, int64_t clients, const fcm_product *products, int64_t count) {
    struct Used {
        Reach reach;
        int64_t product;
        bool written;
    };
    std::vector<Used> all;
    for (int64_t i = 0; i < count && clients > 0; ++i) {
        if (empty(products[i])) continue;
        const Reaches r = reaches_of(clients, products[i]);
        all.push_back({r.a, i, false});
        all.push_back({r.b, i, false});
        if (products[i].base_offset >= 0) all.push_back({r.base, i, false});
        all.push_back({r.out, i, true});
    }
    std::sort(all.begin(), all.end(), [](const Used &x, const Used &y) { return x.reach.first < y.reach.first; });
    for (size_t i = 0; i < all.size(); ++i) {
        for (size_t j = i + 1; arguments.ok() && j < all.size() && all[j].reach.first < all[i].reach.end; ++j) {
            const int64_t writer = all[i].written ? all[i].product : all[j].product;
            const int64_t other = all[i].written ? all[j].product : all[i].product;
            arguments.require(!all[i].written && !all[j].written,
                              "product %" PRId64 " writes what product %" PRId64 " uses", writer, other);
        }
    }
}

Arguments &table_workspace(Arguments &arguments, const fcm_context *context, int64_t clients, const fcm_product *products,
                           int64_t count, const void *workspace, int64_t bytes, fcm_error *error) {
    if (!arguments.ok()) return arguments;
    int64_t needed = 0;
    device::products_workspace(context, clients, products, count, &needed, error);
    return arguments.workspace(workspace, bytes, needed);
}

}  // namespace
}  // namespace fcm

using fcm::Arguments;
using fcm::enter;
namespace entry = fcm::entry;

fcm_status fcm_products_workspace(const fcm_context *context, int64_t clients, const fcm_product *products, int64_t count,
                                  int64_t *bytes, fcm_error *error) {
    const auto check = [&](Arguments &arguments) {
        arguments.require(bytes != nullptr, "the place for the answer is null");
        fcm::check_table(arguments, clients, products, count);
        return true;
    };
    return enter<entry::products_workspace>(context, error, check, clients, products, count, bytes);
}

fcm_status fcm_products_prepare(fcm_context *context, int64_t clients, const fcm_product *products, int64_t count,
                                void *workspace, int64_t workspace_bytes, fcm_error *error) {
    const auto check = [&](Arguments &arguments) {
        fcm::check_table(arguments, clients, products, count);
        if (arguments.ok()) fcm::check_independent(arguments, clients, products, count);
        fcm::table_workspace(arguments, context, clients, products, count, workspace, workspace_bytes, error);
        return clients > 0 && count > 0;
    };
    return enter<entry::products_prepare>(context, error, check, clients, products, count, workspace, workspace_bytes);
}

fcm_status fcm_products(fcm_context *context, int64_t clients, const fcm_product *products, int64_t count, float *room,
                        int64_t room_floats, const float *of, int64_t of_stride, void *workspace, int64_t workspace_bytes,
                        fcm_error *error) {
    const auto check = [&](Arguments &arguments) {
        fcm::check_table(arguments, clients, products, count);
        arguments.require(room_floats >= 0, "room_floats = %" PRId64 " is negative", room_floats);
        if (!arguments.ok() || clients == 0 || count == 0) return false;
        arguments.write("room", room, 1, room_floats, room_floats);
        int64_t checked = 0;  // floats of a client's `of`
        for (int64_t i = 0; arguments.ok() && i < count; ++i) {
            const fcm_product &p = products[i];
            if (fcm::empty(p)) continue;
            const fcm::Reaches r = fcm::reaches_of(clients, p);
            arguments.require(std::max({r.a.end, r.b.end, r.base.end, r.out.end}) <= room_floats,
                              "product %" PRId64 " is outside the room of %" PRId64 " floats", i, room_floats);
            if (p.of_offset >= 0) checked = std::max(checked, p.of_offset + 1);
        }
        if (checked > 0) arguments.read("of", of, clients, checked, of_stride);
        fcm::table_workspace(arguments, context, clients, products, count, workspace, workspace_bytes, error).disjoint();
        return true;
    };
    return enter<entry::products>(context, error, check, clients, products, count, room, room_floats, of, of_stride, workspace,
                                  workspace_bytes);
}
