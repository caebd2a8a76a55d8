// ldmatrix and mma: how the elements of matrices are distributed over the registers of a warp, and their products.
#pragma once

#include <array>
#include <cstdint>

#include "thread.h"

namespace fcm::ptx {

using MatrixRows = std::array<std::array<uint8_t, 16>, 32>;  // by the lane that gives the address
using LaneRegisters = std::array<uint64_t *, 32>;

// Checks the address that a lane gives, and reads the row on its behalf.
void read_matrix_row(Thread &giver, const MatrixOperation &operation, std::array<uint8_t, 16> &row);

void distribute_rows(const MatrixOperation &operation, const MatrixRows &rows, const LaneRegisters &registers);

// d = a b + c. The products are exact. PTX leaves open in which order they are added and how sums are rounded in between; here c
// and the products are added in double, in the order of k, and rounded once.
void multiply_matrices(const MatrixOperation &operation, const LaneRegisters &registers);

}  // namespace fcm::ptx
