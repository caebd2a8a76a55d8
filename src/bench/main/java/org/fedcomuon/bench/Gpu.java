package org.fedcomuon.bench;

import java.util.List;

/**
 * The peak rates of a GPU, as published by its manufacturer.
 *
 * @param multiprocessors their number
 * @param fp32 operations per second, a fused multiply-add counting as two
 * @param tf32 the same for dense products on tensor cores
 * @param bf16 the same, with sums in fp32
 * @param bandwidth of its memory, in bytes per second
 * @param memory bytes
 * @param link bandwidth to another GPU, in bytes per second and direction
 * @param host bandwidth to the CPU's memory, in bytes per second and direction
 * @param launch the overhead of submitting a kernel, copy or fill, in seconds
 */
record Gpu(
        String name,
        int multiprocessors,
        double fp32,
        double tf32,
        double bf16,
        double bandwidth,
        double memory,
        double link,
        double host,
        double launch) {
    /**
     * An assumption, not from a data sheet: 4 to 6 microseconds are published for one submission through the runtime
     * (susun-blog.com, "From Launch Overhead to CUDA Graph", RTX 5070 Ti, CUDA 13). The time of libtorch's dispatcher
     * and autograd on the host is added where the GPU does not hide it.
     */
    static final double LAUNCH = 5e-6;

    /**
     * The overhead of a kernel in a graph: 3.4 us less 2.9 us in NVIDIA's example
     * (developer.nvidia.com/blog/cuda-graphs, V100).
     */
    static final double GRAPH_NODE = 0.5e-6;

    /**
     * The time of a wait beyond that of the work that is waited for, an assumption: a kernel that does nothing takes
     * 2.2 us per launch, and 6.6 us if the host waits after each (reference values for a P100 in ReFrame's
     * cscs-checks/microbenchmarks/kernel_latency, github.com/reframe-hpc/reframe).
     */
    static final double WAIT = 5e-6;

    /** PCI Express 4.0 with 16 lanes: 16 GT/s, 128b/130b. */
    private static final double PCIE_4 = 31.5e9;

    private static final double PCIE_5 = 63e9;

    /**
     * NVIDIA, Ada GPU Architecture paper 2.0, appendix A: 82.6 Tflop/s fp32 and tf32 (dense), 165.2 bf16, 1008 GB/s, 24
     * GB. It has no NVLink.
     */
    static final Gpu RTX_4090 =
            new Gpu("RTX 4090", 128, 82.6e12, 82.6e12, 165.2e12, 1008e9, 24e9, PCIE_4, PCIE_4, LAUNCH);

    /** NVIDIA, A100 80GB data sheet (SXM): 19.5, 156 and 312 Tflop/s, 2039 GB/s, NVLink 600 GB/s both ways together. */
    static final Gpu A100 = new Gpu("A100 80GB SXM", 108, 19.5e12, 156e12, 312e12, 2039e9, 80e9, 300e9, PCIE_4, LAUNCH);

    /**
     * NVIDIA, H100 data sheet (SXM): 67 Tflop/s, 989 and 1979 with sparsity so 494.5 and 989 dense, 3.35 TB/s, NVLink
     * 900 GB/s both ways together, PCIe 5.
     */
    static final Gpu H100 = new Gpu("H100 SXM", 132, 67e12, 494.5e12, 989e12, 3350e9, 80e9, 450e9, PCIE_5, LAUNCH);

    static final List<Gpu> ALL = List.of(RTX_4090, A100, H100);

    /** Returns the same GPU with another bandwidth. */
    Gpu withBandwidth(double other) {
        return new Gpu(name, multiprocessors, fp32, tf32, bf16, other, memory, link, host, launch);
    }

    /** Returns the same GPU with another launch overhead. */
    Gpu withLaunch(double other) {
        return new Gpu(name, multiprocessors, fp32, tf32, bf16, bandwidth, memory, link, host, other);
    }
}
