package org.fedcomuon.model;

import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;

/**
 * Whether libtorch computes on GPUs. The jars for CPUs, which are the default, do not: parameters and gradients of
 * clients on a GPU then cross the bus in every step. That works, but somebody who has asked for a GPU has to be told,
 * once. Thread-safe.
 */
final class GpuSupport {
    private final BooleanSupplier cuda;
    private final Consumer<String> warning;
    private final AtomicBoolean warned = new AtomicBoolean();

    /**
     * @param cuda whether libtorch has CUDA and finds a GPU
     * @param warning gets the one line about a libtorch without
     */
    GpuSupport(BooleanSupplier cuda, Consumer<String> warning) {
        this.cuda = cuda;
        this.warning = warning;
    }

    /** Returns whether libtorch can compute on this device; it cannot on simulated ones. */
    boolean computesOn(String device) {
        if (!device.startsWith("cuda:")) {
            return false;
        }
        if (cuda.getAsBoolean()) {
            return true;
        }
        if (warned.compareAndSet(false, true)) {
            warning.accept(
                    ("%s: this libtorch has no CUDA, so gradients are computed on the CPU and copied in every step;"
                                    + " add org.bytedeco:pytorch with the classifier linux-x86_64-gpu (in a build from source,"
                                    + " -Dpytorch.platform=linux-x86_64-gpu)")
                            .formatted(device));
        }
        return false;
    }

    /** Returns whether somebody has been told. */
    boolean hasWarned() {
        return warned.get();
    }
}
