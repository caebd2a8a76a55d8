// What the counts of a kernel mean: the figures of a profile, and the part of a GPU's peak that they allow.
#pragma once

#include <string>
#include <vector>

#include "counters.h"

namespace fcm::profile {

// What a multiprocessor can do in a cycle, from the data sheet of a GPU. All have 4 schedulers that issue an instruction each,
// 128 lanes of fp32 and shared memory that serves a wavefront.
struct Machine {
    const char *name;
    double fp64;  // lanes
    double mma;   // multiply-adds of 16-bit formats with fp32 sums; half as many of tf32
    double l2;    // bytes
    double dram;  // bytes, its part of the bandwidth
};
const std::vector<Machine> &machines();

// The cycles that the observed blocks need of each resource, if they run on one multiprocessor, and others do the same on the
// others. The kernel cannot be faster than the largest; neither latencies nor caches other than these are modelled.
struct Cycles {
    double issue = 0;   // instructions of the busiest scheduler, which has every fourth warp of a block
    double fma = 0;     // active lanes of fused multiply-adds / 128
    double mma = 0;
    double fp64 = 0;
    double shared = 0;  // wavefronts
    double l2 = 0;      // all sectors
    double dram = 0;    // sectors that differ, or the bytes that are stated if not all blocks were observed

    double bound() const;
    const char *bound_by() const;
    // What has to be done, fused multiply-adds and mma or memory, over the bound.
    double share() const;
};

// `bytes`: what all blocks together have to move; used if not all blocks were observed.
Cycles cycles_of(const KernelCounts &counts, const Machine &machine, double bytes);

double active_lanes(const Counts &counts);      // mean share of the 32 lanes that an instruction is issued for
double active_lanes_fma(const Counts &counts);  // of fma and mma alone; 1 if there are none
double balance(const KernelCounts &counts);     // fma and mma of the average warp over those of the busiest one of its block
double bank_conflicts(const Counts &counts);    // extra wavefronts over the least
double sectors_over_least(const Counts &counts);
double products_per_shared_load(const Counts &counts);  // fma and mma instructions; 0 without loads

// A line of JSON.
std::string json_of(const std::string &title, const KernelCounts &counts, double bytes);

}  // namespace fcm::profile
