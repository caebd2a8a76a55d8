package org.fedcomuon.federation;

import java.util.Locale;

/** How the means over all clients are worked out where they are on several devices. */
public enum ExchangeKind {
    /** In client order, by our own kernels: the same bits on any devices. What a run does unless told otherwise. */
    ORDERED,

    /**
     * Each GPU sums its own clients, and NCCL adds up the sums: less is sent between them. The order depends on where
     * clients are and on NCCL, and so do the last bits of every mean. Needs GPUs and NCCL.
     */
    NCCL;

    /** As settings and records have it. */
    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT);
    }
}
