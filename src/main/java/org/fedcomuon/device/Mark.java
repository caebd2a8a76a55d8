package org.fedcomuon.device;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.fedcomuon.internal.bindings.fedcomuon.FedComuonNative;

/**
 * A point in the work of a device or of a {@link CopyLane}, for others to wait for while the host goes on. On the CPU
 * all work is done when a call returns, and there is nothing to wait for.
 *
 * <p>Of the device's thread to {@link #record}; others wait on threads of their own ({@link Device#await},
 * {@link CopyLane#await}), for where it is at that moment: one that was never recorded holds nothing up. Closed by
 * whoever made it; its device closes what is left.
 */
public final class Mark implements AutoCloseable {
    private final DeviceMemory memory;
    private final Arena arena = Arena.ofShared(); // stands guard: not destroyed while another thread's call uses it
    private final MemorySegment event;

    /** @param memory the context whose work is marked */
    Mark(DeviceMemory memory) {
        this.memory = memory;
        try (Arena local = Arena.ofConfined()) {
            var calls = new NativeCalls(local);
            var address = local.allocate(FedComuonNative.C_POINTER);
            calls.check(FedComuonNative.fcm_event_create(memory.context(), address, calls.error()), "fcm_event_create");
            event = address.get(FedComuonNative.C_POINTER, 0).reinterpret(arena, FedComuonNative::fcm_event_destroy);
        }
        memory.add(this);
    }

    /** Moves the mark to the end of what its device or lane has been given so far. */
    public void record() {
        try (Arena local = Arena.ofConfined()) {
            var calls = new NativeCalls(local);
            calls.check(FedComuonNative.fcm_event_record(live(), calls.error()), "fcm_event_record");
        }
    }

    /** What {@code context} is given from now on runs after the mark. */
    void await(MemorySegment context) {
        try (Arena local = Arena.ofConfined()) {
            var calls = new NativeCalls(local);
            calls.check(FedComuonNative.fcm_event_wait(context, live(), calls.error()), "fcm_event_wait");
        }
    }

    private MemorySegment live() {
        if (!arena.scope().isAlive()) {
            throw new IllegalStateException("a mark of %s is closed".formatted(memory.deviceName()));
        }
        return event;
    }

    /** Closing twice does nothing. */
    @Override
    public synchronized void close() {
        if (arena.scope().isAlive()) {
            arena.close();
            memory.forget(this);
        }
    }
}
