package org.fedcomuon.bench;

/**
 * The mean of a variable over all clients as work for one of the devices. A device that has all clients needs one
 * launch. Otherwise it reads its section of the variable of every client where it is, and writes the mean to the first
 * client of each device, from where each copies it to its others.
 *
 * <p>GPUs without peer access, such as the RTX 4090, copy the sections instead. The same bytes go over the link; the
 * copies within a GPU and their launches come on top and are not counted here.
 */
final class ExchangeWork {
    private ExchangeWork() {}

    /** Returns the work for the mean of {@code n} elements per client. */
    static WorkList average(long n, int clients, int devices) {
        if (devices == 1) {
            return FusedWork.average((double) n, clients);
        }
        int own = Math.ceilDiv(clients, devices);
        int others = clients - own;
        long stretch = Math.ceilDiv(n, devices);
        // What it reads of the others, and what they write here.
        double link = 4.0 * stretch * others + 4.0 * (n - stretch);
        return WorkList.of(
                KernelWork.overLink(
                        "fcm_k_average_rows", 3.0 * stretch * clients, 4.0 * stretch * (clients + devices), link),
                KernelWork.of("fcm_k_ema", own > 1 ? 1 : 0, 0, 4.0 * n * (2 * (own - 1) + 1)));
    }
}
