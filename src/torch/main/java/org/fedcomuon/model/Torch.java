package org.fedcomuon.model;

import java.util.function.Supplier;
import org.bytedeco.javacpp.PointerScope;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.global.torch;
import org.fedcomuon.internal.NativeLimits;
import org.fedcomuon.internal.OpenBlasLibrary;

/**
 * Limits libtorch to one thread per calling thread. The threads of OpenMP and OpenBLAS would compete with each other
 * and with the clients that run in parallel, and sums would depend on their number.
 */
final class Torch {
    static {
        NativeLimits.lift();
    }

    private static final ThreadLocal<Boolean> CLAIMED = ThreadLocal.withInitial(() -> {
        torch.set_num_threads(1); // for this thread only: it is a setting of OpenMP
        OpenBlasLibrary.setThreads(1);
        return true;
    });

    private Torch() {}

    /** Returns whether libtorch can compute on this device; it cannot on simulated ones. */
    static boolean computesOn(String device) {
        return device.startsWith("cuda:") && torch.cuda_is_available();
    }

    /** Must be called on a thread before any other call of libtorch. */
    static void claim() {
        if (!CLAIMED.get()) {
            throw new AssertionError();
        }
    }

    /**
     * Runs a part of a network, such as a layer. Its temporary tensors are released at its end and stay in memory only
     * if the backward pass needs them; a scope around the whole network would hold all of them until the loss is known.
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
