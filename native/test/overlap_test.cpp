// fcm::overlap against a model that marks every byte, for all small cases.
#include "../common/arguments.h"

#include <bitset>

#include "support.h"

namespace {

using Bytes = std::bitset<80>;

struct Shape {
    int64_t count;
    int64_t length;
    int64_t stride;
    Bytes mark;
};

std::vector<Shape> shapes() {
    std::vector<Shape> all;
    for (int64_t count = 1; count <= 4; ++count) {
        for (int64_t length = 0; length <= 5; ++length) {
            for (int64_t stride = 0; stride <= 7; ++stride) {
                // The pieces of one batch are disjoint or identical; the stride of a single piece has no meaning.
                if (stride != 0 && stride < length && count > 1) continue;
                Shape shape{count, length, stride, {}};
                for (int64_t k = 0; k < count; ++k) {
                    for (int64_t i = 0; i < length; ++i) shape.mark.set(static_cast<size_t>(k * stride + i));
                }
                all.push_back(shape);
            }
        }
    }
    return all;
}

}  // namespace

TEST(overlap_agrees_with_marked_bytes) {
    constexpr int64_t kMiddle = 20;
    constexpr uintptr_t kBase = 0x10000;
    const std::vector<Shape> all = shapes();
    long meets = 0;
    long apart = 0;
    for (const Shape &a : all) {
        const fcm::Extent first{"a", kBase + kMiddle, a.count, a.length, a.stride, true};
        const Bytes marked = a.mark << static_cast<size_t>(kMiddle);
        for (const Shape &b : all) {
            for (int64_t start = 0; start <= 2 * kMiddle; ++start) {
                const fcm::Extent second{"b", kBase + static_cast<uintptr_t>(start), b.count, b.length, b.stride,
                                         false};
                const bool expected = (marked & (b.mark << static_cast<size_t>(start))).any();
                CHECK(fcm::overlap(first, second) == expected,
                      "%d: %ld x %ld by %ld at %ld, %ld x %ld by %ld at %ld", expected, long(a.count), long(a.length),
                      long(a.stride), long(kMiddle), long(b.count), long(b.length), long(b.stride), long(start));
                ++(expected ? meets : apart);
            }
        }
    }
    CHECK(meets > 100000 && apart > 100000, "%ld meet, %ld do not: the cases are lopsided", meets, apart);
}
