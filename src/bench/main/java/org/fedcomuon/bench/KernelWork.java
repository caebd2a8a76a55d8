package org.fedcomuon.bench;

import org.fedcomuon.device.Precision;

/**
 * The work of one call on a GPU: one or several kernels, a copy or a fill.
 *
 * @param name of the kernel or the operator
 * @param launches the number of submissions to the device
 * @param flops floating point operations, a fused multiply-add counting as two
 * @param longest flops of the longest task, which one multiprocessor does alone; 0 where work can be divided
 *     arbitrarily
 * @param bytes to and from the device's memory, as if nothing were cached between launches
 * @param linkBytes from another GPU
 * @param hostBytes from the CPU's memory
 * @param product whether tensor cores can compute it in tf32
 * @param precision of its products; in fp32 it may be computed in tf32 if it is a product
 * @param waits how often the host waits for it
 */
record KernelWork(
        String name,
        long launches,
        double flops,
        double longest,
        double bytes,
        double linkBytes,
        double hostBytes,
        boolean product,
        Precision precision,
        long waits) {
    /** The resource that limits a piece of work. */
    enum Bound {
        COMPUTE,
        MEMORY,
        LAUNCHES,
        WAITS,
        LINK,
        HOST;

        @Override
        public String toString() {
            return name().toLowerCase(java.util.Locale.ROOT);
        }
    }

    static KernelWork of(String name, long launches, double flops, double bytes) {
        return new KernelWork(name, launches, flops, 0, bytes, 0, 0, false, Precision.FP32, 0);
    }

    /** Returns the work of a matrix product or a convolution. */
    static KernelWork product(String name, long launches, double flops, double bytes) {
        return new KernelWork(name, launches, flops, 0, bytes, 0, 0, true, Precision.FP32, 0);
    }

    /** Returns products in one launch, of which one multiprocessor computes the longest tile alone. */
    static KernelWork tiles(String name, Precision precision, double flops, double longest, double bytes) {
        return new KernelWork(name, 1, flops, longest, bytes, 0, 0, true, precision, 0);
    }

    /** Returns the work of a copy from the CPU's memory. */
    static KernelWork fromHost(String name, double bytes) {
        return new KernelWork(name, 1, 0, 0, bytes, 0, bytes, false, Precision.FP32, 0);
    }

    /** Returns the work of a kernel that reads the memory of other GPUs. */
    static KernelWork overLink(String name, double flops, double bytes, double linkBytes) {
        return new KernelWork(name, 1, flops, 0, bytes, linkBytes, 0, false, Precision.FP32, 0);
    }

    /** Returns work that is almost only a launch, such as a fill of a few bytes or a copy of a result to the host. */
    static KernelWork tiny(String name, long launches) {
        return of(name, launches, 0, 0);
    }

    /** Returns a wait of the host for everything before, without work of its own. */
    static KernelWork wait(String name) {
        return tiny(name, 0).waiting(1);
    }

    /** Returns this work, for which the host waits so often. */
    KernelWork waiting(long count) {
        return new KernelWork(name, launches, flops, longest, bytes, linkBytes, hostBytes, product, precision, count);
    }

    /** Returns {@code count} times as much work in as many launches, and the same waits. */
    KernelWork wider(double count) {
        return new KernelWork(
                name,
                launches,
                flops * count,
                longest,
                bytes * count,
                linkBytes * count,
                hostBytes * count,
                product,
                precision,
                waits);
    }

    /** Returns this work {@code count} times. */
    KernelWork times(double count) {
        return new KernelWork(
                name,
                Math.round(launches * count),
                flops * count,
                longest * count,
                bytes * count,
                linkBytes * count,
                hostBytes * count,
                product,
                precision,
                Math.round(waits * count));
    }

    /** Returns the least time on one resource, in seconds; with {@code tf32}, products use tensor cores. */
    double seconds(Bound bound, Gpu gpu, boolean tf32) {
        double peak = switch (precision) {
            case FP32 -> product && tf32 ? gpu.tf32() : gpu.fp32();
            case TF32 -> gpu.tf32();
            case BF16 -> gpu.bf16();
        };
        return switch (bound) {
            case COMPUTE -> Math.max(flops / peak, longest / (peak / gpu.multiprocessors()));
            case MEMORY -> bytes / gpu.bandwidth();
            case LAUNCHES -> launches * gpu.launch();
            case WAITS -> waits * Gpu.WAIT;
            case LINK -> linkBytes / gpu.link();
            case HOST -> hostBytes / gpu.host();
        };
    }

    /** Returns the least time without the launch: the time on the scarcest resource. */
    double busy(Gpu gpu, boolean tf32) {
        return seconds(scarcest(gpu, tf32), gpu, tf32);
    }

    /** Returns the scarcest resource. */
    Bound scarcest(Gpu gpu, boolean tf32) {
        Bound most = Bound.MEMORY;
        for (Bound bound : new Bound[] {Bound.COMPUTE, Bound.LINK, Bound.HOST}) {
            if (seconds(bound, gpu, tf32) > seconds(most, gpu, tf32)) {
                most = bound;
            }
        }
        return most;
    }
}
