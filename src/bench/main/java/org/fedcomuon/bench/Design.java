package org.fedcomuon.bench;

import java.util.Locale;

/** How a step is given to a GPU, in the order in which it was written; {@link GpuModel} compares them. */
enum Design {
    /**
     * As it was at commit 32e2815: the host waits after every operation that looks for NaN, before it evaluates a
     * function, and for every value and copy of libtorch; each vector is stepped by launches of its own; each client
     * has a gradient of its own, with masks from the host; models are evaluated on the CPU.
     */
    WITH_WAITS("with waits"),

    /**
     * As it was at commit e653bff. Operations leave NaN to a status that the host reads when it waits anyway: for the
     * weights before the gradient, and for the inner values that it computes outer functions of. All vectors of all
     * clients are stepped by three launches, plans keep their tables on the device, one gradient is that of all
     * clients, masks are made on the device, and models are evaluated there. Large matrices are multiplied by cuBLAS,
     * one product of one client at a time, and all of them by the plain iteration.
     */
    BY_CUBLAS("by cuBLAS"),

    /**
     * The same with the matrices of all clients in a few launches: one for each product of the iteration, with
     * symmetry, and in the Gram form where {@code auto} picks it.
     */
    GROUPED("grouped");

    /** The design of the code in this repository, which {@code RoundWorkIT} compares with a trace. */
    static final Design CURRENT = GROUPED;

    private final String title;

    Design(String title) {
        this.title = title;
    }

    /** Returns its name in JSON. */
    String key() {
        return title.toLowerCase(Locale.ROOT).replace(' ', '_');
    }

    @Override
    public String toString() {
        return title;
    }
}
