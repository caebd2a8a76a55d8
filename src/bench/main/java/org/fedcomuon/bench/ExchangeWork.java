package org.fedcomuon.bench;

/**
 * The mean of a variable over all clients as work for one of the devices. A device that has all clients needs one
 * launch. Otherwise it gathers its section of the variable in chunks from all devices, and copies the other sections.
 * Copies and sums overlap on a device; here their times are added.
 */
final class ExchangeWork {
    // The sizes that the federation uses.
    private static final long SLOT_BYTES = 32 << 20;
    private static final long CHUNKS = 8;
    private static final long LEAST_CHUNK = 1 << 14;

    private ExchangeWork() {}

    /** Returns the work for the mean of {@code n} elements per client. */
    static WorkList average(long n, int clients, int devices) {
        if (devices == 1) {
            return FusedWork.average((double) n, clients);
        }
        int own = Math.ceilDiv(clients, devices);
        int others = clients - own;
        long stretch = Math.ceilDiv(n, devices);
        long fits = SLOT_BYTES / Float.BYTES / clients;
        long chunk = Math.min(fits, Math.max(LEAST_CHUNK, Math.ceilDiv(stretch, CHUNKS)));
        long chunks = Math.ceilDiv(stretch, chunk);
        return WorkList.of(
                KernelWork.of("copy", chunks * own, 0, 8.0 * stretch * own),
                KernelWork.fromPeer("copy from another GPU", chunks * others, 4.0 * stretch * others),
                KernelWork.of("fcm_k_average", chunks, 3.0 * stretch * clients, 8.0 * stretch * clients),
                KernelWork.of("copy", chunks + 1, 0, 2 * 8.0 * stretch),
                KernelWork.fromPeer("copy from another GPU", devices - 1L, 4.0 * (n - stretch)),
                KernelWork.of("fcm_k_ema", own > 1 ? 1 : 0, 0, 4.0 * n * (2 * (own - 1) + 1)));
    }
}
