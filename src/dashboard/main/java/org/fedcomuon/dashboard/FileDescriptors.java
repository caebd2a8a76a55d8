package org.fedcomuon.dashboard;

import com.sun.management.UnixOperatingSystemMXBean;
import java.lang.management.ManagementFactory;

/**
 * The file descriptors of this process: a connection takes one, and without one a run cannot open its files.
 * Thread-safe.
 */
final class FileDescriptors {
    /** What a run keeps in any case: libraries, data, checkpoints, its metrics. */
    private static final long LEAST_RESERVE = 64;
    /** A page for fewer connections would often not answer. */
    private static final int LEAST_SHARE = 8;

    private FileDescriptors() {}

    /** How many can be opened; as many as anybody wants on systems that do not tell. */
    static long left() {
        if (!(ManagementFactory.getOperatingSystemMXBean() instanceof UnixOperatingSystemMXBean system)) {
            return Integer.MAX_VALUE;
        }
        try {
            return Math.max(0, system.getMaxFileDescriptorCount() - system.getOpenFileDescriptorCount());
        } catch (InternalError e) {
            return 0; // They are counted by reading a directory, which takes one.
        }
    }

    /** How many of those that are left connections may have: half at most, so that a run always finds some. */
    static int share(long left) {
        return Math.clamp(left - Math.max(LEAST_RESERVE, left / 2), 0, Integer.MAX_VALUE);
    }

    /** Why there can be no page; empty if there can. */
    static String shortage(long left) {
        return share(left) >= LEAST_SHARE
                ? ""
                : "%d file descriptors are left, and a page needs %d beside a run; raise the limit (ulimit -n)"
                        .formatted(left, LEAST_RESERVE + LEAST_SHARE);
    }
}
