package org.fedcomuon.internal;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.util.Optional;

/**
 * The C library's heap, from which libtorch takes its tensors. What a thread frees there is kept for that thread, so
 * gigabytes of activations stay when others go to work.
 */
public final class NativeHeap {
    /** Empty where the C library has no such function: only glibc keeps so much. */
    private static final Optional<MethodHandle> TRIM = Linker.nativeLinker()
            .defaultLookup()
            .find("malloc_trim")
            .map(address -> Linker.nativeLinker()
                    .downcallHandle(address, FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.JAVA_LONG)));

    private NativeHeap() {}

    /**
     * Gives what is free back to the system. Takes milliseconds a gigabyte, and page faults when it is needed again.
     */
    public static void trim() {
        if (TRIM.isEmpty()) {
            return;
        }
        try {
            int _ = (int) TRIM.get().invokeExact(0L);
        } catch (RuntimeException | Error e) {
            throw e;
        } catch (Throwable e) {
            throw new AssertionError("a downcall throws nothing checked", e);
        }
    }
}
