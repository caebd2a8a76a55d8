package org.fedcomuon.bench;

import java.util.Locale;

/** How a step is given to a GPU; {@link GpuModel} compares the two. */
enum Design {
    /**
     * As it was at commit 32e2815: the host waits after every operation that looks for NaN, before it evaluates a
     * function, and for every value and copy of libtorch; each vector is stepped by launches of its own; each client
     * has a gradient of its own, with masks from the host; models are evaluated on the CPU.
     */
    BEFORE,

    /**
     * Operations leave NaN to a status that the host reads when it waits anyway: for the weights before the gradient,
     * and for the inner values that it computes outer functions of. All vectors of all clients are stepped by three
     * launches, plans keep their tables on the device, one gradient is that of all clients, masks are made on the
     * device, and models are evaluated there.
     */
    AFTER;

    /** The design of the code in this repository, which {@code RoundWorkIT} compares with a trace. */
    static final Design CURRENT = AFTER;

    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT);
    }
}
