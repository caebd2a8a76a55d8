package org.fedcomuon.internal;

import java.util.Locale;

/**
 * JavaCPP, through which libtorch is called, refuses native memory when the process has four times the limit of the
 * Java heap. Weights and activations are not in the heap, so a small heap must not limit them. It reads its settings
 * when its first class is used; what a user has set is left alone.
 */
public final class NativeLimits {
    static {
        set("org.bytedeco.javacpp.maxBytes");
        set("org.bytedeco.javacpp.maxPhysicalBytes");
    }

    private NativeLimits() {}

    /** Comes before the first use of a class of JavaCPP's. */
    public static void lift() {}

    private static void set(String name) {
        if (System.getProperty(name) == null && System.getProperty(name.toLowerCase(Locale.ROOT)) == null) {
            System.setProperty(name, "0"); // no limit
        }
    }
}
