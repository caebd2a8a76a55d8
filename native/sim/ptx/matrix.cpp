#include "matrix.h"

#include <algorithm>

#include "access.h"
#include "arithmetic_real.h"
#include "bits.h"

namespace fcm::ptx {

void read_matrix_row(Thread &giver, const MatrixOperation &operation, std::array<uint8_t, 16> &row) {
    uint64_t address = giver.registers[operation.address] + static_cast<uint64_t>(operation.offset);
    if (operation.generic) {
        if ((address & kWindowMask) != kSharedWindow) throw Mistake("loads a matrix from memory that is not shared");
        address -= kSharedWindow;
    }
    address &= 0xffffffff;
    aligned(address, 16);
    const uint8_t *from = giver.block->shared->read(giver.accessor, address, 16);
    std::copy(from, from + 16, row.begin());
}

namespace {

uint32_t element(const std::array<uint8_t, 16> &row, unsigned k) { return row[2 * k] | static_cast<uint32_t>(row[2 * k + 1]) << 8; }

}  // namespace

void distribute_rows(const MatrixOperation &operation, const MatrixRows &rows, const LaneRegisters &registers) {
    for (unsigned lane = 0; lane < 32; ++lane) {
        const unsigned group = lane / 4, pair = lane % 4 * 2;
        for (unsigned m = 0; m < operation.count; ++m) {
            const auto at = [&](unsigned i, unsigned j) { return element(rows[8 * m + i], j); };
            const uint32_t low = operation.transposed ? at(pair, group) : at(group, pair);
            const uint32_t high = operation.transposed ? at(pair + 1, group) : at(group, pair + 1);
            registers[lane][operation.d[m]] = low | static_cast<uint64_t>(high) << 16;
        }
    }
}

void multiply_matrices(const MatrixOperation &operation, const LaneRegisters &registers) {
    double a[16][16], b[16][8];
    float c[16][8];
    const unsigned depth = operation.depth;
    for (unsigned lane = 0; lane < 32; ++lane) {
        const unsigned group = lane / 4, within = lane % 4;
        const auto word = [&](uint32_t slot) { return static_cast<uint32_t>(registers[lane][slot]); };
        if (operation.tensor) {
            // Registers are ordered by rows first, then by columns, in steps of 8 rows and 4 columns. The instruction does not
            // look at the low 13 bits.
            const auto number = [](uint32_t bits) { return static_cast<double>(value<float>(bits & ~0x1fffu)); };
            for (unsigned k = within, r = 0; k < depth; k += 4, ++r) {
                a[group][k] = number(word(operation.a[2 * r]));
                a[group + 8][k] = number(word(operation.a[2 * r + 1]));
                b[k][group] = number(word(operation.b[r]));
            }
        } else {
            const auto number = [](uint32_t bits) { return static_cast<double>(value<float>((bits & 0xffff) << 16)); };
            for (unsigned k = 2 * within, r = 0; k < depth; k += 8, ++r) {
                for (unsigned half = 0; half < 2; ++half) {
                    a[group][k + half] = number(word(operation.a[2 * r]) >> 16 * half);
                    a[group + 8][k + half] = number(word(operation.a[2 * r + 1]) >> 16 * half);
                    b[k + half][group] = number(word(operation.b[r]) >> 16 * half);
                }
            }
        }
        for (unsigned e = 0; e < 4; ++e) c[group + e / 2 * 8][2 * within + e % 2] = value<float>(word(operation.c[e]));
    }
    for (unsigned lane = 0; lane < 32; ++lane) {
        for (unsigned e = 0; e < 4; ++e) {
            const unsigned i = lane / 4 + e / 2 * 8, j = lane % 4 * 2 + e % 2;
            double sum = static_cast<double>(c[i][j]);
            for (unsigned k = 0; k < depth; ++k) sum += a[i][k] * b[k][j];
            registers[lane][operation.d[e]] = sum == sum ? raw(static_cast<float>(sum)) : real::kFloatNan;
        }
    }
}

}  // namespace fcm::ptx
