package org.fedcomuon.bench;

import java.util.List;

/**
 * The mean of a variable over all clients as work for one of the devices. A device that has all clients needs one
 * launch. Of several, each computes the exponents and sums of its own clients, reads those of the others, and writes
 * its stretch of the mean to the first client of each device, from where each copies it to its others.
 *
 * <p>GPUs without peer access, such as the RTX 4090, copy exponents, sums and mean instead. The same bytes go over the
 * link; the launches of the copies come on top and are not counted here. NCCL brings more bytes over the link, and
 * needs no kernel of ours for what others have.
 */
final class ExchangeWork {
    private ExchangeWork() {}

    /** Returns the work for the mean of {@code n} elements per client. */
    static WorkList average(long n, int clients, int devices) {
        if (devices == 1) {
            return FusedWork.average((double) n, clients);
        }
        int own = Math.ceilDiv(clients, devices);
        int others = devices - 1;
        double stretch = Math.ceilDiv(n, devices);
        double values = (double) n * own;
        return new WorkList(List.of(
                KernelWork.of("fcm_k_mean_exponents", 1, 2 * values, 4 * values + n),
                KernelWork.overLink(
                        "fcm_k_mean_combine", (double) n * devices, n * (devices + 1.0), (double) n * others),
                KernelWork.of("fcm_k_mean_sums", 1, 3 * values, 4 * values + 9.0 * n),
                // Sums of the others, and what they write here.
                KernelWork.overLink(
                        "fcm_k_mean_finish",
                        stretch * (devices + 3),
                        stretch * (8.0 * devices + 1 + 4.0 * devices),
                        8 * stretch * others + 4 * (n - stretch)),
                KernelWork.of("fcm_k_ema", own > 1 ? 1 : 0, 0, 4.0 * n * (2 * (own - 1) + 1))));
    }
}
