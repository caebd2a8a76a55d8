package org.fedcomuon.internal;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.function.LongConsumer;

/**
 * libtorch's {@code at::RecordFunctionCallback}, which JavaCPP's bindings accept and cannot make: two functions that
 * libtorch calls before and after each operator, inputs and outputs given. Both are handed the address of the
 * {@code at::RecordFunction}. They must not throw: there is no code to catch it.
 *
 * <p>{@link #address} is good until this is closed; take the callback off libtorch before.
 */
public final class TorchCallback implements AutoCloseable {
    /** {@code RecordScope::NUM_SCOPES}; the first is that of operators. */
    private static final int SCOPES = 10;

    private static final long SAMPLING = 16;
    private static final long FIRST_SCOPE = 24;
    private static final long NEEDS_INPUTS = FIRST_SCOPE + SCOPES;
    private static final long NEEDS_OUTPUTS = NEEDS_INPUTS + 1;
    private static final long BYTES = 40;

    /**
     * A byte of the {@code at::RecordFunction} that debug builds have for saying whether inputs may be read, and others
     * leave unused. The bindings are compiled as the one and libtorch as the other, so it falls to us to say it.
     */
    private static final long INPUTS_VALID = 105;

    private final Arena arena = Arena.ofShared();
    private final LongConsumer before;
    private final LongConsumer after;
    private final MemorySegment callback = arena.allocate(BYTES, Double.BYTES);

    public TorchCallback(LongConsumer before, LongConsumer after) {
        this.before = before;
        this.after = after;
        callback.set(ValueLayout.ADDRESS, 0, stub("start", MethodType.methodType(long.class, long.class, long.class)));
        callback.set(
                ValueLayout.ADDRESS,
                ValueLayout.ADDRESS.byteSize(),
                stub("end", MethodType.methodType(void.class, long.class, long.class)));
        callback.set(ValueLayout.JAVA_DOUBLE, SAMPLING, 1.0);
        callback.set(ValueLayout.JAVA_BYTE, FIRST_SCOPE, (byte) 1);
        callback.set(ValueLayout.JAVA_BYTE, NEEDS_INPUTS, (byte) 1);
        callback.set(ValueLayout.JAVA_BYTE, NEEDS_OUTPUTS, (byte) 1);
    }

    private MemorySegment stub(String name, MethodType type) {
        try {
            MethodHandle target = MethodHandles.lookup()
                    .findVirtual(TorchCallback.class, name, type)
                    .bindTo(this);
            FunctionDescriptor descriptor = type.returnType() == void.class
                    ? FunctionDescriptor.ofVoid(ValueLayout.JAVA_LONG, ValueLayout.JAVA_LONG)
                    : FunctionDescriptor.of(ValueLayout.JAVA_LONG, ValueLayout.JAVA_LONG, ValueLayout.JAVA_LONG);
            return Linker.nativeLinker().upcallStub(target, descriptor, arena);
        } catch (ReflectiveOperationException e) {
            throw new LinkageError("a method of this class", e);
        }
    }

    /** A {@code std::unique_ptr} is returned through memory of the caller's, whose address is the first argument. */
    @SuppressWarnings("unused") // libtorch calls it
    private long start(long result, long function) {
        MemorySegment.ofAddress(result)
                .reinterpret(ValueLayout.ADDRESS.byteSize())
                .set(ValueLayout.JAVA_LONG, 0, 0);
        MemorySegment.ofAddress(function).reinterpret(INPUTS_VALID + 1).set(ValueLayout.JAVA_BYTE, INPUTS_VALID, (byte)
                1);
        before.accept(function);
        return result;
    }

    @SuppressWarnings("unused") // libtorch calls it
    private void end(long function, long context) {
        after.accept(function);
    }

    /** Returns the address of the callback, for {@code addThreadLocalCallback}. */
    public long address() {
        return callback.address();
    }

    @Override
    public void close() {
        arena.close();
    }
}
