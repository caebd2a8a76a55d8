package org.fedcomuon.model;

import java.util.function.Supplier;
import org.bytedeco.javacpp.PointerScope;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.global.torch;
import org.fedcomuon.internal.NativeLimits;
import org.fedcomuon.internal.OpenBlasLibrary;

/**
 * One torch thread for each thread that asks. libtorch's OpenMP and OpenBLAS's own threads would fight with each other
 * and with the clients that run side by side; and sums would depend on their number.
 */
final class Torch {
    static {
        NativeLimits.lift();
    }

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

    /**
     * A part of a network, such as a layer. What it made on the way is let go of at its end, and stays in memory only
     * if the backward pass needs it; a scope around the whole network would hold everything until the loss is known.
     */
    static Tensor part(Supplier<Tensor> body) {
        PointerScope outer = PointerScope.getInnerScope();
        try (var _ = new PointerScope()) {
            Tensor result = body.get();
            if (outer == null) {
                result.retainReference(); // and the garbage collector frees it
            } else {
                outer.attach(result);
            }
            return result;
        }
    }
}
