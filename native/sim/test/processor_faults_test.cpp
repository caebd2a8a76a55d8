// Processor faults in a kernel: they end the launch, and the process continues. This only works where fibers are switched in
// assembly; a sanitizer would report the faults first.
#include "support.h"

extern "C" __global__ void recurses(volatile float *out, int depth) {
    volatile float frame[1024];
    frame[0] = *out;
    frame[1] = frame[0];
    if (depth > 0) recurses(out, depth - 1);
    *out = frame[1];
}

extern "C" __global__ void follows(const int *const *pointer, int *out) { *out = **pointer; }

extern "C" __global__ void divides(const int *by, int *out) { *out = 7 / *by; }

extern "C" __global__ void nothing() {}

TEST(a_stack_that_overflows_is_a_fault) {
    const Simulated machine;
    const Array<float> cell(std::vector<float>{1.0f});
    LAUNCH(recurses, 1, 1, 0, nullptr, cell.data(), 5);
    expect_no_fault("as deep as a kernel goes");
    LAUNCH(recurses, 1, 1, 0, nullptr, cell.data(), 1000000);
    expect_fault("stack overflow", "endless recursion");
}

TEST(a_null_pointer_in_a_table_is_a_fault) {
    const Simulated machine;
    const Array<int *> table(std::vector<int *>{nullptr});
    const Array<int> output(1);
    LAUNCH(follows, 1, 1, 0, nullptr, table.data(), output.data());
    expect_fault("illegal address", "null");
    SUCCEEDS(cudaDeviceReset());
    LAUNCH(nothing, 8, 128, 0, nullptr);
    expect_no_fault("after the reset");
}

TEST(a_division_by_zero_is_a_fault) {
    const Simulated machine;
    const Array<int> zero(std::vector<int>{0});
    const Array<int> output(1);
    LAUNCH(divides, 1, 1, 0, nullptr, zero.data(), output.data());
    expect_fault("division by zero", "7 / 0");
}
