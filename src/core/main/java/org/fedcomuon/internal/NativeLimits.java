package org.fedcomuon.internal;

import java.util.Locale;
import java.util.Optional;

/**
 * JavaCPP, through which libtorch is called, refuses native memory when the process has four times the limit of the
 * Java heap. Weights and activations are not in the heap, so a small heap must not limit them. It unpacks libraries,
 * too, and {@link NativeCache} knows where that is safe. It reads its settings when its first class is used; what a
 * user has set is left alone.
 */
public final class NativeLimits {
    private static final Optional<String> REFUSED = NativeCache.settleJavaCpp();

    static {
        set("org.bytedeco.javacpp.maxBytes");
        set("org.bytedeco.javacpp.maxPhysicalBytes");
    }

    private NativeLimits() {}

    /**
     * Comes before the first use of a class of JavaCPP's.
     *
     * @throws RefusedException when it must not be used, since others could change what it loads
     */
    public static void lift() {
        REFUSED.ifPresent(reason -> {
            throw new RefusedException(reason);
        });
    }

    /** JavaCPP has no safe place. The message is one line with what to set. */
    public static final class RefusedException extends IllegalStateException {
        private static final long serialVersionUID = 1L;

        RefusedException(String reason) {
            super(reason);
        }
    }

    private static void set(String name) {
        if (System.getProperty(name) == null && System.getProperty(name.toLowerCase(Locale.ROOT)) == null) {
            System.setProperty(name, "0"); // no limit
        }
    }
}
