package org.fedcomuon.internal.vendor;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.reflect.Field;
import java.util.function.IntSupplier;
import jcuda.NativePointerObject;
import jcuda.Pointer;
import jcuda.runtime.cudaStream_t;

/**
 * Addresses as JCuda's functions take them. Apart from {@link JCudaLibrary}, which must load where there is no JCuda to
 * say so.
 */
final class JCudaPointers {
    private JCudaPointers() {}

    /** Returns a pointer to where a segment is. */
    static Pointer pointer(MemorySegment segment) {
        return new Address(segment.address());
    }

    private static final class Address extends Pointer {
        Address(long address) {
            super(address);
        }
    }

    /** Returns JCuda's view of an existing stream. JCuda has no constructor for that, so its field is written. */
    static cudaStream_t stream(MemorySegment stream) {
        var result = new cudaStream_t();
        set(result, stream.address());
        return result;
    }

    /**
     * Makes an object of a library's. Some of JCuda's functions pass on what the Java object points to, instead of
     * taking the answer and keeping it: so it points to a place for the answer first.
     */
    static int create(NativePointerObject object, IntSupplier creator) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment slot = arena.allocate(ValueLayout.JAVA_LONG);
            set(object, slot.address());
            int status = creator.getAsInt();
            if (get(object) == slot.address()) {
                set(object, slot.get(ValueLayout.JAVA_LONG, 0));
            }
            return status;
        }
    }

    private static void set(NativePointerObject object, long address) {
        try {
            pointerField().setLong(object, address);
        } catch (ReflectiveOperationException e) {
            throw elsewhere(e);
        }
    }

    private static long get(NativePointerObject object) {
        try {
            return pointerField().getLong(object);
        } catch (ReflectiveOperationException e) {
            throw elsewhere(e);
        }
    }

    private static Field pointerField() throws ReflectiveOperationException {
        Field field = NativePointerObject.class.getDeclaredField("nativePointer");
        field.setAccessible(true);
        return field;
    }

    private static VendorException elsewhere(ReflectiveOperationException e) {
        return new VendorException.LibraryMissing("this version of JCuda keeps its pointers elsewhere: " + e);
    }
}
