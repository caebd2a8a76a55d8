package org.fedcomuon.model;

import org.bytedeco.pytorch.global.torch;
import org.fedcomuon.internal.OpenBlasLibrary;

/**
 * One torch thread for each thread that asks. libtorch's OpenMP and OpenBLAS's own threads would fight with each other
 * and with the clients that run side by side; and sums would depend on their number.
 */
final class Torch {
    private static final ThreadLocal<Boolean> CLAIMED = ThreadLocal.withInitial(() -> {
        torch.set_num_threads(1); // of this thread only: it is OpenMP's setting
        OpenBlasLibrary.setThreads(1);
        return true;
    });

    private Torch() {}

    /** Whether libtorch computes on a device of ours as well; of simulated ones it knows nothing. */
    static boolean computesOn(String device) {
        return device.startsWith("cuda:") && torch.cuda_is_available();
    }

    /** Comes before any call of libtorch on a thread. */
    static void claim() {
        if (!CLAIMED.get()) {
            throw new AssertionError();
        }
    }
}
