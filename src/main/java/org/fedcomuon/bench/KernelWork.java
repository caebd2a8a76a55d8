package org.fedcomuon.bench;

/**
 * What a GPU has to do at one call: a kernel or several in a row, a copy or a fill.
 *
 * @param name of the kernel or the operator
 * @param launches how often something is given to the device
 * @param flops floating point operations, a fused multiply-add counting as two
 * @param longest flops of the longest task, which one multiprocessor does alone; 0 where work can be divided at will
 * @param bytes to and from the device's memory, as if nothing were cached between launches
 * @param linkBytes from another GPU
 * @param hostBytes from the CPU's memory
 * @param product whether tensor cores could do it in tf32
 */
record KernelWork(
        String name,
        long launches,
        double flops,
        double longest,
        double bytes,
        double linkBytes,
        double hostBytes,
        boolean product) {
    /** What holds a piece of work up. */
    enum Bound {
        COMPUTE,
        MEMORY,
        LAUNCHES,
        LINK,
        HOST;

        @Override
        public String toString() {
            return name().toLowerCase(java.util.Locale.ROOT);
        }
    }

    static KernelWork of(String name, long launches, double flops, double bytes) {
        return new KernelWork(name, launches, flops, 0, bytes, 0, 0, false);
    }

    /** A matrix product or a convolution. */
    static KernelWork product(String name, long launches, double flops, double bytes) {
        return new KernelWork(name, launches, flops, 0, bytes, 0, 0, true);
    }

    /** A copy from the CPU's memory. */
    static KernelWork fromHost(String name, double bytes) {
        return new KernelWork(name, 1, 0, 0, bytes, 0, bytes, false);
    }

    /** Copies from another GPU. */
    static KernelWork fromPeer(String name, long launches, double bytes) {
        return new KernelWork(name, launches, 0, 0, bytes, bytes, 0, false);
    }

    /** Something that takes a launch and hardly anything else: a fill of a few bytes, an answer to the host. */
    static KernelWork tiny(String name, long launches) {
        return of(name, launches, 0, 0);
    }

    /** The same so many times. */
    KernelWork times(double count) {
        return new KernelWork(
                name,
                Math.round(launches * count),
                flops * count,
                longest * count,
                bytes * count,
                linkBytes * count,
                hostBytes * count,
                product);
    }

    /** The least time of one resource, in seconds; {@code tf32} for the products that may use it. */
    double seconds(Bound bound, Gpu gpu, boolean tf32) {
        double peak = product && tf32 ? gpu.tf32() : gpu.fp32();
        return switch (bound) {
            case COMPUTE -> Math.max(flops / peak, longest / (peak / gpu.multiprocessors()));
            case MEMORY -> bytes / gpu.bandwidth();
            case LAUNCHES -> launches * gpu.launch();
            case LINK -> linkBytes / gpu.link();
            case HOST -> hostBytes / gpu.host();
        };
    }

    /** The least time without the launch: what the scarcest resource takes. */
    double busy(Gpu gpu, boolean tf32) {
        return seconds(scarcest(gpu, tf32), gpu, tf32);
    }

    /** Which resource that is. */
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
