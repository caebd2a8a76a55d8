package org.fedcomuon.bench;

/**
 * The mean of a variable over all clients as work for one of the devices: in one launch where it has all clients;
 * otherwise its stretch of the variable, gathered in chunks from everybody, and the others' stretches copied. Copies
 * and sums overlap on a device; here they are added up.
 */
final class ExchangeWork {
    // The sizes of the federation's own exchange.
    private static final long SLOT_BYTES = 32 << 20;
    private static final long CHUNKS = 8;
    private static final long LEAST_CHUNK = 1 << 14;

    private ExchangeWork() {}

    /** The mean of {@code n} elements a client. */
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
