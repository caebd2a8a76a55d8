package org.fedcomuon.internal;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicLong;

/**
 * The C library's heap, from which models are that outlive their device, and libtorch's tensors. What a thread frees
 * there is kept for that thread, so gigabytes of activations stay when others go to work.
 */
public final class NativeHeap {
    /** Empty where the C library has no such function: only glibc keeps so much. */
    private static final Optional<MethodHandle> TRIM = Linker.nativeLinker()
            .defaultLookup()
            .find("malloc_trim")
            .map(address -> Linker.nativeLinker()
                    .downcallHandle(address, FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.JAVA_LONG)));

    private static final MethodHandle CALLOC = function(
            "calloc", FunctionDescriptor.of(ValueLayout.ADDRESS, ValueLayout.JAVA_LONG, ValueLayout.JAVA_LONG));
    private static final MethodHandle FREE = function("free", FunctionDescriptor.ofVoid(ValueLayout.ADDRESS));

    /** After so much the collector is reminded: it does not see what its small objects stand for. */
    private static final long BETWEEN_REMINDERS = 1L << 30;

    private static final AtomicLong SINCE_REMINDER = new AtomicLong();

    private NativeHeap() {}

    private static MethodHandle function(String name, FunctionDescriptor descriptor) {
        Linker linker = Linker.nativeLinker();
        return linker.downcallHandle(linker.defaultLookup().findOrThrow(name), descriptor);
    }

    /**
     * Allocates zeros that are freed when they become unreachable. Unlike those of an arena they are not counted
     * against the limit of direct memory, which is that of the Java heap by default: a model may be larger than that.
     *
     * @throws OutOfMemoryError when there is not enough memory
     */
    public static MemorySegment allocate(long bytes) {
        if (SINCE_REMINDER.addAndGet(bytes) > BETWEEN_REMINDERS) {
            SINCE_REMINDER.set(0);
            System.gc();
        }
        try {
            var address = (MemorySegment) CALLOC.invokeExact(Math.max(1, bytes), 1L);
            if (address.equals(MemorySegment.NULL)) {
                throw new OutOfMemoryError("no memory for %d bytes outside the heap".formatted(bytes));
            }
            return address.reinterpret(bytes, Arena.ofAuto(), NativeHeap::free);
        } catch (RuntimeException | Error e) {
            throw e;
        } catch (Throwable e) {
            throw new AssertionError("a downcall throws nothing checked", e);
        }
    }

    private static void free(MemorySegment segment) {
        try {
            FREE.invokeExact(segment);
        } catch (RuntimeException | Error e) {
            throw e;
        } catch (Throwable e) {
            throw new AssertionError("a downcall throws nothing checked", e);
        }
    }

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
